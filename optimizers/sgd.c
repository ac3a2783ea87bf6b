/*
 * sgd - gradient descent with momentum (Polyak 1964) or Nesterov's (1983), as torch.optim.SGD.
 *
 *   g = g + weight_decay p
 *   m = g in the first update, then momentum m + (1 - dampening) g
 *   p = p - lr m                                nesterov: p = p - lr (g + momentum m)
 */
#include <pons/optimizer.h>

typedef struct sgd {
    double momentum, dampening, weight_decay;
    bool nesterov;
} sgd;

static const pons_option options[] = {
    PONS_REAL(sgd, momentum, "0", 0, 1, "Share of the last direction that is kept."),
    PONS_REAL(sgd, dampening, "0", 0, 1,
              "Share of the gradient that does not enter the direction."),
    PONS_REAL(sgd, weight_decay, "0", 0, 1e6, "Decay of the weights, added to the gradient."),
    PONS_FLAG(sgd, nesterov, "no", "Look ahead along the direction; needs momentum."),
    PONS_OPTIONS_END
};

static const pons_slot slots[] = { { "m", PONS_SLOT_ELEMENT }, PONS_SLOTS_END };

static pons_status check(const void *config, pons_error *err)
{
    const sgd *c = config;

    if (c->nesterov && (c->momentum == 0 || c->dampening != 0))
        return pons_option_fail(err, "nesterov", "found yes with momentum %g and dampening %g, "
                                "expected momentum above 0 and dampening 0", c->momentum,
                                c->dampening);
    return PONS_OK;
}

static pons_node *direction(pons_graph *g, const sgd *c, const pons_parameter *p,
                            pons_node *gradient)
{
    pons_node *first = pons_equal(g, p->step, pons_scalar(g, 1));
    pons_node *m = pons_add(g, pons_scale(g, p->slot[0], c->momentum),
                            pons_scale(g, gradient, 1 - c->dampening));

    m = pons_select(g, first, gradient, m);
    pons_assign(g, p->slot[0], m);
    return c->nesterov ? pons_add(g, gradient, pons_scale(g, m, c->momentum)) : m;
}

static pons_status update(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err)
{
    const sgd *c = config;
    pons_node *gradient = p->gradient;

    if (c->weight_decay > 0)
        gradient = pons_add(g, gradient, pons_scale(g, p->value, c->weight_decay));
    if (c->momentum > 0)
        gradient = direction(g, c, p, gradient);
    pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, gradient)));
    return pons_graph_status(g, err);
}

static const pons_optimizer_operations operations = {
    .check = check, .slots = slots, .update = update
};

PONS_OPTIMIZER(sgd, "1.0", "gradient descent with momentum", options, operations);
