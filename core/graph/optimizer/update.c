/*
 * update.c - the norm and update sections of a program, as maps over flat buffers (R8, R9, R17).
 *
 * This file has the numbers of a step and the update of states. update_class.c and update_kernel.c
 * make the optimizer's kernels.
 */
#include "graph/optimizer/update.h"

#include <string.h>

#include "base/arena.h"
#include "graph/ir/shape.h"
#include "graph/optimizer/update_internal.h"

void update_call_add(const update_settings *u, update_calls *out, map_builder_call *call)
{
    if (out->update_count == out->room) {
        map_builder_call **larger;

        out->room = out->room > 0 ? 2 * out->room : 16;
        larger = arena_alloc(u->arena, (size_t)out->room * sizeof *larger);
        if (out->update_count > 0)
            memcpy(larger, out->update, (size_t)out->update_count * sizeof *larger);
        out->update = larger;
    }
    out->update[out->update_count++] = call;
}

static map_builder_operand step_operand(const update_settings *u, step_number n)
{
    return (map_builder_operand){ u->number[n], 1, PONS_INDEX_SCALAR };
}

static map_builder_operand storage_operand(const update_settings *u, storage_number n)
{
    return (map_builder_operand){ u->storage->numbers.device + n * u->storage->real_size, 1,
                                  PONS_INDEX_SCALAR };
}

static int load_step(map_builder *m, const update_settings *u, step_number n)
{
    return map_builder_load(m, step_operand(u, n));
}

static int load_stored(map_builder *m, const update_settings *u, storage_number n)
{
    return map_builder_load(m, storage_operand(u, n));
}

/* ---- the check for numbers that are not finite ----------------------------------------------- */

/* 0 times a number is 0 if it is finite, else NaN. */
int update_check_value(map_builder *m, int check, int written, int read)
{
    if (check < 0)
        check = map_builder_constant(m, 0);
    check = map_builder_apply(m, PONS_MAP_MUL, check, written, 0);
    return map_builder_apply(m, PONS_MAP_MUL, check, read, 0);
}

map_builder_operand update_check_take(const update_settings *u, int count,
                                      storage_entry *const *tensor)
{
    update_check *c = u->check;
    char *first = (char *)c->number + (size_t)c->count * u->storage->real_size;

    for (int i = 0; i < count; i++)
        c->name[c->count++] = tensor[i]->tensor.name;
    return (map_builder_operand){ first, count, PONS_INDEX_SEGMENT };
}

/* ---- states ---------------------------------------------------------------------------------- */

/* A state becomes state + rate (mean - state) if all numbers of the step are finite. */
static pons_status merge_states(const update_settings *u, const storage_block *b, update_calls *out,
                                pons_error *err)
{
    int64_t *start = arena_alloc(u->arena, (size_t)u->state_count * sizeof *start);
    int64_t *length = arena_alloc(u->arena, (size_t)u->state_count * sizeof *length);
    double *rate = arena_alloc(u->arena, (size_t)u->state_count * sizeof *rate);
    storage_entry **merged = arena_alloc(u->arena, (size_t)u->state_count * sizeof *merged);
    map_builder_operand state, contribution = { .index = PONS_INDEX_ELEMENT }, rates;
    map_builder m;
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
    rates = (map_builder_operand){ table_pool_take(u->pool, count, err), count,
                                   PONS_INDEX_SEGMENT };
    if (rates.memory == NULL)
        return PONS_DEVICE;
    for (int i = 0; i < count; i++)
        if (table_pool_write(u->pool, rates.memory, i, rate[i], err) != PONS_OK)
            return PONS_DEVICE;
    state = (map_builder_operand){ b->memory.device, b->elements, PONS_INDEX_ELEMENT };
    contribution.count = b->elements;
    map_builder_begin_ragged(&m, u->arena, u->storage->real, count, start, length);
    old = map_builder_load(&m, state);
    mean = map_builder_apply(&m, PONS_MAP_MUL, map_builder_load(&m, contribution),
                             map_builder_constant(&m, 1.0 / u->micro_batches), 0);
    change = map_builder_apply(&m, PONS_MAP_MUL, map_builder_load(&m, rates),
                               map_builder_apply(&m, PONS_MAP_SUB, mean, old, 0), 0);
    new = map_builder_apply(&m, PONS_MAP_SELECT, load_step(&m, u, STEP_OK),
                            map_builder_apply(&m, PONS_MAP_ADD, old, change, 0), old);
    map_builder_store(&m, new, state);
    map_builder_reduce(&m, PONS_REDUCE_SUM, update_check_value(&m, -1, new, old),
                       update_check_take(u, count, merged));
    update_call_add(u, out, map_builder_finish(&m, "update.states"));
    return PONS_OK;
}

/* ---- the norm section ------------------------------------------------------------------------ */

/* The factor from an accumulated gradient to the mean gradient. */
static int share_of_one(map_builder *m, const update_settings *u)
{
    int share = map_builder_constant(m, 1.0 / u->micro_batches);

    if (!u->scaled)
        return share;
    return map_builder_apply(m, PONS_MAP_DIV, share, load_stored(m, u, STORAGE_SCALE), 0);
}

/* The sum of squares of the mean gradient. */
static map_builder_call *make_squares(const update_settings *u)
{
    map_builder_operand all = { u->gradients, u->gradient_count, PONS_INDEX_SPACE };
    map_builder m;
    int mean;

    map_builder_begin(&m, u->arena, u->storage->real, u->gradient_count);
    mean = map_builder_apply(&m, PONS_MAP_MUL, map_builder_load(&m, all), share_of_one(&m, u), 0);
    map_builder_reduce(&m, PONS_REDUCE_SUM, map_builder_apply(&m, PONS_MAP_MUL, mean, mean, 0),
                       step_operand(u, STEP_SQUARES));
    return map_builder_finish(&m, "reduce.norm");
}

