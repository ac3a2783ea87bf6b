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

struct signals {
    pthread_t thread;
    pthread_mutex_t state_lock;    /* locked while the state is changed or saved                  */
    sigset_t set, before;
    atomic_bool pending, closing;
    bool save_forbidden;     /* nothing is left that could be saved or lost                       */
    _Atomic double grace_s, reserve_s;
    pons_status (*save)(void *context);
    void *context;
    logger *log;
};

/* 'timeout' and others signal a process, then its whole group: both count as one signal. */
#define ECHO_SECONDS 0.1

/* The default action of SIGTSTP, which all threads block. Returns when the process goes on. */
static void stop_process(void)
{
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    raise(SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, NULL);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
}

/* Stop the process at SIGTSTP. Returns whether 'number' ends the training. */
static bool stop_or_end(const signals *s, int number)
{
    if (number == SIGTSTP)
        log_stopped(s->log, stop_process);
    return number > 0 && number != SIGTSTP;
}

/* Wait for a signal without an end. Returns its number. */
static int wait_long(const signals *s)
{
    int number = 0;

    while (sigwait(&s->set, &number) != 0 || !stop_or_end(s, number))
        continue;
    return number;
}

/* Wait for a signal until 'end'. Returns its number, or 0. */
static int wait_signal(const signals *s, double end)
{
    for (double left = end - seconds_now(); left > 0; left = end - seconds_now()) {
        const struct timespec t = { (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };
        int number = sigtimedwait(&s->set, NULL, &t);
        if (stop_or_end(s, number))
            return number;
    }
    return 0;
}

/* True if a second signal, other than an echo of 'first', ends the grace that began at 'begin'. */
static bool wait_grace(const signals *s, int first, double begin)
{
    double grace = s->grace_s, end = begin + grace - fmin(s->reserve_s, grace / 2);
    int number;

    do {
        number = wait_signal(s, end);
    } while (number == first && !s->closing && seconds_now() < begin + ECHO_SECONDS);
    return number > 0;
}

/* The process ends here, unless it is ending by itself. */
static void *save_and_exit(void *context)
{
    signals *s = context;

    pthread_mutex_lock(&s->state_lock);
    if (!s->closing && !s->save_forbidden)
        _exit(s->save(s->context));
    pthread_mutex_unlock(&s->state_lock);
    return NULL;
}

/* After a second signal the process ends in time, saved or not. */
static void end_soon(signals *s)
{
    static const char line[] = "error: interrupted twice; what was being saved is given up, the "
                               "checkpoint before it is complete\n";
    double end = seconds_now() + SIGNALS_LAST_SECONDS;

    while (!s->closing && wait_signal(s, end) > 0)
        continue;
    if (s->closing)
        return;
    ssize_t said = write(STDERR_FILENO, line, sizeof line - 1);
    (void)said;
    _exit(PONS_INTERRUPTED);
}

static void *wait_for_signals(void *context)
{
    signals *s = context;
    pthread_t saver;
    double begin;
    pons_error refused = PONS_ERROR_INIT;
    bool again;
    int number;

    number = wait_long(s);
    if (s->closing)
        return NULL;
    begin = seconds_now();
    s->pending = true;
    again = wait_grace(s, number, begin);
    if (thread_start(&saver, save_and_exit, s, "the thread that saves", &refused) != PONS_OK)
        return save_and_exit(s);
    if (!again)
        wait_long(s);
    end_soon(s);
    pthread_join(saver, NULL);
    return NULL;
}

pons_status signals_open(pons_status (*early)(void *context), void *context, logger *l,
                         signals **out, pons_error *err)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGUSR1 };
    struct sigaction stop;
    signals *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    s->save = early;
    s->context = context;
    s->log = l;
    sigemptyset(&s->set);
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        sigaddset(&s->set, numbers[n]);
    if (sigaction(SIGTSTP, NULL, &stop) == 0 && stop.sa_handler == SIG_DFL)
        sigaddset(&s->set, SIGTSTP); /* a shell without jobs has it ignored */
    pthread_mutex_init(&s->state_lock, NULL);
    pthread_sigmask(SIG_BLOCK, &s->set, &s->before);
    if (thread_start(&s->thread, wait_for_signals, s, "the thread that waits for signals", err)
        != PONS_OK) {
        pthread_sigmask(SIG_SETMASK, &s->before, NULL);
        free(s);
        return err->status;
    }
    *out = s;
    return PONS_OK;
}

void signals_set_save(signals *s, double grace_s, pons_status (*save)(void *context),
                      void *context)
{
    pthread_mutex_lock(&s->state_lock);
    s->grace_s = grace_s;
    s->save = save;
    s->context = context;
    s->save_forbidden = save == NULL;
    pthread_mutex_unlock(&s->state_lock);
}

void signals_reserve(signals *s, double seconds)
{
    if (s != NULL)
        s->reserve_s = seconds;
}

bool signals_pending(signals *s)
{
    return s != NULL && s->pending;
}

void signals_hold(signals *s)
{
    if (s != NULL)
        pthread_mutex_lock(&s->state_lock);
}

void signals_release(signals *s)
{
    if (s != NULL)
        pthread_mutex_unlock(&s->state_lock);
}

void signals_forbid_saving(signals *s)
{
    if (s != NULL)
        s->save_forbidden = true;
}

void signals_close(signals *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->state_lock); /* it is not saving */
    s->closing = true;
    pthread_mutex_unlock(&s->state_lock);
    pthread_kill(s->thread, SIGTERM); /* ends its waiting */
    pthread_join(s->thread, NULL);
    pthread_mutex_destroy(&s->state_lock);
    if (!s->pending) /* a process that is ending gets no second signal on its way */
        pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    free(s);
}
