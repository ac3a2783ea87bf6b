/*
 * map_tile.c - the code of a pass, run on one tile.
 *
 * The machine takes whole units of lanes. Where a tile ends within one, dense operands are read
 * from and written to copies of a unit's size.
 */
#include "map.h"

#include <string.h>

/* Bytes. */
#define MAP_AHEAD 4096

typedef struct map_state {
    const map_run *run;
    map_worker *worker;
    const map_tile *tile;
    map_unit unit;
} map_state;

/* Where the operands of the tile begin. */
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
}

/* ---- what stays ------------------------------------------------------------------------------ */

static bool refresh_load(map_state *s, int k)
{
    const map_plan *plan = s->run->plan;
    const map_steady *steady = &s->run->pass->steady[k];
    const map_access *a = steady->access;
    const void *memory = s->run->call->input[a->tensor];
    int64_t first = map_access_first(a, s->tile) + steady->channel * a->channel;
    float *to = s->worker->buffers + steady->home;
    int n = s->tile->points, room = steady->span == MAP_PERIODIC ? plan->period : plan->row;

    n = n < room ? n : room;
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

/* Numbers that stay are computed again when a number that they come from has changed. */
static void refresh(map_state *s)
{
    const map_plan *plan = s->run->plan;
    const map_pass *p = s->run->pass;
    int unit = plan->lanes->machine->unit;
    int lanes[MAP_SPANS] = { 1, plan->period, s->tile->points };
    bool changed = !s->worker->prepared;

    for (int k = 0; k < p->steady_count; k++)
        changed = refresh_load(s, k) || changed;
    if (!changed)
        return;
    s->worker->prepared = true;
    s->unit.lanes = unit;
    for (int span = 0; span < MAP_SPANS; span++)
        for (int lane = 0; p->program[span] >= 0 && lane < lanes[span]; lane += unit) {
            s->unit.lane = lane;
            s->unit.walked[MAP_PERIOD] = s->unit.walked[MAP_LANES] = 4 * (int64_t)lane;
            if (plan->period > 0)
                s->unit.walked[MAP_PERIOD] = 4 * (int64_t)(lane % plan->period);
            plan->lanes->machine->begin(&p->code[p->program[span]], &s->unit);
        }
}

/* ---- units ----------------------------------------------------------------------------------- */

static void end_in(map_state *s)
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

static void end_out(const map_state *s)
{
    const map_pass *p = s->run->pass;

    for (int k = 0; k < p->slot_count; k++) {
        const map_slot *slot = &p->slot[k];
        size_t size = map_type_size(slot->access->type);
        if (slot->output && slot->access->pattern == MAP_DENSE)
            memcpy(s->worker->base[k + 1] + (size_t)s->unit.lane * size,
                   s->worker->buffers + slot->stage, (size_t)s->unit.lanes * size);
    }
}

/*
 * What inputs hold some units further on comes nearer. The first cache keeps a few times MAP_AHEAD;
 * behind a tile mostly comes the next piece of the cut axis.
 */
static void fetch(const map_state *s)
{
    const map_plan *plan = s->run->plan;
    const map_pass *p = s->run->pass;
    int unit = plan->lanes->machine->unit;

    for (int k = 0; k < p->slot_count; k++) {
        const map_slot *slot = &p->slot[k];
        const map_access *a = slot->access;
        int64_t size = (int64_t)map_type_size(a->type), n = unit * size * a->rows;
        const char *at = s->worker->base[k + 1] + s->unit.lane * size * a->rows + MAP_AHEAD;
        if (slot->output)
            continue;
        if (a->pattern == MAP_DENSE || a->pattern == MAP_INTERLEAVED) {
            for (int64_t line = 0; line < n; line += 64)
                __builtin_prefetch(at + line, 0, 3);
        } else if (a->pattern == MAP_GROUPS) {
            int lane = s->unit.lane + (int)(MAP_AHEAD / size), behind = lane - plan->points;
            at = s->worker->base[k + 1] + (behind >= 0 ? a->outer[plan->cut] * size : 0);
            lane = behind >= 0 ? behind : lane;
            for (int i = lane; i < lane + unit && i < plan->points; i += MAP_ROW)
                __builtin_prefetch(at + a->table[i] * size, 0, 3);
        }
    }
}

static void run_unit(map_state *s)
{
    fetch(s);
    const map_plan *plan = s->run->plan;
    const map_instruction *code = &s->run->pass->code[s->run->pass->main];

    if (s->unit.lanes == plan->lanes->machine->unit) {
        plan->lanes->machine->begin(code, &s->unit);
        return;
    }
    end_in(s);
    s->unit.base = s->worker->end_base;
    plan->lanes->machine->begin(code, &s->unit);
    end_out(s);
}

/* How far a unit is from the tile's begin, for each walk; 'before' whole periods lie before it. */
static void walk(map_state *s, int lane, int before)
{
    const map_plan *plan = s->run->plan;
    const map_worker *w = s->worker;
    int64_t *walked = s->unit.walked, floats = 4 * (int64_t)lane;
    int period = plan->period;
    bool rest = s->tile->points - before * period < period;

    s->unit.lane = lane;
    walked[MAP_LANES] = floats;
    walked[MAP_HALVES] = floats / 2;
    walked[MAP_BYTES] = floats / 4;
    walked[MAP_PERIOD] = 4 * (int64_t)(lane - before * period);
    walked[MAP_MOMENTS_LANES] = floats + (s->tile->end ? 8 * (int64_t)plan->row : 0);
    walked[MAP_MOMENTS_PERIOD] = walked[MAP_PERIOD] + (rest ? 8 * (int64_t)period : 0);
    s->unit.reciprocal[0] = 1.0f / (float)(w->periods[rest] + (rest ? 0 : before) + 1);
}

void map_tile_run(const map_run *run, map_worker *worker, const map_tile *tile)
{
    const map_plan *plan = run->plan;
    map_state s = { run, worker, tile, { .base = worker->base, .first = tile->first,
                                         .moment = run->call->moment, .plan = plan } };
    int unit = plan->lanes->machine->unit, before = 0;

    find_slots(&s);
    refresh(&s);
    s.unit.reciprocal[1] = 1.0f / (float)++worker->tiles[tile->end];
    for (int lane = 0; lane < tile->points; lane += unit) {
        before += plan->period > 0 && lane - before * plan->period >= plan->period;
        walk(&s, lane, before);
        s.unit.lanes = tile->points - lane < unit ? tile->points - lane : unit;
        run_unit(&s);
    }
    if (plan->period > 0) {
        worker->periods[0] += tile->points / plan->period;
        worker->periods[1] += tile->points % plan->period != 0;
    }
}
