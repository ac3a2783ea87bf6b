/*
 * interrupt.c - the thread that waits for signals.
 */
#include <config.h>

#include "train/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct interrupt {
    pthread_t thread;
    pthread_mutex_t state;   /* held while the state is changed or saved                          */
    sigset_t signals, before;
    atomic_bool pending, closing;
    bool over;               /* nothing is left that could be saved or lost                       */
    _Atomic double grace_s;
    void (*save)(void *context);
    void *context;
};

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Until the grace since 'begin' is over or another signal has come. */
static void wait_grace(interrupt *i, double begin)
{
    for (;;) {
        double left = begin + i->grace_s - seconds_now();
        if (left <= 0)
            return;
        struct timespec t = { (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };
        if (sigtimedwait(&i->signals, NULL, &t) > 0)
            return;
    }
}

static void *wait_for_signals(void *context)
{
    interrupt *i = context;
    int number;

    while (sigwait(&i->signals, &number) != 0)
        continue;
    if (i->closing)
        return NULL;
    i->pending = true;
    wait_grace(i, seconds_now());
    pthread_mutex_lock(&i->state);
    if (i->closing || i->over) {
        pthread_mutex_unlock(&i->state);
        return NULL;
    }
    if (i->save != NULL)
        i->save(i->context);
    _exit(PONS_INTERRUPTED);
}

pons_status interrupt_open(interrupt **out, pons_error *err)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGUSR1 };
    interrupt *i = calloc(1, sizeof *i);

    if (i == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    sigemptyset(&i->signals);
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        sigaddset(&i->signals, numbers[n]);
    pthread_mutex_init(&i->state, NULL);
    pthread_sigmask(SIG_BLOCK, &i->signals, &i->before);
    int problem = pthread_create(&i->thread, NULL, wait_for_signals, i);
    if (problem != 0) {
        pthread_sigmask(SIG_SETMASK, &i->before, NULL);
        free(i);
        return pons_fail(err, PONS_FAILURE, "cannot start a thread: %s", strerror(problem));
    }
    *out = i;
    return PONS_OK;
}

void interrupt_watch(interrupt *i, double grace_s, void (*save)(void *context), void *context)
{
    pthread_mutex_lock(&i->state);
    i->grace_s = grace_s;
    i->save = save;
    i->context = context;
    i->over = save == NULL;
    pthread_mutex_unlock(&i->state);
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
    pthread_sigmask(SIG_SETMASK, &i->before, NULL);
    free(i);
}
