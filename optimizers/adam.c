/*
 * adam - adaptive moments, as torch.optim.Adam. moments.h has the formula.
 */
#include "moments.h"

typedef struct adam {
    moments moments;
    bool decoupled;
} adam;

static const pons_option options[] = {
    MOMENTS_OPTIONS("0"),
    PONS_FLAG(adam, decoupled, "no", "Decay the weights themselves, not through the gradient."),
    PONS_OPTIONS_END
};

static pons_status update(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err)
{
    const adam *c = config;

    return moments_update(g, &c->moments, c->decoupled, p, err);
}

static const pons_optimizer_operations operations = { .slots = moments_slots, .update = update };

PONS_OPTIMIZER(adam, "1.0", "adaptive moments", options, operations);
