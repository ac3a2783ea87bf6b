/*
 * bce - binary cross-entropy of each channel, as torch.nn.BCEWithLogitsLoss. entropy.h has the
 * formula. It fits regions, which may overlap. It takes each of exclusive classes by itself.
 */
#include "classes.h"
#include "entropy.h"

typedef struct bce {
    pons_reals pos_weight;
    int reduction;
} bce;

static const pons_option options[] = {
    PONS_REALS(bce, pos_weight, "", 0, 1e6, "Factor on voxels inside, by class; one number stands "
               "for all."),
    PONS_CHOICE(bce, reduction, "mean", reductions, "Over voxels and classes."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const bce *c = config;

    if (classes_check_target(task, err) != PONS_OK
        || classes_check_list("pos_weight", &c->pos_weight, task->classes, err) != PONS_OK)
        return err->status;

    const entropy e = { (reduction)c->reduction, 0,
                        classes_vector(g, &c->pos_weight, 0, task->classes),
                        voxels_valid(g, target) };
    *value = entropy_binary(g, &e, logits, pons_target_one_hot(g, task, target));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(bce, "1.0", "binary cross-entropy", options, operations);
