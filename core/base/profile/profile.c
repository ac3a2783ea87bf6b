/*
 * profile.c - record ranges of threads: a tree of totals, and events while the first steps run.
 */
#include "base/profile/profile.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* A thread's events take at most this many entries, about 25 MB. */
enum { EVENTS_MAX = 1 << 20 };

struct profile {
    pthread_mutex_t lock;        /* of the lists                                                  */
    profile_track *track, **track_end;
    profile_kernels *kernels, **kernels_end;
    double begin;
    int64_t steps;
    int traced_steps;
    atomic_bool tracing;
};

static _Thread_local profile_track *own;
static _Thread_local const profile_marker *own_marker;

/* ---- nodes ----------------------------------------------------------------------------------- */

static void node_free_below(profile_node *n)
{
    for (profile_node *c = n->child, *next; c != NULL; c = next) {
        next = c->next;
        node_free_below(c);
        free(c->name);
        free(c);
    }
}

static bool node_is(const profile_node *n, range_kind kind, const char *name)
{
    return n->kind == kind && strcmp(n->name, name) == 0;
}

static profile_node *node_add(profile_node *parent, range_kind kind, const char *name)
{
    profile_node *n = calloc(1, sizeof *n);
    profile_node **end = &parent->child;

    if (n == NULL || (n->name = strdup(name)) == NULL) {
        free(n);
        return NULL;
    }
    n->kind = kind;
    n->parent = parent;
    while (*end != NULL)
        end = &(*end)->next;
    *end = n;
    return n;
}

/* The child of that name. Ranges recur in order, so the search begins behind the last one found. */
static profile_node *node_find(profile_node *parent, range_kind kind, const char *name)
{
    profile_node *first = parent->last != NULL ? parent->last->next : NULL;
    profile_node *found = NULL;

    for (profile_node *n = first; n != NULL && found == NULL; n = n->next)
        if (node_is(n, kind, name))
            found = n;
    for (profile_node *n = parent->child; n != first && found == NULL; n = n->next)
        if (node_is(n, kind, name))
            found = n;
    if (found == NULL)
        found = node_add(parent, kind, name);
    return parent->last = found;
}

/* ---- tracks ---------------------------------------------------------------------------------- */

profile *profile_new(int traced_steps)
{
    profile *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->track_end = &p->track;
    p->kernels_end = &p->kernels;
    p->traced_steps = traced_steps;
    p->begin = seconds_now();
    atomic_store(&p->tracing, traced_steps > 0);
    return p;
}

static void track_free(profile_track *t)
{
    node_free_below(&t->root);
    free(t->event);
    free(t->name);
    free(t);
}

