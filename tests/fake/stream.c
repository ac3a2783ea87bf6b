/*
 * stream.c - streams and events. Tasks begin late, on a thread of their own, so that a reader
 * without a wait gets old values.
 */
#include "fake_driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

typedef struct task {
    struct task *next;
    void (*run)(void *context);
    void *context;
} task;

struct CUstream_st {
    stream *next;
    context context;
    int actor;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    task *first, **last;
    bool closing;
};

typedef struct CUevent_st {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t recorded, reached;
    int users;                /* users: its maker, and waiting streams                            */
    bool timed;
    order_clock clock;        /* clock of the last record                                         */
    double time;
} event;

enum { NO_TIMING = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stream *streams;
static atomic_int events;

int fake_left_over_memory(void);

#pragma GCC visibility push(default)
int cuStreamCreate(stream **out, unsigned flags);
int cuStreamDestroy_v2(stream *s);
int cuStreamSynchronize(stream *s);
int cuStreamGetCtx(stream *s, context *out);
int cuStreamWaitEvent(stream *s, event *e, unsigned flags);
int cuLaunchHostFunc(stream *s, void (*function)(void *context), void *context);
int cuEventCreate(event **out, unsigned flags);
int cuEventDestroy_v2(event *e);
int cuEventRecord(event *e, stream *s);
int cuEventQuery(event *e);
int cuEventSynchronize(event *e);
int cuEventElapsedTime(float *out, event *from, event *to);
#pragma GCC visibility pop

int fake_left_over(void)
{
    return fake_left_over_memory() + atomic_load(&events) + capture_left_over();
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void *live(void *argument)
{
    stream *s = argument;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        task *t;
        while (s->first == NULL && !s->closing)
            pthread_cond_wait(&s->changed, &s->lock);
        t = s->first;
        if (t == NULL)
            break;
        pthread_mutex_unlock(&s->lock);
        t->run(t->context);
        pthread_mutex_lock(&s->lock);
        s->first = t->next;
        if (s->first == NULL)
            s->last = &s->first;
        free(t);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

void fake_stream_touch(stream *s, const void *memory, size_t size, bool writes)
{
    order_begin(s->actor);
    memory_touch(s->actor, memory, size, writes);
}

void fake_stream_push(stream *s, void (*run)(void *context), void *context)
{
    task *t = malloc(sizeof *t);

    if (t == NULL || capture_refuses_stream(s, "work that no capture keeps") != OK)
        abort();
    *t = (task){ .run = run, .context = context };
    pthread_mutex_lock(&s->lock);
    *s->last = t;
    s->last = &t->next;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* This process has seen the deeds of 'c'. */
static void learn(const order_clock *c)
{
    order_follow(HOST, c);
    memory_settle();
}

static void drain(stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->first != NULL)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void stream_drain_all(void)
{
    pthread_mutex_lock(&lock);
    for (stream *s = streams; s != NULL; s = s->next)
        drain(s);
    pthread_mutex_unlock(&lock);
}

/* ---- streams --------------------------------------------------------------------------------- */

int cuStreamCreate(stream **out, unsigned flags)
{
    stream *s;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (flags > 1 || (s = calloc(1, sizeof *s)) == NULL)
        return INVALID;
    s->context = fake_context();
    s->actor = order_actor_new();
    s->last = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    pthread_create(&s->thread, NULL, live, s);
    pthread_mutex_lock(&lock);
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&lock);
    *out = s;
    return OK;
}

int cuStreamSynchronize(stream *s)
{
    order_clock seen;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (capture_refuses("cuStreamSynchronize") != OK
        || capture_refuses_stream(s, "cuStreamSynchronize") != OK)
        return CAPTURE_UNSUPPORTED;
    order_look(s != NULL ? s->actor : DEFAULT_STREAM, &seen);
    if (s != NULL) {
        fake_counts(FAKE_WAITS);
        drain(s);
    }
    learn(&seen);
    return OK;
}

int cuStreamDestroy_v2(stream *s)
{
    order_clock seen;

    if (capture_refuses_stream(s, "cuStreamDestroy") != OK)
        return CAPTURE_UNSUPPORTED;
    order_look(s->actor, &seen);
    pthread_mutex_lock(&lock);
    for (stream **at = &streams; *at != NULL; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    learn(&seen);
    order_actor_free(s->actor);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return OK;
}

int cuStreamGetCtx(stream *s, context *out)
{
    *out = s->context;
    return OK;
}

/* ---- host functions -------------------------------------------------------------------------- */

typedef struct host_call {
    void (*function)(void *context);
    void *context;
} host_call;

static void run_host_call(void *context)
{
    host_call *h = context;

    h->function(h->context);
    free(h);
}

/* Run a host function. A capture would record it; pons never captures one. */
int cuLaunchHostFunc(stream *s, void (*function)(void *context), void *context)
{
    host_call *h;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (s == NULL || function == NULL)
        return INVALID;
    if (capture_refuses_stream(s, "cuLaunchHostFunc") != OK)
        return CAPTURE_UNSUPPORTED;
    h = malloc(sizeof *h);
    if (h == NULL)
        return NO_MEMORY;
    *h = (host_call){ function, context };
    fake_stream_push(s, run_host_call, h);
    return OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

int cuEventCreate(event **out, unsigned flags)
{
    event *e;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    e = calloc(1, sizeof *e);
    if (e == NULL)
        return NO_MEMORY;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    e->users = 1;
    e->timed = (flags & NO_TIMING) == 0;
    atomic_fetch_add(&events, 1);
    *out = e;
    return OK;
}

static _Thread_local double spent; /* extra seconds of events, by tasks of this stream            */

void fake_stream_spend(double seconds) { spent += seconds; }

static void reach(void *context)
{
    event *e = context;
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    pthread_mutex_lock(&e->lock);
    e->time = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + spent;
    e->reached++;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

int cuEventRecord(event *e, stream *s)
{
    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (s == NULL)
        return INVALID;
    if (capture_refuses_stream(s, "cuEventRecord") != OK)
        return CAPTURE_UNSUPPORTED;
    order_begin(s->actor);
    pthread_mutex_lock(&e->lock);
    e->recorded++;
    order_look(s->actor, &e->clock);
    pthread_mutex_unlock(&e->lock);
    fake_stream_push(s, reach, e);
    return OK;
}

static void drop(event *e)
{
    bool last;

    pthread_mutex_lock(&e->lock);
    last = --e->users == 0;
    pthread_mutex_unlock(&e->lock);
    if (!last)
        return;
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

typedef struct wait {
    event *event;
    uint64_t number;
} wait;

static void wait_until(event *e, uint64_t number)
{
    pthread_mutex_lock(&e->lock);
    while (e->reached < number)
        pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void run_wait(void *context)
{
    wait *w = context;

    wait_until(w->event, w->number);
    drop(w->event);
    free(w);
}

int cuStreamWaitEvent(stream *s, event *e, unsigned flags)
{
    wait *w;

    if (fake_context() == NULL || s == NULL || flags != 0)
        return INVALID;
    if (capture_refuses_stream(s, "cuStreamWaitEvent") != OK)
        return CAPTURE_UNSUPPORTED;
    w = malloc(sizeof *w);
    if (w == NULL)
        return NO_MEMORY;
    pthread_mutex_lock(&e->lock);
    *w = (wait){ e, e->recorded };
    e->users++;
    order_follow(s->actor, &e->clock);
    pthread_mutex_unlock(&e->lock);
    fake_stream_push(s, run_wait, w);
    return OK;
}

static bool is_reached(event *e)
{
    bool reached;

    pthread_mutex_lock(&e->lock);
    reached = e->reached == e->recorded;
    pthread_mutex_unlock(&e->lock);
    return reached;
}

int cuEventQuery(event *e)
{
    if (capture_refuses("cuEventQuery") != OK)
        return CAPTURE_UNSUPPORTED;
    if (!is_reached(e))
        return NOT_READY;
    learn(&e->clock);
    return OK;
}

int cuEventSynchronize(event *e)
{
    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (capture_refuses("cuEventSynchronize") != OK)
        return CAPTURE_UNSUPPORTED;
    fake_counts(FAKE_WAITS);
    wait_until(e, e->recorded);
    learn(&e->clock);
    return OK;
}

int cuEventElapsedTime(float *out, event *from, event *to)
{
    if (!from->timed || !to->timed || from->recorded == 0 || to->recorded == 0)
        return INVALID_HANDLE;
    if (!is_reached(from) || !is_reached(to))
        return NOT_READY;
    *out = (float)(1e3 * (to->time - from->time));
    return OK;
}

int cuEventDestroy_v2(event *e)
{
    if (fake_context() == NULL || !is_reached(e))
        return INVALID;
    drop(e);
    atomic_fetch_sub(&events, 1);
    return OK;
}
