/*
 * recompute.c - choose what the backward pass recomputes instead of keeping it in memory (R14).
 *
 * The forward pass keeps leaves, tensors without spatial extent and the results of kernels that are
 * no expressions (convolutions, moments, sums, pools). Every other expression that a backward node
 * reads is copied for the backward pass, down to kept tensors. An expression of more than three
 * kept volumes is kept itself. So is the data that the core has prepared: it is one volume, and its
 * sources are several. Copies draw the same random numbers, and never contribute to states.
 */
#include "graph/passes/recompute.h"

#include "graph/ir/build.h"
#include "graph/ir/sort.h"
#include "graph/passes/fuse/fuse.h"

#define VOLUMES_MAX 3

typedef struct recompute {
    pons_graph *g;
    struct { int count; pons_node *item[VOLUMES_MAX]; } *volumes; /* by number                    */
    bool *again;             /* by number: recomputed                                             */
    bool *deep;              /* by number: recomputed with a convolution on the way               */
    bool blocks;
    pons_node **copy;
} recompute;

static bool is_small(const pons_node *x)
{
    int64_t inner = 1;

    for (int i = 1; i + 1 < x->shape.rank; i++)
        inner *= x->shape.extent[i];
    return inner == 1;
}

static bool is_channel_reduction(const pons_node *x)
{
    return (x->kind == NODE_SUM || x->kind == NODE_MAXIMUM || x->kind == NODE_MINIMUM) &&
           x->attribute.axes == PONS_AXIS(x->shape.rank - 1);
}

static bool add_volume(recompute *r, const pons_node *x, pons_node *volume)
{
    for (int i = 0; i < r->volumes[x->number].count; i++)
        if (r->volumes[x->number].item[i] == volume)
            return true;
    if (r->volumes[x->number].count == VOLUMES_MAX)
        return false;
    r->volumes[x->number].item[r->volumes[x->number].count++] = volume;
    return true;
}

/* Whether 'x' is a parameter, or its cast to the storage type. */
static bool is_weight(const pons_node *x)
{
    return x->kind == NODE_PARAMETER ||
           (x->kind == NODE_CAST && node_owner(x->input[0])->kind == NODE_PARAMETER);
}

/* Collect the kept volumes from which 'x' is computed; false: they are too many. */
static bool collect_volumes(recompute *r, pons_node *x)
{
    for (int i = 0; i < x->input_count; i++) {
        pons_node *input = x->input[i], *owner = node_owner(input);

        if (!r->again[input->number]) {
            if (!is_small(owner) && !is_weight(owner) && owner->kind != NODE_CONSTANT &&
                owner->kind != NODE_IOTA && !add_volume(r, x, owner))
                return false;
            continue;
        }
        for (int k = 0; k < r->volumes[input->number].count; k++)
            if (!add_volume(r, x, r->volumes[input->number].item[k]))
                return false;
    }
    return true;
}

/* With 'blocks' every other convolution of a chain is recomputed from the one before it. */
static void decide_convolution(recompute *r, pons_node *x)
{
    if (!x->backward && !r->deep[x->input[0]->number])
        r->again[x->number] = r->deep[x->number] = !is_small(x) && collect_volumes(r, x);
}

static void decide_node(recompute *r, pons_node *x)
{
    bool expression = fuse_is_expression(x) || x->kind == NODE_RESHAPE || is_channel_reduction(x);

    if (r->blocks && x->kind == NODE_CONVOLUTION)
        decide_convolution(r, x);
    if (x->backward || !expression || x->kind == NODE_CONSTANT || x->kind == NODE_IOTA ||
        is_weight(x) || x->scope == SCOPE_CORE)
        return;
    if (x->kind == NODE_RESHAPE)
        r->again[x->number] = r->again[x->input[0]->number] && collect_volumes(r, x);
    else
        r->again[x->number] = !is_small(x) && collect_volumes(r, x);
    for (int i = 0; r->again[x->number] && i < x->input_count; i++)
        r->deep[x->number] = r->deep[x->number] || r->deep[x->input[i]->number];
}

static pons_node *copy_of(recompute *r, pons_node *x)
{
    pons_node *copy = r->copy[x->number];
    pons_node **input;

    if (copy)
        return copy;
    input = arena_alloc(r->g->arena, sizeof(*input) * (size_t)(x->input_count + 1));
    for (int i = 0; i < x->input_count; i++)
        input[i] = r->again[x->input[i]->number] ? copy_of(r, x->input[i]) : x->input[i];
    r->g->section = x->section;
    r->g->scope = x->scope;
    r->g->origin = x->origin;
    copy = node_new(r->g, x->kind, x->type, x->shape, x->input_count, input, &x->attribute);
    copy->name = x->name;
    copy->copy_of = x;
    copy->backward = true;
    r->copy[x->number] = copy;
    return copy;
}

pons_status pass_recompute(pons_graph *g, int root_count, pons_node *const *root, bool blocks,
                           pons_error *err)
{
    int count = g->node_count;
    size_t size = (size_t)count + 1;
    node_section section = g->section;
    node_scope scope = g->scope;
    arena *scratch = arena_new();
    recompute r = { .g = g, .blocks = blocks };

    r.volumes = arena_alloc(scratch, sizeof(*r.volumes) * size);
    r.again = arena_alloc(scratch, sizeof(*r.again) * size);
    r.deep = arena_alloc(scratch, sizeof(*r.deep) * size);
    r.copy = arena_alloc(scratch, sizeof(*r.copy) * size);
    for (int i = 0; i < count; i++)
        decide_node(&r, g->node[i]);
    for (int i = 0; i < count; i++)
        for (int k = 0; g->node[i]->backward && k < g->node[i]->input_count; k++)
            if (r.again[g->node[i]->input[k]->number])
                g->node[i]->input[k] = copy_of(&r, g->node[i]->input[k]);
    arena_free(scratch);
    g->section = section;
    g->scope = scope;
    graph_sort(g);
    return pons_graph_status(g, err);
}
