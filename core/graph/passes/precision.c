/*
 * precision.c - choose the tensors that are stored in 16 bits.
 *
 * Convolutions and matrix products read and write 16 bits. The results of a model's pointwise
 * nodes, pools, resizes and moves on them stay in 16 bits, forward and backward. Reductions,
 * moments, weight gradients, losses, states, parameters and all outputs stay f32. Expressions are
 * computed in f32 for all storage types. A product reads an f32 tensor through one cast per tensor;
 * the cast of a weight runs once a step.
 */
#include "graph/passes/precision.h"

#include <string.h>

#include "base/arena.h"
#include "graph/ir/build.h"
#include "graph/ir/shape.h"
#include "graph/ir/sort.h"

static const char *const precision_names[] = { "auto", "fp32", "tf32", "bf16", "fp16" };

const char *precision_name(precision p)
{
    return precision_names[p];
}

precision precision_named(const char *name)
{
    for (int p = 1; p < 5; p++) {
        if (strcmp(precision_names[p], name) == 0)
            return (precision)p;
    }
    return PRECISION_AUTO;
}

typedef struct conversion {
    pons_graph *g;
    pons_type low;
    bool *root;              /* by number: memory that is stored as f32                           */
    pons_node **cast;        /* by number: the tensor in the 16-bit type                          */
} conversion;

static bool is_product(const pons_node *x)
{
    return x->kind == NODE_CONVOLUTION || x->kind == NODE_CONVOLUTION_INPUT_GRADIENT ||
           x->kind == NODE_CONVOLUTION_WEIGHT_GRADIENT || x->kind == NODE_MATMUL;
}

/* Kinds whose result has the precision of their arguments. */
static bool is_carrier(const pons_node *x)
{
    return x->kind == NODE_POOL || x->kind == NODE_POOL_GRADIENT || x->kind == NODE_RESIZE ||
           x->kind == NODE_RESIZE_GRADIENT || x->kind == NODE_REDUCE_MINMAX_GRADIENT ||
           (x->kind >= NODE_TRANSPOSE && x->kind <= NODE_GATHER && x->kind != NODE_BROADCAST);
}

/* Kinds that read f32 only. */
static bool reads_f32(const pons_node *x)
{
    return x->kind == NODE_ALL_REDUCE || x->kind == NODE_OP;
}

static bool reads_low(const conversion *c, const pons_node *x)
{
    for (int i = 0; i < x->input_count; i++)
        if (x->input[i]->type == c->low)
            return true;
    return false;
}

static pons_node *cast_new(conversion *c, pons_node *x, pons_type type)
{
    pons_node *cast;

    c->g->section = x->section;
    c->g->scope = x->scope;
    c->g->origin = x->origin;
    cast = node_new(c->g, NODE_CAST, type, x->shape, 1, &x, NULL);
    cast->backward = x->backward;
    return cast;
}

/* 'x' in the 16-bit type. */
static pons_node *cast_of(conversion *c, pons_node *x)
{
    if (x->type != PONS_F32)
        return x;
    if (c->cast[x->number] == NULL)
        c->cast[x->number] = cast_new(c, x, c->low);
    return c->cast[x->number];
}

static void widen_inputs(conversion *c, pons_node *x)
{
    for (int i = 0; i < x->input_count; i++)
        if (x->input[i]->type == c->low)
            x->input[i] = cast_new(c, x->input[i], PONS_F32);
}

static void cast_inputs(conversion *c, pons_node *x, int count)
{
    for (int i = 0; i < count && i < x->input_count; i++)
        x->input[i] = cast_of(c, x->input[i]);
}

/* The model's backward nodes read the gradient of the loss in the 16-bit type. */
static void cast_loss_gradient(conversion *c, pons_node *x)
{
    for (int i = 0; i < x->input_count; i++)
        if (x->input[i]->scope == SCOPE_LOSS && x->input[i]->backward &&
            x->input[i]->shape.rank > 2 && shape_equal(x->input[i]->shape, x->shape))
            x->input[i] = cast_of(c, x->input[i]);
}

static bool becomes_low(const conversion *c, const pons_node *x)
{
    if (x->type != PONS_F32 || c->root[x->number])
        return false;
    if (x->kind == NODE_CONVOLUTION || x->kind == NODE_CONVOLUTION_INPUT_GRADIENT ||
        x->kind == NODE_MATMUL)
        return true;
    if (x->scope != SCOPE_MODEL || !reads_low(c, x))
        return false;
    return (node_is_map(x) && x->kind != NODE_CAST) || x->kind == NODE_BROADCAST || is_carrier(x);
}

static void convert_node(conversion *c, pons_node *x)
{
    if (x->kind == NODE_RESHAPE || x->kind == PONS_MAP_STOP_GRADIENT) {
        x->type = x->input[0]->type;
        return;
    }
    if (reads_f32(x))
        widen_inputs(c, x);
    else if (is_product(x))
        cast_inputs(c, x, 2);
    else if (x->scope == SCOPE_MODEL && x->backward && node_is_map(x) && x->kind != NODE_CAST)
        cast_loss_gradient(c, x);
    if (becomes_low(c, x))
        x->type = c->low;
    if (is_carrier(x) && reads_low(c, x))
        cast_inputs(c, x, x->kind == NODE_GATHER ? 1 : x->input_count);
}

pons_status pass_precision(pons_graph *g, int root_count, pons_node *const *root, precision p,
                           pons_error *err)
{
    int count = g->node_count;
    node_section section = g->section;
    node_scope scope = g->scope;
    arena *scratch;
    conversion c = { .g = g, .low = p == PRECISION_FP16 ? PONS_F16 : PONS_BF16 };

    if (p != PRECISION_BF16 && p != PRECISION_FP16)
        return PONS_OK;
    scratch = arena_new();
    c.root = arena_alloc(scratch, sizeof(*c.root) * (size_t)(count + 1));
    c.cast = arena_alloc(scratch, sizeof(*c.cast) * (size_t)(count + 1));
    for (int i = 0; i < root_count; i++)
        c.root[node_owner(root[i])->number] = true;
    for (int i = 0; i < count; i++)
        convert_node(&c, g->node[i]);
    arena_free(scratch);
    g->section = section;
    g->scope = scope;
    graph_sort(g);
    return pons_graph_status(g, err);
}
