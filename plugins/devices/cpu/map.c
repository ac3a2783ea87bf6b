/*
 * map.c - the map kernel: prepare a plan from a pons_map, run its passes.
 *
 * The device accepts every map. What a thread needs (tile buffers, accumulators) and the partial
 * results lie in the call's scratch memory.
 */
#include "cpu.h"
#include "lane.h"

#include <stdlib.h>

/* Below this many lanes times steps a second thread costs more than it brings. */
#define MAP_SERIAL_WORK 65536
/* Operands that are fetched ahead. */
#define MAP_AHEAD 8

typedef struct map_memory {
    struct map_memory *next;
    _Alignas(max_align_t) char first[];
} map_memory;

void *map_allocate(map_plan *plan, size_t count, size_t size)
{
    map_memory *m;

    if (size != 0 && count > (SIZE_MAX / 2 - sizeof *m) / size)
        return NULL;
    m = calloc(1, sizeof *m + (count * size > 0 ? count * size : 1));
    if (m == NULL)
        return NULL;
    m->next = plan->memory;
    plan->memory = m;
    return m->first;
}

static void plan_free(map_plan *plan)
{
    map_memory *m = plan->memory;

    while (m != NULL) {
        map_memory *next = m->next;
        free(m);
        m = next;
    }
    free(plan);
}

/* ---- single numbers -------------------------------------------------------------------------- */

size_t map_type_size(pons_type type)
{
    static const size_t size[] = { [PONS_F32] = 4, [PONS_BF16] = 2, [PONS_F16] = 2, [PONS_U8] = 1,
                                   [PONS_I32] = 4, [PONS_F64] = 8 };
    return size[type];
}

float map_number_load(pons_type type, const void *from, int64_t at)
{
    switch (type) {
    case PONS_BF16: return lane_from_bf16(((const uint16_t *)from)[at]);
    case PONS_F16: return lane_from_f16(((const uint16_t *)from)[at]);
    case PONS_U8: return (float)((const uint8_t *)from)[at];
    case PONS_I32: return (float)((const int32_t *)from)[at];
    default: return ((const float *)from)[at];
    }
}

