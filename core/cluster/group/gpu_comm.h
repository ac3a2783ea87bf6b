/*
 * gpu_comm.h - the communicator inside a process whose replicas have cards of their own: a comm
 * plugin joins them as it joins processes, a communicator for each on the thread of its replica.
 *
 * That is what ncclCommInitAll does too, but that waits for good where a card does not come.
 */
#ifndef CORE_CLUSTER_GROUP_GPU_COMM_H
#define CORE_CLUSTER_GROUP_GPU_COMM_H

#include "graph/program/program.h"
#include "plugin/plugin_load.h"

typedef struct card_comm card_comm;

/* Joining takes no longer than timeout_s. */
pons_status card_comm_new(int replicas, const struct plugin *comm, double timeout_s,
                          card_comm **out, pons_error *err);
void card_comm_free(card_comm *c); /* also NULL; all have left */
/*
 * What the thread of replica 'rank' calls for its sums, once it has joined; 'stream' is its
 * device's. Lives as long as the communicator.
 */
const program_collective *card_comm_seat(card_comm *c, int rank, void *stream);
/* By the threads of all replicas at the same time, both. Who has not joined may leave. */
pons_status card_comm_join(card_comm *c, int rank, pons_error *err);
void card_comm_leave(card_comm *c, int rank);
/* Whoever joins, or waits for a sum, now or later, fails. Any thread. */
void card_comm_abort(card_comm *c);

#endif
