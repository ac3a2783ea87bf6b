/*
 * provenance.h - what the bits of a run depend on beside its options (R4): plugins with version and
 * hash, libraries, features of the processor, kernel threads. Every checkpoint's manifest holds it.
 */
#ifndef CORE_EXPERIMENT_PROVENANCE_H
#define CORE_EXPERIMENT_PROVENANCE_H

#include "checkpoint/checkpoint.h"
#include "experiment/experiment.h"

typedef struct provenance {
    int count;
    checkpoint_fact *fact;
    char *text;             /* of names and values                                                */
} provenance;

/* Once the network is built, which brings in op plugins. */
pons_status provenance_make(const experiment *e, provenance *out, pons_error *err);
void provenance_clear(provenance *p);
/*
 * A checkpoint that was made with something else is told to 'l' in one line; with deterministic =
 * yes it is PONS_CONFIG.
 */
pons_status provenance_compare(const char *checkpoint, const experiment *e, logger *l,
                               pons_error *err);

#endif
