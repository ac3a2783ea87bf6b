/*
 * map_builder.c - collect a hand-written map and turn it into a request.
 *
 * Equal operands are loaded once; a piece of memory is one tensor of the request on each side.
 */
#include "graph/optimizer/map_builder.h"

#include <string.h>

#include "base/arena.h"
#include "graph/ir/node.h"

/* Room for one more item; the list moves inside the arena. */
static void *list_grow(struct arena *a, void *list, formula_list *l, size_t size)
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

void formula_begin(formula *f, struct arena *a, pons_type real, int64_t count)
{
    *f = (formula){ .arena = a, .real = real };
    f->map.axis_count = 1;
    f->map.extent[0] = count;
}

void formula_begin_ragged(formula *f, struct arena *a, pons_type real, int64_t segment_count,
                          const int64_t *start, const int64_t *length)
{
    int64_t count = 0;

    for (int64_t i = 0; i < segment_count; i++)
        count += length[i];
    formula_begin(f, a, real, count);
    f->map.segment_count = segment_count;
    f->map.segment_start = start;
    f->map.segment_length = length;
}

static pons_tensor tensor_of(const formula *f, formula_operand x)
{
    return (pons_tensor){ f->real, { 1, { x.count } } };
}

/* The number of the tensor at 'memory', added if it is new. */
static int find_tensor(const formula *f, formula_operand x, void ***memory, pons_tensor **tensor,
                       formula_list *l)
{
    formula_list same = *l;

    for (int i = 0; i < l->count; i++)
        if ((*memory)[i] == x.memory)
            return i;
    *memory = list_grow(f->arena, *memory, &same, sizeof **memory);
    *tensor = list_grow(f->arena, *tensor, l, sizeof **tensor);
    (*memory)[l->count] = x.memory;
    (*tensor)[l->count] = tensor_of(f, x);
    return l->count++;
}

static pons_operand operand_of(const formula *f, formula_operand x, int tensor)
{
    pons_operand o = { .tensor = tensor, .type = f->real, .index = x.index };

    if (f->map.segment_count == 0) {
        o.stride[0] = x.index == PONS_INDEX_SPACE;
        o.index = PONS_INDEX_SPACE;
    }
    return o;
}

static bool operand_equal(const pons_operand *a, const pons_operand *b)
{
    return a->tensor == b->tensor && a->index == b->index && a->stride[0] == b->stride[0];
}

static int add_value(formula *f, pons_value v)
{
    f->value = list_grow(f->arena, f->value, &f->values, sizeof *f->value);
    f->value[f->values.count] = v;
    return f->values.count++;
}

int formula_load(formula *f, formula_operand from)
{
    int tensor = find_tensor(f, from, &f->input_memory, &f->input, &f->inputs);
    pons_operand o = operand_of(f, from, tensor);

    for (int i = 0; i < f->values.count; i++)
        if (f->value[i].operation == PONS_VALUE_LOAD
            && operand_equal(&f->load[f->value[i].operand], &o))
            return i;
    f->load = list_grow(f->arena, f->load, &f->loads, sizeof *f->load);
    f->load[f->loads.count] = o;
    return add_value(f, (pons_value){ .operation = PONS_VALUE_LOAD, .operand = f->loads.count++ });
}

int formula_constant(formula *f, double number)
{
    return add_value(f, (pons_value){ .operation = PONS_VALUE_CONSTANT, .number = number });
}

int formula_map(formula *f, int operation, int a, int b, int c)
{
    int count = node_kinds[operation].input_count;
    pons_value v = { .operation = (uint16_t)operation, .argument_count = (uint8_t)count,
                     .argument = { a, count > 1 ? b : 0, count > 2 ? c : 0 } };

    return add_value(f, v);
}

void formula_store(formula *f, int value, formula_operand to)
{
    int tensor = find_tensor(f, to, &f->output_memory, &f->output, &f->outputs);

    f->store = list_grow(f->arena, f->store, &f->stores, sizeof *f->store);
    f->store[f->stores.count++] = (pons_store){ value, operand_of(f, to, tensor) };
}

void formula_reduce(formula *f, pons_reduction_kind kind, int value, formula_operand to)
{
    int tensor = find_tensor(f, to, &f->output_memory, &f->output, &f->outputs);

    f->reduction = list_grow(f->arena, f->reduction, &f->reductions, sizeof *f->reduction);
    f->reduction[f->reductions.count++] =
        (pons_reduction){ .kind = kind, .value = value, .to = { operand_of(f, to, tensor) } };
}

formula_call *formula_finish(formula *f, const char *name)
{
    formula_call *call = arena_alloc(f->arena, sizeof *call);
    pons_map *map = arena_alloc(f->arena, sizeof *map);
    int computed = 0;

    f->map.load_count = f->loads.count;
    f->map.value_count = f->values.count;
    f->map.store_count = f->stores.count;
    f->map.reduction_count = f->reductions.count;
    f->map.load = f->load;
    f->map.value = f->value;
    f->map.store = f->store;
    f->map.reduction = f->reduction;
    *map = f->map;
    for (int i = 0; i < f->values.count; i++)
        computed += f->value[i].operation < PONS_MAP_OPERATION_COUNT;
    computed += f->reductions.count;
    call->request = (pons_request){ .kind = PONS_KERNEL_MAP, .name = name,
                                    .input_count = f->inputs.count,
                                    .output_count = f->outputs.count, .input = f->input,
                                    .output = f->output, .attributes = map };
    call->input = f->input_memory;
    call->output = f->output_memory;
    call->flop = (uint64_t)computed * (uint64_t)f->map.extent[0];
    return call;
}
