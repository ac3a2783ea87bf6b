/*
 * interpreter_visit.c - operations without a machine instruction: operands that are not dense,
 * other types, iota and random values. Each processes one unit of lanes between memory and strips.
 */
#include "cpu/map/map_internal.h"

#include "base/integer.h"

static const map_lanes *lanes_of(const map_unit *u) { return u->plan->lanes; }

static int unit_of(const map_unit *u) { return lanes_of(u)->machine->unit; }

/* Set the missing lanes to zero. */
static void pad_lanes(const map_unit *u, float *to)
{
    for (int k = u->lanes; k < unit_of(u); k++)
        to[k] = 0;
}

/* ---- from memory ----------------------------------------------------------------------------- */

/* Dense operands: a tile's end has been copied, so that a whole unit can be read. */
static void load_dense(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;

    lanes_of(u)->load[a->type](map_at(u, &i->at[0]), map_at(u, &i->at[1]), 0, unit_of(u));
}

static void load_table(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;
    float *to = map_at(u, &i->at[0]);

    lanes_of(u)->gather[a->type](to, map_at(u, &i->at[1]), 0, a->table + u->lane, u->lanes);
    pad_lanes(u, to);
}

static void load_groups(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;
    const int32_t *at = a->table + u->lane;
    int whole = u->lanes & -MAP_ROW;
    float *to = map_at(u, &i->at[0]);

    lanes_of(u)->load_groups[a->type](to, map_at(u, &i->at[1]), at, whole);
    lanes_of(u)->gather[a->type](to + whole, map_at(u, &i->at[1]), 0, at + whole,
                                 u->lanes - whole);
    pad_lanes(u, to);
}

/* Fill with one element up to 'end', in whole rows where 'room' allows it. */
static void fill_rows(float *to, int at, int end, int room, float number)
{
    for (; at < end && at + MAP_ROW <= room; at += MAP_ROW)
        for (int r = 0; r < MAP_ROW; r++)
            to[at + r] = number;
    for (; at < end && at < room; at++)
        to[at] = number;
}

/*
 * Repeat each of n elements 'repeat' times, without the first 'begun' lanes. A row that extends
 * past its end is overwritten by the next element.
 */
static void repeat_each(float *to, int room, const float *each, int n, int repeat, int begun)
{
    for (int k = 0; k < n; k++) {
        int at = k * repeat - begun;
        fill_rows(to, max_int(at, 0), at + repeat, room, each[k]);
    }
}

static void load_repeat(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;
    float *to = map_at(u, &i->at[0]), each[MAP_STRIP];
    int first = u->lane / a->repeat, n = (u->lane + u->lanes - 1) / a->repeat - first + 1;

    lanes_of(u)->load[a->type](each, map_at(u, &i->at[1]), first, n);
    if (MAP_ROW % a->repeat == 0)
        lanes_of(u)->store_rows[PONS_F32](to, 0, each, 0, a->repeat, n);
    else
        repeat_each(to, unit_of(u), each, n, a->repeat, u->lane % a->repeat);
    pad_lanes(u, to);
}

static void load_rows(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;
    float *to = map_at(u, &i->at[0]);
    int unit = unit_of(u);

    lanes_of(u)->load_rows[a->type](to, unit, map_at(u, &i->at[1]), (int64_t)u->lane * i->rows,
                                    i->rows, u->lanes);
    for (int r = 0; r < i->rows; r++)
        pad_lanes(u, to + r * unit);
}

map_visit map_visit_load(const map_access *access)
{
    static const map_visit visits[] = {
        [MAP_DENSE] = load_dense, [MAP_INTERLEAVED] = load_rows, [MAP_GROUPS] = load_groups,
        [MAP_REPEAT] = load_repeat, [MAP_TABLE] = load_table, [MAP_ONE] = load_table,
    };

    return visits[access->pattern];
}

/* ---- to memory ------------------------------------------------------------------------------- */

static void store_one(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;

    if (u->lane == 0)
        map_number_store(a->type, map_at(u, &i->at[1]), 0, *(const float *)map_at(u, &i->at[0]));
}

static void store_dense(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;

    lanes_of(u)->store[a->type](map_at(u, &i->at[1]), 0, map_at(u, &i->at[0]), unit_of(u));
}

static void store_table(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;

    lanes_of(u)->scatter[a->type](map_at(u, &i->at[1]), 0, a->table + u->lane,
                                  map_at(u, &i->at[0]), u->lanes);
}

static void store_groups(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;
    const int32_t *at = a->table + u->lane;
    const float *from = map_at(u, &i->at[0]);
    int whole = u->lanes & -MAP_ROW;

    lanes_of(u)->store_groups[a->type](map_at(u, &i->at[1]), at, from, whole);
    lanes_of(u)->scatter[a->type](map_at(u, &i->at[1]), 0, at + whole, from + whole,
                                  u->lanes - whole);
}

static void store_rows(const map_unit *u, const map_instruction *i)
{
    const map_access *a = i->what;

    lanes_of(u)->store_rows[a->type](map_at(u, &i->at[1]), (int64_t)u->lane * i->rows,
                                     map_at(u, &i->at[0]), unit_of(u), i->rows, u->lanes);
}

map_visit map_visit_store(const map_access *access)
{
    static const map_visit visits[] = {
        [MAP_DENSE] = store_dense, [MAP_INTERLEAVED] = store_rows, [MAP_GROUPS] = store_groups,
        [MAP_REPEAT] = store_table, [MAP_TABLE] = store_table, [MAP_ONE] = store_one,
    };

    return visits[access->pattern];
}

/* ---- iota and random values ------------------------------------------------------------------ */

/* at[1].place is the channel. */
void map_visit_iota(const map_unit *u, const map_instruction *i)
{
    const pons_value *v = i->what;
    int64_t divisor = v->divisor > 0 ? v->divisor : 1;
    int64_t modulus = v->modulus > 0 ? v->modulus : INT64_MAX;
    int64_t first = (u->first + u->lane) * i->rows + i->at[1].place;
    int64_t value = first / divisor % modulus, left = divisor - first % divisor;
    float *to = map_at(u, &i->at[0]);

    for (int k = 0; k < unit_of(u); k++) {
        to[k] = (float)value;
        for (left -= i->rows; left <= 0; left += divisor)
            value = value + 1 == modulus ? 0 : value + 1;
    }
}

void map_visit_random(const map_unit *u, const map_instruction *i)
{
    const pons_value *v = i->what;
    float *to = map_at(u, &i->at[0]), *from = i->rows > 1 ? map_at(u, &i->at[1]) : to;
    int unit = unit_of(u);

    lanes_of(u)->random[v->operation - PONS_VALUE_UNIFORM](
        from, (u->first + u->lane) * i->rows, unit * i->rows, v->stream, u->step_key);
    if (i->rows > 1)
        lanes_of(u)->load_rows[PONS_F32](to, unit, from, 0, i->rows, unit);
}
