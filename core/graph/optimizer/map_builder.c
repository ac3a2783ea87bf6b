/*
 * map_builder.c - collect a hand-written map and turn it into a request.
 *
 * Equal operands are loaded once. An address is one tensor of the request on each side, input or
 * output.
 */
#include "graph/optimizer/map_builder.h"

#include <string.h>

#include "base/arena.h"
#include "graph/ir/node.h"

/* The list with room for one more item; it may move inside the arena. */
static void *list_grow(struct arena *a, void *list, map_builder_list *l, size_t size)
{
    void *larger;

    if (l->count < l->room)
        return list;
    l->room = l->room > 0 ? 2 * l->room : 8;
    larger = arena_alloc(a, size * (size_t)l->room);
    if (l->count > 0)
        memcpy(larger, list, size * (size_t)l->count);
    return larger;
}

void map_builder_begin(map_builder *m, struct arena *a, pons_type real, int64_t count)
{
    *m = (map_builder){ .arena = a, .real = real };
    m->map.axis_count = 1;
    m->map.extent[0] = count;
}

void map_builder_begin_ragged(map_builder *m, struct arena *a, pons_type real,
                              int64_t segment_count, const int64_t *start, const int64_t *length)
{
    int64_t count = 0;

    for (int64_t i = 0; i < segment_count; i++)
        count += length[i];
    map_builder_begin(m, a, real, count);
    m->map.segment_count = segment_count;
    m->map.segment_start = start;
    m->map.segment_length = length;
}

static pons_tensor tensor_of(const map_builder *m, map_builder_operand x)
{
    return (pons_tensor){ m->real, { 1, { x.count } } };
}

/* The number of the tensor at 'memory', which is added if it is new. */
static int find_tensor(const map_builder *m, map_builder_operand x, void ***memory,
                       pons_tensor **tensor, map_builder_list *l)
{
    map_builder_list same = *l;

    for (int i = 0; i < l->count; i++)
        if ((*memory)[i] == x.memory)
            return i;
    *memory = list_grow(m->arena, *memory, &same, sizeof **memory);
    *tensor = list_grow(m->arena, *tensor, l, sizeof **tensor);
    (*memory)[l->count] = x.memory;
    (*tensor)[l->count] = tensor_of(m, x);
    return l->count++;
}

static pons_operand operand_of(const map_builder *m, map_builder_operand x, int tensor)
{
    pons_operand o = { .tensor = tensor, .type = m->real, .index = x.index };

    if (m->map.segment_count == 0) {
        o.stride[0] = x.index == PONS_INDEX_SPACE;
        o.index = PONS_INDEX_SPACE;
    }
    return o;
}

static bool operand_equal(const pons_operand *a, const pons_operand *b)
{
    return a->tensor == b->tensor && a->index == b->index && a->stride[0] == b->stride[0];
}

static int add_value(map_builder *m, pons_value v)
{
    m->value = list_grow(m->arena, m->value, &m->values, sizeof *m->value);
    m->value[m->values.count] = v;
    return m->values.count++;
}

int map_builder_load(map_builder *m, map_builder_operand from)
{
    int tensor = find_tensor(m, from, &m->input_memory, &m->input, &m->inputs);
    pons_operand o = operand_of(m, from, tensor);

    for (int i = 0; i < m->values.count; i++)
        if (m->value[i].operation == PONS_VALUE_LOAD
            && operand_equal(&m->load[m->value[i].operand], &o))
            return i;
    m->load = list_grow(m->arena, m->load, &m->loads, sizeof *m->load);
    m->load[m->loads.count] = o;
    return add_value(m, (pons_value){ .operation = PONS_VALUE_LOAD, .operand = m->loads.count++ });
}

int map_builder_constant(map_builder *m, double number)
{
    return add_value(m, (pons_value){ .operation = PONS_VALUE_CONSTANT, .number = number });
}

int map_builder_apply(map_builder *m, int operation, int a, int b, int c)
{
    int count = node_kinds[operation].input_count;
    pons_value v = { .operation = (uint16_t)operation, .argument_count = (uint8_t)count,
                     .argument = { a, count > 1 ? b : 0, count > 2 ? c : 0 } };

    return add_value(m, v);
}

void map_builder_store(map_builder *m, int value, map_builder_operand to)
{
    int tensor = find_tensor(m, to, &m->output_memory, &m->output, &m->outputs);

    m->store = list_grow(m->arena, m->store, &m->stores, sizeof *m->store);
    m->store[m->stores.count++] = (pons_store){ value, operand_of(m, to, tensor) };
}

void map_builder_reduce(map_builder *m, pons_reduction_kind kind, int value, map_builder_operand to)
{
    int tensor = find_tensor(m, to, &m->output_memory, &m->output, &m->outputs);

    m->reduction = list_grow(m->arena, m->reduction, &m->reductions, sizeof *m->reduction);
    m->reduction[m->reductions.count++] =
        (pons_reduction){ .kind = kind, .value = value, .to = { operand_of(m, to, tensor) } };
}

map_builder_call *map_builder_finish(map_builder *m, const char *name)
{
    map_builder_call *call = arena_alloc(m->arena, sizeof *call);
    pons_map *map = arena_alloc(m->arena, sizeof *map);
    int computed = 0;

    m->map.load_count = m->loads.count;
    m->map.value_count = m->values.count;
    m->map.store_count = m->stores.count;
    m->map.reduction_count = m->reductions.count;
    m->map.load = m->load;
    m->map.value = m->value;
    m->map.store = m->store;
    m->map.reduction = m->reduction;
    *map = m->map;
    for (int i = 0; i < m->values.count; i++)
        computed += m->value[i].operation < PONS_MAP_OPERATION_COUNT;
    computed += m->reductions.count;
    call->request = (pons_request){ .kind = PONS_KERNEL_MAP, .name = name,
                                    .input_count = m->inputs.count,
                                    .output_count = m->outputs.count, .input = m->input,
                                    .output = m->output, .attributes = map };
    call->input = m->input_memory;
    call->output = m->output_memory;
    call->flop = (uint64_t)computed * (uint64_t)m->map.extent[0];
    return call;
}
