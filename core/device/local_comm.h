/*
 * local_comm.h - the communicator inside a process: sums over replicas that live on their own
 * threads.
 *
 * Every replica starts the same sums in the same order. A sum is cut by index into as many shares
 * as there are replicas; each adds up its share of all buffers by R2's tree and writes it back to
 * all of them, in whatever call of its own comes first after everyone's buffer is there. So there
 * is no master, the work is spread, it runs while the backward pass does, and the bits depend on
 * nothing but the buffers.
 */
#ifndef CORE_DEVICE_LOCAL_COMM_H
#define CORE_DEVICE_LOCAL_COMM_H

#include "graph/program/program.h"

typedef struct local_comm local_comm;

/* 'replicas' is at least 1. */
pons_status local_comm_new(int replicas, local_comm **out, pons_error *err);
void local_comm_free(local_comm *c);
/* What the thread of replica 'rank' calls; lives as long as the communicator. */
const program_collective *local_comm_seat(local_comm *c, int rank);
/*
 * Whoever waits for a sum, now or later, gets PONS_COMMUNICATION: replica 'rank' has failed. The
 * first one is kept. Any thread.
 */
void local_comm_abort(local_comm *c, int rank);
/* After an abort, when no replica is inside a call: as new. */
void local_comm_reset(local_comm *c);

#endif
