/*
 * profile.h - the time of named ranges of all threads, as a tree for each thread and, of the first
 * steps, as a list of events.
 *
 * A thread records what it does between host_range_begin and host_range_end once it is attached to
 * a profile. A thread that thread_start or parallel_run starts is attached with the one that starts
 * it. A range of a thread without profile and marker costs one test. Tracks are written by their
 * thread alone; they are read when the other threads have ended.
 */
#ifndef CORE_BASE_PROFILE_PROFILE_H
#define CORE_BASE_PROFILE_PROFILE_H

#include "base/profile/range_kind.h"

#include <stdbool.h>
#include <stdint.h>

/* A range below its parent: all its occurrences there. */
typedef struct profile_node {
    char *name;
    range_kind kind;
    int64_t calls;
    double seconds;              /* from begin to end, those of its children included             */
    double device_seconds;       /* of kernels on a device with a clock of its own, likewise      */
    double begin;                /* of the running occurrence                                     */
    struct profile_node *parent, *child, *next;
    struct profile_node *last;   /* the child that was found last                                 */
} profile_node;

/* An occurrence of a range; seconds of base/clock.h. */
typedef struct profile_event {
    const profile_node *node;
    double begin, end;
} profile_event;

typedef struct profile_track {
    struct profile *profile;
    char *name;                  /* of the thread or device                                       */
    int kernel_threads;          /* threads that compute the kernels of this thread; 0: none      */
    bool taken;                  /* a thread uses it                                              */
    profile_node root, *top;
    int unrecorded;              /* open ranges without a node: no memory                         */
    int64_t event_count, event_room, lost_events;
    profile_event *event;
    struct profile_track *next;
} profile_track;

/* The kernels of one kind and implementation. */
typedef struct profile_kernels {
    char *kind, *implementation;
    int64_t calls;
    double seconds, device_seconds; /* of the thread that launches them; on the device            */
    struct profile_kernels *next;
} profile_kernels;

typedef struct profile profile;

/* A profile whose events are those of the first 'traced_steps' steps. NULL: no memory. */
profile *profile_new(int traced_steps);
/* No thread may be attached. NULL is allowed. */
void profile_free(profile *p);

/* Attach the calling thread, under a name; NULL detaches it. */
void profile_attach(profile *p, const char *name);
/* Rename the track of the calling thread. */
void profile_name_thread(const char *name);
/* The profile of the calling thread, or NULL. */
profile *profile_of_thread(void);
/* A track that no thread has: a device's. NULL: no memory. */
profile_track *profile_add_track(profile *p, const char *name);
/*
 * Add an event to such a track, as a range of its own. While events are kept, it begins at the end
 * of the one before at the earliest.
 */
void profile_add_event(profile_track *t, range_kind kind, const char *name, double begin,
                       double end);
/* Add seconds on a device to the open ranges of the calling thread, and to those around them. */
void profile_add_device_seconds(double seconds);
/* The number of threads that compute the kernels of the calling thread. */
void profile_set_kernel_threads(int count);
/* A step has ended. One thread calls it. */
void profile_count_step(profile *p);
/* Add calls to a group of kernels. Any thread. */
void profile_add_kernels(profile *p, const char *kind, const char *implementation, int64_t calls,
                         double seconds, double device_seconds);

/* ---- reading --------------------------------------------------------------------------------- */

/* Put the events of each track in the order of their begins, each one behind those around it. */
void profile_sort_events(profile *p);
int64_t profile_steps(const profile *p);
/* The begin of the profile; the steps whose events are kept. */
double profile_begin(const profile *p);
int profile_traced_steps(const profile *p);
const profile_track *profile_tracks(const profile *p);
const profile_kernels *profile_kernel_groups(const profile *p);

typedef struct profile_phase {
    int64_t calls;
    double seconds, device_seconds;
} profile_phase;

/* The sum of a phase on a thread; a phase within another one is part of that one. */
profile_phase profile_track_phase(const profile_track *t, range_kind phase);
/* The sum of a phase over all threads. */
profile_phase profile_phase_sum(const profile *p, range_kind phase);

/* ---- ranges ---------------------------------------------------------------------------------- */

/*
 * Ranges in the profiler of a device, for threads that have no device: functions as in
 * pons_device_operations.
 */
typedef struct profile_marker {
    void *context;
    void (*begin)(void *context, const char *name, uint32_t color);
    void (*end)(void *context);
} profile_marker;

/* State that a thread hands to threads that it starts. */
typedef struct profile_thread {
    profile *profile;
    const profile_marker *marker;
} profile_thread;

/* Set the marker of the calling thread; NULL: none. It outlives the threads started meanwhile. */
void profile_set_marker(const profile_marker *marker);
profile_thread profile_thread_state(void);
/* Take the state of the thread that has started this one, under a name; leave it at the end. */
void profile_thread_enter(profile_thread from, const char *name);
void profile_thread_leave(void);

/* A range of the calling thread in its profile alone. */
void profile_range_begin(range_kind kind, const char *name);
void profile_range_end(void);
/* A range in its profile and by its marker. */
void host_range_begin(range_kind kind, const char *name);
void host_range_end(void);

#endif
