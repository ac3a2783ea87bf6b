/*
 * map_tile.c - the steps of a pass, carried out on one tile.
 *
 * While a tile computes, what the next one reads and writes comes nearer.
 */
#include "map.h"

/* Operands that are fetched ahead. */
#define MAP_AHEAD 8

typedef struct map_state {
    const map_run *run;
    map_worker *worker;
    map_tile tile;
} map_state;

static int row_lanes(int points) { return (points + MAP_ROW - 1) & -MAP_ROW; }

static int width_rows(const map_plan *plan, map_width width)
{
    return width == MAP_WIDE ? plan->rows : 1;
}

/* Lanes that an operation computes, padding included. */
static int width_lanes(const map_state *s, map_width width)
{
    const map_plan *plan = s->run->plan;

    if (width == MAP_UNIFORM)
        return MAP_ROW;
    return width == MAP_WIDE && plan->rows > 1 ? plan->rows * plan->row
         : row_lanes(s->tile.points);
}

static float *home(const map_state *s, int reg)
{
    return s->worker->buffers + s->run->pass->reg[reg].home;
}

/* The lanes behind the last point of each row. */
static void pad(const map_state *s, float *to, map_width width)
{
    const map_plan *plan = s->run->plan;
    int rows = width_rows(plan, width), end = rows > 1 ? plan->row : row_lanes(s->tile.points);

    for (int r = 0; r < rows; r++)
        for (int i = s->tile.points; i < end; i++)
            to[r * plan->row + i] = 0;
}

static void step_operation(map_state *s, const map_step *step)
{
    float **p = s->worker->pointer;

    step->function(p[step->to], p[step->argument[0]], p[step->argument[1]], p[step->argument[2]],
                   width_lanes(s, step->width));
}

static void load_lanes(const map_state *s, const map_access *a, const void *memory, int64_t first,
                       float *to)
{
    const map_plan *plan = s->run->plan;
    int rows = width_rows(plan, a->width), n = s->tile.points;

    if (a->pattern == MAP_DENSE)
        plan->lanes->load[a->type](to, memory, first, n);
    else if (a->pattern == MAP_INTERLEAVED)
        plan->lanes->load_rows[a->type](to, plan->row, memory, first, rows, n);
    else
        for (int r = 0; r < rows; r++)
            plan->lanes->gather[a->type](to + r * plan->row, memory, first,
                                         a->table + r * plan->row, n);
    pad(s, to, a->width);
}

static void step_load(map_state *s, const map_step *step)
{
    const map_access *a = step->access;
    map_worker *w = s->worker;
    const void *memory = s->run->call->input[a->tensor];
    int64_t first = map_access_first(a, &s->tile);
    float *to = home(s, step->to);

    if (step->lasting && w->lasting_points[step->to] >= s->tile.points
        && w->lasting_first[step->to] == first)
        return;
    if (a->pattern == MAP_DENSE && a->type == PONS_F32 && s->tile.points % MAP_ROW == 0) {
        w->pointer[step->to] = (float *)memory + first;
        return;
    }
    w->pointer[step->to] = to;
    if (a->pattern == MAP_ONE)
        s->run->plan->lanes->fill(to, map_number_load(a->type, memory, first), MAP_ROW);
    else
        load_lanes(s, a, memory, first, to);
    w->lasting_first[step->to] = first;
    w->lasting_points[step->to] = s->tile.points;
}

static void step_expand(map_state *s, const map_step *step)
{
    const map_plan *plan = s->run->plan;
    const float *from = s->worker->pointer[step->argument[0]];
    float *to = s->worker->pointer[step->to];
    int n = row_lanes(s->tile.points);

    if (step->from == MAP_UNIFORM)
        plan->lanes->fill(to, from[0], width_lanes(s, step->width));
    else
        for (int r = 0; r < plan->rows; r++)
            plan->lanes->load[PONS_F32](to + r * plan->row, from, 0, n);
}

static void step_channel(map_state *s, const map_step *step)
{
    const map_plan *plan = s->run->plan;
    const float *x = s->worker->pointer[step->argument[0]];
    float *to = s->worker->pointer[step->to];
    int n = row_lanes(s->tile.points), operation = step->value->operation;

    if (operation == PONS_VALUE_CHANNEL_ARG_MAX) {
        float *best = s->worker->pointer[step->argument[1]];
        plan->lanes->load[PONS_F32](best, x, 0, n);
        plan->lanes->fill(to, 0, n);
        for (int r = 1; r < plan->rows; r++)
            plan->lanes->arg_max(to, best, x + r * plan->row, (float)r, n);
        return;
    }
    plan->lanes->load[PONS_F32](to, x, 0, n);
    for (int r = 1; r < plan->rows; r++)
        plan->lanes->join[operation - PONS_VALUE_CHANNEL_SUM](to, x + r * plan->row, n);
}

/*
 * Numbers that follow the linear index come row-major over the whole space. In the channel form they
 * are taken apart into rows; a narrow value is the number of its point's first channel.
 */
static float *index_begin(const map_state *s, const map_step *step, int64_t *first, int *n)
{
    const map_plan *plan = s->run->plan;

    *first = s->tile.first * plan->rows;
    *n = s->tile.points * plan->rows;
    return plan->rows > 1 ? s->worker->spare : s->worker->pointer[step->to];
}

