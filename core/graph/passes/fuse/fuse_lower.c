/*
 * fuse_lower.c - lower a unit to a map program: operands in memory, values, stores and reductions.
 */
#include "graph/passes/fuse/fuse.h"

#include <assert.h>
#include <string.h>

#include "graph/ir/shape.h"

/* The tensors of a kernel, in the order of their first use. */
typedef struct tensor_list {
    pons_node **tensor;
    int count, room;
} tensor_list;

typedef struct unit_lowering {
    const fusion *f;
    const fuse_unit *u;
    tensor_list input, output;
} unit_lowering;

static int place_of(tensor_list *list, pons_node *x)
{
    for (int i = 0; i < list->count; i++)
        if (list->tensor[i] == x)
            return i;
    assert(list->count < list->room);
    list->tensor[list->count] = x;
    return list->count++;
}

/* The operand that reads the crop 'x' from its argument's memory. */
static void view_operand(unit_lowering *c, const pons_node *x, pons_shape at, pons_operand *load)
{
    const pons_crop_attributes *crop = &x->attribute.crop;
    pons_shape from = x->input[0]->shape;
    pons_node *owner = node_owner(x->input[0]);
    int axis = 0;

    assert(x->kind == NODE_CROP && x->shape.rank == from.rank && from.rank <= at.rank);
    load->tensor = place_of(&c->input, owner);
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
    pons_node *owner = node_owner((pons_node *)x);
    fuse_source source = fuse_source_of(c->f, x);

    if (source == FUSE_COMPUTED || source == FUSE_INSIDE || fuse_unit_of(c->f, owner) == c->u)
        return false;
    if (source == FUSE_VIEW) {
        view_operand(c, owner, at, load);
        return true;
    }
    load->tensor = place_of(&c->input, owner);
    load->type = owner->type;
    operand_strides(x->shape, at, load->stride);
    return true;
}

/* The value of 'x': per channel where 'x' is as large as the unit's space. */
static int value_at(lowering *l, const pons_node *x)
{
    int value = lowering_value(l, x, x->shape);
    bool whole = shape_squeeze(x->shape).rank == l->map.axis_count && shape_count(x->shape) > 1;

    return l->map.channels > 0 && whole ? lowering_per_channel(l, value) : value;
}

static void lower_store(unit_lowering *c, lowering *l, pons_node *x)
{
    pons_node *whole = c->f->part_of[x->number];
    pons_operand to = { .type = x->type };

    to.tensor = place_of(&c->output, whole ? whole : x);
    operand_strides(whole ? whole->shape : x->shape, x->shape, to.stride);
    if (whole)
        to.offset = fuse_part_offset(whole, x);
    lowering_store(l, value_at(l, x), &to);
}

static void lower_reduction(unit_lowering *c, lowering *l, pons_node *x)
{
    static const pons_reduction_kind kind[NODE_KIND_COUNT] = {
        [NODE_SUM] = PONS_REDUCE_SUM, [NODE_MAXIMUM] = PONS_REDUCE_MAX,
        [NODE_MINIMUM] = PONS_REDUCE_MIN, [NODE_MOMENTS] = PONS_REDUCE_MOMENTS
    };
    bool moments = x->kind == NODE_MOMENTS;
    int value = value_at(l, x->input[0]);
    pons_operand to = { .type = x->type }, second;

    to.tensor = place_of(&c->output, x);
    operand_strides(x->shape, x->input[0]->shape, to.stride);
    second = to;
    if (moments)
        second.tensor = place_of(&c->output, c->f->second[x->number]);
    lowering_reduce(l, kind[x->kind], value, moments ? x->attribute.moments.groups : 0, &to,
                    moments ? &second : NULL);
}

void fuse_lower(const fusion *f, const fuse_unit *u, arena *a, lowering *l, pons_node **input,
                int *input_count, pons_node **output, int *output_count)
{
    unit_lowering *c = arena_alloc(a, sizeof(*c));

    *c = (unit_lowering){ .f = f, .u = u, .input = { input, 0, u->read_count },
                          .output = { output, 0, 2 * u->output_count } };
    lowering_init(l, a, f->g->node_count, unit_leaf, c);
    l->map.axis_count = u->space.rank;
    memcpy(l->map.extent, u->space.extent, sizeof(l->map.extent));
    l->map.channels = u->channels;
    for (int i = 0; i < u->output_count; i++)
        if (fuse_is_value(f, u->output[i]))
            lower_store(c, l, u->output[i]);
        else
            lower_reduction(c, l, u->output[i]);
    *input_count = c->input.count;
    *output_count = c->output.count;
}