void profile_free(profile *p)
{
    if (p == NULL)
        return;
    for (profile_track *t = p->track, *next; t != NULL; t = next) {
        next = t->next;
        track_free(t);
    }
    for (profile_kernels *k = p->kernels, *next; k != NULL; k = next) {
        next = k->next;
        free(k->kind);
        free(k->implementation);
        free(k);
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static profile_track *track_new(profile *p, const char *name)
{
    profile_track *t = calloc(1, sizeof *t);

    if (t == NULL || (t->name = strdup(name)) == NULL) {
        free(t);
        return NULL;
    }
    t->profile = p;
    t->root.name = t->name;
    t->root.kind = RANGE_OTHER;
    t->top = &t->root;
    *p->track_end = t;
    p->track_end = &t->next;
    return t;
}

/* A track of that name that no thread uses any more, or a new one. */
static profile_track *track_take(profile *p, const char *name)
{
    profile_track *t;

    pthread_mutex_lock(&p->lock);
    t = p->track;
    while (t != NULL && (t->taken || strcmp(t->name, name) != 0))
        t = t->next;
    if (t == NULL)
        t = track_new(p, name);
    if (t != NULL)
        t->taken = true;
    pthread_mutex_unlock(&p->lock);
    return t;
}

static void track_leave(profile_track *t)
{
    pthread_mutex_lock(&t->profile->lock);
    t->taken = false;
    pthread_mutex_unlock(&t->profile->lock);
}

void profile_attach(profile *p, const char *name)
{
    if (own != NULL)
        track_leave(own);
    own = p != NULL ? track_take(p, name) : NULL;
}

void profile_name_thread(const char *name)
{
    char *copy = own != NULL ? strdup(name) : NULL;

    if (copy == NULL)
        return;
    pthread_mutex_lock(&own->profile->lock);
    free(own->name);
    own->root.name = own->name = copy;
    pthread_mutex_unlock(&own->profile->lock);
}

profile *profile_of_thread(void)
{
    return own != NULL ? own->profile : NULL;
}

profile_track *profile_add_track(profile *p, const char *name)
{
    profile_track *t;

    pthread_mutex_lock(&p->lock);
    t = track_new(p, name);
    if (t != NULL)
        t->taken = true;
    pthread_mutex_unlock(&p->lock);
    return t;
}

void profile_set_kernel_threads(int count)
{
    if (own != NULL)
        own->kernel_threads = count;
}

/* ---- recording ------------------------------------------------------------------------------- */

static void add_event(profile_track *t, const profile_node *n, double begin, double end)
{
    if (!atomic_load_explicit(&t->profile->tracing, memory_order_relaxed))
        return;
    if (t->event_count == t->event_room && t->event_room < EVENTS_MAX) {
        int64_t room = t->event_room > 0 ? 2 * t->event_room : 1024;
        profile_event *larger = realloc(t->event, (size_t)room * sizeof *larger);

        if (larger != NULL) {
            t->event = larger;
            t->event_room = room;
        }
    }
    if (t->event_count < t->event_room)
        t->event[t->event_count++] = (profile_event){ n, begin, end };
    else
        t->lost_events++;
}

static void count_node(profile_track *t, profile_node *n, double begin, double end)
{
    n->calls++;
    n->seconds += end - begin;
    add_event(t, n, begin, end);
}

void profile_range_begin(range_kind kind, const char *name)
{
    profile_track *t = own;
    profile_node *n;

    if (t == NULL)
        return;
    n = t->unrecorded == 0 ? node_find(t->top, kind, name) : NULL;
    if (n == NULL) {
        t->unrecorded++;
        return;
    }
    t->top = n;
    n->begin = seconds_now();
}

void profile_range_end(void)
{
    profile_track *t = own;

    if (t != NULL && t->unrecorded > 0) {
        t->unrecorded--;
    } else if (t != NULL && t->top != &t->root) {
        count_node(t, t->top, t->top->begin, seconds_now());
        t->top = t->top->parent;
    }
}

void profile_add_event(profile_track *t, range_kind kind, const char *name, double begin,
                       double end)
{
    profile_node *n = node_find(&t->root, kind, name);

    if (t->event_count > 0)
        begin = fmax(begin, t->event[t->event_count - 1].end);
    if (n != NULL)
        count_node(t, n, begin, end);
}

void profile_add_device_seconds(double seconds)
{
    for (profile_node *n = own != NULL ? own->top : NULL; n != NULL; n = n->parent)
        n->device_seconds += seconds;
}

void profile_count_step(profile *p)
{
    p->steps++;
    if (p->steps == p->traced_steps)
        atomic_store(&p->tracing, false);
}

/* Locked. */
static profile_kernels *find_kernels(profile *p, const char *kind, const char *implementation)
{
    profile_kernels *k = p->kernels;

    while (k != NULL && (strcmp(k->kind, kind) != 0
                         || strcmp(k->implementation, implementation) != 0))
        k = k->next;
    if (k != NULL || (k = calloc(1, sizeof *k)) == NULL)
        return k;
    k->kind = strdup(kind);
    k->implementation = strdup(implementation);
    if (k->kind == NULL || k->implementation == NULL) {
        free(k->kind);
        free(k->implementation);
        free(k);
        return NULL;
    }
    *p->kernels_end = k;
    p->kernels_end = &k->next;
    return k;
}

void profile_add_kernels(profile *p, const char *kind, const char *implementation, int64_t calls,
                         double seconds, double device_seconds)
{
    profile_kernels *k;

    pthread_mutex_lock(&p->lock);
    k = find_kernels(p, kind, implementation);
    if (k != NULL) {
        k->calls += calls;
        k->seconds += seconds;
        k->device_seconds += device_seconds;
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int node_depth(const profile_node *n)
{
    int depth = 0;

    for (; n->parent != NULL; n = n->parent)
        depth++;
    return depth;
}

static int compare_events(const void *a, const void *b)
{
    const profile_event *x = a, *y = b;

    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1;
    return node_depth(x->node) - node_depth(y->node);
}

void profile_sort_events(profile *p)
{
    for (profile_track *t = p->track; t != NULL; t = t->next)
        if (t->event_count > 0)
            qsort(t->event, (size_t)t->event_count, sizeof *t->event, compare_events);
}

int64_t profile_steps(const profile *p) { return p->steps; }

double profile_begin(const profile *p) { return p->begin; }

int profile_traced_steps(const profile *p)
{
    return p->steps < p->traced_steps ? (int)p->steps : p->traced_steps;
}

const profile_track *profile_tracks(const profile *p) { return p->track; }

const profile_kernels *profile_kernel_groups(const profile *p) { return p->kernels; }

static void add_phase(const profile_node *n, range_kind phase, profile_phase *sum)
{
    if (n->kind == phase) {
        sum->calls += n->calls;
        sum->seconds += n->seconds;
        sum->device_seconds += n->device_seconds;
    }
    if (n->kind >= RANGE_PHASE_COUNT)
        for (const profile_node *c = n->child; c != NULL; c = c->next)
            add_phase(c, phase, sum);
}

profile_phase profile_track_phase(const profile_track *t, range_kind phase)
{
    profile_phase sum = { 0, 0, 0 };

    add_phase(&t->root, phase, &sum);
    return sum;
}

profile_phase profile_phase_sum(const profile *p, range_kind phase)
{
    profile_phase sum = { 0, 0, 0 };

    for (const profile_track *t = p->track; t != NULL; t = t->next)
        add_phase(&t->root, phase, &sum);
    return sum;
}

/* ---- threads --------------------------------------------------------------------------------- */

void profile_set_marker(const profile_marker *marker)
{
    own_marker = marker;
}

profile_thread profile_thread_state(void)
{
    return (profile_thread){ profile_of_thread(), own_marker };
}

void profile_thread_enter(profile_thread from, const char *name)
{
    own_marker = from.marker;
    if (from.profile != NULL)
        profile_attach(from.profile, name);
}

void profile_thread_leave(void)
{
    profile_attach(NULL, NULL);
    own_marker = NULL;
}

void host_range_begin(range_kind kind, const char *name)
{
    if (own_marker != NULL)
        own_marker->begin(own_marker->context, name, range_kind_color(kind));
    profile_range_begin(kind, name);
}

void host_range_end(void)
{
    profile_range_end();
    if (own_marker != NULL)
        own_marker->end(own_marker->context);
}
