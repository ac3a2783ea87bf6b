/*
 * map_gradient.c - gradients of pointwise nodes, as nodes.
 *
 * A rule's results have the shape that the operands broadcast to; the gradient pass sums over
 * repetitions. A rule reuses the value of its node where that helps (exp, tanh, div).
 */
#include "graph/ir/ir_internal.h"

#define TWO_OVER_ROOT_PI 1.12837916709551257390

#define RULE(name)                                                                                \
    void gradient_##name(pons_graph *g, pons_node *x, pons_node *dx, const bool *wanted,          \
                         pons_node **gradient)
#define A x->input[0]
#define B x->input[1]
#define C x->input[2]

RULE(add)
{
    gradient[0] = dx;
    gradient[1] = dx;
}

RULE(sub)
{
    gradient[0] = dx;
    if (wanted[1])
        gradient[1] = pons_neg(g, dx);
}

RULE(mul)
{
    if (wanted[0])
        gradient[0] = pons_mul(g, dx, B);
    if (wanted[1])
        gradient[1] = pons_mul(g, dx, A);
}

RULE(div)
{
    if (wanted[0])
        gradient[0] = pons_div(g, dx, B);
    if (wanted[1])
        gradient[1] = pons_neg(g, pons_div(g, pons_mul(g, dx, x), B));
}

RULE(min)
{
    pons_node *zero = pons_scalar(g, 0), *first = pons_less(g, A, B);

    if (wanted[0])
        gradient[0] = pons_select(g, first, dx, zero);
    if (wanted[1])
        gradient[1] = pons_select(g, first, zero, dx);
}

RULE(max)
{
    pons_node *zero = pons_scalar(g, 0), *first = pons_greater(g, A, B);

    if (wanted[0])
        gradient[0] = pons_select(g, first, dx, zero);
    if (wanted[1])
        gradient[1] = pons_select(g, first, zero, dx);
}

/* d/da = b a^(b-1), 0 where b is 0; d/db = a^b log a, 0 where a is 0. */
RULE(pow)
{
    pons_node *zero = pons_scalar(g, 0);
    double number;

    if (wanted[0]) {
        pons_node *d = pons_mul(g, dx, pons_mul(g, B, pons_pow(g, A, pons_add_scalar(g, B, -1))));

        gradient[0] = node_constant(B, &number) ? d :
                      pons_select(g, pons_equal(g, B, zero), zero, d);
    }
    if (wanted[1])
        gradient[1] = pons_select(g, pons_equal(g, A, zero), zero,
                                  pons_mul(g, dx, pons_mul(g, x, pons_log(g, A))));
}

RULE(select)
{
    pons_node *zero = pons_scalar(g, 0);

    if (wanted[1])
        gradient[1] = pons_select(g, A, dx, zero);
    if (wanted[2])
        gradient[2] = pons_select(g, A, zero, dx);
}

RULE(neg)
{
    gradient[0] = pons_neg(g, dx);
}

RULE(abs)
{
    gradient[0] = pons_mul(g, dx, pons_sign(g, A));
}

RULE(sqrt)
{
    gradient[0] = pons_div(g, pons_scale(g, dx, 0.5), x);
}

RULE(exp)
{
    gradient[0] = pons_mul(g, dx, x);
}

RULE(expm1)
{
    gradient[0] = pons_mul(g, dx, pons_add_scalar(g, x, 1));
}

RULE(log)
{
    gradient[0] = pons_div(g, dx, A);
}

RULE(log1p)
{
    gradient[0] = pons_div(g, dx, pons_add_scalar(g, A, 1));
}

RULE(sin)
{
    gradient[0] = pons_mul(g, dx, pons_cos(g, A));
}

RULE(cos)
{
    gradient[0] = pons_neg(g, pons_mul(g, dx, pons_sin(g, A)));
}

RULE(tanh)
{
    gradient[0] = pons_mul(g, dx, pons_sub(g, pons_scalar(g, 1), pons_square(g, x)));
}

RULE(erf)
{
    gradient[0] = pons_mul(g, dx, pons_scale(g, pons_exp(g, pons_neg(g, pons_square(g, A))),
                                             TWO_OVER_ROOT_PI));
}

/* A cast to integers has no gradient. */
RULE(cast)
{
    if (x->type != PONS_U8 && x->type != PONS_I32)
        gradient[0] = dx;
}
