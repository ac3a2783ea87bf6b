/*
 * plan.c - the last step of the compiler: units of the fuse pass become kernels in running order.
 *
 * A kernel can run when all its inputs are computed. Of the kernels that can run, the one whose
 * first node comes first in the graph does. So weight gradients run as soon as possible, and
 * recomputed expressions just before their first reader.
 */
#include "graph/program/plan.h"

#include <string.h>

#include "graph/ir/shape.h"
#include "graph/ir/sort.h"
#include "graph/passes/fuse/fuse.h"

/* ---- names and costs ------------------------------------------------------------------------- */

enum { NAME_DEPTH = 12 }; /* depth of the search for a name below a node */

/* The nearest name above 'x', for messages and profiles. */
static const char *name_near(const pons_node *x, int depth)
{
    const char *name = x->name;

    for (int i = x->input_count - 1; i >= 0 && depth > 0 && name == NULL; i--)
        name = name_near(x->input[i], depth - 1);
    return name;
}

static const pons_node *original_node(const pons_node *x)
{
    x = node_owner((pons_node *)x);
    return x->copy_of ? x->copy_of : x;
}

/*
 * The weight whose gradient 'x' is: that of the convolution (or transposed one) with the same
 * input.
 */
static const char *weight_name(const pons_graph *g, const pons_node *x)
{
    for (int i = 0; i < g->node_count; i++) {
        const pons_node *y = g->node[i];

        if (y->backward ||
            (y->kind != NODE_CONVOLUTION && y->kind != NODE_CONVOLUTION_INPUT_GRADIENT))
            continue;
        if (shape_equal(y->input[1]->shape, x->shape) &&
            original_node(y->input[0]) == original_node(x->input[y->kind == NODE_CONVOLUTION ? 0
                                                                 : 1]))
            return name_near(y->input[1], 2);
    }
    return NULL;
}

/* Start and wait of a sum over replicas get different names; an op has its own. */
static const char *detailed_name(const fusion *f, const pons_node *x, const char *name)
{
    if (x->kind == NODE_ALL_REDUCE)
        return arena_format(f->arena, "%s: %s", name, x->attribute.all_reduce.part ==
                            PONS_ALL_REDUCE_START ? "start" : "wait");
    return x->kind == NODE_OP ? arena_format(f->arena, "%s: %s", name, x->attribute.op.name) : name;
}

/*
 * The layer of the unit's nodes: the nearest name below its outputs, at most as far as the sums of
 * a normalisation are from their convolution. Nodes of the loss have the name 'loss'.
 */
static const char *unit_name(const fusion *f, const fuse_unit *u)
{
    const char *name = NULL;
    bool backward = false;

    if (u->output[0]->kind == NODE_CONVOLUTION_WEIGHT_GRADIENT)
        name = weight_name(f->g, u->output[0]);
    for (int i = 0; i < u->output_count && name == NULL; i++)
        name = u->output[i]->scope == SCOPE_LOSS ? "loss" : NULL;
    for (int depth = 0; depth < NAME_DEPTH && name == NULL; depth++)
        for (int i = 0; i < u->output_count && name == NULL; i++)
            name = name_near(u->output[i], depth);
    for (int i = 0; i < u->output_count; i++)
        backward = backward || u->output[i]->backward;
    if (name == NULL)
        name = "model";
    if (backward)
        name = arena_format(f->arena, "%s (backward)", name);
    return detailed_name(f, u->output[0], name);
}

static uint64_t convolution_flop(const pons_node *x)
{
    const pons_node *y = x->kind == NODE_CONVOLUTION ? x : x->input[x->kind ==
                         NODE_CONVOLUTION_INPUT_GRADIENT ? 0 : 1];
    pons_shape w = x->kind == NODE_CONVOLUTION_WEIGHT_GRADIENT ? x->shape : x->input[1]->shape;

    return 2 * (uint64_t)shape_count(y->shape) * (uint64_t)(shape_count(w) / w.extent[0]);
}

static uint64_t node_flop(const pons_node *x)
{
    pons_shape a;

    switch (x->kind) {
    case NODE_CONVOLUTION:
    case NODE_CONVOLUTION_INPUT_GRADIENT:
    case NODE_CONVOLUTION_WEIGHT_GRADIENT:
        return convolution_flop(x);
    case NODE_MATMUL:
        a = x->input[0]->shape;
        return 2 * (uint64_t)shape_count(x->shape) *
               (uint64_t)a.extent[a.rank - (x->attribute.matmul.transpose_a ? 2 : 1)];
    default:
        return (uint64_t)shape_count(x->shape);
    }
}

