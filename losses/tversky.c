/*
 * tversky - one minus the Tversky index of each class (Salehi et al. 2017, arXiv:1706.05721;
 * MONAI's TverskyLoss).
 *
 *   1 - (tp + smooth_nr) / (tp + alpha fp + beta fn + smooth_dr)
 *
 * tp = sum p g, fp = sum p (1 - g) and fn = sum (1 - p) g over the voxels of a case (batch: of all
 * cases). With alpha = beta = 0.5 it is Dice but for the smoothing.
 */
#include "overlap.h"

typedef struct tversky {
    overlap overlap;
    double alpha, beta;
} tversky;

static const pons_option options[] = {
    OVERLAP_OPTIONS,
    PONS_REAL(tversky, alpha, "0.5", 0, 1e6, "Factor on false positives."),
    PONS_REAL(tversky, beta, "0.5", 0, 1e6, "Factor on false negatives."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const tversky *c = config;
    const overlap *o = &c->overlap;

    if (classes_check_target(task, err) != PONS_OK
        || classes_check_background(o->include_background, task, err) != PONS_OK)
        return err->status;

    overlap_sums s = overlap_sum(g, o, false, pons_probabilities(g, logits, target),
                                 pons_target_one_hot(g, task, target), voxels_valid(g, target));
    pons_node *wrong = pons_add(g, pons_scale(g, pons_sub(g, s.predicted, s.both), c->alpha),
                                pons_scale(g, pons_sub(g, s.wanted, s.both), c->beta));
    pons_node *index = overlap_ratio(g, o, s.both, pons_add(g, s.both, wrong));

    index = classes_kept(g, o->include_background, task, index);
    *value = overlap_reduce(g, o, pons_add_scalar(g, pons_neg(g, index), 1));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(tversky, "1.0", "Tversky index", options, operations);
