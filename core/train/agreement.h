/*
 * agreement.h - what all processes of a run must have in common before its first step. Each of
 * these is called by all of them; PONS_CONFIG on all where they differ, with name and both sides.
 */
#ifndef CORE_TRAIN_AGREEMENT_H
#define CORE_TRAIN_AGREEMENT_H

#include "dist/group.h"
#include "train/experiment.h"

/* Options but those that each may choose, plugins, cases, threads; with deterministic = yes also
   libraries and features of the processor. */
pons_status agreement_on_experiment(group *g, const experiment *e, pons_error *err);
/* Tensors by name and shape, and op plugins. */
pons_status agreement_on_network(group *g, const experiment *e, const storage *s, pons_error *err);
/* The bytes of all tensors. */
pons_status agreement_on_weights(group *g, const storage *s, pons_error *err);

#endif
