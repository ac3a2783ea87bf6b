/*
 * moments.c - adaptive moments (Kingma and Ba 2015, arXiv:1412.6980), also with decoupled weight
 * decay (Loshchilov and Hutter 2019, arXiv:1711.05101) and with amsgrad (Reddi et al. 2018).
 */
#include "moments.h"

#include <math.h>

enum { SLOT_M, SLOT_V, SLOT_LARGEST };

const pons_slot moments_slots[] = {
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

pons_status moments_update(pons_graph *g, const moments *c, bool decoupled,
                           const pons_parameter *p, pons_error *err)
{
    pons_node *value = p->value, *gradient = p->gradient;

    if (c->weight_decay > 0 && decoupled)
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
