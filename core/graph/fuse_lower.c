/*
 * fuse_lower.c - a unit as a map program: operands in memory, values, stores and reductions.
 */
#include "graph/fuse.h"

#include <string.h>

typedef struct unit_lowering {
    const fusion *f;
    const fuse_unit *u;
    pons_node **input;
    int *input_count;
} unit_lowering;

static int place_of(pons_node **list, int *count, pons_node *x)
{
    for (int i = 0; i < *count; i++)
        if (list[i] == x)
            return i;
    list[*count] = x;
    return (*count)++;
}

/* The crop 'x' as an operand in the cropped tensor. */
static void view_operand(unit_lowering *c, const pons_node *x, pons_shape at, pons_operand *load)
{
    const pons_crop_attributes *crop = &x->attribute.crop;
    pons_shape from = x->input[0]->shape;
    pons_node *owner = plan_owner(x->input[0]);
    int axis = 0;

    load->tensor = place_of(c->input, c->input_count, owner);
    load->type = owner->type;
    for (int i = 0; i < from.rank; i++)
        load->offset += crop->start[i] * shape_stride(from, i);
    for (int i = 0; i < at.rank; i++) {
        int own = i - (at.rank - from.rank);

        if (at.extent[i] == 1)
            continue;
        if (own >= 0 && x->shape.extent[own] > 1)
            load->stride[axis] = crop->step[own] * shape_stride(from, own);
        axis++;
    }
}

static bool unit_leaf(void *context, const pons_node *x, pons_shape at, pons_operand *load)
{
    unit_lowering *c = context;
    pons_node *owner = plan_owner((pons_node *)x);
    fuse_source source = fuse_source_of(c->f, x);

    if (source == FUSE_COMPUTED || source == FUSE_INSIDE || fuse_unit_of(c->f, owner) == c->u)
        return false;
    if (source == FUSE_VIEW) {
        view_operand(c, owner, at, load);
        return true;
    }
    load->tensor = place_of(c->input, c->input_count, owner);
    load->type = owner->type;
    operand_strides(x->shape, at, load->stride);
    return true;
}

static pons_operand output_operand(pons_node **output, int *output_count, pons_node *x)
{
    pons_operand to = { .type = x->type };

    to.tensor = place_of(output, output_count, x);
    return to;
}

static void lower_store(const fusion *f, lowering *l, pons_node *x, pons_node **output,
                        int *output_count)
{
    const pons_node *whole = f->part_of[x->number];
    pons_operand to = output_operand(output, output_count, whole ? (pons_node *)whole : x);
    int value = lowering_value(l, x, x->shape);

    operand_strides(whole ? whole->shape : x->shape, x->shape, to.stride);
    if (whole)
        to.offset = fuse_part_offset(whole, x);
    if (l->map.channels > 0 && shape_squeeze(x->shape).rank == l->map.axis_count &&
        shape_count(x->shape) > 1)
        value = lowering_wide(l, value);
    lowering_store(l, value, &to);
}

static void lower_reduction(const fusion *f, lowering *l, pons_node *x, pons_node **output,
                            int *output_count)
{
    static const pons_reduction_kind kind[NODE_KIND_COUNT] = {
        [NODE_SUM] = PONS_REDUCE_SUM, [NODE_MAXIMUM] = PONS_REDUCE_MAX,
        [NODE_MINIMUM] = PONS_REDUCE_MIN, [NODE_MOMENTS] = PONS_REDUCE_MOMENTS
    };
    pons_shape s = x->input[0]->shape;
    int value = lowering_value(l, x->input[0], s);
    pons_operand to = output_operand(output, output_count, x), second = { 0 };
    int groups = x->kind == NODE_MOMENTS ? x->attribute.moments.groups : 0;

    if (l->map.channels > 0 && shape_squeeze(s).rank == l->map.axis_count && shape_count(s) > 1)
        value = lowering_wide(l, value);
    operand_strides(x->shape, s, to.stride);
    if (x->kind == NODE_MOMENTS) {
        second = to;
        second.tensor = place_of(output, output_count, f->second[x->number]);
    }
    lowering_reduce(l, kind[x->kind], value, groups, &to, x->kind == NODE_MOMENTS ? &second : NULL);
}

void fuse_lower(const fusion *f, const fuse_unit *u, arena *a, lowering *l, pons_node **input,
                int *input_count, pons_node **output, int *output_count)
{
    unit_lowering context = { f, u, input, input_count };

    *input_count = *output_count = 0;
    lowering_init(l, a, f->g->node_count, unit_leaf, arena_alloc(a, sizeof(context)));
    *(unit_lowering *)l->context = context;
    l->map.axis_count = u->space.rank;
    memcpy(l->map.extent, u->space.extent, sizeof(l->map.extent));
    l->map.channels = u->channels;
    for (int i = 0; i < u->sink_count; i++)
        if (fuse_is_value(f, u->sink[i]))
            lower_store(f, l, u->sink[i], output, output_count);
        else
            lower_reduction(f, l, u->sink[i], output, output_count);
}
