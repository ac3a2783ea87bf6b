/*
 * input_copy.h - micro-batches of a loader as inputs of a replica's program.
 */
#ifndef CORE_REPLICA_INPUT_COPY_H
#define CORE_REPLICA_INPUT_COPY_H

#include "replica/replicas.h"

/* The next micro-batch of the loader becomes the input of the training program. */
pons_status replica_feed(replica *r, const experiment *e, const loader_batch **batch,
                         pons_error *err);
/* The next one will be the first of this replica's in 'step'. */
pons_status replica_seek(replica *r, int64_t step, pons_error *err);
/*
 * A device that computes by itself is sent the first micro-batch of 'step', which comes next,
 * meanwhile: if the loader has it; without a loader, the inputs that there are.
 */
pons_status replica_feed_ahead(replica *r, const experiment *e, int64_t step, pons_error *err);

#endif
