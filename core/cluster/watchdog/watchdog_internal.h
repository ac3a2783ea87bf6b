/*
 * watchdog_internal.h - what the files of a watch share.
 */
#ifndef CORE_CLUSTER_WATCHDOG_WATCHDOG_INTERNAL_H
#define CORE_CLUSTER_WATCHDOG_WATCHDOG_INTERNAL_H

#include "cluster/watchdog/heartbeat.h"
#include "cluster/watchdog/status_page.h"
#include "cluster/watchdog/watchdog.h"

#include <pthread.h>

#define WATCH_BEAT_S 0.5
#define WATCH_ANSWER_S 0.7    /* until a question to rank 0 is asked again                        */

typedef struct verdict {
    int32_t status;
    char text[sizeof((pons_error *)0)->text];
} verdict;

struct watch {
    watch_settings settings;
    board_seat *seat;
    pthread_t thread;
    pthread_mutex_t lock;     /* of what follows                                                  */
    pthread_cond_t changed;
    beat mine;
    bool over, leaving, closing; /* 'over': 'end' is there                                        */
    verdict end;
    double grace_s;           /* from a failure until the process is ended                        */
    const pons_comm_operations *operations;
    void *comm;
    void (*last)(void *context, pons_status status);
    void *last_context;
    bool in_last;             /* it is running                                                    */
    /* Of the thread alone. */
    beat_row *row;            /* by rank; on others than rank 0 what it has written               */
    double before, lived;     /* end of the round before; what has been counted so far            */
    double answered;          /* when the store last answered                                     */
};

/* watchdog.c */
/* Whether nothing is left to be watched, waiting up to wait_s for that. */
bool watch_wait_over(watch *w, double wait_s);

/* watchdog_root_cause.c */
/* Take 'v' for the end of the run, unless there is one. */
void watch_finish(watch *w, const verdict *v);
/* Tell all; the store's verdict is taken. */
void watch_decide(watch *w, const verdict *v);
/* Whether the store has a verdict, which is taken, waiting up to wait_s for one. */
bool watch_read_verdict(watch *w, double wait_s);

/* watchdog_rounds.c */
/* Look and listen until the run is over. */
void watch_run(watch *w);

#endif
