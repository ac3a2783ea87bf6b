/*
 * thread.c - start threads, and count the processors that this process may use.
 */
#include "base/thread/thread.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/profile/profile.h"
#include "base/system/cpu_quota.h"

/* Whether a stack can be allocated. If so, a refused thread may be one too many. */
static bool has_stack_memory(void)
{
    pthread_attr_t defaults;
    size_t size = 0;
    void *stack;

    pthread_attr_init(&defaults);
    pthread_attr_getstacksize(&defaults, &size);
    pthread_attr_destroy(&defaults);
    stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return stack != MAP_FAILED && munmap(stack, size) == 0;
}

/* The work of a thread whose ranges are recorded or marked. */
typedef struct recorded_work {
    void *(*work)(void *context);
    void *context;
    profile_thread state;
    char name[];
} recorded_work;

static void *run_recorded(void *context)
{
    recorded_work *r = context;
    void *result;

    profile_thread_enter(r->state, r->name);
    result = r->work(r->context);
    profile_thread_leave();
    free(r);
    return result;
}

/* Start a thread whose ranges nobody sees as it is. */
static int create_thread(pthread_t *out, void *(*work)(void *), void *context, const char *what)
{
    profile_thread state = profile_thread_state();
    recorded_work *r = NULL;
    int cause;

    if (state.profile != NULL || state.marker != NULL)
        r = malloc(sizeof *r + strlen(what) + 1);
    if (r == NULL)
        return pthread_create(out, NULL, work, context);
    *r = (recorded_work){ work, context, state };
    strcpy(r->name, what);
    cause = pthread_create(out, NULL, run_recorded, r);
    if (cause != 0)
        free(r);
    return cause;
}

pons_status thread_start(pthread_t *out, void *(*work)(void *), void *context, const char *what,
                         pons_error *err)
{
    int cause = create_thread(out, work, context, what);

    if (cause == 0)
        return PONS_OK;
    return pons_fail(err, PONS_DEVICE, "out of memory for %s, or too many threads: %s%s", what,
                     strerror(cause), !has_stack_memory() ? ""
                     : "\nhint: ulimit -u allows more threads and processes");
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
    quota = cpu_quota_find("/proc/self/cgroup", "/sys/fs/cgroup");
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
    int most = cpu_quota_threads(thread_quota(), 1);

    return count < 1 ? 1 : count < most ? count : most;
}
