/*
 * watchdog.h - the thread that looks after the processes of a run.
 *
 * Every process writes a beat into the store twice a second; rank 0 reads them all and judges
 * (heartbeat.h). The others read what rank 0 has found, and find for themselves when rank 0 is
 * gone. The first cause of a failure is one value in the store: whoever sets it first is right,
 * everybody's error names it.
 *
 * A process that is alone has a watch too, without a store: one that makes no progress ends, and
 * one that has failed and does not come to its end.
 */
#ifndef CORE_CLUSTER_WATCHDOG_WATCHDOG_H
#define CORE_CLUSTER_WATCHDOG_WATCHDOG_H

#include "cluster/store/store.h"

typedef struct watch watch;

typedef struct watch_settings {
    store *store;             /* NULL: size is 1                                                  */
    int rank, size;
    double timeout_s;
    void (*failed)(void *context, const char *text); /* as in group.h                             */
    void *context;
} watch_settings;

pons_status watch_open(const watch_settings *settings, watch **out, pons_error *err);
void watch_close(watch *w);
/* What is aborted when the run has failed, at once if it has already; NULL: nothing any more. */
void watch_comm(watch *w, const pons_comm_operations *operations, void *comm);

/* Where this process is. Any thread. */
void watch_note(watch *w, int64_t step, const char *doing);
/* A collective has been started; this thread waits for one; it has ended. */
void watch_start(watch *w, int64_t number, const char *kind, int64_t size);
void watch_wait(watch *w, int64_t number, const char *kind, int64_t size);
void watch_done(watch *w);

/* The failure that has ended the run, waiting up to wait_s for it; PONS_OK: there is none. */
pons_status watch_cause(watch *w, double wait_s, pons_error *err);
/* This process has failed: the first cause, unless another one's is known; *err becomes it. */
void watch_publish(watch *w, pons_error *err);
/* A failure that all find by themselves: its line as it is. */
void watch_publish_common(watch *w, const pons_error *err);
/* Of rank 0, whose store goes with it: until all others have heard of the failure, or wait_s. */
void watch_wait_heard(watch *w, double wait_s);
/* This process has begun to end; the watch leaves it its own time for that. */
void watch_leave(watch *w);
/*
 * As watch_leave, of a process that is alone. Where it has failed its end may wait for what has
 * failed with it: then it has seconds until watch_close.
 */
void watch_leave_alone(watch *w, const pons_error *failure);
/* As group_before_end. */
void watch_before_end(watch *w, void (*last)(void *context, pons_status status), void *context);
/* All have left: waits for that, no longer than the timeout or a failure. */
void watch_end(watch *w);

#endif
