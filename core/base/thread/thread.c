/*
 * thread.c - start a thread, or say why there is none; how many could run at a time.
 */
#include "base/thread/thread.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/system/cpu_quota.h"

pons_status thread_start(pthread_t *out, void *(*work)(void *), void *context, const char *what,
                         pons_error *err)
{
    int cause = pthread_create(out, NULL, work, context);

    if (cause == 0)
        return PONS_OK;
    return pons_fail(err, PONS_DEVICE, "out of memory for %s, or too many threads: %s", what,
                     strerror(cause));
}

void thread_block_signals(sigset_t *before)
{
    static const int own[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL };
    sigset_t others;

    sigfillset(&others);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&others, own[i]);
    pthread_sigmask(SIG_BLOCK, &others, before);
}

void thread_condition(pthread_cond_t *out)
{
    pthread_condattr_t clock;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(out, &clock);
    pthread_condattr_destroy(&clock);
}

static pthread_once_t quota_asked = PTHREAD_ONCE_INIT;
static double quota;

static void ask_quota(void)
{
    quota = quota_find("/proc/self/cgroup", "/sys/fs/cgroup");
}

double thread_quota(void)
{
    pthread_once(&quota_asked, ask_quota);
    return quota;
}

int thread_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    int most = quota_threads(thread_quota(), 1);

    return count < 1 ? 1 : count < most ? count : most;
}
