/*
 * novograd - layer-wise adaptive moments (Ginsburg et al. 2019, arXiv:1905.11286).
 *
 *   v = |g|^2 as long as v is 0, else beta2 v + (1 - beta2) |g|^2     one per tensor
 *   d = g / (sqrt(v) + eps) + weight_decay p                          amsgrad: the largest v so far
 *   m = beta1 m + d                                                   grad_averaging: (1 - beta1) d
 *   p = p - lr m
 */
#include <pons/optimizer.h>

typedef struct novograd {
    double beta1, beta2, eps, weight_decay;
    bool grad_averaging, amsgrad;
} novograd;

static const pons_option options[] = {
    PONS_REAL(novograd, beta1, "0.9", 0, 1, "Share of the last direction that is kept."),
    PONS_REAL(novograd, beta2, "0.98", 0, 1, "Share of the last squared norm that is kept."),
    PONS_REAL(novograd, eps, "1e-8", 0, 1, "Added to the root of the squared norm."),
    PONS_REAL(novograd, weight_decay, "0", 0, 1e6, "Decay added to the direction."),
    PONS_FLAG(novograd, grad_averaging, "no", "Scale each direction by 1 - beta1."),
    PONS_FLAG(novograd, amsgrad, "no", "Divide by the largest norm so far."),
    PONS_OPTIONS_END
};

enum { SLOT_M, SLOT_V, SLOT_LARGEST };

static const pons_slot slots[] = {
    { "m", PONS_SLOT_ELEMENT },
    { "v", PONS_SLOT_TENSOR },
    { "largest", PONS_SLOT_TENSOR },
    PONS_SLOTS_END
};

static pons_status update(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err)
{
    const novograd *c = config;
    pons_node *v = p->slot[SLOT_V];
    pons_node *norm = pons_sum_all(g, pons_square(g, p->gradient));

    v = pons_select(g, pons_equal(g, v, pons_scalar(g, 0)), norm, pons_lerp(g, norm, v, c->beta2));
    pons_assign(g, p->slot[SLOT_V], v);
    if (c->amsgrad) {
        v = pons_max(g, p->slot[SLOT_LARGEST], v);
        pons_assign(g, p->slot[SLOT_LARGEST], v);
    }
    pons_node *d = pons_div(g, p->gradient, pons_add_scalar(g, pons_sqrt(g, v), c->eps));

    if (c->weight_decay > 0)
        d = pons_add(g, d, pons_scale(g, p->value, c->weight_decay));
    if (c->grad_averaging)
        d = pons_scale(g, d, 1 - c->beta1);

    pons_node *m = pons_add(g, pons_scale(g, p->slot[SLOT_M], c->beta1), d);
    pons_assign(g, p->slot[SLOT_M], m);
    pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, m)));
    return pons_graph_status(g, err);
}

static const pons_optimizer_operations operations = { .slots = slots, .update = update };

PONS_OPTIMIZER(novograd, "1.0", "layer-wise adaptive moments", options, operations);
