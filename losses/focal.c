/*
 * focal - focal loss (Lin et al. 2017, arXiv:1708.02002; MONAI's FocalLoss). focal_term.h has the
 * formula. The form is that of exclusive classes if [loss] activation is softmax, else binary.
 */
#include "focal_term.h"

typedef struct focal {
    bool include_background;
    double gamma;
    pons_reals alpha, weight;
    int reduction;
} focal;

static const pons_option options[] = {
    PONS_FLAG(focal, include_background, "yes", "Whether channel 0 counts."),
    PONS_REAL(focal, gamma, "2", 0, 100, "How strongly easy voxels are played down."),
    PONS_REALS(focal, alpha, "", 0, 1, "Factor on foreground; background gets 1 - alpha.",
               .count_max = 1),
    PONS_REALS(focal, weight, "", 0, 1e6, "Factor on each class; one number stands for all. A "
               "background that does not count may have one."),
    PONS_CHOICE(focal, reduction, "mean", reductions, "Over cases, classes and voxels, or the sum "
                "over cases and classes."),
    PONS_OPTIONS_END
};

static pons_status check(const focal *c, bool softmax, const pons_task *task, pons_error *err)
{
    if (classes_check_background(c->include_background, task, err) != PONS_OK)
        return err->status;
    if (softmax && !c->include_background && c->alpha.count > 0)
        return pons_option_fail(err, "alpha", "found %g, expected none with softmax and without "
                                "background: it would be one factor for all", c->alpha.item[0]);
    return classes_check_list("weight", &c->weight,
                              classes_weighed(&c->weight, c->include_background, task), err);
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const focal *c = config;
    bool softmax = target->activation == PONS_ACTIVATION_SOFTMAX && task->classes > 1;
    const focal_term f = { c->include_background, softmax, (reduction)c->reduction, c->gamma,
                           c->alpha, c->weight };

    if (classes_check_target(task, err) != PONS_OK || check(c, softmax, task, err) != PONS_OK)
        return err->status;
    *value = focal_term_value(g, &f, task, logits, pons_target_one_hot(g, task, target),
                              voxels_valid(g, target));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(focal, "1.0", "focal loss", options, operations);
