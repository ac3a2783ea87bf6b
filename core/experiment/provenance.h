/*
 * provenance.h - everything besides the options that determines the bits of a run (R4).
 *
 * Facts are plugins with version and hash, libraries, processor features and kernel threads. The
 * manifest of every checkpoint holds them.
 */
#ifndef CORE_EXPERIMENT_PROVENANCE_H
#define CORE_EXPERIMENT_PROVENANCE_H

#include "checkpoint/checkpoint.h"
#include "experiment/experiment.h"

typedef struct provenance {
    int count;
    checkpoint_fact *fact;
    char *text;             /* storage of names and values                                        */
} provenance;

/* Collect the facts after the network is built, which loads op plugins. */
pons_status provenance_make(const experiment *e, provenance *out, pons_error *err);
void provenance_clear(provenance *p);
/*
 * Compare with a checkpoint. Differences are a warning in 'l'; with deterministic = yes they are
 * PONS_CONFIG.
 */
pons_status provenance_compare(const char *checkpoint, const experiment *e, logger *l,
                               pons_error *err);

#endif
