/*
 * watchdog_internal.h - the watchdog's structure, shared by its files.
 */
#ifndef CORE_CLUSTER_WATCHDOG_WATCHDOG_INTERNAL_H
#define CORE_CLUSTER_WATCHDOG_WATCHDOG_INTERNAL_H

#include "cluster/watchdog/heartbeat.h"
#include "cluster/watchdog/status_page.h"
#include "cluster/watchdog/watchdog.h"

#include <pthread.h>

#define WATCHDOG_HEARTBEAT_S 0.5
#define WATCHDOG_ANSWER_S 0.7    /* after this time a request to rank 0 is repeated               */

typedef struct run_outcome {
    int32_t status;
    char text[sizeof((pons_error *)0)->text];
} run_outcome;

struct watchdog {
    watchdog_settings settings;
    status_page_slot *slot;
    pthread_t thread;
    pthread_mutex_t lock;     /* protects the members below                                       */
    pthread_cond_t changed;
    heartbeat mine;
    bool over, leaving, closing; /* over: 'end' is set                                            */
    run_outcome end;
    double grace_s;           /* time from a failure until the process is ended                   */
    const pons_comm_operations *operations;
    void *comm;
    void (*last)(void *context, pons_status status);
    void *last_context;
    bool in_exit_hook;        /* 'last' is running                                                */
    /* Members that only the watchdog's thread uses. */
    heartbeat_row *row;       /* by rank; on other ranks what rank 0 published                    */
    double before, running_s;     /* time of the previous round; running time so far              */
    double answered;          /* running time at the store's last answer                          */
};

/* watchdog.c */
/* Wait up to wait_s until the watchdog has nothing left to do; false if it has. */
bool watchdog_wait_over(watchdog *w, double wait_s);

/* watchdog_outcome.c */
/* Set the outcome of the run, unless it is set. */
void watchdog_set_outcome(watchdog *w, const run_outcome *v);
/* Publish an outcome. The store may have an earlier one, which is used instead. */
void watchdog_publish_outcome(watchdog *w, const run_outcome *v);
/* Wait up to wait_s for an outcome in the store and use it; false if there is none. */
bool watchdog_read_outcome(watchdog *w, double wait_s);

/* watchdog_rounds.c */
/* Send heartbeats and check the run until it is over. */
void watchdog_run(watchdog *w);

#endif
