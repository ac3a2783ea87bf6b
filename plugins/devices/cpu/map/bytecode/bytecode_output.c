/*
 * bytecode_output.c - the main program: reductions and stores, and through them all nodes that they
 * need.
 *
 * Stores come last, because an output may share the memory of an input that is read at the same
 * element. A store may come earlier once no input is left to read.
 */
#include "cpu/map/bytecode/bytecode.h"

/* Addresses of a channel's accumulators; for moments, of its means and squares. */
static void accumulator_addresses(const map_reduce *r, int row, map_address *first,
                                  map_address *second)
{
    bool moments = r->kind == PONS_REDUCE_MOMENTS;
    map_addressing addressing = r->whole ? MAP_STAY : r->by_period ? moments ? MAP_MOMENTS_PERIOD
        : MAP_PERIOD
                                 : moments ? MAP_MOMENTS_LANES : MAP_LANES;
    size_t at = r->accumulator + (size_t)row * (size_t)r->pitch;

    *first = bytecode_in_buffers(at, addressing);
    *second = bytecode_in_buffers(at + (size_t)r->lanes, addressing);
}

/* Reductions of the node in the accumulator. */
void bytecode_reduce(code *c, int n)
{
    static const map_code codes[] = {
        [PONS_REDUCE_SUM] = MAP_CODE_SUM, [PONS_REDUCE_MAX] = MAP_CODE_MAXIMUM,
        [PONS_REDUCE_MIN] = MAP_CODE_MINIMUM, [PONS_REDUCE_MOMENTS] = MAP_CODE_MOMENTS,
    };

    for (int k = 0; k < c->pass->reduce_count; k++) {
        const map_reduce *r = c->pass->reduce[k];
        for (int row = 0; row < r->rows; row++) {
            map_instruction *i;
            if (r->whole || map_node_of(c->plan, r->value, row) != n)
                continue;
            i = bytecode_put(c, codes[r->kind]);
            accumulator_addresses(r, row, &i->at[0], &i->at[1]);
            bytecode_read_done(c, n);
        }
    }
}

int bytecode_store_rows(const code *c, const pons_store *store)
{
    return c->plan->map->value[store->value].per_point ? 1 : c->plan->rows;
}

/* Store the accumulator. */
static void store_plain(code *c, const map_access *a, int row)
{
    static const map_code codes[3][2] = {
        { MAP_CODE_STORE_F32, MAP_CODE_STORE_BF16 }, { MAP_CODE_STREAM_F32, MAP_CODE_STREAM_BF16 },
        { MAP_CODE_STORE_GROUPS_F32, MAP_CODE_STORE_GROUPS_BF16 },
    };
    int how = a->pattern == MAP_GROUPS ? 2 : a->stream;
    map_instruction *i = bytecode_put(c, codes[how][a->type == PONS_BF16]);

    i->at[0] = bytecode_slot(c, a, row, true);
    i->what = a;
}

/* True if an instruction can make the store. */
static bool plainly_stored(const map_access *a)
{
    return bytecode_is_groups(a)
        || (a->pattern == MAP_DENSE && (a->type == PONS_F32 || a->type == PONS_BF16));
}

/* Store the node from the accumulator if no input is left to read. */
void bytecode_store_early(code *c, int n)
{
    const pons_map *m = c->plan->map;

    for (int k = 0; k < m->store_count && c->reading == 0; k++) {
        const map_access *a = &c->plan->store[k];
        if (!map_pass_stores(c->plan, c->pass, &m->store[k]) || c->stored[k] || !plainly_stored(a)
            || bytecode_store_rows(c, &m->store[k]) > 1
            || map_node_of(c->plan, m->store[k].value, 0) != n)
            continue;
        store_plain(c, a, 0);
        c->stored[k] = true;
        bytecode_read_done(c, n);
    }
}

/* Adjacent strips for channels that are stored interleaved. */
static map_address *wanted_block(code *c, int store)
{
    const map_access *a = &c->plan->store[store];
    int unit = c->machine->unit, value = c->plan->map->store[store].value;
    map_address *block;
    size_t at;

    if (a->pattern != MAP_INTERLEAVED)
        return NULL;
    block = map_allocate(c->plan, 1, sizeof *block);
    if (block == NULL) {
        c->failed = true;
        return NULL;
    }
    at = bytecode_floats(c, (size_t)unit * (size_t)c->plan->rows);
    *block = bytecode_in_buffers(at, MAP_STAY);
    for (int r = 0; r < c->plan->rows; r++) {
        int n = map_node_of(c->plan, value, r);
        int operation = c->plan->node[n].operation;
        if (c->node[n].span == MAP_SPANS && c->node[n].wanted.base < 0 && !bytecode_placed(c, n)
            && (operation < PONS_MAP_OPERATION_COUNT || operation >= MAP_NODE_MAX_NAN)
            && c->plan->copies[value] > 1)
            c->node[n].wanted = bytecode_in_buffers(at + (size_t)r * (size_t)unit, MAP_STAY);
    }
    return block;
}

