/*
 * cuda_timer.c - measure the time of kernels on the GPU, by events around them.
 *
 * A host function before the first event blocks the stream until all kernels are queued. Otherwise
 * the launches, which are slower than short kernels, would be measured. The stream is blocked for
 * at most PATIENCE_MS: a launch may itself wait for the stream, for example to load a library's
 * kernel.
 */
#include "cuda/cuda.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { PATIENCE_MS = 100 };

struct cuda_timer {
    cuda_event begin, end;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool blocked;
};

/* ---- blocking the stream --------------------------------------------------------------------- */

static struct timespec time_ahead(long milliseconds)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += milliseconds * 1000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Host function of the stream; it runs on a driver thread. */
static void block_stream(void *context)
{
    const struct timespec end = time_ahead(PATIENCE_MS);
    cuda_timer *t = context;

    pthread_mutex_lock(&t->lock);
    while (t->blocked && pthread_cond_timedwait(&t->changed, &t->lock, &end) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&t->lock);
}

static void set_blocked(cuda_timer *t, bool blocked)
{
    pthread_mutex_lock(&t->lock);
    t->blocked = blocked;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* ---- the timer ------------------------------------------------------------------------------- */

static bool init_condition(pthread_cond_t *changed)
{
    pthread_condattr_t monotonic;
    bool done;

    if (pthread_condattr_init(&monotonic) != 0)
        return false;
    done = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0
        && pthread_cond_init(changed, &monotonic) == 0;
    pthread_condattr_destroy(&monotonic);
    return done;
}

static cuda_timer *new_timer(void)
{
    cuda_timer *t = calloc(1, sizeof *t);

    if (t == NULL || !init_condition(&t->changed)) {
        free(t);
        return NULL;
    }
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

static pons_status find_timer(cuda_device *d, pons_error *err)
{
    if (d->timer != NULL)
        return PONS_OK;
    d->timer = new_timer();
    if (d->timer == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot time kernels on device 'cuda:%d': out of memory",
                         d->ordinal);
    if (cuda_check(d, d->driver.event_new(&d->timer->begin, 0), "make an event", err) == PONS_OK
        && cuda_check(d, d->driver.event_new(&d->timer->end, 0), "make an event", err) == PONS_OK)
        return PONS_OK;
    cuda_timer_close(d);
    return PONS_DEVICE;
}

void cuda_timer_close(cuda_device *d)
{
    cuda_timer *t = d->timer;

    if (t == NULL)
        return;
    set_blocked(t, false);
    d->driver.stream_wait(d->stream[PONS_STREAM_KERNELS]); /* the stream may still use the timer */
    if (t->begin != NULL)
        d->driver.event_free(t->begin);
    if (t->end != NULL)
        d->driver.event_free(t->end);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
    d->timer = NULL;
}

pons_status cuda_timer_start(void *device, pons_error *err)
{
    cuda_device *d = device;
    cuda_stream stream = d->stream[PONS_STREAM_KERNELS];

    if (cuda_check(d, d->driver.use(d->context), "use the GPU", err) != PONS_OK
        || find_timer(d, err) != PONS_OK)
        return PONS_DEVICE;
    set_blocked(d->timer, true);
    if (cuda_check(d, d->driver.call_host(stream, block_stream, d->timer), "block the stream", err)
        != PONS_OK)
        return PONS_DEVICE;
    return cuda_check(d, d->driver.event_record(d->timer->begin, stream), "record an event", err);
}

pons_status cuda_timer_stop(void *device, double *seconds, pons_error *err)
{
    cuda_device *d = device;
    cuda_timer *t = d->timer;
    int marked = d->driver.event_record(t->end, d->stream[PONS_STREAM_KERNELS]);
    float milliseconds = 0;

    set_blocked(t, false);
    if (cuda_check(d, marked, "record an event", err) != PONS_OK
        || cuda_check(d, d->driver.event_wait(t->end), "run kernels", err) != PONS_OK
        || cuda_check(d, d->driver.event_time(&milliseconds, t->begin, t->end), "time kernels", err)
           != PONS_OK)
        return PONS_DEVICE;
    *seconds = 1e-3 * (double)milliseconds;
    return PONS_OK;
}
