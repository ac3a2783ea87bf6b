/*
 * group_internal.h - the group's structures, shared by its files.
 */
#ifndef CORE_CLUSTER_GROUP_GROUP_INTERNAL_H
#define CORE_CLUSTER_GROUP_GROUP_INTERNAL_H

#include "cluster/group/group.h"
#include "cluster/store/store.h"
#include "cluster/watchdog/watchdog.h"

#define GROUP_POLL_S 1.0 /* period of polling; an abort ends every wait                           */

typedef struct ordered_sum ordered_sum;

/* A collective in progress. */
typedef struct operation {
    struct operation *next;   /* next free operation, or next piece in progress                   */
    struct operation *below;  /* next of all operations that were allocated                       */
    int64_t number;
    const char *kind;
    size_t size;
    void *pending;            /* the plugin's handle; NULL when it has ended                      */
    ordered_sum *sum;         /* the sum of which it gathers elements 'at' ...; NULL: none        */
    int64_t at, count;
    char *all;                /* buffer for the elements of all processes                         */
} operation;

struct group {
    int rank, size;
    bool deterministic;
    const pons_comm_operations *operations;
    void *comm;
    store *store;
    watchdog *watchdog;
    int64_t started;
    operation *spare, *made_operations;
    double ended;             /* time of the last sum waited for                                  */
    program_collective collective;
    /* Members of group_sum.c: sums by R2's tree. */
    ordered_sum *waiting, *last; /* sums with pieces not yet started, in order                    */
    ordered_sum *idle, *made;   /* free sums; all sums that were allocated                        */
    operation *oldest, *newest; /* pieces in progress                                             */
    int pieces;
    char *rooms;              /* buffers of the pieces, 'room' bytes each                         */
    size_t room, begun;       /* begun: number of pieces started so far                           */
    size_t asked, most;       /* bytes of unfinished sums; their maximum so far                   */
    void **part;              /* one pointer per process                                          */
};

/* group.c */
operation *group_operation_new(group *g, const char *kind, size_t size, pons_error *err);
void group_operation_free(group *g, operation *o);
/* Fail a collective that the plugin has not started, and release 'o'. */
pons_status group_operation_not_started(group *g, operation *o, const pons_error *why,
                                        pons_error *err);
/* Wait for the end of a collective; with wait_s 0 only test it. *ended: whether it has ended. */
pons_status group_operation_end(group *g, operation *o, double wait_s, bool *ended,
                                pons_error *err);
/*
 * Report a failure that all processes detect at the same time. A slower process that only sees
 * broken connections gets the same message.
 */
void group_fail_shared(group *g, const pons_error *failure);

/* group_join.c */
/* Check that all processes take part with the same comm plugin. Otherwise fails with the cause. */
pons_status group_join(store *s, const group_settings *settings, pons_error *err);

/* group_sum.c */
/* Start all pieces of pending sums, so that a later collective follows them on every rank. */
pons_status group_start_all_sums(group *g, pons_error *err);
/* Initialise the group's collective. */
void group_init_sums(group *g, void *stream);
/* Free all memory of the sums. */
void group_free_sums(group *g);

#endif
