/*
 * group_internal.h - what the files of a group share.
 */
#ifndef CORE_CLUSTER_GROUP_GROUP_INTERNAL_H
#define CORE_CLUSTER_GROUP_GROUP_INTERNAL_H

#include "cluster/group/group.h"
#include "cluster/store/store.h"
#include "cluster/watchdog/watchdog.h"

#define GROUP_POLL_S 1.0 /* an abort ends every wait, so this only bounds a wait for it           */

typedef struct exact_sum exact_sum;

/* A collective under way. */
typedef struct operation {
    struct operation *next;   /* of those that are free, or of the pieces under way               */
    struct operation *below;  /* of all that were made                                            */
    int64_t number;
    const char *kind;
    size_t size;
    void *pending;            /* the plugin's, until it has ended                                 */
    exact_sum *sum;           /* a piece of a sum by tree: elements 'at' ..., of everybody        */
    int64_t at, count;
    char *all;                /* its room                                                         */
} operation;

struct group {
    int rank, size;
    bool deterministic;
    const pons_comm_operations *operations;
    void *comm;
    store *store;
    watch *watch;
    int64_t started;
    operation *spare, *made_operations;
    double ended;             /* of the sum that was last waited for                              */
    program_collective collective;
    /* group_sum.c, sums by tree */
    exact_sum *waiting, *last; /* in order, the first with pieces that have not been started      */
    exact_sum *idle, *made;   /* free ones; all                                                   */
    operation *oldest, *newest; /* pieces under way                                               */
    int pieces;
    char *rooms;              /* of the pieces under way, 'room' bytes each                       */
    size_t room, begun;       /* begun: pieces, ever                                              */
    size_t asked, most;       /* bytes of the sums that nobody has waited for; most of them ever  */
    void **part;              /* of each process                                                  */
};

/* group.c */
operation *group_take(group *g, const char *kind, size_t size, pons_error *err);
void group_give_back(group *g, operation *o);
pons_status group_fail(group *g, const operation *o, const pons_error *why, pons_error *err);
/* Give 'o' back and end: its plugin's part has not begun. */
pons_status group_fail_to_start(group *g, operation *o, const pons_error *why, pons_error *err);
/* Wait until it has ended; with wait_s 0 look only whether it has. */
pons_status group_end(group *g, operation *o, double wait_s, bool *ended, pons_error *err);
/*
 * A failure that all processes find in the same moment: who is slower, and finds broken connections
 * instead, gets the same line.
 */
void group_fail_together(group *g, const pons_error *failure);

/* group_join.c */
/* Whether all take part by the same comm plugin; the cause where one does not. */
pons_status group_meet(store *s, const group_settings *settings, pons_error *err);

/* group_sum.c */
/* All pieces of the sums have been sent: what is started now comes behind them everywhere. */
pons_status group_end_sums(group *g, pons_error *err);
void group_prepare_sums(group *g, void *stream);
void group_drop_sums(group *g);

#endif
