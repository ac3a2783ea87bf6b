/*
 * map_steps.c - a map's values as a list of steps, with registers that share tile buffers.
 *
 * Values are taken in order, but loads only where they are first needed. Results of numbers that
 * are the same at every point of a tile stay 'uniform': one row of 16 equal lanes. All stores come
 * last, so that an output may lie in the memory of an input that is read at the same place.
 */
#include "map.h"

#include <stdlib.h>
#include <string.h>

typedef struct steps {
    map_plan *plan;
    map_pass *pass;
    int step_room, register_room;
    int (*of_value)[MAP_WIDTHS]; /* register that holds a value in a width, or -1                 */
    bool failed;                 /* out of memory                                                 */
    map_step lost;
} steps;

static int register_new(steps *s, map_width width)
{
    map_pass *p = s->pass;

    if (p->register_count == s->register_room) {
        int room = 2 * s->register_room + 16;
        map_register *more = map_allocate(s->plan, (size_t)room, sizeof *more);
        if (more == NULL) {
            s->failed = true;
            return 0;
        }
        if (p->register_count > 0)
            memcpy(more, p->reg, (size_t)p->register_count * sizeof *more);
        p->reg = more;
        s->register_room = room;
    }
    p->reg[p->register_count] = (map_register){ .width = width, .first = -1, .last = -1 };
    return p->register_count++;
}

static map_step *step_new(steps *s, map_step_kind kind, map_width width, int to)
{
    map_pass *p = s->pass;

    if (p->step_count == s->step_room) {
        int room = 2 * s->step_room + 16;
        map_step *more = map_allocate(s->plan, (size_t)room, sizeof *more);
        if (more == NULL) {
            s->failed = true;
            return &s->lost;
        }
        if (p->step_count > 0)
            memcpy(more, p->step, (size_t)p->step_count * sizeof *more);
        p->step = more;
        s->step_room = room;
    }
    p->step[p->step_count] = (map_step){ .kind = kind, .width = width, .to = to,
                                         .argument = { -1, -1, -1 } };
    return &p->step[p->step_count++];
}

static int require(steps *s, int value, map_width width);

static map_width full_width(const steps *s, const pons_value *v)
{
    return s->plan->rows == 1 || !v->narrow ? MAP_WIDE : MAP_NARROW;
}

/* Does the place of an operand stay the same while the fastest outer axis moves? */
static bool access_lasts(const steps *s, const map_access *access)
{
    const map_pass *p = s->pass;
    const map_plan *plan = s->plan;

    if (plan->map->segment_count > 0 || access->pattern == MAP_DENSE)
        return false;
    for (int i = p->reduced_axes - 1; i >= 0; i--)
        if (plan->outer_extent[p->reduced_axis[i]] > 1)
            return access->outer[p->reduced_axis[i]] == 0;
    for (int i = p->kept_axes - 1; i >= 0; i--)
        if (plan->outer_extent[p->kept_axis[i]] > 1)
            return access->outer[p->kept_axis[i]] == 0;
    return true;
}

static void load_value(steps *s, int value)
{
    const pons_value *v = &s->plan->map->value[value];
    map_access *access = &s->plan->load[v->operand];
    map_width width = access->pattern == MAP_ONE ? MAP_UNIFORM : access->width;
    int to = register_new(s, width);
    map_step *step = step_new(s, MAP_STEP_LOAD, width, to);

    step->access = access;
    step->lasting = access_lasts(s, access);
    if (!s->failed)
        s->pass->reg[to].lasting = step->lasting;
    s->of_value[value][width] = to;
}

static void constant_value(steps *s, int value)
{
    int to = register_new(s, MAP_UNIFORM);

    if (s->failed)
        return;
    s->pass->reg[to].is_constant = true;
    s->pass->reg[to].constant = (float)s->plan->map->value[value].number;
    s->of_value[value][MAP_UNIFORM] = to;
}

static map_width natural_width(const steps *s, int value)
{
    for (int w = 0; w < MAP_WIDTHS; w++)
        if (s->of_value[value][w] >= 0)
            return (map_width)w;
    return MAP_WIDTHS;
}

static void operation_value(steps *s, int value)
{
    const pons_value *v = &s->plan->map->value[value];
    const map_function *form = s->plan->lanes->operation[v->operation];
    map_width width = MAP_UNIFORM, each[3];
    int reg[3] = { -1, -1, -1 }, to, uniform = 0;
    map_step *step;

    for (int i = 0; i < v->argument_count; i++) {
        require(s, v->argument[i], MAP_WIDTHS);
        each[i] = natural_width(s, v->argument[i]);
        width = each[i] > width ? each[i] : width;
    }
    for (int i = 0; i < v->argument_count; i++)
        if (each[i] == MAP_UNIFORM && width != MAP_UNIFORM)
            uniform |= 1 << i;
    if (form[uniform] == NULL)
        uniform &= ~1;
    for (int i = 0; i < v->argument_count; i++)
        reg[i] = require(s, v->argument[i], uniform >> i & 1 ? MAP_UNIFORM : width);
    to = register_new(s, width);
    step = step_new(s, MAP_STEP_OPERATION, width, to);
    step->function = form[uniform];
    for (int i = 0; i < 3; i++)
        step->argument[i] = reg[i] >= 0 ? reg[i] : reg[0];
    s->of_value[value][width] = to;
}

