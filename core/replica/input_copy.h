/*
 * input_copy.h - micro-batches of a loader as inputs of a replica's program.
 */
#ifndef CORE_REPLICA_INPUT_COPY_H
#define CORE_REPLICA_INPUT_COPY_H

#include "replica/replicas.h"

/* Make a micro-batch the input of a program of this replica. */
pons_status input_copy_give(const replica *r, program *p, const experiment *e,
                            const loader_batch *batch, pons_error *err);
/* Make the loader's next micro-batch the input of the training program. */
pons_status input_copy_next(replica *r, const experiment *e, const loader_batch **batch,
                            pons_error *err);
/* Let the loader go on with this replica's first micro-batch of 'step'. */
pons_status input_copy_seek(replica *r, int64_t step, pons_error *err);
/*
 * Send the first micro-batch of 'step', the next one, to a device that still computes, if the
 * loader has it. Without a loader the present inputs are sent.
 */
pons_status input_copy_ahead(replica *r, const experiment *e, int64_t step, pons_error *err);

#endif
