/*
 * nnunet - the loss of nnU-Net (Isensee et al. 2021, doi:10.1038/s41592-020-01008-z; its
 * DC_and_CE_loss and DC_and_BCE_loss). A perfect prediction has the value -weight_dice.
 *
 *   weight_ce CE - weight_dice Dice
 *
 * CE of labels is the cross-entropy, and their Dice leaves out the background. CE of regions, or of
 * a single class, is binary, and Dice counts every channel. dice_term.h has Dice, entropy.h has CE.
 * The binary CE is averaged over regions. A run that ignores voxels adds it up over them instead,
 * since nnU-Net does so.
 */
#include "dice_term.h"
#include "entropy.h"

typedef struct nnunet {
    bool batch_dice;
    double weight_ce, weight_dice, smooth;
} nnunet;

static const pons_option options[] = {
    PONS_FLAG(nnunet, batch_dice, "no", "Sum over the cases of a micro-batch before dividing."),
    PONS_REAL(nnunet, weight_ce, "1", 0, 1e6, "Factor on the cross-entropy."),
    PONS_REAL(nnunet, weight_dice, "1", 0, 1e6, "Factor on the Dice term."),
    PONS_REAL(nnunet, smooth, "1e-5", 0, 1e6, "Added to numerator and denominator of Dice."),
    PONS_OPTIONS_END
};

static pons_node *cross_entropy(pons_graph *g, bool regions, pons_node *logits, pons_node *t,
                                pons_node *valid)
{
    const entropy e = { .reduction = REDUCTION_MEAN, .valid = valid };

    if (!regions)
        return entropy_exclusive(g, &e, logits, t);

    pons_node *binary = entropy_binary(g, &e, logits, t);
    return valid == NULL ? binary
                         : pons_scale(g, binary, (double)pons_shape_of(logits).extent[4]);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const nnunet *c = config;
    bool regions = task->target == PONS_TARGET_REGIONS || task->classes == 1;
    const dice_term d = { .overlap = { .include_background = regions, .batch = c->batch_dice,
                                       .smooth_nr = c->smooth, .smooth_dr = c->smooth,
                                       .reduction = REDUCTION_MEAN } };

    if (classes_check_target(task, err) != PONS_OK)
        return err->status;

    pons_node *t = pons_target_one_hot(g, task, target), *valid = voxels_valid(g, target);
    pons_node *dice = dice_term_value(g, &d, task, pons_probabilities(g, logits, target), t, valid);
    pons_node *entropy = cross_entropy(g, regions, logits, t, valid);

    *value = pons_add(g, pons_scale(g, entropy, c->weight_ce),
                      pons_scale(g, pons_add_scalar(g, dice, -1), c->weight_dice));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(nnunet, "1.0", "nnU-Net's Dice plus cross-entropy", options, operations);
