/*
 * subprocess.c - fork a child for the work, and share memory in which it leaves its result.
 */
#include "base/system/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/errno_status.h"
#include "base/system/signal_name.h"

/* The milliseconds between looks at a child, and where no event tells its end. */
enum { WATCH_MS = 250, BLIND_WATCH_MS = 20 };
/* A child that computes less than this share of the time waits for something that does not come. */
static const double IDLE_SHARE = 0.01;
static const double PATIENCE = 10; /* limits, on a busy machine */

/* Result of the child, in memory that both processes share. */
struct subprocess_child {
    bool given;
    atomic_uint stage_count;
    char stage[128];
    pons_error err;
};

typedef pons_status subprocess_work(const void *context, subprocess_child *child, pons_error *err);

/* ---- child ----------------------------------------------------------------------------------- */

void subprocess_stage(subprocess_child *child, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(child->stage, sizeof child->stage, format, list);
    va_end(list);
    atomic_fetch_add(&child->stage_count, 1);
}

/* Drop output and core files: a child that fails is an expected result. */
static void silence_output(void)
{
    const struct rlimit none = { 0, 0 };
    const int nothing = open("/dev/null", O_WRONLY);

    setrlimit(RLIMIT_CORE, &none);
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
}

static _Noreturn void run_child(subprocess_work *work, const void *context,
                                const subprocess_terms *terms, subprocess_child *c)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (terms->quiet)
        silence_output();
    subprocess_stage(c, "the start");
    work(context, c, &c->err);
    errno = 0;
    if (!terms->quiet && (fflush(stdout) != 0 || ferror(stdout)))
        pons_fail(&c->err, PONS_FAILURE, "cannot write to the standard output: %s",
                  errno != 0 ? strerror(errno) : "it was closed");
    c->given = true;
    if (terms->quiet)
        _exit((int)c->err.status);
    exit((int)c->err.status); /* functions registered with atexit are part of the work */
}

/* ---- parent ---------------------------------------------------------------------------------- */

/* The begin of a stage, in the clock and in the child's time on processors. */
typedef struct stage_begin {
    unsigned count;
    double clock, processor;
} stage_begin;

/* Seconds that all threads of the child have computed; 0 if that is unknown. */
static double processor_seconds(pid_t child)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static bool is_late(pid_t child, const stage_begin *begin, double limit)
{
    double passed = seconds_now() - begin->clock;
    double computed = processor_seconds(child) - begin->processor;

    return passed >= limit && (computed >= limit || computed < IDLE_SHARE * passed
                               || passed >= PATIENCE * limit);
}

/* Look after a child that has not ended. true: its stage is late, and it is killed. */
static bool watch(pid_t child, const subprocess_child *c, const void *context,
                  const subprocess_terms *terms, stage_begin *begin)
{
    unsigned count = atomic_load(&c->stage_count);

    if (begin->count != count)
        *begin = (stage_begin){ count, seconds_now(), processor_seconds(child) };
    if (terms->waiting != NULL)
        terms->waiting(context, c->stage, seconds_now() - begin->clock);
    if (terms->seconds == 0 || !is_late(child, begin, terms->seconds))
        return false;
    kill(child, SIGKILL);
    return true;
}

static pons_status judge_exit(const subprocess_child *c, int code, bool late,
                              const subprocess_terms *terms, pons_error *err)
{
    if (WIFSIGNALED(code) && late)
        return pons_fail(err, PONS_PLUGIN, "%s: %s does not end within %d s", terms->who, c->stage,
                         terms->seconds);
    if (WIFSIGNALED(code))
        return pons_fail(err, PONS_PLUGIN, "%s: it ends the process by %s", terms->who,
                         signal_name(WTERMSIG(code)));
    if (!c->given)
        return pons_fail(err, PONS_PLUGIN, "%s: it ends the process, with status %d", terms->who,
                         WEXITSTATUS(code));
    if (WEXITSTATUS(code) != (int)c->err.status)
        return pons_fail(err, PONS_PLUGIN, "%s: the process ends with status %d behind it",
                         terms->who, WEXITSTATUS(code));
    return c->err.status == PONS_OK ? PONS_OK : pons_fail(err, c->err.status, "%s", c->err.text);
}

static pons_status wait_for_child(pid_t child, const subprocess_child *c, const void *context,
                                  const subprocess_terms *terms, pons_error *err)
{
    struct pollfd end = { (int)syscall(SYS_pidfd_open, child, 0), POLLIN, 0 };
    stage_begin begin = { 0, seconds_now(), 0 };
    bool late = false;
    pid_t found;
    int code;

    while ((found = waitpid(child, &code, WNOHANG)) != child) {
        if (found < 0 && errno != EINTR)
            break;
        late = late || watch(child, c, context, terms, &begin);
        poll(&end, 1, end.fd >= 0 ? WATCH_MS : BLIND_WATCH_MS);
    }
    if (end.fd >= 0)
        close(end.fd);
    if (found != child)
        return pons_fail(err, PONS_FAILURE, "%s: cannot wait for its process: %s", terms->who,
                         strerror(errno));
    return judge_exit(c, code, late, terms, err);
}

pons_status subprocess_run(subprocess_work *work, const void *context,
                           const subprocess_terms *terms, pons_error *err)
{
    subprocess_child *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                               -1, 0);
    pid_t child;

    if (c == MAP_FAILED)
        return pons_fail(err, PONS_DEVICE, "%s: no memory for an answer: %s", terms->who,
                         strerror(errno));
    fflush(NULL); /* else parent and child would both write buffered output */
    child = fork();
    if (child == 0)
        run_child(work, context, terms, c);
    if (child < 0)
        pons_fail(err, errno_status(errno, PONS_FAILURE), "%s: cannot start a process: %s",
                  terms->who, strerror(errno));
    else
        wait_for_child(child, c, context, terms, err);
    munmap(c, sizeof *c);
    return err->status;
}
