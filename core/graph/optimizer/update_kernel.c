/*
 * update_kernel.c - the kernels of one class of parameters.
 *
 * Each depth of reductions has one kernel over the tensors, which writes tables of numbers per
 * tensor, and one over the elements. The kernels read all old values that elements need before they
 * write new ones: the old value of a tensor slot reaches the elements through a table of its own.
 */
#include <stdio.h>

#include "base/arena.h"
#include "graph/ir/node.h"
#include "graph/optimizer/update_internal.h"

/* ---- operands -------------------------------------------------------------------------------- */

static map_builder_operand slot_operand(const update_class *c, int slot)
{
    char *memory = c->block->slot[slot].device;

    if (c->block->slots[slot].kind == PONS_SLOT_ELEMENT)
        return (map_builder_operand){ memory, c->block->elements, PONS_INDEX_ELEMENT };
    memory += (size_t)c->first * c->settings->storage->real_size;
    return (map_builder_operand){ memory, c->count, PONS_INDEX_SEGMENT };
}

/* The operand of an op that is a leaf. */
static map_builder_operand leaf_operand(const update_class *c, const trace_op *t)
{
    int64_t n = c->block->elements;

    switch (t->operation) {
    case TRACE_PARAMETER:
        return (map_builder_operand){ c->block->memory.device, n, PONS_INDEX_ELEMENT };
    case TRACE_GRADIENT:
        return (map_builder_operand){ c->gradient, n, PONS_INDEX_ELEMENT };
    case TRACE_EMA:
        return (map_builder_operand){ c->block->ema.device, n, PONS_INDEX_ELEMENT };
    case TRACE_NUMBER:
        return (map_builder_operand){ c->settings->number[t->detail], 1, PONS_INDEX_SCALAR };
    default:
        return slot_operand(c, t->detail);
    }
}

static map_builder_operand target_operand(const update_class *c, int target)
{
    trace_op t = { .operation = target == TRACE_TARGET_PARAMETER ? TRACE_PARAMETER
                          : target == TRACE_TARGET_EMA ? TRACE_EMA : TRACE_SLOT, .detail = target };

    return leaf_operand(c, &t);
}

static map_builder_operand table_operand(const update_class *c, int t)
{
    return (map_builder_operand){ c->table[t], c->count, PONS_INDEX_SEGMENT };
}

static bool is_leaf(const trace_op *t)
{
    return t->operation >= TRACE_PARAMETER && t->operation <= TRACE_NUMBER;
}

static bool is_reduction(const trace_op *t)
{
    return t->operation >= TRACE_SUM;
}

/* ---- ops to values --------------------------------------------------------------------------- */

/* A kernel of a class, over its elements or over its tensors. */
typedef struct update_kernel {
    update_class *class;
    map_builder builder;
    bool elements;
    int *value;                  /* by op: value + 1                                              */
    bool *wanted;                /* by op: an element kernel reads its table                      */
    pons_error *err;
} update_kernel;

static void kernel_begin(update_kernel *k, update_class *c, bool elements, pons_error *err)
{
    const update_settings *u = c->settings;
    size_t ops = (size_t)c->trace[0]->count;

    *k = (update_kernel){ .class = c, .elements = elements, .err = err };
    k->value = arena_alloc(u->arena, ops * sizeof *k->value);
    k->wanted = arena_alloc(u->arena, ops * sizeof *k->wanted);
    if (elements)
        map_builder_begin_ragged(&k->builder, u->arena, u->storage->real, c->count, c->start,
                                 c->length);
    else
        map_builder_begin(&k->builder, u->arena, u->storage->real, c->count);
}

static int load_operand(update_kernel *k, map_builder_operand o)
{
    if (!k->elements && o.index == PONS_INDEX_SEGMENT)
        o.index = PONS_INDEX_SPACE;
    return map_builder_load(&k->builder, o);
}

static int load_table(update_kernel *k, int t)
{
    update_class *c = k->class;

    if (c->table[t] == NULL)
        c->table[t] = table_pool_take(c->settings->pool, c->count, k->err);
    return c->table[t] != NULL ? load_operand(k, table_operand(c, t)) : -1;
}

/* The value of a constant op: a constant if it is equal for all parameters, else a table. */
static int load_constant(update_kernel *k, int t)
{
    update_class *c = k->class;
    double first = c->trace[0]->op[t].number;
    bool same = true;
    int value;

    for (int i = 1; i < c->count; i++)
        same = same && c->trace[i]->op[t].number == first;
    if (same)
        return map_builder_constant(&k->builder, first);
    value = load_table(k, t);
    for (int i = 0; i < c->count && value >= 0; i++)
        if (table_pool_write(c->settings->pool, c->table[t], i, c->trace[i]->op[t].number, k->err)
            != PONS_OK)
            value = -1;
    return value;
}

static int op_value(update_kernel *k, int t);

static int compute_op(update_kernel *k, int t)
{
    const trace_op *x = k->class->trace[0]->op + t;
    int argument[3] = { 0, 0, 0 };

    if (x->operation == TRACE_CONSTANT)
        return load_constant(k, t);
    if (x->operation == TRACE_NUMBER || (is_leaf(x) && k->elements == (x->span == SPAN_ELEMENT)))
        return load_operand(k, leaf_operand(k->class, x));
    if (k->elements && x->span != SPAN_ELEMENT) {
        k->wanted[t] = true;
        return load_table(k, t);
    }
    if (is_reduction(x))
        return load_table(k, t);
    for (int i = 0; i < node_kinds[x->operation].input_count; i++)
        if ((argument[i] = op_value(k, x->argument[i])) < 0)
            return -1;
    return map_builder_apply(&k->builder, x->operation, argument[0], argument[1], argument[2]);
}

