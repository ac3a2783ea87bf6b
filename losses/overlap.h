/*
 * overlap.h - the options and the sums of losses that compare overlapping volumes.
 *
 * The struct is the first member of each plugin's configuration, so all share its option rows.
 */
#ifndef LOSSES_OVERLAP_H
#define LOSSES_OVERLAP_H

#include "classes.h"
#include "voxels.h"

typedef struct overlap {
    bool include_background, batch;
    double smooth_nr, smooth_dr;
    int reduction;
} overlap;

#define OVERLAP_OPTIONS                                                                           \
    PONS_FLAG(overlap, include_background, "yes", "Whether channel 0 counts."),                   \
    PONS_FLAG(overlap, batch, "no", "Sum over the cases of a micro-batch before dividing."),      \
    PONS_REAL(overlap, smooth_nr, "1e-5", 0, 1e6, "Added to the numerator."),                     \
    PONS_REAL(overlap, smooth_dr, "1e-5", 0, 1e6, "Added to the denominator."),                   \
    PONS_CHOICE(overlap, reduction, "mean", reductions, "Over cases and classes.")

/*
 * Sums over the voxels of each case (batch: of all cases), [N or 1, 1, 1, 1, C]: 'both' of p g,
 * 'predicted' of p, 'wanted' of g. With 'squared' the last two are of p^2 and g^2.
 */
typedef struct overlap_sums {
    pons_node *both, *predicted, *wanted;
} overlap_sums;

/* probabilities, target: [N, D, H, W, C]; valid: see voxels.h. */
overlap_sums overlap_sum(pons_graph *g, const overlap *o, bool squared, pons_node *probabilities,
                         pons_node *target, pons_node *valid);
/* (above + smooth_nr) / (below + smooth_dr). */
pons_node *overlap_ratio(pons_graph *g, const overlap *o, pons_node *above, pons_node *below);
/* The mean or sum over cases and classes. */
pons_node *overlap_reduce(pons_graph *g, const overlap *o, pons_node *value);

#endif
