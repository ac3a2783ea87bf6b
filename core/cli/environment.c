/*
 * environment.c - OpenMP and oneDNN read the environment when a device plugin brings them in. The
 * file and the replicas decide about threads (R20), the processor about kernels (R4), so whatever
 * is set outside is cleared before: ONEDNN_MAX_CPU_ISA alone would change every bit of a run, and
 * no file of it would say so. The C library is told to give large blocks back, and the system to
 * report a file that may not grow as an error. Descriptors 0 to 2 are open afterwards.
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

/* Returns false when there is nothing left to clear. */
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
 * Volumes and tensors always get pages of their own. By default glibc raises the limit for that
 * with every large block that is freed, and then keeps the holes that volumes of different extents
 * leave between cached cases: an eighth of the process for twelve cases of 112^3.
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
 * How often a kernel thread looks for the next kernel before it sleeps: below a millisecond. A step
 * has hundreds of kernels one behind the other, and to wake a thread takes as long as a small one:
 * without any looking a step takes an eighth longer, with more it gets no shorter.
 */
#define SPINS "10000"

/*
 * A file that is opened later must not get the number of a standard stream that the starter of this
 * process has closed: its lines would go into that file. To read ends there, to write fails.
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

/* Bytes; several times the deepest chain of calls in pons and its libraries. */
enum { STACK_LEAST = 512 << 10 };

/* A thread's stack is as large as the first one's, and what outgrows it ends without a word. */
/* The usual way of an error takes more stack than there may be. */
static void tell_stack(unsigned long long size)
{
    char line[160];
    int length = snprintf(line, sizeof line, "error: the stack is limited to %llu KiB, expected at "
                          "least %d KiB\nhint: ulimit -s 8192\n", size >> 10, STACK_LEAST >> 10);

    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return; /* the exit code says it */
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
    signal(SIGXFSZ, SIG_IGN); /* write then fails with EFBIG */
}
