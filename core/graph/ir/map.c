/*
 * map.c - builders of pointwise nodes, and the compositions of them that graph.h offers.
 *
 * The builders fold trivial expressions: operations on constants, x + 0, x * 1, -(-x), powers with
 * a small exponent, and broadcasts that the operation implies. A result is f32 for all types of
 * operands; only 'cast' gives another type.
 */
#include <math.h>

#include "graph/ir/ir_internal.h"

/* ---- folding --------------------------------------------------------------------------------- */

static double fold_add(double a, double b) { return a + b; }
static double fold_sub(double a, double b) { return a - b; }
static double fold_mul(double a, double b) { return a * b; }
static double fold_div(double a, double b) { return a / b; }
static double fold_min(double a, double b) { return a < b ? a : b; }
static double fold_max(double a, double b) { return a > b ? a : b; }
static double fold_neg(double a, double b) { return -a; }
static double fold_sqrt(double a, double b) { return sqrt(a); }
static double fold_stop(double a, double b) { return a; }

static double (*const fold_number[PONS_MAP_OPERATION_COUNT])(double a, double b) = {
    [PONS_MAP_ADD] = fold_add, [PONS_MAP_SUB] = fold_sub, [PONS_MAP_MUL] = fold_mul,
    [PONS_MAP_DIV] = fold_div, [PONS_MAP_MIN] = fold_min, [PONS_MAP_MAX] = fold_max,
    [PONS_MAP_NEG] = fold_neg, [PONS_MAP_SQRT] = fold_sqrt, [PONS_MAP_POW] = pow,
    [PONS_MAP_STOP_GRADIENT] = fold_stop,
};

/* The neutral operand. Bit 0: a op number = a; bit 1: number op b = b. */
static const struct neutral {
    int sides;
    double number;
} neutral[PONS_MAP_OPERATION_COUNT] = {
    [PONS_MAP_ADD] = { 3, 0 }, [PONS_MAP_SUB] = { 1, 0 }, [PONS_MAP_MUL] = { 3, 1 },
    [PONS_MAP_DIV] = { 1, 1 }, [PONS_MAP_POW] = { 1, 1 },
};

static pons_node *fold_neutral(pons_graph *g, pons_map_operation op, pons_node *const *in,
                               pons_shape shape)
{
    double number;

    for (int side = 0; side < 2; side++) {
        pons_node *kept = in[side], *other = in[1 - side];

        if ((neutral[op].sides & 1 << side) != 0 && kept->type == PONS_F32 &&
            node_constant(other, &number) && number == neutral[op].number)
            return node_repeat(g, kept, shape);
    }
    return NULL;
}

/* A cheaper form of pow with a constant exponent, or NULL. */
static pons_node *fold_power(pons_graph *g, pons_node *a, pons_node *b, pons_shape shape)
{
    double number;

    if (!node_constant(b, &number))
        return NULL;
    if (number == 0)
        return node_repeat(g, pons_scalar(g, 1), shape);
    if (number == 2)
        return node_repeat(g, pons_mul(g, a, a), shape);
    if (number == 3)
        return node_repeat(g, pons_mul(g, pons_mul(g, a, a), a), shape);
    if (number == 0.5)
        return node_repeat(g, pons_sqrt(g, a), shape);
    return NULL;
}

static pons_node *fold_node(pons_graph *g, pons_map_operation op, int count, pons_node *const *in,
                            pons_shape shape)
{
    double a = 0, b = 0;
    pons_node *folded = NULL;

    if (count <= 2 && fold_number[op] != NULL && node_constant(in[0], &a) &&
        (count == 1 || node_constant(in[1], &b)))
        return node_repeat(g, pons_scalar(g, fold_number[op](a, b)), shape);
    if (op == PONS_MAP_NEG && in[0]->kind == PONS_MAP_NEG && in[0]->input[0]->type == PONS_F32)
        return in[0]->input[0];
    if (count == 2)
        folded = fold_neutral(g, op, in, shape);
    if (folded == NULL && op == PONS_MAP_POW)
        folded = fold_power(g, in[0], in[1], shape);
    return folded;
}

/* ---- one builder for all --------------------------------------------------------------------- */

static bool common_shape(pons_graph *g, int kind, int count, pons_node *const *in,
                         pons_shape *shape)
{
    char first[160], second[160];

    *shape = in[0]->shape;
    for (int i = 1; i < count; i++) {
        pons_shape before = *shape;

        if (!shape_broadcast(before, in[i]->shape, shape)) {
            node_refuse(g, kind, "shapes %s and %s do not broadcast",
                        shape_text(before, first, sizeof first),
                        shape_text(in[i]->shape, second, sizeof second));
            return false;
        }
    }
    return true;
}

