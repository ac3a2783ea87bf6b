/*
 * update_kernel.c - the kernels of one class of parameters.
 *
 * For each depth of reduction there is one over its tensors (tables of numbers per tensor) and one
 * over its elements. All old values that elements need are read before anything is written: what a
 * tensor slot held reaches the elements through a table of its own.
 */
#include <stdio.h>

#include "base/arena.h"
#include "graph/ir/node.h"
#include "graph/optimizer/update_internal.h"

/* ---- operands -------------------------------------------------------------------------------- */

static formula_operand slot_operand(const update_class *c, int slot)
{
    char *memory = c->block->slot[slot].device;

    if (c->block->slots[slot].kind == PONS_SLOT_ELEMENT)
        return (formula_operand){ memory, c->block->elements, PONS_INDEX_ELEMENT };
    memory += (size_t)c->first * c->settings->storage->real_size;
    return (formula_operand){ memory, c->count, PONS_INDEX_SEGMENT };
}

/* Where a term that is a leaf lies. */
static formula_operand leaf_operand(const update_class *c, const term *t)
{
    int64_t n = c->block->elements;

    switch (t->operation) {
    case TERM_PARAMETER:
        return (formula_operand){ c->block->memory.device, n, PONS_INDEX_ELEMENT };
    case TERM_GRADIENT:
        return (formula_operand){ c->gradient, n, PONS_INDEX_ELEMENT };
    case TERM_EMA:
        return (formula_operand){ c->block->ema.device, n, PONS_INDEX_ELEMENT };
    case TERM_NUMBER:
        return (formula_operand){ c->settings->number[t->detail], 1, PONS_INDEX_SCALAR };
    default:
        return slot_operand(c, t->detail);
    }
}

static formula_operand target_operand(const update_class *c, int target)
{
    term t = { .operation = target == RECIPE_VALUE ? TERM_PARAMETER
                          : target == RECIPE_EMA ? TERM_EMA : TERM_SLOT, .detail = target };

    return leaf_operand(c, &t);
}

static formula_operand table_operand(const update_class *c, int t)
{
    return (formula_operand){ c->table[t], c->count, PONS_INDEX_SEGMENT };
}

static bool is_leaf(const term *t)
{
    return t->operation >= TERM_PARAMETER && t->operation <= TERM_NUMBER;
}

static bool is_reduction(const term *t)
{
    return t->operation >= TERM_SUM;
}

/* ---- terms to values ------------------------------------------------------------------------- */

/* One kernel of a class: over its elements, or over its tensors. */
typedef struct update_kernel {
    update_class *class;
    formula formula;
    bool elements;
    int *value;                  /* by term: value + 1                                            */
    bool *wanted;                /* by term: an element kernel reads its table                    */
    pons_error *err;
} update_kernel;

static void kernel_begin(update_kernel *k, update_class *c, bool elements, pons_error *err)
{
    const update_settings *u = c->settings;
    size_t terms = (size_t)c->recipe[0]->count;

    *k = (update_kernel){ .class = c, .elements = elements, .err = err };
    k->value = arena_alloc(u->arena, terms * sizeof *k->value);
    k->wanted = arena_alloc(u->arena, terms * sizeof *k->wanted);
    if (elements)
        formula_begin_ragged(&k->formula, u->arena, u->storage->real, c->count, c->start,
                             c->length);
    else
        formula_begin(&k->formula, u->arena, u->storage->real, c->count);
}

static int load_operand(update_kernel *k, formula_operand o)
{
    if (!k->elements && o.index == PONS_INDEX_SEGMENT)
        o.index = PONS_INDEX_SPACE;
    return formula_load(&k->formula, o);
}

static int load_table(update_kernel *k, int t)
{
    update_class *c = k->class;

    if (c->table[t] == NULL)
        c->table[t] = table_take(c->settings->pool, c->count, k->err);
    return c->table[t] != NULL ? load_operand(k, table_operand(c, t)) : -1;
}

/* A number that is the same for all parameters, or a table. */
static int load_constant(update_kernel *k, int t)
{
    update_class *c = k->class;
    double first = c->recipe[0]->term[t].number;
    bool same = true;
    int value;

    for (int i = 1; i < c->count; i++)
        same = same && c->recipe[i]->term[t].number == first;
    if (same)
        return formula_constant(&k->formula, first);
    value = load_table(k, t);
    for (int i = 0; i < c->count && value >= 0; i++)
        if (table_write(c->settings->pool, c->table[t], i, c->recipe[i]->term[t].number, k->err)
            != PONS_OK)
            value = -1;
    return value;
}

static int term_value(update_kernel *k, int t);

