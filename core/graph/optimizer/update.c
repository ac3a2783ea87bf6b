/*
 * update.c - the reduce and update sections of a program, as maps over flat buffers (R8, R9, R17):
 * what is one number per step, the states, and the optimizer's kernels, which neighbours make.
 */
#include "graph/optimizer/update.h"

#include <string.h>

#include "base/arena.h"
#include "graph/ir/shape.h"
#include "graph/optimizer/update_internal.h"

enum { PATIENCE = 2000 }; /* steps in a row that are applied before the scale grows               */

void update_call_add(const update_settings *u, update_calls *out, formula_call *call)
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

static formula_operand number(const update_settings *u, step_number n)
{
    return (formula_operand){ u->number[n], 1, PONS_INDEX_SCALAR };
}

/* ---- what is not finite ---------------------------------------------------------------------- */

/* 0 times what is finite is 0. */
int update_check_value(formula *f, int check, int written, int read)
{
    if (check < 0)
        check = formula_constant(f, 0);
    check = formula_map(f, PONS_MAP_MUL, check, written, 0);
    return formula_map(f, PONS_MAP_MUL, check, read, 0);
}

formula_operand update_check_take(const update_settings *u, int count,
                                  storage_entry *const *tensor)
{
    update_check *c = u->check;
    char *first = (char *)c->number + (size_t)c->count * u->storage->real_size;

    for (int i = 0; i < count; i++)
        c->name[c->count++] = tensor[i]->tensor.name;
    return (formula_operand){ first, count, PONS_INDEX_SEGMENT };
}

/* ---- states ---------------------------------------------------------------------------------- */

/* state + rate (mean - state) over the states of one block, when the step is sound. */
static pons_status merge_states(const update_settings *u, const storage_block *b, update_calls *out,
                                pons_error *err)
{
    int64_t *start = arena_alloc(u->arena, (size_t)u->state_count * sizeof *start);
    int64_t *length = arena_alloc(u->arena, (size_t)u->state_count * sizeof *length);
    double *rate = arena_alloc(u->arena, (size_t)u->state_count * sizeof *rate);
    storage_entry **merged = arena_alloc(u->arena, (size_t)u->state_count * sizeof *merged);
    formula_operand state, contribution = { .index = PONS_INDEX_ELEMENT }, rates;
    formula f;
    int count = 0, old, mean, change, new;

    for (int i = 0; i < u->state_count; i++) {
        if (u->state[i]->block != b)
            continue;
        start[count] = u->state[i]->offset;
        length[count] = shape_count(u->state[i]->tensor.shape);
        merged[count] = u->state[i];
        rate[count++] = u->rate[i];
        contribution.memory = u->contribution[i];
    }
    if (count == 0)
        return PONS_OK;
    rates = (formula_operand){ table_take(u->pool, count, err), count, PONS_INDEX_SEGMENT };
    if (rates.memory == NULL)
        return PONS_DEVICE;
    for (int i = 0; i < count; i++)
        if (table_write(u->pool, rates.memory, i, rate[i], err) != PONS_OK)
            return PONS_DEVICE;
    state = (formula_operand){ b->memory.device, b->elements, PONS_INDEX_ELEMENT };
    contribution.count = b->elements;
    formula_begin_ragged(&f, u->arena, u->storage->real, count, start, length);
    old = formula_load(&f, state);
    mean = formula_map(&f, PONS_MAP_MUL, formula_load(&f, contribution),
                       formula_constant(&f, 1.0 / u->micro_batches), 0);
    change = formula_map(&f, PONS_MAP_MUL, formula_load(&f, rates),
                         formula_map(&f, PONS_MAP_SUB, mean, old, 0), 0);
    new = formula_map(&f, PONS_MAP_SELECT, formula_load(&f, number(u, STEP_OK)),
                      formula_map(&f, PONS_MAP_ADD, old, change, 0), old);
    formula_store(&f, new, state);
    formula_reduce(&f, PONS_REDUCE_SUM, update_check_value(&f, -1, new, old),
                   update_check_take(u, count, merged));
    update_call_add(u, out, formula_finish(&f, "update.states"));
    return PONS_OK;
}

/* ---- reduce ---------------------------------------------------------------------------------- */

static formula_operand kept(const update_settings *u, storage_number n)
{
    return (formula_operand){ u->storage->numbers.device + n * u->storage->real_size, 1,
                              PONS_INDEX_SCALAR };
}

/* From a folded gradient to the mean one. */
static int share_of_one(formula *f, const update_settings *u)
{
    int share = formula_constant(f, 1.0 / u->micro_batches);

    if (!u->scaled)
        return share;
    return formula_map(f, PONS_MAP_DIV, share, formula_load(f, kept(u, STORAGE_SCALE)), 0);
}

/* The sum of squares of the mean gradient. */
static formula_call *make_squares(const update_settings *u)
{
    formula_operand all = { u->gradients, u->gradient_count, PONS_INDEX_SPACE };
    formula f;
    int mean;

    formula_begin(&f, u->arena, u->storage->real, u->gradient_count);
    mean = formula_map(&f, PONS_MAP_MUL, formula_load(&f, all), share_of_one(&f, u), 0);
    formula_reduce(&f, PONS_REDUCE_SUM, formula_map(&f, PONS_MAP_MUL, mean, mean, 0),
                   number(u, STEP_SQUARES));
    return formula_finish(&f, "reduce.norm");
}