static void index_end(const map_state *s, const map_step *step, const float *from)
{
    const map_plan *plan = s->run->plan;
    float *to = s->worker->pointer[step->to];

    if (step->width == MAP_WIDE && plan->rows > 1)
        plan->lanes->load_rows[PONS_F32](to, plan->row, from, 0, plan->rows, s->tile.points);
    for (int i = 0; i < s->tile.points && step->width == MAP_NARROW; i++)
        to[i] = from[i * plan->rows];
    pad(s, to, step->width);
}

static void step_iota(map_state *s, const map_step *step)
{
    int64_t divisor = step->value->divisor > 0 ? step->value->divisor : 1;
    int64_t modulus = step->value->modulus > 0 ? step->value->modulus : INT64_MAX;
    int64_t first, value, left;
    int n;
    float *to = index_begin(s, step, &first, &n);

    value = first / divisor % modulus;
    left = divisor - first % divisor;
    for (int i = 0; i < n; i++) {
        to[i] = (float)value;
        if (--left == 0) {
            left = divisor;
            value = value + 1 == modulus ? 0 : value + 1;
        }
    }
    index_end(s, step, to);
}

static void step_random(map_state *s, const map_step *step)
{
    int64_t first;
    int n;
    float *to = index_begin(s, step, &first, &n);

    s->run->plan->lanes->random[step->value->operation - PONS_VALUE_UNIFORM](
        to, first, n, step->value->stream, s->run->call->moment);
    index_end(s, step, to);
}

static void step_reduce(map_state *s, const map_step *step)
{
    map_reduce_tile(s->run, s->worker, step->reduce, &s->tile,
                    s->worker->pointer[step->argument[0]]);
}

static void step_store(map_state *s, const map_step *step)
{
    const map_plan *plan = s->run->plan;
    const map_access *a = step->access;
    void *memory = s->run->call->output[a->tensor];
    int64_t first = map_access_first(a, &s->tile);
    const float *x = s->worker->pointer[step->argument[0]];
    int rows = width_rows(plan, a->width), n = s->tile.points;

    if (x == (float *)memory + first)
        return; /* computed in place */
    if (a->pattern == MAP_ONE)
        map_number_store(a->type, memory, first, x[0]);
    else if (a->pattern == MAP_DENSE)
        plan->lanes->store[a->type](memory, first, x, n);
    else if (a->pattern == MAP_INTERLEAVED)
        plan->lanes->store_rows[a->type](memory, first, x, plan->row, rows, n);
    else
        for (int r = 0; r < rows; r++)
            plan->lanes->scatter[a->type](memory, first, a->table + r * plan->row,
                                          x + r * plan->row, n);
}

static void (*const step_run[MAP_STEP_KINDS])(map_state *s, const map_step *step) = {
    [MAP_STEP_OPERATION] = step_operation, [MAP_STEP_LOAD] = step_load,
    [MAP_STEP_EXPAND] = step_expand, [MAP_STEP_CHANNEL] = step_channel,
    [MAP_STEP_IOTA] = step_iota, [MAP_STEP_RANDOM] = step_random,
    [MAP_STEP_REDUCE] = step_reduce, [MAP_STEP_STORE] = step_store,
};

/* What the next tile reads and writes comes nearer while this one computes: a part at each step. */
typedef struct map_ahead {
    const char *at[MAP_AHEAD];
    int lines[MAP_AHEAD], count;
} map_ahead;

static void look_ahead(const map_state *s, const map_tile *next, map_ahead *ahead)
{
    const map_pass *p = s->run->pass;

    ahead->count = 0;
    for (int i = 0; i < p->step_count && ahead->count < MAP_AHEAD; i++) {
        const map_access *a = p->step[i].access;
        const char *memory;
        int64_t size;
        if (a == NULL || a->pattern != MAP_DENSE)
            continue;
        size = (int64_t)map_type_size(a->type);
        memory = p->step[i].kind == MAP_STEP_LOAD ? s->run->call->input[a->tensor]
                                                  : s->run->call->output[a->tensor];
        ahead->at[ahead->count] = memory + map_access_first(a, next) * size;
        ahead->lines[ahead->count++] = (int)(next->points * size / 64);
    }
}

static void fetch(const map_ahead *ahead, int part, int parts)
{
    for (int i = 0; i < ahead->count; i++)
        for (int k = ahead->lines[i] * part / parts; k < ahead->lines[i] * (part + 1) / parts; k++)
            __builtin_prefetch(ahead->at[i] + 64 * k, 0, 3);
}

void map_tile_run(const map_run *run, map_worker *worker, const map_tile *tile,
                  const map_tile *next)
{
    const map_pass *p = run->pass;
    map_state s = { .run = run, .worker = worker, .tile = *tile };
    map_ahead ahead = { .count = 0 };

    if (next != NULL)
        look_ahead(&s, next, &ahead);
    if (p->direct >= 0) {
        const map_step *store = &p->step[p->direct];
        int reg = store->argument[0];
        worker->pointer[reg] = tile->points % MAP_ROW != 0 ? home(&s, reg)
            : (float *)run->call->output[store->access->tensor]
              + map_access_first(store->access, tile);
    }
    worker->tiles[tile->end]++;
    for (int i = 0; i < p->step_count; i++) {
        step_run[p->step[i].kind](&s, &p->step[i]);
        fetch(&ahead, i, p->step_count);
    }
}
