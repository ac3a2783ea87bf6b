/*
 * lower.c - lower expressions to map programs: one value per node, operands by strides, collapsed
 * axes.
 *
 * The caller (fuse_lower.c) decides which nodes are read from memory and which are computed.
 */
#include "graph/passes/fuse/lower.h"

#include <string.h>

#include "base/integer.h"
#include "graph/ir/shape.h"

pons_shape shape_squeeze(pons_shape s)
{
    pons_shape out = { 0 };

    for (int i = 0; i < s.rank; i++)
        if (s.extent[i] != 1)
            out.extent[out.rank++] = s.extent[i];
    if (out.rank == 0)
        out.extent[out.rank++] = 1;
    return out;
}

int64_t shape_stride(pons_shape s, int axis)
{
    int64_t stride = 1;

    for (int i = axis + 1; i < s.rank; i++)
        stride *= s.extent[i];
    return stride;
}

void operand_strides(pons_shape x, pons_shape at, int64_t *stride)
{
    int axis = 0;

    memset(stride, 0, sizeof(*stride) * PONS_MAP_AXES);
    for (int i = 0; i < at.rank; i++) {
        int own = i - (at.rank - x.rank);

        if (at.extent[i] == 1)
            continue;
        stride[axis++] = own >= 0 && x.extent[own] > 1 ? shape_stride(x, own) : 0;
    }
}

/* ---- growing arrays -------------------------------------------------------------------------- */

static void *room_for(arena *a, void *old, int count, int *room, size_t size)
{
    void *new;

    if (count < *room)
        return old;
    *room = *room ? 2 * *room : 16;
    new = arena_alloc(a, (size_t)*room * size);
    if (count > 0)
        memcpy(new, old, (size_t)count * size);
    return new;
}

static int append_value(lowering *l, const pons_value *value)
{
    l->value = room_for(l->arena, l->value, l->map.value_count, &l->value_room, sizeof(*l->value));
    l->value[l->map.value_count] = *value;
    return l->map.value_count++;
}

