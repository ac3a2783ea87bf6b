/*
 * adam - adaptive moments (Kingma and Ba 2015, arXiv:1412.6980), also with decoupled weight decay
 * (Loshchilov and Hutter 2019, arXiv:1711.05101) and with amsgrad (Reddi et al. 2018).
 *
 *   g = g + weight_decay p                     decoupled: p = p - lr weight_decay p instead
 *   m = beta1 m + (1 - beta1) g
 *   v = beta2 v + (1 - beta2) g^2
 *   p = p - lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)    amsgrad: the largest v so far
 */
#include <pons/optimizer.h>

#include <math.h>

typedef struct adam {
    double beta1, beta2, eps, weight_decay;
    bool decoupled, amsgrad;
} adam;

static const pons_option options[] = {
    PONS_REAL(adam, beta1, "0.9", 0, 0.9999999, "Share of the last mean gradient that is kept."),
    PONS_REAL(adam, beta2, "0.999", 0, 0.9999999, "Share of the last mean squared gradient kept."),
    PONS_REAL(adam, eps, "1e-8", 0, 1, "Added to the root of the mean squared gradient."),
    PONS_REAL(adam, weight_decay, "0", 0, 1e6, "Decay of the weights."),
    PONS_FLAG(adam, decoupled, "no", "Decay the weights themselves, not through the gradient."),
    PONS_FLAG(adam, amsgrad, "no", "Divide by the largest mean squared gradient so far."),
    PONS_OPTIONS_END
};

enum { SLOT_M, SLOT_V, SLOT_LARGEST };

static const pons_slot slots[] = {
    { "m", PONS_SLOT_ELEMENT },
    { "v", PONS_SLOT_ELEMENT },
    { "largest", PONS_SLOT_ELEMENT },
    PONS_SLOTS_END
};

/* The correction 1 - beta^t, accurate also for beta^t near 1. */
static pons_node *correction(pons_graph *g, double beta, pons_node *t)
{
    return pons_neg(g, pons_expm1(g, pons_scale(g, t, log(beta))));
}

static pons_status update(pons_graph *g, const void *config, const pons_parameter *p,
                          pons_error *err)
{
    const adam *c = config;
    pons_node *value = p->value, *gradient = p->gradient;

    if (c->weight_decay > 0 && c->decoupled)
        value = pons_sub(g, value, pons_mul(g, pons_scale(g, p->lr, c->weight_decay), value));
    else if (c->weight_decay > 0)
        gradient = pons_add(g, gradient, pons_scale(g, value, c->weight_decay));

    pons_node *m = pons_lerp(g, gradient, p->slot[SLOT_M], c->beta1);
    pons_node *v = pons_lerp(g, pons_square(g, gradient), p->slot[SLOT_V], c->beta2);
    pons_node *squared = v;

    if (c->amsgrad) {
        squared = pons_max(g, p->slot[SLOT_LARGEST], v);
        pons_assign(g, p->slot[SLOT_LARGEST], squared);
    }
    pons_node *root = pons_div(g, pons_sqrt(g, squared),
                               pons_sqrt(g, correction(g, c->beta2, p->step)));
    pons_node *rate = pons_div(g, p->lr, correction(g, c->beta1, p->step));

    pons_assign(g, p->slot[SLOT_M], m);
    pons_assign(g, p->slot[SLOT_V], v);
    pons_assign(g, p->value,
                pons_sub(g, value,
                         pons_mul(g, rate, pons_div(g, m, pons_add_scalar(g, root, c->eps)))));
    return pons_graph_status(g, err);
}

static const pons_optimizer_operations operations = { .slots = slots, .update = update };

PONS_OPTIMIZER(adam, "1.0", "adaptive moments", options, operations);
