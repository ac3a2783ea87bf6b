/*
 * group.h - the processes of a run, joined: what they agree on at the start, the collectives of the
 * steps, and the watch over both.
 *
 * All collectives of a process go through its one communicator in program order. Each has a
 * sequence number, a kind and a size, which travel to the other processes beside it: a mismatch or
 * a process that does not come becomes one line that names it, never a hang.
 */
#ifndef CORE_CLUSTER_GROUP_GROUP_H
#define CORE_CLUSTER_GROUP_GROUP_H

#include "base/hash/hash128.h"
#include "cluster/rendezvous/rank_info.h"
#include "graph/program/program.h"
#include "plugin/plugin_load.h"

typedef struct group group;

typedef struct group_settings {
    const dist_place *place;
    const struct plugin *comm;    /* a loaded comm plugin                                         */
    void *stream;                 /* of the device that has the sums' buffers: the communicator's */
                                  /* work goes there; NULL: it has no device                      */
    bool deterministic;           /* sums by all_gather and R2's tree instead of all_reduce (R3)  */
    double timeout_s;
    void (*failed)(void *context, const char *line); /* from the watch's thread, once: this       */
    void *context;                                   /* process must end; NULL: it ends itself    */
} group_settings;

/*
 * Where one process does not take part, or by another comm plugin than rank 0, all of them fail at
 * once with the same line: PONS_CONFIG, naming [distribute] backend, or the plugin, and both sides.
 * Where one is connected and says nothing they name it after timeout_s.
 */
pons_status group_open(const group_settings *settings, group **out, pons_error *err);
/* After a failure: the others learn the first cause, and nothing is waited for. */
void group_close(group *g, const pons_error *failure);

/*
 * Instead of group_open, in a process that cannot take part: the others' group_open fails at once
 * and says why. Waits for them: 10 s until all have come and asked, 5 s until they have heard.
 */
void group_refuse(const dist_place *place, const pons_error *failure);

int group_rank(const group *g);
int group_size(const group *g);

/*
 * All processes must hold the same bytes under 'name' ("the INI file", "plugin 'unet'", "tensor
 * 'model.0.weight'"); PONS_CONFIG on all of them, naming the first difference and both sides.
 * Called by all in the same order; cheap: a few bytes each are collected.
 */
typedef struct group_fact {
    const char *name, *value; /* value: as shown, at most 255 bytes                               */
} group_fact;
pons_status group_agree(group *g, int count, const group_fact *fact, pons_error *err);

/*
 * A list of fingerprints that all processes should share, of one length everywhere; zeros are not
 * known and equal all others. '*item' is the first that differs from rank 0's on any process and
 * '*rank' the first process on which it does; -1 where none differs. The same on all of them.
 */
pons_status group_compare(group *g, int count, const fingerprint *mine, int *item, int *rank,
                          pons_error *err);

/* Sums of the graph's program (R10) and of its gradients; lives as long as the group. */
const program_collective *group_collective(group *g);

/* These wait until they are done. Sizes in bytes; all_gather: size x processes bytes into 'all'. */
pons_status group_broadcast(group *g, void *buffer, size_t size, int root, pons_error *err);
pons_status group_all_gather(group *g, const void *mine, size_t size, void *all, pons_error *err);
pons_status group_barrier(group *g, pons_error *err);

/*
 * What this process is at, for the lines of the watch: the attempted step and a word ("data",
 * "step", "validation", "checkpoint"; "start" until the first note). Any thread; costs nothing.
 *
 * A note and a collective are signs of progress. A process without any for timeout_s, which does
 * not wait for others in a collective, hangs; at "start" only when others wait for it. So note what
 * takes long piece by piece: each case of a validation.
 */
void group_note(group *g, int64_t step, const char *doing);

/*
 * This process ends soon, by itself, and 'cause' is what the others learn; the watch does not end
 * it. Any thread.
 */
void group_leave(group *g, const pons_error *cause);
/*
 * Of rank 0, before it ends without group_close: until all others have heard why, no longer than
 * wait_s. Who has not would take its end for the failure.
 */
void group_wait_heard(group *g, double wait_s);
#define GROUP_HEARD_S 2.0
/*
 * From the watch's thread, before it ends a process that goes on although the run has ended with
 * 'status': it may end it itself. NULL: nothing; returns when 'last' is not running.
 */
void group_before_end(group *g, void (*last)(void *context, pons_status status), void *context);

#endif