/*
 * What the gradients need not show: a variance that overflows divides to zero, a loss may hold a
 * term that has no gradient.
 */
static formula_call *make_unsound(const update_settings *u)
{
    formula_operand all = { u->sums, u->sum_count, PONS_INDEX_SPACE };
    formula f;

    formula_begin(&f, u->arena, u->storage->real, u->sum_count);
    formula_reduce(&f, PONS_REDUCE_SUM,
                   formula_map(&f, PONS_MAP_NOT,
                               formula_map(&f, PONS_MAP_ISFINITE, formula_load(&f, all), 0, 0), 0,
                               0), number(u, STEP_UNSOUND));
    return formula_finish(&f, "reduce.sound");
}

/* The factor of clipping: min(1, clip / (norm + 1e-6)). */
static int clip_factor(formula *f, const update_settings *u, int norm)
{
    int above = formula_map(f, PONS_MAP_ADD, norm, formula_constant(f, 1e-6), 0);
    int share = formula_map(f, PONS_MAP_DIV, formula_constant(f, u->clip_norm), above, 0);

    return formula_map(f, PONS_MAP_MIN, formula_constant(f, 1), share, 0);
}

/* Half of it after a step that was not applied, twice after 'PATIENCE' others (R9). */
static void change_scale(formula *f, const update_settings *u, int ok)
{
    int scale = formula_load(f, kept(u, STORAGE_SCALE)), zero = formula_constant(f, 0), sound, full;

    sound = formula_map(f, PONS_MAP_ADD, formula_load(f, kept(u, STORAGE_SOUND)),
                        formula_constant(f, 1), 0);
    full = formula_map(f, PONS_MAP_GREATER_EQUAL, sound, formula_constant(f, PATIENCE), 0);
    sound = formula_map(f, PONS_MAP_SELECT, full, zero, sound);
    sound = formula_map(f, PONS_MAP_SELECT, ok, sound, zero);
    full = formula_map(f, PONS_MAP_SELECT, full, formula_constant(f, 2), formula_constant(f, 1));
    full = formula_map(f, PONS_MAP_SELECT, ok, full, formula_constant(f, 0.5));
    scale = formula_map(f, PONS_MAP_MUL, scale, full, 0);
    formula_store(f, scale, number(u, STEP_SCALE));
    formula_store(f, scale, kept(u, STORAGE_SCALE));
    formula_store(f, sound, kept(u, STORAGE_SOUND));
}

/* Everything that is one number per step. */
static formula_call *make_numbers(const update_settings *u)
{
    formula_operand loss = { u->loss, 1, PONS_INDEX_SCALAR };
    formula f;
    int norm, ok, mean, share, factor, old, next;

    formula_begin(&f, u->arena, u->storage->real, 1);
    norm = formula_map(&f, PONS_MAP_SQRT, formula_load(&f, number(u, STEP_SQUARES)), 0, 0);
    ok = formula_map(&f, PONS_MAP_AND, formula_map(&f, PONS_MAP_ISFINITE, norm, 0, 0),
                     formula_map(&f, PONS_MAP_NOT, formula_load(&f, number(u, STEP_UNSOUND)), 0, 0),
                     0);
    mean = formula_constant(&f, 1.0 / u->micro_batches);
    share = share_of_one(&f, u);
    factor = u->clip_norm > 0
           ? formula_map(&f, PONS_MAP_MUL, share, clip_factor(&f, u, norm), 0) : share;
    old = formula_load(&f, kept(u, STORAGE_APPLIED));
    next = formula_map(&f, PONS_MAP_ADD, old, formula_constant(&f, 1), 0);
    formula_store(&f, norm, number(u, STEP_NORM));
    formula_store(&f, ok, number(u, STEP_OK));
    formula_store(&f, factor, number(u, STEP_FACTOR));
    formula_store(&f, next, number(u, STEP_COUNT));
    formula_store(&f, formula_map(&f, PONS_MAP_MUL, formula_load(&f, loss), mean, 0),
                  number(u, STEP_LOSS));
    formula_store(&f, formula_map(&f, PONS_MAP_SELECT, ok, next, old), kept(u, STORAGE_APPLIED));
    if (u->scaled)
        change_scale(&f, u, ok);
    return formula_finish(&f, "reduce.numbers");
}

pons_status update_make(const update_settings *u, update_calls *out, pons_error *err)
{
    update_class **classes = arena_alloc(u->arena, (size_t)(u->count + 1) * sizeof *classes);
    int class_count = 0;

    *out = (update_calls){ .reduce_count = 3 };
    out->reduce = arena_alloc(u->arena, 3 * sizeof *out->reduce);
    out->reduce[0] = make_squares(u);
    out->reduce[1] = make_unsound(u);
    out->reduce[2] = make_numbers(u);
    if (u->optimizer == NULL)
        return PONS_OK;
    if (update_classes_make(u, classes, &class_count, err) != PONS_OK)
        return err != NULL ? err->status : PONS_DEVICE;
    for (int k = 0; k < class_count; k++)
        if (update_class_kernels(classes[k], out, err) != PONS_OK)
            return err != NULL ? err->status : PONS_DEVICE;
    for (const storage_block *b = u->storage->block; b != NULL; b = b->next)
        if (b->group == STORAGE_STATE && merge_states(u, b, out, err) != PONS_OK)
            return PONS_DEVICE;
    return PONS_OK;
}
