/*
 * map_run.c - a call of a map kernel: its passes, their blocks on threads, the memory of a thread.
 *
 * Tile buffers, accumulators and partial results lie in the call's scratch memory.
 */
#include "cpu/cpu.h"

#include "base/integer.h"

/* Lanes times instructions below which a second thread costs more than it saves. */
#define MAP_SERIAL_WORK (1 << 17)

/* Reserve 'size' bytes of a worker's memory; with memory == NULL only count them. */
static void *take_memory(char *memory, size_t *at, size_t size)
{
    void *begin = memory == NULL ? NULL : memory + *at;

    *at += round_up_size(size, 64);
    return begin;
}

/* Lay out the arrays of a worker; returns their size together. */
static size_t worker_parts(const map_pass *p, char *memory, map_worker *w)
{
    size_t at = 0, bases = ((size_t)p->slot_count + 1) * sizeof(char *);

    w->buffers = take_memory(memory, &at, p->buffer_floats * sizeof(float));
    w->spare = take_memory(memory, &at, p->spare_floats * sizeof(float));
    w->partial = take_memory(memory, &at, p->partial_floats * sizeof(float));
    w->count = take_memory(memory, &at, (size_t)p->reduce_count * sizeof(double));
    w->base = take_memory(memory, &at, bases);
    w->end_base = take_memory(memory, &at, bases);
    w->non_temporal = take_memory(memory, &at, bases);
    w->steady_first = take_memory(memory, &at, (size_t)p->steady_count * sizeof(int64_t));
    w->steady_points = take_memory(memory, &at, (size_t)p->steady_count * sizeof(int));
    return at;
}

size_t map_worker_size(const map_pass *p)
{
    map_worker nothing;

    return worker_parts(p, NULL, &nothing);
}

static void worker_begin(const map_run *run, map_worker *w, int thread)
{
    const map_plan *plan = run->plan;
    const map_pass *p = run->pass;

    worker_parts(p, (char *)run->call->scratch + plan->worker_at
                    + (size_t)thread * plan->worker_size, w);
    w->base[0] = w->end_base[0] = (char *)w->buffers;
    for (int i = 0; i < p->constant_count; i++)
        plan->lanes->fill(w->buffers + p->constant[i].home, p->constant[i].number,
                          plan->lanes->machine->unit);
    for (int i = 0; i < p->steady_count; i++)
        w->steady_points[i] = -1;
    w->prepared = false;
    w->ready = true;
}

static void run_block(void *context, int64_t block, int thread)
{
    const map_run *run = context;
    const map_pass *p = run->pass;
    map_worker *worker = &run->worker[thread];
    bool listed = p->block_group != NULL;
    map_tile tile = { .points = 0 };
    int64_t group = listed ? p->block_group[block] : block / p->blocks_per_group;
    int64_t first = listed ? p->block_first[block] : block % p->blocks_per_group * p->block_tiles;
    int64_t n = listed ? p->block_size[block] : p->member_count - first;

    if (!worker->ready)
        worker_begin(run, worker, thread);
    if (n > 0)
        map_tile_find(run->plan, p, group, first, &tile);
    if (p->reduce_count > 0)
        map_reduce_begin(run, worker);
    for (int64_t i = 0; i < n && i < p->block_tiles; i++) {
        if (i > 0)
            map_tile_next(run->plan, p, first + i, &tile);
        map_tile_run(run, worker, &tile);
    }
    run->plan->lanes->machine->finish();
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

/* Several small blocks as one task. */
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

    cpu_parallel_for(threads, ceil_div_i64(count, size), run_bundle, &b);
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
    return p->group_count * p->member_count * plan->row * p->code_count;
}

pons_status map_run_all(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const map_plan *plan = kernel->state;

    for (int i = 0; i < plan->pass_count; i++) {
        const map_pass *p = &plan->pass[i];
        map_worker *worker = (map_worker *)call->scratch; /* [threads] */
        map_run run = { plan, p, call, worker };
        int threads = pass_work(plan, p) < MAP_SERIAL_WORK ? 1 : plan->threads;
        int64_t tiles = min_i64(p->member_count, p->block_tiles);
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
