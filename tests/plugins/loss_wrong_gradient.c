/*
 * loss_wrong_gradient - a loss whose gradient is wrong on purpose: half of it is stopped. The
 * conformance test must detect it.
 */
#include <pons/loss.h>

typedef struct loss_wrong_gradient {
    bool honest, last, steep;
} loss_wrong_gradient;

static const pons_option options[] = {
    PONS_FLAG(loss_wrong_gradient, honest, "no", "Let the whole gradient through."),
    PONS_FLAG(loss_wrong_gradient, last, "no", "Stop it for the last class alone."),
    PONS_FLAG(loss_wrong_gradient, steep, "no", "Take a sine, which bends within 1e-5 of the sum."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    const loss_wrong_gradient *c = config;
    pons_shape shape = pons_shape_of(logits);
    int64_t classes = shape.extent[shape.rank - 1];
    pons_node *class = pons_iota(g, shape.rank, shape.rank - 1, classes);
    pons_node *last = pons_equal(g, class, pons_scalar(g, (double)(classes - 1)));
    pons_node *stopped = pons_stop_gradient(g, logits);
    pons_node *half = c->honest ? logits
                    : c->last ? pons_select(g, last, stopped, logits) : stopped;

    *value = pons_mean_all(g, pons_mul(g, logits, half));
    if (c->steep)
        *value = pons_sin(g, pons_scale(g, pons_sum_all(g, half), 3e5));
    return pons_graph_status(g, err);
}

static const pons_loss_operations operations = { .build = build };

PONS_LOSS(loss_wrong_gradient, "1.0", "a loss with half a gradient", options, operations);
