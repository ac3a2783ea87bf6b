/*
 * loss_wrong_gradient - a loss whose gradient is wrong on purpose: half of it is stopped. The
 * conformance test must detect it.
 */
#include <pons/loss.h>

typedef struct loss_wrong_gradient {
    bool honest;
} loss_wrong_gradient;

static const pons_option options[] = {
    PONS_FLAG(loss_wrong_gradient, honest, "no", "Let the whole gradient through."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const loss_wrong_gradient *c = config;
    pons_node *half = c->honest ? logits : pons_stop_gradient(g, logits);

    *value = pons_mean_all(g, pons_mul(g, logits, half));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(loss_wrong_gradient, "1.0", "a loss with half a gradient", options, operations);