static uint64_t map_flop(const pons_map *map)
{
    uint64_t points = 1, count = 0;

    for (int i = 0; i < map->axis_count; i++)
        points *= (uint64_t)map->extent[i];
    for (int i = 0; i < map->value_count; i++)
        if (map->value[i].operation < PONS_VALUE_LOAD)
            count += map->value[i].per_point ? points / (uint64_t)map->channels : points;
    return count + points * (uint64_t)map->reduction_count;
}

/* ---- requests -------------------------------------------------------------------------------- */

static const pons_kernel_kind kernel_of[NODE_KIND_COUNT] = {
    [NODE_REDUCE_MINMAX_GRADIENT] = PONS_KERNEL_REDUCE_MINMAX_GRADIENT,
    [NODE_ARG_MAX] = PONS_KERNEL_ARG_MAX,
    [NODE_CONVOLUTION] = PONS_KERNEL_CONVOLUTION,
    [NODE_CONVOLUTION_INPUT_GRADIENT] = PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,
    [NODE_CONVOLUTION_WEIGHT_GRADIENT] = PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT,
    [NODE_MATMUL] = PONS_KERNEL_MATMUL,
    [NODE_POOL] = PONS_KERNEL_POOL,
    [NODE_POOL_GRADIENT] = PONS_KERNEL_POOL_GRADIENT,
    [NODE_RESIZE] = PONS_KERNEL_RESIZE,
    [NODE_RESIZE_GRADIENT] = PONS_KERNEL_RESIZE_GRADIENT,
    [NODE_TRANSPOSE] = PONS_KERNEL_TRANSPOSE,
    [NODE_FLIP] = PONS_KERNEL_FLIP,
    [NODE_CROP] = PONS_KERNEL_CROP,
    [NODE_PAD] = PONS_KERNEL_PAD,
    [NODE_PAD_GRADIENT] = PONS_KERNEL_PAD_GRADIENT,
    [NODE_CONCATENATE] = PONS_KERNEL_CONCATENATE,
    [NODE_GATHER] = PONS_KERNEL_GATHER,
    [NODE_ALL_REDUCE] = PONS_KERNEL_ALL_REDUCE,
    [NODE_OP] = PONS_KERNEL_OP,
    [NODE_PATCH] = PONS_KERNEL_PATCH,
    [NODE_PATCH_NORMAL] = PONS_KERNEL_PATCH_NORMAL,
    [NODE_PATCH_ACCUMULATE] = PONS_KERNEL_PATCH_ACCUMULATE
};

static const pons_tensor *tensors_of(arena *a, pons_node *const *owner, int count)
{
    pons_tensor *t = arena_alloc(a, sizeof(*t) * (size_t)(count + 1));

    for (int i = 0; i < count; i++)
        t[i] = (pons_tensor){ owner[i]->type, owner[i]->shape };
    return t;
}

/* Whether 'owner' is a weight, or its cast to the storage type: both are written once a step. */
static bool is_packable(const fusion *f, pons_node *owner)
{
    const fuse_unit *u = fuse_unit_of(f, owner);

    return owner->kind == NODE_PARAMETER || (u && u->begin);
}

static void make_other(const fusion *f, pons_node *x, plan_kernel *k)
{
    pons_tensor *t = arena_alloc(f->arena, sizeof(*t) * (size_t)(x->input_count + 1));

    k->input = arena_alloc(f->arena, sizeof(*k->input) * (size_t)(x->input_count + 1));
    k->output = arena_alloc(f->arena, sizeof(*k->output));
    for (int i = 0; i < x->input_count; i++) {
        k->input[i] = node_owner(x->input[i]);
        t[i] = (pons_tensor){ k->input[i]->type, x->input[i]->shape };
        if ((x->kind == NODE_CONVOLUTION || x->kind == NODE_CONVOLUTION_INPUT_GRADIENT) && i == 1 &&
            is_packable(f, k->input[i]))
            k->request.packable |= 1u << i;
    }
    k->output[0] = x;
    k->request.kind = kernel_of[x->kind];
    k->request.input = t;
    k->request.input_count = x->input_count;
    k->request.output = tensors_of(f->arena, k->output, 1);
    k->request.output_count = 1;
    k->request.attributes = &x->attribute;
    k->request.tf32 = f->tf32;
    k->flop = node_flop(x);
    k->node_count = 1;
}

