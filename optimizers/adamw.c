/*
 * adamw - adaptive moments with decoupled weight decay, as torch.optim.AdamW. moments.h has the
 * formula.
 */
#include "moments.h"

typedef struct adamw {
    moments moments;
} adamw;

static const pons_option options[] = { MOMENTS_OPTIONS("0.01"), PONS_OPTIONS_END };

static pons_status update(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err)
{
    const adamw *c = config;

    return moments_update(g, &c->moments, true, p, err);
}

static const pons_optimizer_operations operations = { .slots = moments_slots, .update = update };

PONS_OPTIMIZER(adamw, "1.0", "adaptive moments, decoupled decay", options, operations);