void lowering_init(lowering *l, arena *a, int node_count, lowering_leaf leaf, void *context)
{
    *l = (lowering){ .arena = a, .leaf = leaf, .context = context };
    l->value_of = arena_alloc(a, sizeof(*l->value_of) * (size_t)(node_count + 1));
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static bool operand_equal(const pons_operand *a, const pons_operand *b)
{
    return a->tensor == b->tensor && a->type == b->type && a->index == b->index &&
           a->offset == b->offset && memcmp(a->stride, b->stride, sizeof(a->stride)) == 0;
}

/* In channel form a value that does not change along the channels is per point. */
static int append_load(lowering *l, const pons_operand *load)
{
    pons_value value = { .operation = PONS_VALUE_LOAD };

    for (int i = 0; i < l->map.value_count; i++)
        if (l->value[i].operation == PONS_VALUE_LOAD &&
            operand_equal(&l->load[l->value[i].operand], load))
            return i;
    l->load = room_for(l->arena, l->load, l->map.load_count, &l->load_room, sizeof(*l->load));
    l->load[l->map.load_count] = *load;
    value.operand = l->map.load_count++;
    value.per_point = l->map.channels > 0 && load->stride[l->map.axis_count - 1] == 0;
    return append_value(l, &value);
}

static int append_constant(lowering *l, double number, bool per_channel)
{
    pons_value value = { .operation = PONS_VALUE_CONSTANT, .number = number };

    value.per_point = l->map.channels > 0 && !per_channel;
    for (int i = 0; i < l->map.value_count; i++)
        if (l->value[i].operation == PONS_VALUE_CONSTANT &&
            l->value[i].per_point == value.per_point &&
            memcmp(&l->value[i].number, &number, sizeof(number)) == 0)
            return i;
    return append_value(l, &value);
}

/* Whether a value of shape 'at' has one number per point before the channels. */
static bool is_per_point(const lowering *l, pons_shape at)
{
    return l->map.channels > 0 && (at.rank == 0 || shape_squeeze(at).rank < l->map.axis_count ||
                                   (l->map.axis_count == 1 && shape_count(at) == 1));
}

static int append_iota(lowering *l, const pons_node *x, pons_shape at)
{
    pons_value value = { .operation = PONS_VALUE_IOTA };
    int axis = at.rank - x->shape.rank + x->attribute.axis;

    value.modulus = x->shape.extent[x->attribute.axis];
    if (value.modulus == 1)
        return append_constant(l, 0, false);
    value.divisor = shape_stride(at, axis);
    if (is_per_point(l, at)) {
        value.divisor *= l->map.channels;
        value.per_point = 1;
    } else if (l->map.channels > 0 && value.divisor >= l->map.channels) {
        value.per_point = 1;
    }
    return append_value(l, &value);
}

/* ---- expressions ----------------------------------------------------------------------------- */

int lowering_per_channel(lowering *l, int value)
{
    pons_value repeated = { .operation = PONS_MAP_MUL, .argument_count = 2 };

    if (!l->value[value].per_point)
        return value;
    repeated.argument[0] = value;
    repeated.argument[1] = append_constant(l, 1, true);
    return append_value(l, &repeated);
}

static int append_operation(lowering *l, int operation, int count, const int *argument)
{
    pons_value value = { .operation = (uint16_t)operation, .argument_count = (uint8_t)count };

    value.per_point = l->map.channels > 0;
    for (int i = 0; i < count; i++) {
        value.argument[i] = argument[i];
        value.per_point = value.per_point && l->value[argument[i]].per_point;
    }
    return append_value(l, &value);
}

static bool is_integer(pons_type type)
{
    return type == PONS_U8 || type == PONS_I32;
}

/*
 * A cast to an integer type truncates towards zero. Between float types an expression keeps its
 * precision.
 */
static int append_cast(lowering *l, const pons_node *x)
{
    int value = lowering_value(l, x->input[0], x->shape);
    int part[2];

    if (!is_integer(x->type) || is_integer(x->input[0]->type))
        return value;
    part[0] = append_operation(l, PONS_MAP_ABS, 1, &value);
    part[0] = append_operation(l, PONS_MAP_FLOOR, 1, part);
    part[1] = append_operation(l, PONS_MAP_SIGN, 1, &value);
    return append_operation(l, PONS_MAP_MUL, 2, part);
}

static int append_random(lowering *l, const pons_node *x)
{
    pons_value value = { .operation = PONS_VALUE_UNIFORM, .stream = x->attribute.stream.hash };

    if (x->kind == NODE_NORMAL)
        value.operation = PONS_VALUE_NORMAL;
    return append_value(l, &value);
}

static int append_channel(lowering *l, const pons_node *x)
{
    static const uint16_t operation[NODE_KIND_COUNT] = {
        [NODE_SUM] = PONS_VALUE_CHANNEL_SUM, [NODE_MAXIMUM] = PONS_VALUE_CHANNEL_MAX,
        [NODE_MINIMUM] = PONS_VALUE_CHANNEL_MIN, [NODE_ARG_MAX] = PONS_VALUE_CHANNEL_ARG_MAX
    };
    pons_value value = { .operation = operation[x->kind], .per_point = 1, .argument_count = 1 };

    value.argument[0] = lowering_value(l, x->input[0], x->input[0]->shape);
    value.argument[0] = lowering_per_channel(l, value.argument[0]);
    return append_value(l, &value);
}

static int append_map(lowering *l, const pons_node *x)
{
    int argument[3];

    for (int i = 0; i < x->input_count; i++)
        argument[i] = lowering_value(l, x->input[i], x->shape);
    return append_operation(l, x->kind, x->input_count, argument);
}

static int append_node(lowering *l, const pons_node *x, pons_shape at)
{
    switch (x->kind) {
    case NODE_CONSTANT:
        return append_constant(l, x->attribute.number, false);
    case NODE_IOTA:
        return append_iota(l, x, at);
    case NODE_UNIFORM:
    case NODE_NORMAL:
        return append_random(l, x);
    case NODE_CAST:
        return append_cast(l, x);
    case NODE_BROADCAST:
        return lowering_value(l, x->input[0], x->shape);
    case NODE_RESHAPE:
    case PONS_MAP_STOP_GRADIENT:
        return lowering_value(l, x->input[0], x->input[0]->shape);
    case NODE_SUM:
    case NODE_MAXIMUM:
    case NODE_MINIMUM:
    case NODE_ARG_MAX:
        return append_channel(l, x);
    default:
        return append_map(l, x);
    }
}

int lowering_value(lowering *l, const pons_node *x, pons_shape at)
{
    pons_operand load = { 0 };
    int value;

    if (l->leaf(l->context, x, at, &load))
        return append_load(l, &load);
    if (x->kind == NODE_IOTA || x->kind == NODE_CONSTANT)
        return append_node(l, x, at);
    if (l->value_of[x->number] == 0) {
        value = append_node(l, x, at);
        l->value_of[x->number] = value + 1;
    }
    return l->value_of[x->number] - 1;
}

/* ---- results --------------------------------------------------------------------------------- */

void lowering_store(lowering *l, int value, const pons_operand *to)
{
    l->store = room_for(l->arena, l->store, l->map.store_count, &l->store_room, sizeof(*l->store));
    l->store[l->map.store_count++] = (pons_store){ .value = value, .to = *to };
}

void lowering_reduce(lowering *l, pons_reduction_kind kind, int value, int groups,
                     const pons_operand *to, const pons_operand *second)
{
    pons_reduction *r;

    l->reduction = room_for(l->arena, l->reduction, l->map.reduction_count, &l->reduction_room,
                            sizeof(*l->reduction));
    r = &l->reduction[l->map.reduction_count++];
    *r = (pons_reduction){ .kind = kind, .value = value, .groups = groups, .to = { *to } };
    if (second)
        r->to[1] = *second;
}

int lowering_pressure(const lowering *l)
{
    int *last = arena_alloc(l->arena, sizeof(*last) * (size_t)(l->map.value_count + 1));
    int alive = 0, most = 0;

    for (int i = 0; i < l->map.value_count; i++) {
        last[i] = i;
        for (int k = 0; k < l->value[i].argument_count; k++)
            last[l->value[i].argument[k]] = i;
    }
    for (int i = 0; i < l->map.value_count; i++) {
        if (l->value[i].operation == PONS_VALUE_CONSTANT)
            continue;
        alive = 1;
        for (int k = 0; k < i; k++)
            alive += last[k] >= i && l->value[k].operation != PONS_VALUE_CONSTANT;
        most = max_int(alive, most);
    }
    return most;
}

/* ---- collapsing ------------------------------------------------------------------------------ */

static bool can_merge(const pons_operand *o, int axis, int64_t inner_extent)
{
    return o->index != PONS_INDEX_SPACE ||
           o->stride[axis] == o->stride[axis + 1] * inner_extent;
}

static void drop_axis(pons_operand *o, int axis, int axis_count)
{
    for (int i = axis; i + 1 < axis_count; i++)
        o->stride[i] = o->stride[i + 1];
    o->stride[axis_count - 1] = 0;
}

/* Operand 'i' of the program; NULL behind the last. */
static pons_operand *operand_at(lowering *l, int i)
{
    if (i < l->map.load_count)
        return &l->load[i];
    i -= l->map.load_count;
    if (i < l->map.store_count)
        return &l->store[i].to;
    i -= l->map.store_count;
    if (i < 2 * l->map.reduction_count)
        return &l->reduction[i / 2].to[i % 2 && l->reduction[i / 2].kind == PONS_REDUCE_MOMENTS];
    return NULL;
}

static bool merge_axis(lowering *l, int axis)
{
    pons_operand *o;

    for (int i = 0; (o = operand_at(l, i)); i++)
        if (!can_merge(o, axis, l->map.extent[axis + 1]))
            return false;
    for (int i = 0; i < l->map.load_count; i++)
        drop_axis(&l->load[i], axis, l->map.axis_count);
    for (int i = 0; i < l->map.store_count; i++)
        drop_axis(&l->store[i].to, axis, l->map.axis_count);
    for (int i = 0; i < l->map.reduction_count; i++)
        for (int k = 0; k < 2; k++)
            drop_axis(&l->reduction[i].to[k], axis, l->map.axis_count);
    l->map.extent[axis + 1] *= l->map.extent[axis];
    for (int i = axis; i + 1 < l->map.axis_count; i++)
        l->map.extent[i] = l->map.extent[i + 1];
    l->map.extent[--l->map.axis_count] = 0;
    return true;
}

/* Whether a reduction needs the axis of channels: the device merges groups of channels. */
static bool keeps_last(const lowering *l)
{
    for (int i = 0; i < l->map.reduction_count; i++)
        if (l->reduction[i].groups > 0)
            return true;
    return l->map.channels > 0;
}

const pons_map *lowering_finish(lowering *l)
{
    pons_map *map = arena_alloc(l->arena, sizeof(*map));
    int fixed = keeps_last(l) ? 1 : 0;

    for (int axis = l->map.axis_count - 2 - fixed; axis >= 0 && l->map.segment_count == 0; axis--)
        merge_axis(l, axis);
    *map = l->map;
    map->load = l->load;
    map->value = l->value;
    map->store = l->store;
    map->reduction = l->reduction;
    return map;
}
