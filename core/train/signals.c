/*
 * signals.c - the thread that waits for signals, and the one that saves when the grace is over.
 */
#include "train/signals.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/thread.h"

struct interrupt {
    pthread_t thread;
    pthread_mutex_t state;   /* held while the state is changed or saved                          */
    sigset_t signals, before;
    atomic_bool pending, closing;
    bool over;               /* nothing is left that could be saved or lost                       */
    _Atomic double grace_s, reserve_s;
    pons_status (*save)(void *context);
    void *context;
};

/* 'timeout' and others signal a process, then its whole group: that is asked once, not twice. */
#define ECHO_SECONDS 0.1

/* Until 'end' or a signal has come: its number, or 0. */
static int wait_signal(const interrupt *i, double end)
{
    for (double left = end - seconds_now(); left > 0; left = end - seconds_now()) {
        const struct timespec t = { (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };
        int number = sigtimedwait(&i->signals, NULL, &t);
        if (number > 0)
            return number;
    }
    return 0;
}

/* Whether a second signal, no echo of the first, has ended the grace of one of 'begin'. */
static bool wait_grace(const interrupt *i, int first, double begin)
{
    double grace = i->grace_s, end = begin + grace - fmin(i->reserve_s, grace / 2);
    int number;

    do {
        number = wait_signal(i, end);
    } while (number == first && !i->closing && seconds_now() < begin + ECHO_SECONDS);
    return number > 0;
}

/* The process ends here, unless it is ending by itself. */
static void *save_and_end(void *context)
{
    interrupt *i = context;

    pthread_mutex_lock(&i->state);
    if (!i->closing && !i->over)
        _exit(i->save(i->context));
    pthread_mutex_unlock(&i->state);
    return NULL;
}

/* A second signal has come: there is no more time than this. */
static void end_soon(interrupt *i)
{
    static const char line[] = "error: interrupted twice; what was being saved is given up, the "
                               "checkpoint before it is complete\n";
    double end = seconds_now() + INTERRUPT_LAST_SECONDS;

    while (!i->closing && wait_signal(i, end) > 0)
        continue;
    if (i->closing)
        return;
    ssize_t said = write(STDERR_FILENO, line, sizeof line - 1);
    (void)said;
    _exit(PONS_INTERRUPTED);
}

static void *wait_for_signals(void *context)
{
    interrupt *i = context;
    pthread_t saver;
    double begin;
    bool again;
    int number;

    while (sigwait(&i->signals, &number) != 0)
        continue;
    if (i->closing)
        return NULL;
    begin = seconds_now();
    i->pending = true;
    again = wait_grace(i, number, begin);
    if (pthread_create(&saver, NULL, save_and_end, i) != 0)
        return save_and_end(i);
    while (!again && sigwait(&i->signals, &number) != 0)
        continue;
    end_soon(i);
    pthread_join(saver, NULL);
    return NULL;
}

pons_status interrupt_open(pons_status (*early)(void *context), void *context, interrupt **out,
                           pons_error *err)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGUSR1 };
    interrupt *i = calloc(1, sizeof *i);

    if (i == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    i->save = early;
    i->context = context;
    sigemptyset(&i->signals);
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        sigaddset(&i->signals, numbers[n]);
    pthread_mutex_init(&i->state, NULL);
    pthread_sigmask(SIG_BLOCK, &i->signals, &i->before);
    if (thread_start(&i->thread, wait_for_signals, i, "the thread that waits for signals", err)
        != PONS_OK) {
        pthread_sigmask(SIG_SETMASK, &i->before, NULL);
        free(i);
        return err->status;
    }
    *out = i;
    return PONS_OK;
}

void interrupt_watch(interrupt *i, double grace_s, pons_status (*save)(void *context),
                     void *context)
{
    pthread_mutex_lock(&i->state);
    i->grace_s = grace_s;
    i->save = save;
    i->context = context;
    i->over = save == NULL;
    pthread_mutex_unlock(&i->state);
}

void interrupt_reserve(interrupt *i, double seconds)
{
    if (i != NULL)
        i->reserve_s = seconds;
}

bool interrupt_pending(interrupt *i)
{
    return i != NULL && i->pending;
}

void interrupt_enter(interrupt *i)
{
    if (i != NULL)
        pthread_mutex_lock(&i->state);
}

void interrupt_leave(interrupt *i)
{
    if (i != NULL)
        pthread_mutex_unlock(&i->state);
}

void interrupt_end(interrupt *i)
{
    if (i != NULL)
        i->over = true;
}

void interrupt_close(interrupt *i)
{
    if (i == NULL)
        return;
    pthread_mutex_lock(&i->state); /* it is not saving */
    i->closing = true;
    pthread_mutex_unlock(&i->state);
    pthread_kill(i->thread, SIGTERM); /* ends its waiting */
    pthread_join(i->thread, NULL);
    pthread_mutex_destroy(&i->state);
    if (!i->pending) /* who has been told to end is not told again on the way */
        pthread_sigmask(SIG_SETMASK, &i->before, NULL);
    free(i);
}
