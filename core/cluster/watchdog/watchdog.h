/*
 * watchdog.h - a thread that detects failed and hanging processes of a run.
 *
 * Every rank writes a heartbeat into the store twice a second. Rank 0 reads all of them and detects
 * failures (heartbeat.h); the other ranks read its result. They detect only the loss of rank 0
 * themselves. The root cause of a failure is one key of the store: the first rank to set it wins,
 * and every rank's error is that root cause.
 *
 *             failure found or read           grace_s passes
 *   running --------------------------> over ----------------> the watchdog ends the process
 *      |                                  |
 *      |  watchdog_end: all have left     |  watchdog_announce_exit or watchdog_close in time
 *      v                                  v
 *   over, without a failure            the process ends by itself
 *
 * A process without others has a watchdog without a store. It ends a process that makes no
 * progress, and a process that has failed and does not end.
 */
#ifndef CORE_CLUSTER_WATCHDOG_WATCHDOG_H
#define CORE_CLUSTER_WATCHDOG_WATCHDOG_H

#include "cluster/store/store.h"

typedef struct watchdog watchdog;

typedef struct watchdog_settings {
    store *store;             /* NULL if size is 1                                                */
    int rank, size;
    double timeout_s;
    void (*failed)(void *context, const char *text); /* as in group.h; may be NULL                */
    void *context;
} watchdog_settings;

pons_status watchdog_open(const watchdog_settings *settings, watchdog **out, pons_error *err);
void watchdog_close(watchdog *w);
/* Set the communicator to abort after a failure, at once if there was one; NULL: none. */
void watchdog_set_comm(watchdog *w, const pons_comm_operations *operations, void *comm);

/* Set step and phase of this process. Any thread. */
void watchdog_note(watchdog *w, int64_t step, const char *doing);
/* Report that a collective has started, that this thread waits for one, and that it has ended. */
void watchdog_started(watchdog *w, int64_t number, const char *kind, int64_t size);
void watchdog_waiting(watchdog *w, int64_t number, const char *kind, int64_t size);
void watchdog_done(watchdog *w);

/* The failure that ended the run, after a wait of up to wait_s; PONS_OK: none. */
pons_status watchdog_cause(watchdog *w, double wait_s, pons_error *err);
/* Report a failure of this process. *err becomes the root cause, which may be another rank's. */
void watchdog_report_failure(watchdog *w, pons_error *err);
/* Report a failure that all ranks detect themselves, without this rank's name. */
void watchdog_report_shared(watchdog *w, const pons_error *err);
/*
 * On rank 0: wait up to wait_s until all others have read the failure. The store ends with rank 0.
 */
void watchdog_wait_acknowledged(watchdog *w, double wait_s);
/* Announce that this process ends by itself; the watchdog does not end it. */
void watchdog_announce_exit(watchdog *w);
/*
 * The same for a process without others. After a failure, its end may hang: the watchdog ends it
 * some seconds later unless watchdog_close comes first.
 */
void watchdog_announce_exit_alone(watchdog *w, const pons_error *failure);
/* Set the function to call before the watchdog ends the process; see group_set_exit_hook. */
void watchdog_set_exit_hook(watchdog *w, void (*last)(void *context, pons_status status),
                            void *context);
/* End normally: wait until all ranks have left, at most until the timeout or a failure. */
void watchdog_end(watchdog *w);

#endif
