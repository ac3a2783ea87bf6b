/*
 * map_run.c - a call of a map kernel: its passes, their blocks on threads, what a thread needs.
 *
 * What a thread needs (tile buffers, accumulators) and the partial results lie in the call's
 * scratch memory.
 */
#include "cpu.h"

/* Below this many lanes times steps a second thread costs more than it brings. */
#define MAP_SERIAL_WORK 65536

/* A worker's part of the scratch memory; worker_size below is the sum of these. */
static void worker_begin(const map_run *run, map_worker *w, int thread)
{
    const map_plan *plan = run->plan;
    const map_pass *p = run->pass;
    char *at = (char *)run->call->scratch + plan->worker_at + (size_t)thread * plan->worker_size;
    size_t registers = (size_t)p->register_count;

    w->buffers = (float *)at;
    at += map_round_up(p->buffer_floats * sizeof(float));
    w->accumulators = (float *)at;
    at += map_round_up(p->accumulator_floats * sizeof(float));
    w->spare = (float *)at;
    at += map_round_up(4 * (size_t)plan->rows * (size_t)plan->row * sizeof(float));
    w->partial = (float *)at;
    at += map_round_up(p->partial_floats * sizeof(float));
    w->count = (double *)at;
    at += map_round_up((size_t)p->reduce_count * sizeof(double));
    w->pointer = (float **)at;
    at += map_round_up(registers * sizeof *w->pointer);
    w->lasting_first = (int64_t *)at;
    at += map_round_up(registers * sizeof *w->lasting_first);
    w->lasting_points = (int *)at;
    for (size_t r = 0; r < registers; r++) {
        w->pointer[r] = w->buffers + p->reg[r].home;
        w->lasting_points[r] = -1;
        if (p->reg[r].is_constant)
            plan->lanes->fill(w->pointer[r], p->reg[r].constant, MAP_ROW);
    }
    w->ready = true;
}

size_t map_worker_size(const map_plan *plan, const map_pass *p)
{
    size_t registers = (size_t)p->register_count;

    return map_round_up(p->buffer_floats * sizeof(float))
         + map_round_up(p->accumulator_floats * sizeof(float))
         + map_round_up(4 * (size_t)plan->rows * (size_t)plan->row * sizeof(float))
         + map_round_up(p->partial_floats * sizeof(float))
         + map_round_up((size_t)p->reduce_count * sizeof(double))
         + map_round_up(registers * sizeof(float *)) + map_round_up(registers * sizeof(int64_t))
         + map_round_up(registers * sizeof(int));
}

static void run_block(void *context, int64_t block, int thread)
{
    const map_run *run = context;
    const map_pass *p = run->pass;
    map_worker *worker = &run->worker[thread];
    bool listed = p->block_group != NULL;
    map_tile tile = { .points = 0 }, next = { .points = 0 };
    int64_t group = listed ? p->block_group[block] : block / p->blocks_per_group;
    int64_t first = listed ? p->block_first[block] : block % p->blocks_per_group * p->block_tiles;
    int64_t n = listed ? p->block_size[block] : p->member_count - first;

    if (!worker->ready)
        worker_begin(run, worker, thread);
    if (n > 0)
        map_tile_find(run->plan, p, group, first, &next);
    if (p->reduce_count > 0)
        map_reduce_begin(run, worker);
    for (int64_t i = 0; i < n && i < p->block_tiles; i++) {
        bool last = i + 1 == n || i + 1 == p->block_tiles;

        tile = next;
        if (!last)
            map_tile_next(run->plan, p, first + i + 1, &next);
        map_tile_run(run, worker, &tile, last ? NULL : &next);
    }
    if (p->reduce_count == 0)
        return;
    if (p->blocks_per_group == 1) {
        map_reduce_block(run, worker, &tile, worker->partial, worker->count);
        map_reduce_join(run, group, 1, worker->partial, worker->count);
    } else {
        char *scratch = run->call->scratch;
        map_reduce_block(run, worker, &tile,
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

pons_status map_run_all(const pons_kernel *kernel, const pons_call *call, pons_error *err)
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
