/*
 * power - the mean of miss^exponent over voxels and classes. miss is 1 - p for the right class and
 * p for the others, p = softmax of the logits. Built outside the source tree.
 */
#include <pons/loss.h>

typedef struct power {
    double exponent;
} power;

static const pons_option options[] = {
    PONS_REAL(power, exponent, "1.5", 1, 10, "How much large misses count."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const power *c = config;
    pons_node *p = pons_softmax(g, logits, 4);
    pons_node *right = pons_greater(g, pons_target_one_hot(g, task, target), pons_scalar(g, 0));
    pons_node *miss = pons_select(g, right, pons_add_scalar(g, pons_neg(g, p), 1 + 1e-6),
                                  pons_add_scalar(g, p, 1e-6));

    *value = pons_mean_all(g, pons_pow(g, miss, pons_scalar(g, c->exponent)));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(power, "1.0", "a power of the misses", options, operations);