/*
 * The count of contributions and losses that are not finite. The gradients need not show them: a
 * variance that overflows divides to zero, and a loss may have a term without gradient.
 */
static map_builder_call *make_nonfinite(const update_settings *u)
{
    map_builder_operand all = { u->sums, u->sum_count, PONS_INDEX_SPACE };
    map_builder m;
    int finite;

    map_builder_begin(&m, u->arena, u->storage->real, u->sum_count);
    finite = map_builder_apply(&m, PONS_MAP_ISFINITE, map_builder_load(&m, all), 0, 0);
    map_builder_reduce(&m, PONS_REDUCE_SUM, map_builder_apply(&m, PONS_MAP_NOT, finite, 0, 0),
                       step_operand(u, STEP_NONFINITE));
    return map_builder_finish(&m, "reduce.finite");
}

/* The factor of clipping: min(1, clip / (norm + 1e-6)). */
static int clip_factor(map_builder *m, const update_settings *u, int norm)
{
    int above = map_builder_apply(m, PONS_MAP_ADD, norm, map_builder_constant(m, 1e-6), 0);
    int share = map_builder_apply(m, PONS_MAP_DIV, map_builder_constant(m, u->clip_norm), above, 0);

    return map_builder_apply(m, PONS_MAP_MIN, map_builder_constant(m, 1), share, 0);
}

/*
 * The scale falls after a step that was not applied, and grows after 'interval' applied ones (R9).
 */
static void change_scale(map_builder *m, const update_settings *u, int ok)
{
    int scale = load_stored(m, u, STORAGE_SCALE), zero = map_builder_constant(m, 0);
    int finite_steps = load_stored(m, u, STORAGE_FINITE_STEPS), full;

    finite_steps = map_builder_apply(m, PONS_MAP_ADD, finite_steps, map_builder_constant(m, 1), 0);
    full = map_builder_apply(m, PONS_MAP_GREATER_EQUAL, finite_steps,
                             map_builder_constant(m, (double)u->scaling.interval), 0);
    finite_steps = map_builder_apply(m, PONS_MAP_SELECT, full, zero, finite_steps);
    finite_steps = map_builder_apply(m, PONS_MAP_SELECT, ok, finite_steps, zero);
    full = map_builder_apply(m, PONS_MAP_SELECT, full,
                             map_builder_constant(m, u->scaling.growth),
                             map_builder_constant(m, 1));
    full = map_builder_apply(m, PONS_MAP_SELECT, ok, full,
                             map_builder_constant(m, u->scaling.backoff));
    scale = map_builder_apply(m, PONS_MAP_MUL, scale, full, 0);
    map_builder_store(m, scale, step_operand(u, STEP_SCALE));
    map_builder_store(m, scale, storage_operand(u, STORAGE_SCALE));
    map_builder_store(m, finite_steps, storage_operand(u, STORAGE_FINITE_STEPS));
}

/* The numbers of a step. */
static map_builder_call *make_numbers(const update_settings *u)
{
    map_builder_operand loss = { u->loss, 1, PONS_INDEX_SCALAR };
    map_builder m;
    int norm, ok, mean, share, factor, old, next;

    map_builder_begin(&m, u->arena, u->storage->real, 1);
    norm = map_builder_apply(&m, PONS_MAP_SQRT, load_step(&m, u, STEP_SQUARES), 0, 0);
    ok = map_builder_apply(&m, PONS_MAP_AND, map_builder_apply(&m, PONS_MAP_ISFINITE, norm, 0, 0),
                           map_builder_apply(&m, PONS_MAP_NOT, load_step(&m, u, STEP_NONFINITE), 0,
                                             0), 0);
    mean = map_builder_constant(&m, 1.0 / u->micro_batches);
    share = share_of_one(&m, u);
    factor = u->clip_norm > 0
           ? map_builder_apply(&m, PONS_MAP_MUL, share, clip_factor(&m, u, norm), 0) : share;
    old = load_stored(&m, u, STORAGE_APPLIED);
    next = map_builder_apply(&m, PONS_MAP_ADD, old, map_builder_constant(&m, 1), 0);
    map_builder_store(&m, norm, step_operand(u, STEP_NORM));
    map_builder_store(&m, ok, step_operand(u, STEP_OK));
    map_builder_store(&m, factor, step_operand(u, STEP_FACTOR));
    map_builder_store(&m, next, step_operand(u, STEP_COUNT));
    map_builder_store(&m, map_builder_apply(&m, PONS_MAP_MUL, map_builder_load(&m, loss), mean, 0),
                      step_operand(u, STEP_LOSS));
    map_builder_store(&m, map_builder_apply(&m, PONS_MAP_SELECT, ok, next, old),
                      storage_operand(u, STORAGE_APPLIED));
    if (u->scaled)
        change_scale(&m, u, ok);
    return map_builder_finish(&m, "reduce.numbers");
}

pons_status update_make(const update_settings *u, update_calls *out, pons_error *err)
{
    update_class **classes = arena_alloc(u->arena, (size_t)(u->count + 1) * sizeof *classes);
    int class_count = 0;

    *out = (update_calls){ .reduce_count = 3 };
    out->reduce = arena_alloc(u->arena, 3 * sizeof *out->reduce);
    out->reduce[0] = make_squares(u);
    out->reduce[1] = make_nonfinite(u);
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
