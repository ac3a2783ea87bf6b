/*
 * unit - gradient descent along the gradient divided by its running norm, one norm per tensor.
 * Built outside the source tree.
 */
#include <pons/optimizer.h>

typedef struct unit {
    double keep, eps;
} unit;

static const pons_option options[] = {
    PONS_REAL(unit, keep, "0.9", 0, 1, "Share of the last squared norm that is kept."),
    PONS_REAL(unit, eps, "1e-8", 0, 1, "Added to the norm."),
    PONS_OPTIONS_END
};

static const pons_slot slots[] = { { "norm", PONS_SLOT_TENSOR }, PONS_SLOTS_END };

static pons_status update(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err)
{
    const unit *c = config;
    pons_node *norm = pons_lerp(g, pons_sum_all(g, pons_square(g, p->gradient)), p->slot[0],
                                c->keep);
    pons_node *length = pons_add_scalar(g, pons_sqrt(g, norm), c->eps);

    pons_assign(g, p->slot[0], norm);
    pons_assign(g, p->value, pons_sub(g, p->value,
                                      pons_mul(g, p->lr, pons_div(g, p->gradient, length))));
    return pons_graph_status(g, err);
}

static const pons_optimizer_operations operations = { .slots = slots, .update = update };

PONS_OPTIMIZER(unit, "1.0", "steps of a length that a norm decides", options, operations);
