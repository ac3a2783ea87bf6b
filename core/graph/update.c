/*
 * update.c - the reduce and update sections of a program, as maps over flat buffers (R8, R9, R17).
 *
 * Parameters whose recipes are equal form a class, and a class becomes a few kernels: for each
 * depth of reduction one over its tensors (tables of numbers per tensor) and one over its elements.
 * All old values that elements need are read before anything is written: what a tensor slot held
 * reaches the elements through a table of its own.
 */
#include "graph/update.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "graph/recipe.h"

typedef struct update_class {
    const update_settings *settings;
    storage_block *block;
    void *gradient;
    int count;                   /* parameters                                                    */
    storage_entry **parameter;
    const recipe **recipe;       /* equal but for constants                                       */
    int first;                   /* place of its first parameter in tensor slots                  */
    int64_t *start, *length;
    void **table;                /* by term: its numbers per tensor, or NULL                      */
    bool *ready;                 /* by term: the table has been computed by an earlier kernel     */
    int index;
} update_class;

static void call_add(const update_settings *u, update_calls *out, formula_call *call)
{
    if (out->update_count == out->room) {
        formula_call **larger;

        out->room = out->room > 0 ? 2 * out->room : 16;
        larger = arena_alloc(u->arena, (size_t)out->room * sizeof *larger);
        if (out->update_count > 0)
            memcpy(larger, out->update, (size_t)out->update_count * sizeof *larger);
        out->update = larger;
    }
    out->update[out->update_count++] = call;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* The class of parameter i, opened if it is the first of its kind. */
static update_class *find_class(const update_settings *u, const recipe *r, int i,
                                update_class **classes, int *class_count)
{
    update_class *c;

    for (int k = 0; k < *class_count; k++) {
        c = classes[k];
        if (c->block == u->parameter[i]->block && recipe_equal(c->recipe[0], r))
            return c;
    }
    c = arena_alloc(u->arena, sizeof *c);
    *c = (update_class){ .settings = u, .block = u->parameter[i]->block,
                         .gradient = u->gradient[i], .index = *class_count };
    c->parameter = arena_alloc(u->arena, (size_t)u->count * sizeof *c->parameter);
    c->recipe = arena_alloc(u->arena, (size_t)u->count * sizeof *c->recipe);
    classes[(*class_count)++] = c;
    return c;
}

static pons_status sort_classes(const update_settings *u, update_class **classes, int *class_count,
                                pons_error *err)
{
    for (int i = 0; i < u->count; i++) {
        recipe *r = arena_alloc(u->arena, sizeof *r);
        update_class *c;

        if (recipe_make(u->arena, u->parameter[i], u, r, err) != PONS_OK)
            return PONS_PLUGIN;
        c = find_class(u, r, i, classes, class_count);
        c->parameter[c->count] = u->parameter[i];
        c->recipe[c->count++] = r;
    }
    return PONS_OK;
}

/* Parameters of 'b' that no class has lie behind those that one has. */
static void place_rest(const storage *s, const storage_block *b, int place)
{
    for (int i = 0; i < s->count[STORAGE_PARAMETER]; i++) {
        storage_entry *e = s->entry[STORAGE_PARAMETER][i];

        if (e->block == b && e->place < 0)
            e->place = place++;
    }
}

static void forget_places(const storage *s, const storage_block *b)
{
    for (int i = 0; i < s->count[STORAGE_PARAMETER]; i++)
        if (s->entry[STORAGE_PARAMETER][i]->block == b)
            s->entry[STORAGE_PARAMETER][i]->place = -1;
}

/*
 * In tensor slots the parameters of a class lie side by side. A second training program must find
 * them as the first one left them.
 */
static pons_status place_block(const storage *s, const storage_block *b, update_class **classes,
                               int class_count, pons_error *err)
{
    bool fresh = b->slots == NULL;
    int place = 0;

    if (fresh)
        forget_places(s, b);
    for (int k = 0; k < class_count; k++) {
        if (classes[k]->block != b)
            continue;
        classes[k]->first = place;
        for (int i = 0; i < classes[k]->count; i++, place++) {
            storage_entry *e = classes[k]->parameter[i];

            if (!fresh && e->place != place)
                return pons_fail(err, PONS_PLUGIN, "the optimizer treats '%s' differently in a "
                                 "second training program", e->tensor.name);
            e->place = place;
        }
    }
    if (fresh)
        place_rest(s, b, place);
    return PONS_OK;
}

static pons_status place_classes(const storage *s, update_class **classes, int class_count,
                                 pons_error *err)
{
    for (const storage_block *b = s->block; b != NULL; b = b->next)
        if (b->group == STORAGE_PARAMETER
            && place_block(s, b, classes, class_count, err) != PONS_OK)
            return PONS_PLUGIN;
    return PONS_OK;
}

/* Slots that the options leave unused take no memory. */
static unsigned used_slots(const recipe *r)
{
    unsigned used = 0;

    for (int i = 0; i < r->count; i++)
        if (r->term[i].operation == TERM_SLOT)
            used |= 1u << r->term[i].detail;
    return used;
}

static unsigned block_slots(update_class **classes, int class_count, const storage_block *b)
{
    unsigned used = 0;

    for (int k = 0; k < class_count; k++)
        if (classes[k]->block == b)
            used |= used_slots(classes[k]->recipe[0]);
    return used;
}

static pons_status add_slots(const update_settings *u, update_class **classes, int class_count,
                             pons_error *err)
{
    pons_status status = PONS_OK;

    for (int k = 0; k < class_count && status == PONS_OK; k++) {
        storage_block *b = classes[k]->block;

        status = storage_add_slots(u->storage, b, u->optimizer->slots,
                                   block_slots(classes, class_count, b), err);
        if (status == PONS_OK && u->ema_decay > 0)
            status = storage_add_ema(u->storage, b, err);
    }
    return status;
}

static void prepare_class(update_class *c)
{
    const update_settings *u = c->settings;
    size_t terms = (size_t)c->recipe[0]->count;

    c->start = arena_alloc(u->arena, (size_t)c->count * sizeof *c->start);
    c->length = arena_alloc(u->arena, (size_t)c->count * sizeof *c->length);
    for (int i = 0; i < c->count; i++) {
        c->start[i] = c->parameter[i]->offset;
        c->length[i] = shape_count(c->parameter[i]->tensor.shape);
    }
    c->table = arena_alloc(u->arena, terms * sizeof *c->table);
    c->ready = arena_alloc(u->arena, terms * sizeof *c->ready);
}

/* ---- operands -------------------------------------------------------------------------------- */

static formula_operand slot_operand(const update_class *c, int slot)
{
    char *memory = c->block->slot[slot];

    if (c->block->slots[slot].kind == PONS_SLOT_ELEMENT)
        return (formula_operand){ memory, c->block->elements, PONS_ALONG_ELEMENT };
    memory += (size_t)c->first * c->settings->storage->real_size;
    return (formula_operand){ memory, c->count, PONS_ALONG_SEGMENT };
}

/* Where a term that is a leaf lies. */
static formula_operand leaf_operand(const update_class *c, const term *t)
{
    int64_t n = c->block->elements;

    switch (t->operation) {
    case TERM_PARAMETER:
        return (formula_operand){ c->block->memory, n, PONS_ALONG_ELEMENT };
    case TERM_GRADIENT:
        return (formula_operand){ c->gradient, n, PONS_ALONG_ELEMENT };
    case TERM_EMA:
        return (formula_operand){ c->block->ema, n, PONS_ALONG_ELEMENT };
    case TERM_NUMBER:
        return (formula_operand){ c->settings->number[t->detail], 1, PONS_ALONG_NOTHING };
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
    return (formula_operand){ c->table[t], c->count, PONS_ALONG_SEGMENT };
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
    if (!k->elements && o.along == PONS_ALONG_SEGMENT)
        o.along = PONS_ALONG_SPACE;
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
        table_write(c->settings->pool, c->table[t], i, c->recipe[i]->term[t].number);
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
        to.along = PONS_ALONG_SPACE;
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

/* Stores of the targets that have one number per element (or per tensor). */
static bool store_targets(update_kernel *k)
{
    const recipe *r = k->class->recipe[0];

    for (int i = 0; i < RECIPE_TARGETS; i++) {
        int t = r->target[i];

        if (t >= 0 && (r->term[t].span == SPAN_ELEMENT) == k->elements
            && !kernel_store(k, t, target_operand(k->class, i)))
            return false;
    }
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
    call_add(c->settings, out,
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

static pons_status make_class(update_class *c, update_calls *out, pons_error *err)
{
    int depth = recipe_depth(c->recipe[0]);

    prepare_class(c);
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

/* ---- states ---------------------------------------------------------------------------------- */

/* state + rate (mean - state) over the states of one block, when the step is sound. */
static pons_status merge_states(const update_settings *u, const storage_block *b, update_calls *out,
                                pons_error *err)
{
    int64_t *start = arena_alloc(u->arena, (size_t)u->state_count * sizeof *start);
    int64_t *length = arena_alloc(u->arena, (size_t)u->state_count * sizeof *length);
    double *rate = arena_alloc(u->arena, (size_t)u->state_count * sizeof *rate);
    formula_operand state, contribution = { .along = PONS_ALONG_ELEMENT }, rates, ok;
    formula f;
    int count = 0, old, mean, change;

    for (int i = 0; i < u->state_count; i++) {
        if (u->state[i]->block != b)
            continue;
        start[count] = u->state[i]->offset;
        length[count] = shape_count(u->state[i]->tensor.shape);
        rate[count++] = u->rate[i];
        contribution.memory = u->contribution[i];
    }
    if (count == 0)
        return PONS_OK;
    rates = (formula_operand){ table_take(u->pool, count, err), count, PONS_ALONG_SEGMENT };
    if (rates.memory == NULL)
        return PONS_DEVICE;
    for (int i = 0; i < count; i++)
        table_write(u->pool, rates.memory, i, rate[i]);
    state = (formula_operand){ b->memory, b->elements, PONS_ALONG_ELEMENT };
    contribution.count = b->elements;
    ok = (formula_operand){ u->number[STEP_OK], 1, PONS_ALONG_NOTHING };
    formula_begin_ragged(&f, u->arena, u->storage->real, count, start, length);
    old = formula_load(&f, state);
    mean = formula_map(&f, PONS_MAP_MUL, formula_load(&f, contribution),
                       formula_constant(&f, 1.0 / u->micro_batches), 0);
    change = formula_map(&f, PONS_MAP_MUL, formula_load(&f, rates),
                         formula_map(&f, PONS_MAP_SUB, mean, old, 0), 0);
    formula_store(&f, formula_map(&f, PONS_MAP_SELECT, formula_load(&f, ok),
                                  formula_map(&f, PONS_MAP_ADD, old, change, 0), old), state);
    call_add(u, out, formula_finish(&f, "update.states"));
    return PONS_OK;
}

/* ---- reduce ---------------------------------------------------------------------------------- */

static formula_operand number(const update_settings *u, step_number n)
{
    return (formula_operand){ u->number[n], 1, PONS_ALONG_NOTHING };
}

/* The sum of squares of the mean gradient. */
static formula_call *make_squares(const update_settings *u)
{
    formula_operand all = { u->gradients, u->gradient_count, PONS_ALONG_SPACE };
    formula f;
    int mean;

    formula_begin(&f, u->arena, u->storage->real, u->gradient_count);
    mean = formula_map(&f, PONS_MAP_MUL, formula_load(&f, all),
                       formula_constant(&f, 1.0 / u->micro_batches), 0);
    formula_reduce(&f, PONS_REDUCE_SUM, formula_map(&f, PONS_MAP_MUL, mean, mean, 0),
                   number(u, STEP_SQUARES));
    return formula_finish(&f, "reduce.norm");
}

/* The factor of clipping: min(1, clip / (norm + 1e-6)). */
static int clip_factor(formula *f, const update_settings *u, int norm)
{
    int above = formula_map(f, PONS_MAP_ADD, norm, formula_constant(f, 1e-6), 0);
    int share = formula_map(f, PONS_MAP_DIV, formula_constant(f, u->clip_norm), above, 0);

    return formula_map(f, PONS_MAP_MIN, formula_constant(f, 1), share, 0);
}

/* Everything that is one number per step. */
static formula_call *make_numbers(const update_settings *u)
{
    formula_operand applied = { u->storage->applied, 1, PONS_ALONG_NOTHING };
    formula_operand loss = { u->loss, 1, PONS_ALONG_NOTHING };
    formula f;
    int norm, ok, mean, factor, old, next;

    formula_begin(&f, u->arena, u->storage->real, 1);
    norm = formula_map(&f, PONS_MAP_SQRT, formula_load(&f, number(u, STEP_SQUARES)), 0, 0);
    ok = formula_map(&f, PONS_MAP_ISFINITE, norm, 0, 0);
    mean = formula_constant(&f, 1.0 / u->micro_batches);
    factor = u->clip_norm > 0
           ? formula_map(&f, PONS_MAP_MUL, mean, clip_factor(&f, u, norm), 0) : mean;
    old = formula_load(&f, applied);
    next = formula_map(&f, PONS_MAP_ADD, old, formula_constant(&f, 1), 0);
    formula_store(&f, norm, number(u, STEP_NORM));
    formula_store(&f, ok, number(u, STEP_OK));
    formula_store(&f, factor, number(u, STEP_FACTOR));
    formula_store(&f, next, number(u, STEP_COUNT));
    formula_store(&f, formula_map(&f, PONS_MAP_MUL, formula_load(&f, loss), mean, 0),
                  number(u, STEP_LOSS));
    formula_store(&f, formula_map(&f, PONS_MAP_SELECT, ok, next, old), applied);
    return formula_finish(&f, "reduce.numbers");
}

pons_status update_make(const update_settings *u, update_calls *out, pons_error *err)
{
    update_class **classes = arena_alloc(u->arena, (size_t)(u->count + 1) * sizeof *classes);
    int class_count = 0;

    *out = (update_calls){ .reduce_count = 2 };
    out->reduce = arena_alloc(u->arena, 2 * sizeof *out->reduce);
    out->reduce[0] = make_squares(u);
    out->reduce[1] = make_numbers(u);
    if (u->optimizer == NULL)
        return PONS_OK;
    if (sort_classes(u, classes, &class_count, err) != PONS_OK
        || place_classes(u->storage, classes, class_count, err) != PONS_OK)
        return PONS_PLUGIN;
    if (add_slots(u, classes, class_count, err) != PONS_OK)
        return PONS_DEVICE;
    for (int k = 0; k < class_count; k++)
        if (make_class(classes[k], out, err) != PONS_OK)
            return err != NULL ? err->status : PONS_DEVICE;
    for (const storage_block *b = u->storage->block; b != NULL; b = b->next)
        if (b->group == STORAGE_STATE && merge_states(u, b, out, err) != PONS_OK)
            return PONS_DEVICE;
    return PONS_OK;
}
