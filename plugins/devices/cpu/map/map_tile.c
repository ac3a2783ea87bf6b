/*
 * map_tile.c - run the bytecode of a pass on one tile.
 *
 * The machine processes whole units of lanes. If a tile ends within a unit, dense operands are read
 * from and written to copies of a unit's size.
 */
#include "cpu/map/map_internal.h"

#include <limits.h>
#include <string.h>

#include "base/integer.h"

typedef struct map_state {
    const map_run *run;
    map_worker *worker;
    const map_tile *tile;
    map_unit unit;
} map_state;

/* ---- non-temporal stores --------------------------------------------------------------------- */

/*
 * Non-temporal stores write whole cache lines. A tile that does not begin at a cache line is
 * written to the worker's buffers at the same offset within a line, and copied from there.
 */
static char *non_temporal_address(float *room, const char *memory)
{
    char *line = (char *)room + -(uintptr_t)room % MAP_LINE;

    return line + (uintptr_t)memory % MAP_LINE;
}

static void find_non_temporal(map_state *s)
{
    const map_pass *p = s->run->pass;
    map_worker *w = s->worker;

    for (int k = 0; k < p->slot_count; k++) {
        char *memory = w->base[k + 1];
        bool elsewhere = p->slot[k].non_temporal > 0 && (uintptr_t)memory % MAP_LINE != 0;
        w->non_temporal[k] = elsewhere ? memory : NULL;
        if (elsewhere)
            w->base[k + 1] = non_temporal_address(w->buffers + p->slot[k].non_temporal, memory);
    }
}

/* Cache lines that the tile shares with others are stored normally. */
static void store_non_temporal(const map_machine *machine, char *to, const char *from, size_t size)
{
    size_t head = -(uintptr_t)to % MAP_LINE < size ? -(uintptr_t)to % MAP_LINE : size;
    size_t lines = (size - head) / MAP_LINE, whole = head + lines * MAP_LINE;

    memcpy(to, from, head);
    machine->non_temporal(to + head, from + head, lines);
    memcpy(to + whole, from + whole, size - whole);
}

static void store_all_non_temporal(const map_state *s)
{
    const map_pass *p = s->run->pass;

    for (int k = 0; k < p->slot_count; k++)
        if (s->worker->non_temporal[k] != NULL)
            store_non_temporal(s->run->plan->lanes->machine, s->worker->non_temporal[k],
                               s->worker->base[k + 1],
                               (size_t)s->tile->points * map_type_size(p->slot[k].access->type));
}

/* ---- addresses of operands ------------------------------------------------------------------- */

/* Addresses of the operands of the tile. */
static void find_slots(map_state *s)
{
    const map_pass *p = s->run->pass;
    const pons_call *call = s->run->call;
    const map_access *last = NULL;
    int64_t first = 0;

    for (int k = 0; k < p->slot_count; k++) {
        const map_access *a = p->slot[k].access;
        char *memory = p->slot[k].output ? call->output[a->tensor] : call->input[a->tensor];
        if (a != last)
            first = map_access_first(a, s->tile);
        last = a;
        s->worker->base[k + 1] = memory + (first + p->slot[k].channel * a->channel)
                                          * (int64_t)map_type_size(a->type);
    }
    if (p->non_temporal)
        find_non_temporal(s);
}

/* ---- invariant values ------------------------------------------------------------------------ */

static void begin_lanes(map_unit *u)
{
    u->lane = u->cycle_lane = u->periods = 0;
    map_unit_begin_period(u);
}

static bool refresh_load(map_state *s, int k)
{
    const map_plan *plan = s->run->plan;
    const map_steady *steady = &s->run->pass->steady[k];
    const map_access *a = steady->access;
    const void *memory = s->run->call->input[a->tensor];
    int64_t first = map_access_first(a, s->tile) + steady->channel * a->channel;
    float *to = s->worker->buffers + steady->home;
    int n = s->tile->points, room = steady->span == MAP_PERIODIC ? plan->cycle_lanes
                                                                          : plan->row;

    n = min_int(n, room);
    if (s->worker->steady_points[k] >= n && s->worker->steady_first[k] == first)
        return false;
    s->worker->steady_points[k] = n;
    s->worker->steady_first[k] = first;
    if (steady->span == MAP_UNIFORM) {
        plan->lanes->fill(to, map_number_load(a->type, memory, first),
                          plan->lanes->machine->unit);
        return true;
    }
    plan->lanes->gather[a->type](to, memory, first, a->table, n);
    for (int i = n; i < room; i++)
        to[i] = 0;
    return true;
}

