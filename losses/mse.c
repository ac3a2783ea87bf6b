/*
 * mse - mean squared difference of output and target, as torch.nn.MSELoss.
 *
 * The output is taken after [loss] activation. The target of classes is one-hot.
 */
#include "voxels.h"

typedef struct mse {
    int reduction;
} mse;

static const pons_option options[] = {
    PONS_CHOICE(mse, reduction, "mean", reductions, "Over voxels and channels."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const mse *c = config;
    pons_node *difference = pons_sub(g, pons_probabilities(g, logits, target),
                                     pons_target_one_hot(g, task, target));

    *value = voxels_average(g, (reduction)c->reduction, pons_square(g, difference),
                            voxels_valid(g, target));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(mse, "1.0", "mean squared difference", options, operations);