static void store_block(code *c, int store, const map_address *block)
{
    const map_access *a = &c->plan->store[store];
    int value = c->plan->map->store[store].value;
    map_instruction *i;

    for (int r = 0; r < c->plan->rows; r++) {
        int n = map_node_of(c->plan, value, r);
        map_address to = *block;
        to.place += (int64_t)r * c->machine->unit * (int64_t)sizeof(float);
        if (c->node[n].place.base != 0 || c->node[n].place.place != to.place
            || c->node[n].place.addressing != MAP_STAY) {
            bytecode_bring(c, n);
            bytecode_put(c, MAP_CODE_KEEP)->at[0] = to;
        }
        bytecode_read_done(c, n);
    }
    bytecode_leave(c);
    i = bytecode_put(c, MAP_CODE_VISIT);
    i->at[0] = *block;
    i->at[1] = bytecode_slot(c, a, 0, true);
    i->call.visit = map_visit_store(a);
    i->what = a;
    i->rows = a->rows;
}

static void store_last(code *c, int store)
{
    const map_access *a = &c->plan->store[store];
    int rows = bytecode_store_rows(c, &c->plan->map->store[store]);

    for (int r = 0; r < rows; r++) {
        int n = map_node_of(c->plan, c->plan->map->store[store].value, r);
        map_instruction *i;
        if (plainly_stored(a)) {
            bytecode_bring(c, n);
            store_plain(c, a, r);
            bytecode_read_done(c, n);
            continue;
        }
        bytecode_to_memory(c, n);
        bytecode_leave(c);
        i = bytecode_put(c, MAP_CODE_VISIT);
        i->at[0] = c->node[n].place;
        i->at[1] = bytecode_slot(c, a, r, true);
        i->call.visit = map_visit_store(a);
        i->what = a;
        i->rows = 1;
        bytecode_read_done(c, n);
    }
}

/*
 * Order of a store. A loaded value may still be the input's own memory, so stores of loads go
 * first, and output 0, which may share that memory, last.
 */
static int store_order(const code *c, const pons_store *store)
{
    if (store->to.tensor == 0)
        return 2;
    return !bytecode_is_load(c, map_node_of(c->plan, store->value, 0));
}

static map_code prefetch_code(const map_access *a)
{
    static const map_code dense[] = { [1] = MAP_CODE_FETCH_8, [2] = MAP_CODE_FETCH_16,
                                      [4] = MAP_CODE_FETCH_32 };

    if (a->pattern == MAP_DENSE)
        return dense[map_type_size(a->type)];
    return a->pattern == MAP_GROUPS ? MAP_CODE_FETCH_GROUPS : MAP_CODE_FETCH_INTERLEAVED;
}

/* Prefetch the inputs of later units. */
static void prefetch_inputs(code *c)
{
    for (int k = 0; k < c->pass->slot_count; k++) {
        const map_slot slot = c->pass->slot[k];
        map_instruction *i;
        if (slot.output || !bytecode_prefetches(slot.access))
            continue;
        i = bytecode_put(c, prefetch_code(slot.access));
        i->at[0] = bytecode_slot(c, slot.access, slot.channel, false);
        i->what = slot.access;
        i->rows = (int)map_type_size(slot.access->type)
                * (slot.access->pattern == MAP_INTERLEAVED ? slot.access->rows : 1);
    }
}

/* True if a moments instruction can load the node. */
static bool is_plain_load(const code *c, int n)
{
    return bytecode_is_dense(c, n, PONS_F32) || bytecode_is_dense(c, n, PONS_BF16);
}

/* True for moments of a load, or of a load plus an invariant value. *added may be -1. */
static bool is_of_plain(const code *c, const map_reduce *r, int *load, int *added)
{
    const int *argument;
    int first;

    *load = map_node_of(c->plan, r->value, 0);
    *added = -1;
    if (r->kind != PONS_REDUCE_MOMENTS || r->rows > 1)
        return false;
    if (c->plan->node[*load].operation == PONS_MAP_ADD) {
        argument = c->plan->node[*load].argument;
        first = is_plain_load(c, argument[0]);
        *added = argument[first];
        *load = argument[!first];
        if (c->node[*added].span > MAP_PERIODIC)
            return false;
    }
    return is_plain_load(c, *load);
}

/*
 * True for moments by cycle, used where the period is long. The element count of each lane must not
 * depend on the tile.
 */
bool bytecode_is_by_cycle(const code *c, const map_reduce *r)
{
    const map_plan *p = c->plan;
    int load, added;

    return p->map->segment_count == 0 && p->cycle > 0 && p->cycle % MAP_STRIP != 0
        && r->to[0].stride[p->cut] == 0
        && (p->points % p->cycle == 0 || p->end_points == p->points)
        && is_of_plain(c, r, &load, &added);
}