static void channel_value(steps *s, int value)
{
    const pons_value *v = &s->plan->map->value[value];
    map_width width = s->plan->rows > 1 ? MAP_NARROW : MAP_WIDE;
    int from = require(s, v->argument[0], MAP_WIDE), to = register_new(s, width);
    map_step *step = step_new(s, MAP_STEP_CHANNEL, width, to);

    step->argument[0] = from;
    step->argument[1] = v->operation == PONS_VALUE_CHANNEL_ARG_MAX ? register_new(s, width) : -1;
    step->value = v;
    s->of_value[value][width] = to;
}

static void index_value(steps *s, int value, map_step_kind kind)
{
    const pons_value *v = &s->plan->map->value[value];
    map_width width = full_width(s, v);
    int to = register_new(s, width);

    step_new(s, kind, width, to)->value = v;
    s->of_value[value][width] = to;
}

static void make_value(steps *s, int value)
{
    int operation = s->plan->map->value[value].operation;

    if (operation < PONS_MAP_OPERATION_COUNT)
        operation_value(s, value);
    else if (operation == PONS_VALUE_LOAD)
        load_value(s, value);
    else if (operation == PONS_VALUE_CONSTANT)
        constant_value(s, value);
    else if (operation == PONS_VALUE_IOTA)
        index_value(s, value, MAP_STEP_IOTA);
    else if (operation == PONS_VALUE_UNIFORM || operation == PONS_VALUE_NORMAL)
        index_value(s, value, MAP_STEP_RANDOM);
    else
        channel_value(s, value);
}

/* The register with a value in a width; MAP_WIDTHS: in the width that it has by nature. */
static int require(steps *s, int value, map_width width)
{
    map_width natural = natural_width(s, value);
    map_step *step;
    int from, to;

    if (s->failed)
        return 0;
    if (natural == MAP_WIDTHS) {
        make_value(s, value);
        natural = natural_width(s, value);
    }
    if (s->failed || width == MAP_WIDTHS || s->of_value[value][width] >= 0)
        return s->failed ? 0 : s->of_value[value][width == MAP_WIDTHS ? natural : width];
    from = s->of_value[value][natural];
    to = register_new(s, width);
    step = step_new(s, MAP_STEP_EXPAND, width, to);
    step->from = natural;
    step->argument[0] = from;
    s->of_value[value][width] = to;
    return to;
}

/* Values that stores and reductions need, marked from the last to the first. */
static void mark_needed(const map_plan *plan, const map_pass *pass, bool *needed)
{
    const pons_map *m = plan->map;

    for (int i = 0; i < m->store_count; i++)
        if (map_pass_stores(plan, pass, &m->store[i]))
            needed[m->store[i].value] = true;
    for (int i = 0; i < pass->reduce_count; i++)
        needed[pass->reduce[i]->value] = true;
    for (int v = m->value_count - 1; v >= 0; v--)
        for (int i = 0; i < m->value[v].argument_count && needed[v]; i++)
            needed[m->value[v].argument[i]] = true;
}

static bool lazy(int operation)
{
    return operation == PONS_VALUE_LOAD || operation == PONS_VALUE_CONSTANT;
}

/*
 * A loaded value may still be the input's own memory. So what is stored as it was loaded goes before
 * the rest, and output 0, which may lie in that memory, comes last.
 */
static int store_turn(const pons_map *m, const pons_store *store)
{
    if (store->to.tensor == 0)
        return 2;
    return m->value[store->value].operation != PONS_VALUE_LOAD;
}

static void add_store(steps *s, int i)
{
    const pons_map *m = s->plan->map;
    map_width width = full_width(s, &m->value[m->store[i].value]);
    int from = require(s, m->store[i].value, width);
    map_step *step = step_new(s, MAP_STEP_STORE, width, -1);

    step->argument[0] = from;
    step->access = &s->plan->store[i];
}

