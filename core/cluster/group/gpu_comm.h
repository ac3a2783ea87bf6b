/*
 * gpu_comm.h - the communicator inside a process whose replicas have one GPU each. A comm plugin
 * joins the GPUs as it joins processes: each replica's thread opens a communicator.
 *
 * ncclCommInitAll would do the same, but it hangs if a GPU does not join.
 */
#ifndef CORE_CLUSTER_GROUP_GPU_COMM_H
#define CORE_CLUSTER_GROUP_GPU_COMM_H

#include "graph/program/program.h"
#include "plugin/plugin_load.h"

typedef struct gpu_comm gpu_comm;

/* 'timeout_s' limits the time to join. */
pons_status gpu_comm_new(int replicas, const struct plugin *comm, double timeout_s,
                         gpu_comm **out, pons_error *err);
void gpu_comm_free(gpu_comm *c);   /* accepts NULL; all replicas have left */
/*
 * The collective for the thread of replica 'rank' after it has joined. 'stream' is that of its
 * device. The collective lives as long as the communicator.
 */
const program_collective *gpu_comm_collective(gpu_comm *c, int rank, void *stream);
/* Called by the threads of all replicas at once. A replica that has not joined may leave. */
pons_status gpu_comm_join(gpu_comm *c, int rank, pons_error *err);
void gpu_comm_leave(gpu_comm *c, int rank);
/* Fail all present and later joins and sums. Any thread. */
void gpu_comm_abort(gpu_comm *c);

#endif