/* The one instruction that loads and accumulates moments. */
static map_instruction *put_moments(code *c, const map_reduce *r)
{
    static const map_code codes[2][3] = {
        { MAP_CODE_MOMENTS_F32, MAP_CODE_MOMENTS_F32_PLUS, MAP_CODE_MOMENTS_F32_PLUS_EVEN },
        { MAP_CODE_MOMENTS_BF16, MAP_CODE_MOMENTS_BF16_PLUS, MAP_CODE_MOMENTS_BF16_PLUS_EVEN },
    };
    map_instruction *i;
    int x, added;

    is_of_plain(c, r, &x, &added);
    i = bytecode_put(c, codes[bytecode_is_dense(c, x, PONS_BF16)][added < 0 ? 0
                     : 1 + c->node[added].even]);
    accumulator_addresses(r, 0, &i->at[0], &i->at[1]);
    i->at[2] = bytecode_slot(c, bytecode_access(c, x), c->plan->node[x].channel, false);
    if (added >= 0)
        i->at[3] = c->node[added].place;
    return i;
}

static bool stores_something(const code *c)
{
    for (int k = 0; k < c->plan->map->store_count; k++)
        if (map_pass_stores(c->plan, c->pass, &c->plan->map->store[k]))
            return true;
    return false;
}

/* Write all moments by cycle; true if the pass has nothing else. */
static bool whole_moments(code *c)
{
    bool alone = !stores_something(c);

    for (int k = 0; k < c->pass->reduce_count; k++)
        alone = alone && c->pass->reduce[k]->whole;
    for (int k = 0; k < c->pass->reduce_count; k++) {
        const map_reduce *r = c->pass->reduce[k];
        if (!r->whole)
            continue;
        put_moments(c, r)->rows = alone && k + 1 == c->pass->reduce_count ? 2 : 1;
        bytecode_drop(c, map_node_of(c->plan, r->value, 0));
    }
    return alone && c->pass->reduce_count > 0;
}

/*
 * Write moments by period; true if the pass has nothing else. f32 is bound by memory bandwidth and
 * should be read in order, so there the period must be one unit.
 */
static bool moments_alone(code *c)
{
    const map_reduce *r = c->pass->reduce_count == 1 ? c->pass->reduce[0] : NULL;
    int x, added;

    if (r == NULL || stores_something(c) || !r->by_period || !is_of_plain(c, r, &x, &added)
        || (!bytecode_is_dense(c, x, PONS_BF16) && c->plan->period != c->machine->unit))
        return false;
    put_moments(c, r);
    return true;
}

void bytecode_main(code *c)
{
    const pons_map *m = c->plan->map;
    map_address **block = map_allocate(c->plan, (size_t)m->store_count + 1, sizeof *block);

    if (block == NULL) {
        c->failed = true;
        return;
    }
    c->pass->main = c->pass->code_count;
    if (whole_moments(c) || moments_alone(c)) {
        bytecode_put(c, MAP_CODE_END);
        return;
    }
    for (int k = 0; k < m->store_count; k++)
        if (map_pass_stores(c->plan, c->pass, &m->store[k]))
            block[k] = wanted_block(c, k);
    for (int k = 0; k < c->pass->reduce_count; k++)
        for (int r = 0; r < c->pass->reduce[k]->rows; r++) {
            int n = map_node_of(c->plan, c->pass->reduce[k]->value, r);
            bool first = !c->pass->reduce[k]->whole;
            /*
             * Nodes with addresses are reduced here, once for all their reductions; other nodes
             * when they are made.
             */
            for (int j = 0; j <= k; j++)
                for (int q = 0; q < (j < k ? c->pass->reduce[j]->rows : r); q++)
                    first = first && (c->pass->reduce[j]->whole
                                      || map_node_of(c->plan, c->pass->reduce[j]->value, q) != n);
            if (first && c->node[n].place.base >= 0 && c->node[n].strip < 0
                && (c->node[n].span != MAP_SPANS || bytecode_is_dense(c, n, PONS_F32))) {
                bytecode_bring(c, n);
                bytecode_reduce(c, n);
            } else if (first && !bytecode_ready(c, n) && c->node[n].left > 0) {
                bytecode_make_node(c, n);
            }
        }
    for (int turn = 0; turn < 3; turn++)
        for (int k = 0; k < m->store_count; k++)
            for (int r = 0; r < bytecode_store_rows(c, &m->store[k]); r++) {
                int n = map_node_of(c->plan, m->store[k].value, r);
                if (map_pass_stores(c->plan, c->pass, &m->store[k]) && !c->stored[k]
                    && store_order(c, &m->store[k]) == turn && !bytecode_ready(c, n))
                    bytecode_make_node(c, n);
            }
    for (int turn = 0; turn < 3; turn++)
        for (int k = 0; k < m->store_count; k++)
            if (map_pass_stores(c->plan, c->pass, &m->store[k]) && !c->stored[k]
                && store_order(c, &m->store[k]) == turn) {
                if (block[k] != NULL)
                    store_block(c, k, block[k]);
                else
                    store_last(c, k);
            }
    prefetch_inputs(c);
    bytecode_put(c, MAP_CODE_END);
}
