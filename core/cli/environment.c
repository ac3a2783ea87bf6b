/*
 * environment.c - clear the environment of kernel libraries, and check limits.
 *
 * OpenMP and oneDNN read the environment when a device plugin loads them. But the INI file and the
 * replicas decide the threads (R20), and the processor decides the kernels (R4). ONEDNN_MAX_CPU_ISA
 * alone would change every bit of a run, and no file of the run would record it. So their variables
 * are cleared.
 *
 * The C library returns large blocks to the system. A file at its size limit fails with an error
 * instead of a signal. Descriptors 0 to 2 are open afterwards.
 */
#include "cli/environment.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/command.h"

extern char **environ;

static bool is_cleared(const char *entry)
{
    static const char *const prefixes[] = { "OMP_", "GOMP_", "KMP_", "ONEDNN_", "DNNL_" };

    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Clear one variable. Returns false if none is left. */
static bool clear_one(void)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        char name[256];
        size_t size = strcspn(*entry, "=");
        if (!is_cleared(*entry) || size >= sizeof name)
            continue;
        memcpy(name, *entry, size);
        name[size] = '\0';
        return unsetenv(name) == 0;
    }
    return false;
}

/*
 * Volumes and tensors always get pages of their own. By default glibc raises the threshold for that
 * with every freed large block. It would then keep the holes that volumes of different extents
 * leave between cached cases.
 */
#ifdef M_MMAP_THRESHOLD
static void give_large_blocks_back(void)
{
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
}
#else
static void give_large_blocks_back(void)
{
}
#endif

/*
 * The number of times that a kernel thread polls for the next kernel before it sleeps, which takes
 * less than a millisecond. A step has hundreds of kernels in sequence, and waking a thread takes as
 * long as a small kernel. More polling shortens no step.
 */
#define SPINS "10000"

/*
 * Open standard streams that the parent process has closed. A file opened later would else get the
 * descriptor of such a stream and receive its lines. Reads then end at once, and writes fail.
 */
static void open_standard_streams(void)
{
    int file;

    do
        file = open("/dev/null", O_RDONLY);
    while (file >= 0 && file <= STDERR_FILENO);
    if (file > STDERR_FILENO)
        close(file);
}

/* The least stack in bytes, several times the deepest chain of calls in pons and its libraries. */
enum { STACK_LEAST = 512 << 10 };

/*
 * Report a stack that is too small. All threads have a stack of this size, and an overflow would
 * end the process without a message. pons_fail and the logger need more stack than may be left.
 */
static void tell_stack(unsigned long long size)
{
    char line[160];
    int length = snprintf(line, sizeof line, "error: the stack is limited to %llu KiB, expected at "
                          "least %d KiB\nhint: ulimit -s 8192\n", size >> 10, STACK_LEAST >> 10);

    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return; /* the exit code reports it */
}

pons_status environment_check(void)
{
    struct rlimit stack;

    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= STACK_LEAST)
        return PONS_OK;
    tell_stack(stack.rlim_cur);
    return PONS_DEVICE;
}

void environment_prepare(void)
{
    open_standard_streams();
    give_large_blocks_back();
    while (clear_one())
        continue;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("GOMP_SPINCOUNT", SPINS, 1);
    setenv("OMP_DYNAMIC", "false", 1);
    signal(SIGXFSZ, SIG_IGN); /* writes fail with EFBIG instead */
}
