/*
 * group.h - the processes of a run as a group: the agreement at the start, the collectives of the
 * steps, and the watchdog over both.
 *
 * A process has one communicator, and its collectives run in program order. Each collective has a
 * sequence number, a kind and a size, which the watchdog compares among ranks. So a mismatch or a
 * missing rank becomes a message that names it, never a hang.
 */
#ifndef CORE_CLUSTER_GROUP_GROUP_H
#define CORE_CLUSTER_GROUP_GROUP_H

#include "base/hash/hash128.h"
#include "cluster/rendezvous/rank_info.h"
#include "graph/program/program.h"
#include "plugin/plugin_load.h"

typedef struct group group;

typedef struct group_settings {
    const rank_info *place;
    const struct plugin *comm;    /* a loaded comm plugin                                         */
    /*
     * Stream of the buffers' device, to which the communicator adds its work; NULL: the buffers are
     * on no device.
     */
    void *stream;
    bool deterministic;           /* sum by all_gather and R2's tree, not by all_reduce (R3)      */
    double timeout_s;
    /*
     * The watchdog's thread calls 'failed' once, after a failure: the process must end. NULL: the
     * watchdog ends the process.
     */
    void (*failed)(void *context, const char *line);
    void *context;
} group_settings;

/*
 * Join the processes. If one of them refuses, or has another comm plugin than rank 0, all fail at
 * once with the same message. That is PONS_CONFIG and names [distribute] backend or the plugin,
 * with both values. A process that is connected but silent is named after timeout_s.
 */
pons_status group_open(const group_settings *settings, group **out, pons_error *err);
/* Leave the group. With 'failure' the others get the root cause, and nothing is waited for. */
void group_close(group *g, const pons_error *failure);

/*
 * Call instead of group_open in a process that cannot take part: group_open of the others fails at
 * once with the reason. Waits up to 10 s for them to connect and up to 5 s for them to read it.
 */
void group_refuse(const rank_info *place, const pons_error *failure);

int group_rank(const group *g);
int group_size(const group *g);

/*
 * A value that all processes must share, such as "the INI file", "plugin 'unet'" or "tensor
 * 'model.0.weight'".
 */
typedef struct group_fact {
    const char *name, *value; /* as shown in messages, at most 255 bytes                          */
} group_fact;
/*
 * Check that all processes have the same facts. PONS_CONFIG on all of them names the first
 * difference and both values. All call it in the same order. Only a hash is exchanged unless it
 * differs.
 */
pons_status group_agree(group *g, int count, const group_fact *fact, pons_error *err);

/*
 * Compare a list of hashes of equal length with rank 0's. A hash of zeros is unknown and equals
 * every other. *item is the first that differs on any process, *rank the first process with it; -1:
 * none. The results are the same on all processes.
 */
pons_status group_compare_hashes(group *g, int count, const hash128 *mine, int *item, int *rank,
                                 pons_error *err);

/* All-reduce for the graph's program (R10) and its gradients. Lives as long as the group. */
const program_collective *group_collective(group *g);

/* Collectives that wait for their end. Sizes are bytes; 'all' has size x processes bytes. */
pons_status group_broadcast(group *g, void *buffer, size_t size, int root, pons_error *err);
pons_status group_all_gather(group *g, const void *mine, size_t size, void *all, pons_error *err);
pons_status group_barrier(group *g, pons_error *err);

/*
 * Note the attempted step and phase of this process for the watchdog's messages: "data", "step",
 * "validation", "checkpoint"; "start" before the first note. Any thread; cheap.
 *
 * Notes and collectives count as progress. A process outside collectives that makes no progress for
 * timeout_s hangs; in phase "start" only if other ranks wait for it. So long phases note each part,
 * such as each case of a validation.
 */
void group_note(group *g, int64_t step, const char *doing);

/*
 * Announce that this process ends by itself soon. The others get 'cause', and the watchdog does not
 * end this process. Any thread.
 */
void group_publish_interruption(group *g, const pons_error *cause);
/*
 * On rank 0, before it ends without group_close: wait up to wait_s until all others have read the
 * cause. Otherwise they would report the end of rank 0 as the failure.
 */
void group_wait_acknowledged(group *g, double wait_s);
#define GROUP_ACKNOWLEDGE_S 2.0
/*
 * Set a function that the watchdog's thread calls before it ends a process which goes on after the
 * end of the run. 'last' gets the status and may end the process itself. NULL: none. Returns when
 * 'last' is not running.
 */
void group_set_exit_hook(group *g, void (*last)(void *context, pons_status status), void *context);

#endif
