/*
 * shm_mailbox.h - processes of one node that read each other's memory.
 *
 * Each rank owns a mailbox in memory that all ranks map. It holds two counters and the address of
 * the buffer that the others may read. A rank posts a buffer, reads those of the others with
 * process_vm_readv, and says when it has finished. So a message is copied once, by the thread that
 * wants it.
 */
#ifndef PLUGINS_COMMS_SHM_SHM_MAILBOX_H
#define PLUGINS_COMMS_SHM_SHM_MAILBOX_H

#include <pons/comm.h>

typedef struct shm_ranks shm_ranks;

/* Whether the system lets processes read each other at all. */
pons_status shm_available(pons_error *err);
/* Returns when all ranks can read each other. A message in 'err' names the rank that cannot. */
pons_status shm_open_ranks(const pons_comm_rank_info *place, const pons_comm_store *store,
                           shm_ranks **out, pons_error *err);
void shm_close_ranks(shm_ranks *s);
/* Waits end with a failure, here and at the other ranks. Any thread. */
void shm_stop(shm_ranks *s);

int shm_rank(const shm_ranks *s);
int shm_size(const shm_ranks *s);

/* Begin a round: the others may read 'buffer', which may be NULL, until all have finished it. */
void shm_post(shm_ranks *s, const void *buffer);
/* Wait until 'rank' has begun the round that this rank is in. */
pons_status shm_wait_posted(shm_ranks *s, int rank, pons_error *err);
/* Copy from the buffer that 'rank' has posted. */
pons_status shm_read(shm_ranks *s, int rank, size_t offset, size_t size, void *to,
                     pons_error *err);
/* This rank reads nothing more of the round. */
void shm_finish(shm_ranks *s);
/* Wait until the others read nothing of this rank's round any more. */
pons_status shm_wait_finished(shm_ranks *s, pons_error *err);

#endif