static void list_steps(steps *s, const bool *needed)
{
    const pons_map *m = s->plan->map;

    for (int v = 0; v < m->value_count; v++) {
        if (!needed[v])
            continue;
        if (!lazy(m->value[v].operation))
            require(s, v, MAP_WIDTHS);
        for (int i = 0; i < s->pass->reduce_count; i++) {
            map_reduce *r = s->pass->reduce[i];
            if (r->value == v) {
                int from = require(s, v, r->width);
                map_step *step = step_new(s, MAP_STEP_REDUCE, r->width, -1);
                step->argument[0] = from;
                step->reduce = r;
            }
        }
    }
    for (int i = 0; i < m->store_count; i++)
        if (map_pass_stores(s->plan, s->pass, &m->store[i]))
            require(s, m->store[i].value, full_width(s, &m->value[m->store[i].value]));
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < m->store_count; i++)
            if (map_pass_stores(s->plan, s->pass, &m->store[i])
                && store_turn(m, &m->store[i]) == turn)
                add_store(s, i);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void find_lives(map_pass *p)
{
    for (int i = 0; i < p->step_count; i++) {
        const map_step *step = &p->step[i];
        if (step->to >= 0)
            p->reg[step->to].first = p->reg[step->to].last = i;
        if (step->kind == MAP_STEP_CHANNEL && step->argument[1] >= 0)
            p->reg[step->argument[1]].first = i;
        for (int k = 0; k < 3; k++)
            if (step->argument[k] >= 0)
                p->reg[step->argument[k]].last = i;
    }
    for (int r = 0; r < p->register_count; r++)
        if (p->reg[r].is_constant || p->reg[r].lasting) {
            p->reg[r].first = -1;
            p->reg[r].last = p->step_count;
        }
}

static size_t width_floats(const map_plan *plan, map_width width)
{
    return width == MAP_UNIFORM ? MAP_ROW
         : (size_t)plan->row * (size_t)(width == MAP_WIDE ? plan->rows : 1);
}

/*
 * Registers whose lives overlap lie apart; of one width they share buffers. Only an operation may
 * write where it reads.
 */
static void place_registers(map_plan *plan, map_pass *p, int *holder)
{
    int buffers = 0;
    int *buffer_width = holder + p->register_count, *at = buffer_width + p->register_count;
    size_t *home = NULL;

    for (int r = 0; r < p->register_count; r++) {
        /* Registers are numbered in the order of their first steps. */
        const map_register *reg = &p->reg[r];
        int b;
        for (b = 0; b < buffers; b++) {
            const map_register *was = &p->reg[holder[b]];
            bool in_place = reg->first >= 0 && p->step[reg->first].kind == MAP_STEP_OPERATION;
            if (buffer_width[b] == (int)reg->width && reg->first >= 0 &&
                (was->last < reg->first || (was->last == reg->first && in_place)))
                break;
        }
        if (b == buffers)
            buffer_width[buffers++] = (int)reg->width;
        holder[b] = r;
        at[r] = b;
    }
    home = map_allocate(plan, (size_t)buffers + 1, sizeof *home);
    if (home == NULL)
        return;
    for (int b = 0; b < buffers; b++)
        home[b + 1] = home[b] + width_floats(plan, (map_width)buffer_width[b]);
    for (int r = 0; r < p->register_count; r++)
        p->reg[r].home = home[at[r]];
    p->buffer_floats = home[buffers];
}

/*
 * The last operation may write its result to the output itself, if nothing that comes later reads
 * anything else: an output may lie in an input's memory.
 */
static void choose_direct(const map_plan *plan, map_pass *p)
{
    int last = p->step_count - 1, store = -1;

    p->direct = -1;
    while (last >= 0 && p->step[last].kind == MAP_STEP_STORE)
        last--;
    while (last >= 0 && p->step[last].kind == MAP_STEP_REDUCE)
        last--;
    if (last < 0 || p->step[last].kind != MAP_STEP_OPERATION || p->step[last].width != MAP_WIDE
        || plan->rows > 1)
        return;
    for (int i = last + 1; i < p->step_count; i++) {
        const map_step *step = &p->step[i];
        bool loaded = p->step[p->reg[step->argument[0]].first < 0 ? 0
                              : p->reg[step->argument[0]].first].kind == MAP_STEP_LOAD;
        if (step->kind == MAP_STEP_REDUCE && step->argument[0] != p->step[last].to)
            return;
        if (step->kind == MAP_STEP_STORE && loaded)
            return;
        if (step->kind == MAP_STEP_STORE && step->argument[0] == p->step[last].to
            && step->access->pattern == MAP_DENSE && step->access->type == PONS_F32 && store < 0)
            store = i;
    }
    p->direct = store;
}

bool map_steps_make(map_plan *plan, map_pass *pass)
{
    steps s = { .plan = plan, .pass = pass };
    size_t values = (size_t)plan->map->value_count;
    bool *needed = map_allocate(plan, values, sizeof *needed);
    int *work;

    s.of_value = map_allocate(plan, values, sizeof *s.of_value);
    if (needed == NULL || s.of_value == NULL)
        return false;
    for (size_t v = 0; v < values; v++)
        for (int w = 0; w < MAP_WIDTHS; w++)
            s.of_value[v][w] = -1;
    mark_needed(plan, pass, needed);
    list_steps(&s, needed);
    work = map_allocate(plan, 3 * (size_t)pass->register_count + 1, sizeof *work);
    if (s.failed || work == NULL)
        return false;
    find_lives(pass);
    place_registers(plan, pass, work);
    choose_direct(plan, pass);
    return pass->buffer_floats > 0 || pass->register_count == 0;
}
