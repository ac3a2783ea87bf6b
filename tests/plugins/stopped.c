/*
 * stopped - a loss whose gradient is wrong on purpose: half of it is stopped. The conformance test
 * must find it.
 */
#include <pons/loss.h>

typedef struct stopped {
    bool honest;
} stopped;

static const pons_option options[] = {
    PONS_FLAG(stopped, honest, no, "Let the whole gradient through."),
    PONS_OPTIONS_END
};

static pons_status build(pons_graph *g, const void *config, const pons_task *task,
                         pons_node *logits, const pons_target *target, pons_node **value,
                         pons_error *err)
{
    pons_node *half = ((const stopped *)config)->honest ? logits : pons_stop_gradient(g, logits);

    *value = pons_mean_all(g, pons_mul(g, logits, half));
    return pons_graph_status(g, err);
}

PONS_LOSS(stopped, "1.0", "a loss with half a gradient", options, build)