void map_number_store(pons_type type, void *to, int64_t at, float value)
{
    switch (type) {
    case PONS_BF16: ((uint16_t *)to)[at] = lane_to_bf16(value); break;
    case PONS_F16: ((uint16_t *)to)[at] = lane_to_f16(value); break;
    case PONS_U8: ((uint8_t *)to)[at] = lane_to_u8(value); break;
    case PONS_I32: ((int32_t *)to)[at] = lane_to_i32(value); break;
    default: ((float *)to)[at] = value; break;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

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

/* ---- blocks ---------------------------------------------------------------------------------- */

static size_t round_up(size_t x) { return (x + 63) & ~(size_t)63; }

/* A worker's part of the scratch memory; worker_size below is the sum of these. */
static void worker_begin(const map_run *run, map_worker *w, int thread)
{
    const map_plan *plan = run->plan;
    const map_pass *p = run->pass;
    char *at = (char *)run->call->scratch + plan->worker_at + (size_t)thread * plan->worker_size;
    size_t registers = (size_t)p->register_count;

    w->buffers = (float *)at;
    at += round_up(p->buffer_floats * sizeof(float));
    w->accumulators = (float *)at;
    at += round_up(p->accumulator_floats * sizeof(float));
    w->spare = (float *)at;
    at += round_up(4 * (size_t)plan->rows * (size_t)plan->row * sizeof(float));
    w->partial = (float *)at;
    at += round_up(p->partial_floats * sizeof(float));
    w->count = (double *)at;
    at += round_up((size_t)p->reduce_count * sizeof(double));
    w->pointer = (float **)at;
    at += round_up(registers * sizeof *w->pointer);
    w->lasting_first = (int64_t *)at;
    at += round_up(registers * sizeof *w->lasting_first);
    w->lasting_points = (int *)at;
    for (size_t r = 0; r < registers; r++) {
        w->pointer[r] = w->buffers + p->reg[r].home;
        w->lasting_points[r] = -1;
        if (p->reg[r].is_constant)
            plan->lanes->fill(w->pointer[r], p->reg[r].constant, MAP_ROW);
    }
    w->ready = true;
}

static size_t worker_size(const map_plan *plan, const map_pass *p)
{
    size_t registers = (size_t)p->register_count;

    return round_up(p->buffer_floats * sizeof(float))
         + round_up(p->accumulator_floats * sizeof(float))
         + round_up(4 * (size_t)plan->rows * (size_t)plan->row * sizeof(float))
         + round_up(p->partial_floats * sizeof(float))
         + round_up((size_t)p->reduce_count * sizeof(double))
         + round_up(registers * sizeof(float *)) + round_up(registers * sizeof(int64_t))
         + round_up(registers * sizeof(int));
}

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

static void run_tile(map_state *s, const map_ahead *ahead)
{
    const map_pass *p = s->run->pass;

    if (p->direct >= 0) {
        const map_step *store = &p->step[p->direct];
        int reg = store->argument[0];
        s->worker->pointer[reg] = s->tile.points % MAP_ROW != 0 ? home(s, reg)
            : (float *)s->run->call->output[store->access->tensor]
              + map_access_first(store->access, &s->tile);
    }
    s->worker->tiles[s->tile.end]++;
    for (int i = 0; i < p->step_count; i++) {
        step_run[p->step[i].kind](s, &p->step[i]);
        fetch(ahead, i, p->step_count);
    }
}

static void run_block(void *context, int64_t block, int thread)
{
    const map_run *run = context;
    const map_pass *p = run->pass;
    map_state s = { .run = run, .worker = &run->worker[thread] };
    bool listed = p->block_group != NULL;
    map_ahead ahead = { .count = 0 };
    map_tile next = { .points = 0 };
    int64_t group = listed ? p->block_group[block] : block / p->blocks_per_group;
    int64_t first = listed ? p->block_first[block] : block % p->blocks_per_group * p->block_tiles;
    int64_t n = listed ? p->block_size[block] : p->member_count - first;

    if (!s.worker->ready)
        worker_begin(run, s.worker, thread);
    if (p->reduce_count > 0)
        map_reduce_begin(run, s.worker);
    for (int64_t i = 0; i < n && i < p->block_tiles; i++) {
        if (i == 0)
            map_tile_find(run->plan, p, group, first, &next);
        s.tile = next;
        ahead.count = 0;
        if (i + 1 < n && i + 1 < p->block_tiles) {
            map_tile_next(run->plan, p, first + i + 1, &next);
            look_ahead(&s, &next, &ahead);
        }
        run_tile(&s, &ahead);
    }
    if (p->reduce_count == 0)
        return;
    if (p->blocks_per_group == 1) {
        map_reduce_block(run, s.worker, &s.tile, s.worker->partial, s.worker->count);
        map_reduce_join(run, group, 1, s.worker->partial, s.worker->count);
    } else {
        char *scratch = run->call->scratch;
        map_reduce_block(run, s.worker, &s.tile,
                         (float *)(scratch + p->partial_at) + (size_t)block * p->partial_floats,
                         (double *)(scratch + p->count_at) + block * p->reduce_count);
    }
}

typedef struct map_bundle {
    map_run *run;
    int64_t size, count;
    void (*body)(void *context, int64_t i, int thread);
} map_bundle;

/* Several small blocks as one unit of work. */
static void run_bundle(void *context, int64_t i, int thread)
{
    const map_bundle *b = context;

    for (int64_t k = i * b->size; k < (i + 1) * b->size && k < b->count; k++)
        b->body(b->run, k, thread);
}

static void run_bundles(int threads, int64_t count, int64_t size, map_run *run,
                        void (*body)(void *context, int64_t i, int thread))
{
    map_bundle b = { run, size, count, body };

    cpu_parallel(threads, (count + size - 1) / size, run_bundle, &b);
}

static void join_group(void *context, int64_t group, int thread)
{
    const map_run *run = context;
    const map_pass *p = run->pass;
    bool listed = p->group_block != NULL;
    int64_t first = listed ? p->group_block[group] : group * p->blocks_per_group;
    int64_t n = listed ? p->group_block[group + 1] - first : p->blocks_per_group;
    char *scratch = run->call->scratch;

    map_reduce_join(run, group, n,
                    (float *)(scratch + p->partial_at) + (size_t)first * p->partial_floats,
                    (double *)(scratch + p->count_at) + first * p->reduce_count);
}

static int64_t pass_work(const map_plan *plan, const map_pass *p)
{
    return p->group_count * p->member_count * plan->row * plan->rows * p->step_count;
}

static pons_status map_run_all(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const map_plan *plan = kernel->state;

    for (int i = 0; i < plan->pass_count; i++) {
        const map_pass *p = &plan->pass[i];
        map_worker *worker = (map_worker *)call->scratch; /* one for each thread */
        map_run run = { plan, p, call, worker };
        int threads = pass_work(plan, p) < MAP_SERIAL_WORK ? 1 : plan->threads;
        int64_t tiles = p->member_count < p->block_tiles ? p->member_count : p->block_tiles;
        int64_t bundle = tiles > 0 && tiles < MAP_CHUNK_TILES ? MAP_CHUNK_TILES / tiles : 1;
        for (int t = 0; t < plan->threads; t++)
            worker[t].ready = false;
        run_bundles(threads, p->block_count, bundle, &run, run_block);
        if (p->reduce_count > 0 && p->blocks_per_group != 1)
            run_bundles(p->block_count < 256 ? 1 : threads, p->group_count, 16, &run, join_group);
        map_reduce_groups(&run);
    }
    return PONS_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* Outer axes that a reduction keeps; ragged: 1 for a result of each segment. */
static unsigned kept_of(const map_plan *plan, const map_reduce *r)
{
    unsigned kept = 0;

    if (plan->map->segment_count > 0)
        return r->to[0].along == PONS_ALONG_SEGMENT;
    for (int a = 0; a <= plan->cut; a++)
        if (r->to[0].stride[a] != 0 && plan->outer_extent[a] > 1)
            kept |= 1u << a;
    return kept;
}

static bool segment_blocks(map_plan *plan, map_pass *p)
{
    int64_t t = 0, b = 0, room = plan->tile_count + 1;

    p->member_count = plan->tile_count;
    p->group_count = p->by_segment ? plan->map->segment_count : 1;
    p->blocks_per_group = 0;
    p->block_group = map_allocate(plan, (size_t)room, sizeof(int64_t));
    p->block_first = map_allocate(plan, (size_t)room, sizeof(int64_t));
    p->block_size = map_allocate(plan, (size_t)room, sizeof(int64_t));
    p->group_block = map_allocate(plan, (size_t)p->group_count + 1, sizeof(int64_t));
    if (p->block_group == NULL || p->block_first == NULL || p->block_size == NULL
        || p->group_block == NULL)
        return false;
    for (int64_t g = 0; g < p->group_count; g++) {
        int64_t end = t;
        p->group_block[g] = b;
        while (end < plan->tile_count && (!p->by_segment || plan->tile_segment[end] == g))
            end++;
        for (; t < end; t += p->block_size[b++]) {
            p->block_group[b] = g;
            p->block_first[b] = t;
            p->block_size[b] = end - t < p->block_tiles ? end - t : p->block_tiles;
        }
    }
    p->group_block[p->group_count] = p->block_count = b;
    return true;
}

static bool pass_blocks(map_plan *plan, map_pass *p, unsigned kept)
{
    p->block_tiles = p->reduce_count > 0 ? MAP_BLOCK_TILES : MAP_CHUNK_TILES;
    p->by_segment = kept != 0;
    if (plan->map->segment_count > 0) {
        for (int i = 0; i < p->reduce_count; i++)
            if (p->reduce[i]->kind == PONS_REDUCE_MOMENTS)
                p->block_tiles = 1; /* tiles differ in length: merged one by one */
        return segment_blocks(plan, p);
    }
    p->group_count = p->member_count = 1;
    for (int a = 0; a <= plan->cut; a++)
        if (kept >> a & 1) {
            p->kept_axis[p->kept_axes++] = a;
            p->group_count *= plan->outer_extent[a];
        } else {
            p->reduced_axis[p->reduced_axes++] = a;
            p->member_count *= plan->outer_extent[a];
        }
    p->blocks_per_group = (p->member_count + p->block_tiles - 1) / p->block_tiles;
    p->block_count = p->group_count * p->blocks_per_group;
    return true;
}

static void pass_reductions(map_plan *plan, map_pass *p)
{
    size_t lanes = (size_t)plan->row;

    for (int i = 0; i < p->reduce_count; i++) {
        map_reduce *r = p->reduce[i];
        size_t rows = r->width == MAP_WIDE ? (size_t)plan->rows : 1;
        bool moments = r->kind == PONS_REDUCE_MOMENTS;
        r->accumulator = p->accumulator_floats;
        p->accumulator_floats += lanes * rows * (moments ? 4 : 1);
        r->partial = p->partial_floats;
        p->partial_floats += (size_t)r->fold[0].kept_count * (moments ? 2 : 1);
    }
}

bool map_pass_stores(const map_plan *plan, const map_pass *pass, const pons_store *store)
{
    return pass->storing && (plan->map->segment_count == 0 || store->to.along == pass->stores);
}

static bool pass_make(map_plan *plan, map_pass *p, unsigned kept)
{
    p->reduce = map_allocate(plan, (size_t)plan->map->reduction_count, sizeof *p->reduce);
    if (p->reduce == NULL)
        return false;
    for (int i = 0; i < plan->map->reduction_count; i++)
        if (kept_of(plan, &plan->reduce[i]) == kept)
            p->reduce[p->reduce_count++] = &plan->reduce[i];
    pass_reductions(plan, p);
    return pass_blocks(plan, p, kept) && map_steps_make(plan, p);
}

/*
 * Ragged: what is stored once for a segment, or once for all, may lie where other tiles still read.
 * It comes when they are done, in passes of their own.
 */
static bool segment_stores(map_plan *plan)
{
    static const pons_along along[] = { PONS_ALONG_SEGMENT, PONS_ALONG_NOTHING };

    for (int k = 0; k < 2 && plan->map->segment_count > 0; k++) {
        map_pass *p = &plan->pass[plan->pass_count];
        bool any = false;
        for (int i = 0; i < plan->map->store_count; i++)
            any = any || plan->map->store[i].to.along == along[k];
        if (!any)
            continue;
        plan->pass_count++;
        p->storing = true;
        p->stores = along[k];
        p->group_count = p->blocks_per_group = p->block_count = 1;
        p->member_count = p->block_tiles = k == 0 ? plan->map->segment_count : 1;
        if (!map_steps_make(plan, p))
            return false;
    }
    return true;
}

/* A pass for each set of kept axes; the last one stores. */
static bool passes_make(map_plan *plan)
{
    int n = plan->map->reduction_count, count = 0;
    unsigned *kept = map_allocate(plan, (size_t)n + 1, sizeof *kept);

    plan->pass = map_allocate(plan, (size_t)n + 3, sizeof *plan->pass);
    if (kept == NULL || plan->pass == NULL)
        return false;
    for (int i = 0; i < n; i++) {
        int k = 0;
        kept[count] = kept_of(plan, &plan->reduce[i]);
        while (kept[k] != kept[count])
            k++;
        count += k == count;
    }
    if (count == 0)
        kept[count++] = 0;
    plan->pass_count = count;
    for (int i = 0; i < count; i++) {
        plan->pass[i].storing = i == count - 1;
        plan->pass[i].stores = PONS_ALONG_ELEMENT;
        if (!pass_make(plan, &plan->pass[i], kept[i]))
            return false;
    }
    return segment_stores(plan);
}

static bool operands_make(map_plan *plan)
{
    const pons_map *m = plan->map;

    plan->load = map_allocate(plan, (size_t)m->load_count, sizeof *plan->load);
    plan->store = map_allocate(plan, (size_t)m->store_count, sizeof *plan->store);
    plan->reduce = map_allocate(plan, (size_t)m->reduction_count, sizeof *plan->reduce);
    if (plan->load == NULL || plan->store == NULL || plan->reduce == NULL)
        return false;
    for (int v = 0; v < m->value_count; v++) {
        const pons_value *x = &m->value[v];
        map_width width = plan->rows > 1 && x->narrow ? MAP_NARROW : MAP_WIDE;
        if (x->operation == PONS_VALUE_LOAD
            && !map_access_make(plan, &m->load[x->operand], width, &plan->load[x->operand]))
            return false;
    }
    for (int i = 0; i < m->store_count; i++) {
        bool narrow = plan->rows > 1 && m->value[m->store[i].value].narrow;
        if (!map_access_make(plan, &m->store[i].to, narrow ? MAP_NARROW : MAP_WIDE,
                             &plan->store[i]))
            return false;
    }
    for (int i = 0; i < m->reduction_count; i++) {
        const pons_reduction *from = &m->reduction[i];
        map_reduce *r = &plan->reduce[i];
        r->kind = from->kind;
        r->groups = from->groups;
        r->value = from->value;
        r->width = plan->rows > 1 && m->value[from->value].narrow ? MAP_NARROW : MAP_WIDE;
        for (int k = 0; k < (from->kind == PONS_REDUCE_MOMENTS ? 2 : 1); k++)
            if (!map_access_make(plan, &from->to[k], r->width, &r->to[k]))
                return false;
        if (!map_reduce_make(plan, r))
            return false;
    }
    return true;
}

/* Scratch memory: the workers, what is global to a call, the memory of the workers. */
static void place_scratch(map_plan *plan)
{
    size_t at = round_up((size_t)plan->threads * sizeof(map_worker));

    for (int i = 0; i < plan->map->reduction_count; i++)
        if (plan->reduce[i].groups > 0) {
            plan->reduce[i].dense_at = at;
            at += round_up((size_t)plan->reduce[i].dense_count * 2 * sizeof(float));
        }
    for (int i = 0; i < plan->pass_count; i++) {
        map_pass *p = &plan->pass[i];
        size_t size = worker_size(plan, p);
        plan->worker_size = size > plan->worker_size ? size : plan->worker_size;
        if (p->reduce_count == 0 || p->blocks_per_group == 1)
            continue;
        p->partial_at = at;
        at += round_up((size_t)p->block_count * p->partial_floats * sizeof(float));
        p->count_at = at;
        at += round_up((size_t)p->block_count * (size_t)p->reduce_count * sizeof(double));
    }
    plan->worker_at = at;
    plan->scratch_size = at + (size_t)plan->threads * plan->worker_size;
}

static bool same_place(const pons_map *m, const pons_operand *a, const pons_operand *b)
{
    if (map_type_size(a->type) != map_type_size(b->type) || a->offset != b->offset
        || a->along != b->along)
        return false;
    for (int i = 0; i < m->axis_count && m->segment_count == 0; i++)
        if (m->extent[i] > 1 && a->stride[i] != b->stride[i])
            return false;
    return true;
}

/* Output 0 may lie in an input that is only read where output 0 is written. */
static uint64_t shared_inputs(const pons_request *request, const pons_map *m)
{
    const pons_operand *to = NULL;
    uint64_t share = 0, other = 0;

    for (int i = 0; i < m->store_count; i++)
        if (m->store[i].to.tensor == 0) {
            if (to != NULL)
                return 0;
            to = &m->store[i].to;
        }
    for (int i = 0; i < m->reduction_count; i++)
        if (m->reduction[i].to[0].tensor == 0 || m->reduction[i].to[1].tensor == 0)
            to = NULL;
    if (to == NULL || to->along == PONS_ALONG_SEGMENT || to->along == PONS_ALONG_NOTHING)
        return 0;
    for (int i = 0; i < m->load_count; i++) {
        int t = m->load[i].tensor;
        if (t >= 64)
            continue;
        if (same_place(m, &m->load[i], to))
            share |= UINT64_C(1) << t;
        else
            other |= UINT64_C(1) << t;
    }
    return share & ~other;
}

static void kernel_free(pons_kernel *kernel) { plan_free(kernel->state); }

pons_status map_prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                        bool *supported, pons_error *err)
{
    map_plan *plan = calloc(1, sizeof *plan);

    *supported = true;
    if (plan == NULL)
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    plan->map = request->attributes;
    plan->lanes = device->lanes;
    plan->threads = device->threads;
    if (!map_space_make(plan) || !operands_make(plan) || !passes_make(plan)) {
        plan_free(plan);
        return pons_fail(err, PONS_DEVICE, "cannot prepare '%s': out of memory", request->name);
    }
    place_scratch(plan);
    kernel->run = map_run_all;
    kernel->free = kernel_free;
    kernel->state = plan;
    kernel->implementation = "own";
    kernel->scratch_size = plan->scratch_size;
    kernel->share = shared_inputs(request, plan->map);
    return PONS_OK;
}
