/*
 * validation_loss.h - the mean loss of patches of the validation cases.
 *
 * Each case has [patch] per_case patches, chosen as those of a training but not augmented, and the
 * same ones each time. They are uniform in a case that a training refuses because it has no voxel
 * to centre a patch on. They are no more than a few windows per case. The last micro-batch is
 * filled up with cases that come a second time. The loss is that of the network's first output, as
 * it predicts: without dropout, with the statistics of the training.
 */
#ifndef CORE_EVALUATE_VALIDATION_LOSS_H
#define CORE_EVALUATE_VALIDATION_LOSS_H

#include "evaluate/validation.h"

/* Open the loaders of replicas that have the program of REPLICAS_LOSS. */
pons_status validation_loss_open(replicas *r, cache *cases, int count, const int *ranks,
                                 pons_error *err);
/*
 * The mean over micro-batches of [train] batch cases, in their order, so that its bits depend on no
 * number of replicas. Collective. 'stop' of the validation is called, but ends nothing.
 */
pons_status validation_loss_run(const validation *v, double *out, pons_error *err);

#endif
