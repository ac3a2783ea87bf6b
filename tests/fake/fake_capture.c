/*
 * fake_capture.c - record the work of a captured stream, and put it on a stream with each launch of
 * the graph.
 *
 * Each launch checks again which streams touch which memory, and whether the memory still exists.
 * Calls that wait, allocate or load are refused during a capture, on all threads (mode 0) or on the
 * capturing one (mode 1), and end the capture with an error, as in NVIDIA's driver. A capture does
 * not extend to another stream by events.
 */
#include "fake_driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct node {
    struct node *next;
    stream_work *work;
    char what[];
} node;

typedef struct CUgraph_st {
    node *first, **last;
    int users;                /* users: the capture, and its executable graphs                    */
} graph;

typedef struct capture {
    struct capture *next;
    stream *stream;
    pthread_t thread;
    int mode;
    bool invalid;
    graph *graph;
} capture;

enum { GLOBAL = 0, THREAD_LOCAL, RELAXED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static capture *captures;
static atomic_int graphs;
static int ends, graph_launches;

#pragma GCC visibility push(default)
int cuStreamBeginCapture_v2(stream *s, int mode);
int cuStreamEndCapture(stream *s, graph **out);
int cuGraphInstantiateWithFlags(graph **out, graph *g, unsigned long long flags);
int cuGraphLaunch(graph *g, stream *s);
int cuGraphExecDestroy(graph *g);
int cuGraphDestroy(graph *g);
#pragma GCC visibility pop

int capture_left_over(void) { return atomic_load(&graphs); }

/* ---- during a capture; with the lock held ---------------------------------------------------- */

static capture *find(const stream *s)
{
    capture *c = captures;

    while (c != NULL && c->stream != s)
        c = c->next;
    return c;
}

static bool concerns_me(const capture *c)
{
    return c->mode == GLOBAL
        || (c->mode == THREAD_LOCAL && pthread_equal(c->thread, pthread_self()));
}

static void invalidate(capture *c, const char *call)
{
    fprintf(stderr, "fake cuda: %s while a stream is captured\n", call);
    c->invalid = true;
}

/* ---- checks of other calls ------------------------------------------------------------------- */

int capture_refuses(const char *call)
{
    int result = OK;

    pthread_mutex_lock(&lock);
    for (capture *c = captures; c != NULL; c = c->next)
        if (concerns_me(c)) {
            invalidate(c, call);
            result = CAPTURE_UNSUPPORTED;
        }
    pthread_mutex_unlock(&lock);
    return result;
}

int capture_refuses_stream(const stream *s, const char *call)
{
    capture *c;

    pthread_mutex_lock(&lock);
    c = find(s);
    if (c != NULL)
        invalidate(c, call);
    pthread_mutex_unlock(&lock);
    return c != NULL ? CAPTURE_UNSUPPORTED : OK;
}

static node *new_node(stream_work *work, const void *what, size_t size)
{
    node *n = malloc(sizeof *n + size);

    if (n == NULL)
        abort();
    n->next = NULL;
    n->work = work;
    memcpy(n->what, what, size);
    return n;
}

int stream_give(stream *s, stream_work *work, const void *what, size_t size)
{
    capture *c;
    int result = OK;

    pthread_mutex_lock(&lock);
    c = find(s);
    if (c != NULL && !c->invalid) {
        *c->graph->last = new_node(work, what, size);
        c->graph->last = &(*c->graph->last)->next;
    } else if (c != NULL) {
        result = CAPTURE_INVALIDATED;
    }
    pthread_mutex_unlock(&lock);
    return c != NULL ? result : work(s, what);
}

bool stream_is_captured(const stream *s)
{
    bool captured;

    pthread_mutex_lock(&lock);
    captured = find(s) != NULL;
    pthread_mutex_unlock(&lock);
    return captured;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static graph *new_graph(void)
{
    graph *g = calloc(1, sizeof *g);

    if (g == NULL)
        abort();
    g->last = &g->first;
    g->users = 1;
    atomic_fetch_add(&graphs, 1);
    return g;
}

static void drop(graph *g)
{
    bool last;

    pthread_mutex_lock(&lock);
    last = --g->users == 0;
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    for (node *n = g->first, *next; n != NULL; n = next) {
        next = n->next;
        free(n);
    }
    free(g);
    atomic_fetch_sub(&graphs, 1);
}

int cuStreamBeginCapture_v2(stream *s, int mode)
{
    capture *c;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (s == NULL || mode < GLOBAL || mode > RELAXED || stream_is_captured(s))
        return INVALID;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        abort();
    *c = (capture){ .stream = s, .thread = pthread_self(), .mode = mode, .graph = new_graph() };
    pthread_mutex_lock(&lock);
    c->next = captures;
    captures = c;
    pthread_mutex_unlock(&lock);
    return OK;
}

static int end_capture(capture *c, graph **out)
{
    bool mine = c->mode == RELAXED || pthread_equal(c->thread, pthread_self());
    int result = c->invalid ? CAPTURE_INVALIDATED : !mine ? CAPTURE_WRONG_THREAD
               : fake_fails("capture", &ends) ? NO_MEMORY : OK;

    *out = result == OK ? c->graph : NULL;
    if (result != OK)
        drop(c->graph);
    free(c);
    return result;
}

int cuStreamEndCapture(stream *s, graph **out)
{
    capture *c = NULL;

    pthread_mutex_lock(&lock);
    for (capture **at = &captures; *at != NULL; at = &(*at)->next)
        if ((*at)->stream == s) {
            c = *at;
            *at = c->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    return c != NULL ? end_capture(c, out) : INVALID;
}

int cuGraphInstantiateWithFlags(graph **out, graph *g, unsigned long long flags)
{
    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (g == NULL || flags != 0)
        return INVALID;
    pthread_mutex_lock(&lock);
    g->users++;
    pthread_mutex_unlock(&lock);
    *out = g;
    return OK;
}

int cuGraphLaunch(graph *g, stream *s)
{
    int result = OK;

    if (fake_context() == NULL)
        return NO_CONTEXT;
    if (g == NULL || s == NULL || stream_is_captured(s))
        return INVALID;
    if (fake_fails("graph", &graph_launches))
        return LAUNCH_FAILED;
    fake_counts(FAKE_GRAPH_LAUNCHES);
    for (const node *n = g->first; n != NULL && result == OK; n = n->next)
        result = n->work(s, n->what);
    return result;
}

int cuGraphExecDestroy(graph *g)
{
    drop(g);
    return OK;
}

int cuGraphDestroy(graph *g)
{
    drop(g);
    return OK;
}
