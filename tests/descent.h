/*
 * descent.h - the plainest optimizer: p - lr g.
 */
#ifndef TESTS_DESCENT_H
#define TESTS_DESCENT_H

#include <pons/optimizer.h>

static inline pons_status descent_update(pons_graph *g, const void *config, const pons_parameter *p,
                                         pons_error *err)
{
    pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, p->gradient)));
    return pons_graph_status(g, err);
}

static const pons_slot descent_slots[] = { PONS_SLOTS_END };
static const pons_optimizer_operations descent = { descent_slots, descent_update };

#endif
