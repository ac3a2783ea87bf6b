/*
 * local_comm.h - the communicator inside a process: all-reduce among replicas, each of which has a
 * thread.
 *
 * Every replica starts the same sums in the same order. A sum is cut by index into one share per
 * replica. Each replica adds its share of all buffers by R2's tree and writes the result back to
 * all of them. It does so in its first call after all buffers have arrived. So there is no master,
 * the work is distributed, and it overlaps with the backward pass. The bits depend only on the
 * buffers.
 */
#ifndef CORE_DEVICE_LOCAL_COMM_H
#define CORE_DEVICE_LOCAL_COMM_H

#include "graph/program/program.h"

typedef struct local_comm local_comm;

/* 'replicas' is at least 1. Any thread. */
pons_status local_comm_new(int replicas, local_comm **out, pons_error *err);
/* No replica may be inside a call. Any thread. */
void local_comm_free(local_comm *c);
/*
 * The operations for the thread of replica 'rank', which alone calls them. They live as long as the
 * communicator. Any thread.
 */
const program_collective *local_comm_collective(local_comm *c, int rank);
/*
 * Mark replica 'rank' as failed: every pending and later wait returns PONS_COMMUNICATION. The first
 * failure is kept. Any thread.
 */
void local_comm_abort(local_comm *c, int rank);

#endif