static void run_programs(map_state *s)
{
    const map_plan *plan = s->run->plan;
    const map_pass *p = s->run->pass;
    int lanes[MAP_SPANS] = { 1, plan->cycle_lanes, s->tile->points };

    s->unit.lanes = plan->lanes->machine->unit;
    for (int span = 0; span < MAP_SPANS; span++) {
        if (p->program[span] < 0 || lanes[span] == 0)
            continue;
        begin_lanes(&s->unit);
        s->unit.last = lanes[span];
        /* All lanes of a periodic value, in order. */
        s->unit.cycle = span == MAP_PERIODIC ? INT_MAX : plan->cycle;
        plan->lanes->machine->begin(&p->code[p->program[span]], &s->unit);
    }
    s->unit.cycle = plan->cycle;
}

/* Recompute the invariant values if a load that they depend on has moved. */
static void refresh_invariants(map_state *s)
{
    bool changed = !s->worker->prepared;

    for (int k = 0; k < s->run->pass->steady_count; k++)
        changed = refresh_load(s, k) || changed;
    if (!changed)
        return;
    s->worker->prepared = true;
    run_programs(s);
}

/* ---- units ----------------------------------------------------------------------------------- */

static void copy_end_in(map_state *s)
{
    const map_pass *p = s->run->pass;
    map_worker *w = s->worker;

    for (int k = 0; k < p->slot_count; k++) {
        const map_slot *slot = &p->slot[k];
        size_t size = map_type_size(slot->access->type), at = (size_t)s->unit.lane * size;
        char *stage = (char *)(w->buffers + slot->stage);
        w->end_base[k + 1] = w->base[k + 1];
        if (slot->access->pattern != MAP_DENSE)
            continue;
        w->end_base[k + 1] = stage - at;
        memset(stage, 0, (size_t)s->run->plan->lanes->machine->unit * sizeof(float));
        if (!slot->output)
            memcpy(stage, w->base[k + 1] + at, (size_t)s->unit.lanes * size);
    }
}

static void copy_end_out(const map_state *s, int lane)
{
    const map_pass *p = s->run->pass;

    for (int k = 0; k < p->slot_count; k++) {
        const map_slot *slot = &p->slot[k];
        size_t size = map_type_size(slot->access->type);
        if (slot->output && slot->access->pattern == MAP_DENSE)
            memcpy(s->worker->base[k + 1] + (size_t)lane * size,
                   s->worker->buffers + slot->stage, (size_t)s->unit.lanes * size);
    }
}

/* The last, partial unit, on copies of the dense operands. */
static void run_end(map_state *s)
{
    const map_pass *pass = s->run->pass;
    int lane = s->unit.lane;

    copy_end_in(s);
    s->unit.base = s->worker->end_base;
    s->unit.last = s->tile->points;
    s->run->plan->lanes->machine->begin(&pass->code[pass->main], &s->unit);
    copy_end_out(s, lane);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void begin_tile(map_state *s)
{
    const map_tile *tile = s->tile;
    map_unit *u = &s->unit;

    u->moments[1] = tile->end ? 8 * (int64_t)s->run->plan->row : 0;
    u->numbers[1] = ++s->worker->tiles[tile->end];
    begin_lanes(u);
}

/* All whole units of the tile. */
static void run_whole(map_state *s)
{
    const map_pass *pass = s->run->pass;
    const map_machine *machine = s->run->plan->lanes->machine;

    s->unit.lanes = machine->unit;
    s->unit.last = s->tile->points / machine->unit * machine->unit;
    if (s->unit.last > 0)
        machine->begin(pass->quick != NULL ? pass->quick : &pass->code[pass->main], &s->unit);
}

void map_tile_run(const map_run *run, map_worker *worker, const map_tile *tile)
{
    const map_plan *plan = run->plan;
    map_state s = { .run = run, .worker = worker, .tile = tile,
                    .unit = { .base = worker->base, .first = tile->first,
                              .points = tile->points, .cycle = plan->cycle,
                              .period = plan->period,
                              .earlier = { worker->periods[0], worker->periods[1] },
                              .cycles = worker->cycles,
                              .step_key = run->call->step_key, .plan = plan } };

    find_slots(&s);
    refresh_invariants(&s);
    begin_tile(&s);
    run_whole(&s);
    s.unit.lanes = tile->points - s.unit.lane;
    if (s.unit.lanes > 0)
        run_end(&s);
    if (run->pass->non_temporal)
        store_all_non_temporal(&s);
    if (plan->period > 0) {
        worker->periods[0] += tile->points / plan->period;
        worker->periods[1] += tile->points % plan->period != 0;
    }
    if (plan->cycle % MAP_STRIP != 0) {
        worker->cycles[0] += tile->points / plan->cycle;
        worker->cycles[1] += tile->points % plan->cycle != 0;
    }
}