static int compute_term(update_kernel *k, int t)
{
    const term *x = k->class->recipe[0]->term + t;
    int argument[3] = { 0, 0, 0 };

    if (x->operation == TERM_CONSTANT)
        return load_constant(k, t);
    if (x->operation == TERM_NUMBER || (is_leaf(x) && k->elements == (x->span == SPAN_ELEMENT)))
        return load_operand(k, leaf_operand(k->class, x));
    if (k->elements && x->span != SPAN_ELEMENT) {
        k->wanted[t] = true;
        return load_table(k, t);
    }
    if (is_reduction(x))
        return load_table(k, t);
    for (int i = 0; i < node_kinds[x->operation].input_count; i++)
        if ((argument[i] = term_value(k, x->argument[i])) < 0)
            return -1;
    return formula_map(&k->formula, x->operation, argument[0], argument[1], argument[2]);
}

static int term_value(update_kernel *k, int t)
{
    if (k->value[t] == 0) {
        int v = compute_term(k, t);

        if (v < 0)
            return -1;
        k->value[t] = v + 1;
    }
    return k->value[t] - 1;
}

/* ---- kernels of a class ---------------------------------------------------------------------- */

static bool kernel_store(update_kernel *k, int t, formula_operand to)
{
    int value = term_value(k, t);

    if (!k->elements)
        to.index = PONS_INDEX_SPACE;
    if (value >= 0)
        formula_store(&k->formula, value, to);
    return value >= 0;
}

static bool kernel_reduce(update_kernel *k, int t)
{
    static const pons_reduction_kind kinds[] = {
        PONS_REDUCE_SUM, PONS_REDUCE_MAX, PONS_REDUCE_MIN
    };
    update_class *c = k->class;
    const term *x = c->recipe[0]->term + t;
    int value = term_value(k, x->argument[0]);

    if (c->table[t] == NULL)
        c->table[t] = table_take(c->settings->pool, c->count, k->err);
    if (value < 0 || c->table[t] == NULL)
        return false;
    formula_reduce(&k->formula, kinds[x->operation - TERM_SUM], value, table_operand(c, t));
    c->ready[t] = true;
    return true;
}

/* A target is select(ok, value, old): what is written, and what was read. */
static int check_target(update_kernel *k, int check, int t)
{
    return update_check_value(&k->formula, check, term_value(k, t),
                              term_value(k, k->class->recipe[0]->term[t].argument[2]));
}

static void store_check(update_kernel *k, int check)
{
    const update_class *c = k->class;
    formula_operand to = update_check_take(c->settings, c->count, c->parameter);

    if (k->elements) {
        formula_reduce(&k->formula, PONS_REDUCE_SUM, check, to);
    } else {
        to.index = PONS_INDEX_SPACE;
        formula_store(&k->formula, check, to);
    }
}

/* Stores of the targets that have one number per element (or per tensor), and their check. */
static bool store_targets(update_kernel *k)
{
    const recipe *r = k->class->recipe[0];
    int check = -1;

    for (int i = 0; i < RECIPE_TARGETS; i++) {
        int t = r->target[i];

        if (t < 0 || (r->term[t].span == SPAN_ELEMENT) != k->elements)
            continue;
        if (!kernel_store(k, t, target_operand(k->class, i)))
            return false;
        check = check_target(k, check, t);
    }
    if (check >= 0)
        store_check(k, check);
    return true;
}

/* The kernel over the elements at one depth: what is reduced there, and at the end the targets. */
static bool element_kernel(update_kernel *k, update_class *c, int depth, bool last, pons_error *err)
{
    const recipe *r = c->recipe[0];

    kernel_begin(k, c, true, err);
    for (int t = 0; t < r->count; t++)
        if (is_reduction(r->term + t) && r->term[t].depth == depth + 1 && !kernel_reduce(k, t))
            return false;
    return !last || store_targets(k);
}

/* The kernel over the tensors in front of it: the tables it reads, and at the end the targets. */
static bool tensor_kernel(update_kernel *k, const update_kernel *reader, bool last, pons_error *err)
{
    update_class *c = reader->class;

    kernel_begin(k, c, false, err);
    for (int t = 0; t < c->recipe[0]->count; t++) {
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

    if (k->formula.stores.count == 0 && k->formula.reductions.count == 0)
        return;
    snprintf(name, sizeof name, "update.%d.%s", c->index, k->elements ? "elements" : "tensors");
    update_call_add(c->settings, out,
             formula_finish(&k->formula, arena_string(c->settings->arena, name)));
}

static int recipe_depth(const recipe *r)
{
    int depth = 0;

    for (int i = 0; i < RECIPE_TARGETS; i++)
        if (r->target[i] >= 0 && r->term[r->target[i]].depth > depth)
            depth = r->term[r->target[i]].depth;
    return depth;
}

pons_status update_class_kernels(update_class *c, update_calls *out, pons_error *err)
{
    int depth = recipe_depth(c->recipe[0]);

    for (int d = 0; d <= depth; d++) {
        update_kernel elements, tensors;

        if (!element_kernel(&elements, c, d, d == depth, err)
            || !tensor_kernel(&tensors, &elements, d == depth, err))
            return pons_fail(err, PONS_DEVICE, "cannot allocate the tables of the update");
        kernel_finish(&tensors, out);
        kernel_finish(&elements, out);
    }
    return PONS_OK;
}