/* Replace a broadcast by its argument where the other operands imply the same repetition. */
static void strip_broadcasts(int count, pons_node **in, pons_shape shape)
{
    for (int i = 0; i < count; i++) {
        pons_shape rest = { .rank = 0 };

        if (in[i]->kind != NODE_BROADCAST)
            continue;
        for (int j = 0; j < count; j++)
            shape_broadcast(rest, j == i ? in[i]->input[0]->shape : in[j]->shape, &rest);
        if (shape_equal(rest, shape))
            in[i] = in[i]->input[0];
    }
}

static pons_node *map_node(pons_graph *g, pons_map_operation op, int count, pons_node **in)
{
    pons_shape shape;
    pons_node *folded;

    if (!inputs_given(g, op, count, in) || !common_shape(g, op, count, in, &shape))
        return g->failed;
    strip_broadcasts(count, in, shape);
    folded = fold_node(g, op, count, in, shape);
    return folded != NULL ? folded : node_new(g, op, PONS_F32, shape, count, in, NULL);
}

#define INPUTS_1 a
#define INPUTS_2 a, b
#define INPUTS_3 a, b, c
#define BUILDER(NAME, name, arity)                                                                \
    pons_node *pons_##name(pons_graph *g, PONS_MAP_ARGUMENTS_##arity)                             \
    {                                                                                             \
        pons_node *in[] = { INPUTS_##arity };                                                     \
                                                                                                  \
        return map_node(g, PONS_MAP_##NAME, arity, in);                                           \
    }
PONS_MAP_OPERATIONS(BUILDER)

pons_node *pons_cast(pons_graph *g, pons_node *x, pons_type type)
{
    if (!inputs_given(g, NODE_CAST, 1, &x))
        return g->failed;
    if (type < PONS_F32 || type > PONS_F64)
        return node_refuse(g, NODE_CAST, "unknown type %d", (int)type);
    return x->type == type ? x : node_new(g, NODE_CAST, type, x->shape, 1, &x, NULL);
}

/* ---- compositions ---------------------------------------------------------------------------- */

pons_node *pons_scale(pons_graph *g, pons_node *x, double factor)
{
    return pons_mul(g, x, pons_scalar(g, factor));
}

pons_node *pons_add_scalar(pons_graph *g, pons_node *x, double addend)
{
    return pons_add(g, x, pons_scalar(g, addend));
}

pons_node *pons_square(pons_graph *g, pons_node *x)
{
    return pons_mul(g, x, x);
}

pons_node *pons_reciprocal(pons_graph *g, pons_node *x)
{
    return pons_div(g, pons_scalar(g, 1), x);
}

pons_node *pons_lerp(pons_graph *g, pons_node *a, pons_node *b, double t)
{
    return pons_add(g, pons_scale(g, a, 1 - t), pons_scale(g, b, t));
}

/* The clamp at 80 keeps exp finite; the sigmoid is 0 in f32 arithmetic beyond it. */
pons_node *pons_sigmoid(pons_graph *g, pons_node *x)
{
    pons_node *e = pons_exp(g, pons_min(g, pons_neg(g, x), pons_scalar(g, 80)));

    return pons_reciprocal(g, pons_add_scalar(g, e, 1));
}

/* Select instead of min and abs gives the gradient 1/2 at 0, the value of both sides. */
pons_node *pons_log_sigmoid(pons_graph *g, pons_node *x)
{
    pons_node *zero = pons_scalar(g, 0), *positive = pons_greater(g, x, zero);
    pons_node *negative_size = pons_select(g, positive, pons_neg(g, x), x);

    return pons_sub(g, pons_select(g, positive, zero, x),
                    pons_log1p(g, pons_exp(g, negative_size)));
}

pons_node *pons_relu(pons_graph *g, pons_node *x)
{
    pons_node *zero = pons_scalar(g, 0);

    return pons_select(g, pons_greater(g, x, zero), x, zero);
}

pons_node *pons_leaky_relu(pons_graph *g, pons_node *x, double slope)
{
    return pons_prelu(g, x, pons_scalar(g, slope));
}

pons_node *pons_prelu(pons_graph *g, pons_node *x, pons_node *slope)
{
    return pons_select(g, pons_greater(g, x, pons_scalar(g, 0)), x, pons_mul(g, slope, x));
}

/*
 * The minimum keeps the exponential finite where it is not selected: its derivative is multiplied
 * by 0 there. x is the second operand, which has the gradient at 0.
 */
pons_node *pons_elu(pons_graph *g, pons_node *x)
{
    pons_node *zero = pons_scalar(g, 0), *negative = pons_min(g, zero, x);

    return pons_select(g, pons_greater(g, x, zero), x, pons_expm1(g, negative));
}

pons_node *pons_gelu(pons_graph *g, pons_node *x)
{
    pons_node *below = pons_add_scalar(g, pons_erf(g, pons_scale(g, x, sqrt(0.5))), 1);

    return pons_mul(g, pons_scale(g, x, 0.5), below);
}