static int op_value(update_kernel *k, int t)
{
    if (k->value[t] == 0) {
        int v = compute_op(k, t);

        if (v < 0)
            return -1;
        k->value[t] = v + 1;
    }
    return k->value[t] - 1;
}

/* ---- kernels of a class ---------------------------------------------------------------------- */

static bool kernel_store(update_kernel *k, int t, map_builder_operand to)
{
    int value = op_value(k, t);

    if (!k->elements)
        to.index = PONS_INDEX_SPACE;
    if (value >= 0)
        map_builder_store(&k->builder, value, to);
    return value >= 0;
}

static bool kernel_reduce(update_kernel *k, int t)
{
    static const pons_reduction_kind kinds[] = {
        PONS_REDUCE_SUM, PONS_REDUCE_MAX, PONS_REDUCE_MIN
    };
    update_class *c = k->class;
    const trace_op *x = c->trace[0]->op + t;
    int value = op_value(k, x->argument[0]);

    if (c->table[t] == NULL)
        c->table[t] = table_pool_take(c->settings->pool, c->count, k->err);
    if (value < 0 || c->table[t] == NULL)
        return false;
    map_builder_reduce(&k->builder, kinds[x->operation - TRACE_SUM], value, table_operand(c, t));
    c->ready[t] = true;
    return true;
}

/*
 * The check of a target, which is select(ok, value, old): of the value written and the value read.
 */
static int check_target(update_kernel *k, int check, int t)
{
    return update_check_value(&k->builder, check, op_value(k, t),
                              op_value(k, k->class->trace[0]->op[t].argument[2]));
}

static void store_check(update_kernel *k, int check)
{
    const update_class *c = k->class;
    map_builder_operand to = update_check_take(c->settings, c->count, c->parameter);

    if (k->elements) {
        map_builder_reduce(&k->builder, PONS_REDUCE_SUM, check, to);
    } else {
        to.index = PONS_INDEX_SPACE;
        map_builder_store(&k->builder, check, to);
    }
}

/* Store the targets with one number per element (or per tensor), and their check. */
static bool store_targets(update_kernel *k)
{
    const optimizer_trace *r = k->class->trace[0];
    int check = -1;

    for (int i = 0; i < TRACE_TARGET_COUNT; i++) {
        int t = r->target[i];

        if (t < 0 || (r->op[t].span == SPAN_ELEMENT) != k->elements)
            continue;
        if (!kernel_store(k, t, target_operand(k->class, i)))
            return false;
        check = check_target(k, check, t);
    }
    if (check >= 0)
        store_check(k, check);
    return true;
}

/* The kernel over elements at one depth: its reductions, and in the last one the targets. */
static bool element_kernel(update_kernel *k, update_class *c, int depth, bool last, pons_error *err)
{
    const optimizer_trace *r = c->trace[0];

    kernel_begin(k, c, true, err);
    for (int t = 0; t < r->count; t++)
        if (is_reduction(r->op + t) && r->op[t].depth == depth + 1 && !kernel_reduce(k, t))
            return false;
    return !last || store_targets(k);
}

/*
 * The kernel over tensors in front of 'reader': the tables that it reads, and in the last one the
 * targets.
 */
static bool tensor_kernel(update_kernel *k, const update_kernel *reader, bool last, pons_error *err)
{
    update_class *c = reader->class;

    kernel_begin(k, c, false, err);
    for (int t = 0; t < c->trace[0]->count; t++) {
        if (!reader->wanted[t] || c->ready[t])
            continue;
        if (!kernel_store(k, t, table_operand(c, t)))
            return false;
        c->ready[t] = true;
    }
    return !last || store_targets(k);
}

static void kernel_finish(update_kernel *k, update_calls *out)
{
    const update_class *c = k->class;
    char name[64];

    if (k->builder.stores.count == 0 && k->builder.reductions.count == 0)
        return;
    snprintf(name, sizeof name, "update.%d.%s", c->index, k->elements ? "elements" : "tensors");
    update_call_add(c->settings, out,
             map_builder_finish(&k->builder, arena_string(c->settings->arena, name)));
}

static int trace_depth(const optimizer_trace *r)
{
    int depth = 0;

    for (int i = 0; i < TRACE_TARGET_COUNT; i++)
        if (r->target[i] >= 0 && r->op[r->target[i]].depth > depth)
            depth = r->op[r->target[i]].depth;
    return depth;
}

pons_status update_class_kernels(update_class *c, update_calls *out, pons_error *err)
{
    int depth = trace_depth(c->trace[0]);

    for (int d = 0; d <= depth; d++) {
        update_kernel elements, tensors;

        if (!element_kernel(&elements, c, d, d == depth, err)
            || !tensor_kernel(&tensors, &elements, d == depth, err))
            return pons_fail(err, PONS_DEVICE, "out of memory for the tables of the update");
        kernel_finish(&tensors, out);
        kernel_finish(&elements, out);
    }
    return PONS_OK;
}
