/*
 * cross_entropy - cross-entropy of exclusive classes, as torch.nn.CrossEntropyLoss. entropy.h has
 * the formula. That of a single class is binary, with the weight on its foreground.
 *
 * Voxels of class 'ignore_index' are left out, as are those of an ignored label.
 */
#include "classes.h"
#include "entropy.h"

enum { NO_INDEX = -100, INDEX_MAX = 254 };

typedef struct cross_entropy {
    pons_reals weight;
    double label_smoothing;
    int64_t ignore_index;
    int reduction;
} cross_entropy;

static const pons_option options[] = {
    PONS_REALS(cross_entropy, weight, "", 0, 1e6, "Factor on each class; of a single class, on its "
               "foreground."),
    PONS_REAL(cross_entropy, label_smoothing, "0", 0, 1,
              "Share of the target spread over all classes."),
    PONS_INTEGER(cross_entropy, ignore_index, "-100", NO_INDEX, INDEX_MAX,
                 "Class whose voxels are left out; -100 for none."),
    PONS_CHOICE(cross_entropy, reduction, "mean", reductions, "Over voxels."),
    PONS_OPTIONS_END
};

static pons_status check(const cross_entropy *c, const pons_task *task, pons_error *err)
{
    int last = task->classes > 1 ? task->classes - 1 : 1;

    if (task->target == PONS_TARGET_REGIONS && task->classes > 1)
        return pons_fail(err, PONS_CONFIG, "loss 'cross_entropy' cannot learn %d regions: its "
                         "classes exclude each other\nhint: use bce", task->classes);
    if (c->weight.count != 0 && c->weight.count != task->classes)
        return pons_option_fail(err, "weight", "found %d number%s, expected %d", c->weight.count,
                                c->weight.count == 1 ? "" : "s", task->classes);
    if (c->ignore_index != NO_INDEX && (c->ignore_index < 0 || c->ignore_index > last))
        return pons_option_fail(err, "ignore_index", "found %lld, expected a class from 0 to %d",
                                (long long)c->ignore_index, last);
    return entropy_check_smoothing(c->label_smoothing, task, err);
}

/* The mask without voxels of the class that is left out, in either of mixed targets. */
static pons_node *counted_voxels(pons_graph *g, const cross_entropy *c, const pons_target *target)
{
    pons_node *const of[] = { target->node, target->other };
    pons_node *valid = voxels_valid(g, target);

    for (int i = 0; i < 2 && c->ignore_index != NO_INDEX && of[i] != NULL; i++) {
        pons_node *kept = pons_not_equal(g, of[i], pons_scalar(g, (double)c->ignore_index));
        valid = valid == NULL ? kept : pons_mul(g, valid, kept);
    }
    return valid;
}

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const cross_entropy *c = config;

    if (classes_check_target(task, err) != PONS_OK || check(c, task, err) != PONS_OK)
        return err->status;

    pons_node *t = pons_target_one_hot(g, task, target);
    const entropy e = { (reduction)c->reduction, c->label_smoothing,
                        classes_vector(g, &c->weight, 0, task->classes),
                        counted_voxels(g, c, target) };
    *value = task->classes == 1 ? entropy_binary(g, &e, logits, t)
                                : entropy_exclusive(g, &e, logits, t);
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(cross_entropy, "1.0", "cross-entropy of exclusive classes", options, operations);