static void make_map(const fusion *f, const fuse_unit *u, plan_kernel *k)
{
    lowering l;
    const pons_map *map;

    k->input = arena_alloc(f->arena, sizeof(*k->input) * (size_t)(u->read_count + 1));
    k->output = arena_alloc(f->arena, sizeof(*k->output) * (size_t)(2 * u->output_count));
    fuse_lower(f, u, f->arena, &l, k->input, &k->request.input_count, k->output,
               &k->request.output_count);
    map = lowering_finish(&l);
    k->request.kind = PONS_KERNEL_MAP;
    k->request.input = tensors_of(f->arena, k->input, k->request.input_count);
    k->request.output = tensors_of(f->arena, k->output, k->request.output_count);
    k->request.attributes = map;
    k->flop = map_flop(map);
    k->node_count = map->reduction_count;
    for (int i = 0; i < map->value_count; i++)
        k->node_count += map->value[i].operation < PONS_VALUE_LOAD;
    if (k->node_count == 0)
        k->node_count = 1;
}

static void make_kernel(const fusion *f, const fuse_unit *u, bool repeats, plan_kernel *k)
{
    *k = (plan_kernel){ .section = u->begin && !repeats ? SECTION_BEGIN : SECTION_MICRO };
    for (int i = 0; i < u->output_count; i++) {
        k->backward = k->backward || u->output[i]->backward;
        k->origin = k->origin != NULL ? k->origin : u->output[i]->origin;
    }
    k->request.name = unit_name(f, u);
    if (u->map)
        make_map(f, u, k);
    else
        make_other(f, u->output[0], k);
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool is_ready(const fusion *f, const fuse_unit *u, int stamp)
{
    for (int i = 0; i < u->read_count; i++) {
        const fuse_unit *from = fuse_unit_of(f, u->read[i].tensor);

        if (from && from != u && from->visited != stamp)
            return false;
    }
    return true;
}

/*
 * Whether an evaluation computes so much that packing and converting weights in each run costs
 * little beside it on a host. Memory then holds them for the run of their kernels alone. The bound
 * is in operations a weight.
 */
static bool is_long_run(const fusion *f, const device *d)
{
    enum { OPERATIONS_FOR_WEIGHT = 16000 };
    double weights = 0, flop = 0;

    for (int i = 0; i < f->g->node_count; i++) {
        const pons_node *x = f->g->node[i];

        if (x->kind == NODE_PARAMETER)
            weights += (double)shape_count(x->shape);
        else if (f->live[i] && fuse_unit_of(f, x) != NULL && !fuse_unit_of(f, x)->begin)
            flop += (double)node_flop(x);
    }
    return !f->off && !f->g->training && d->facts.host_memory
           && flop >= OPERATIONS_FOR_WEIGHT * weights;
}

/* The units in running order, those of begin first, unless they run each time. */
static bool order_units(fusion *f, bool repeats, fuse_unit **order)
{
    int stamp = ++f->stamp;

    for (int n = 0; n < f->unit_count; n++) {
        fuse_unit *next = NULL;

        for (int i = 0; i < f->unit_count; i++) {
            fuse_unit *u = f->unit[i];

            if (u->visited == stamp || (next && next->begin && !u->begin && !repeats))
                continue;
            if (next && (repeats || next->begin == u->begin) && next->first < u->first)
                continue;
            if (is_ready(f, u, stamp))
                next = u;
        }
        if (next == NULL)
            return false;
        next->visited = stamp;
        order[n] = next;
    }
    return true;
}

pons_status plan_make(pons_graph *g, int root_count, pons_node *const *root, const device *d,
                      const program_settings *settings, plan *out, pons_error *err)
{
    fusion f = { .g = g, .arena = g->arena, .tf32 = settings->precision == PRECISION_TF32,
                 .root_count = root_count, .root = root };
    fuse_unit **order;

    f.off = settings->testing.no_fuse || d->reference;
    if (!f.off && fuse_slices(&f))
        graph_sort(g);
    fuse_graph(&f);
    if (!f.off && fuse_split(&f)) {
        graph_sort(g);
        fuse_graph(&f);
    }
    order = arena_alloc(f.arena, sizeof(*order) * (size_t)(f.unit_count + 1));
    out->repeats = is_long_run(&f, d);
    if (!order_units(&f, out->repeats, order))
        return pons_fail(err, PONS_FAILURE, "kernels wait for each other after fusing");
    out->kernel = arena_alloc(f.arena, sizeof(*out->kernel) * (size_t)(f.unit_count + 1));
    out->kernel_count = f.unit_count;
    for (int i = 0; i < f.unit_count; i++)
        make_kernel(&f, order[i], out->repeats, &out->kernel[i]);
    return PONS_OK;
}
