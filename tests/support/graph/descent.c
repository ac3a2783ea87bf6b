/*
 * descent.c - see descent.h.
 */
#include "support/graph/descent.h"

static pons_status descent_update(pons_graph *g, const void *config, const pons_parameter *p,
                                  pons_error *err)
{
    pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, p->gradient)));
    return pons_graph_status(g, err);
}

static const pons_slot descent_slots[] = { PONS_SLOTS_END };

const pons_optimizer_operations descent = { .slots = descent_slots, .update = descent_update };
