/*
 * bytecode_output.c - the main program: reductions and stores, and through them all that they need.
 *
 * Stores come last, so that an output may lie in the memory of an input that is read at the same
 * place; one may come earlier when nothing is left to read.
 */
#include "cpu/map/bytecode/bytecode.h"

/* The accumulators of a channel; of moments its means and squares. */
static void reduce_places(const map_reduce *r, int row, map_address *first, map_address *second)
{
    bool moments = r->kind == PONS_REDUCE_MOMENTS;
    map_walk walk = r->whole ? MAP_STAY : r->by_period ? moments ? MAP_MOMENTS_PERIOD : MAP_PERIOD
                                 : moments ? MAP_MOMENTS_LANES : MAP_LANES;
    size_t at = r->accumulator + (size_t)row * (size_t)r->pitch;

    *first = code_in_buffers(at, walk);
    *second = code_in_buffers(at + (size_t)r->lanes, walk);
}

/* Of a node that is in the accumulator. */
void code_reduce(code *c, int n)
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
            i = code_put(c, codes[r->kind]);
            reduce_places(r, row, &i->at[0], &i->at[1]);
            code_read_done(c, n);
        }
    }
}

int code_store_rows(const code *c, const pons_store *store)
{
    return c->plan->map->value[store->value].narrow ? 1 : c->plan->rows;
}

/* From the accumulator. */
static void store_plain(code *c, const map_access *a, int row)
{
    static const map_code codes[3][2] = {
        { MAP_CODE_STORE_F32, MAP_CODE_STORE_BF16 }, { MAP_CODE_STREAM_F32, MAP_CODE_STREAM_BF16 },
        { MAP_CODE_STORE_GROUPS_F32, MAP_CODE_STORE_GROUPS_BF16 },
    };
    int how = a->pattern == MAP_GROUPS ? 2 : a->stream;
    map_instruction *i = code_put(c, codes[how][a->type == PONS_BF16]);

    i->at[0] = code_slot(c, a, row, true);
    i->what = a;
}

/* Stored by the machine itself. */
static bool plainly_stored(const map_access *a)
{
    return code_is_groups(a)
        || (a->pattern == MAP_DENSE && (a->type == PONS_F32 || a->type == PONS_BF16));
}

/* While the node is still in the accumulator, if no input is left to read. */
void code_store_early(code *c, int n)
{
    const pons_map *m = c->plan->map;

    for (int k = 0; k < m->store_count && c->reading == 0; k++) {
        const map_access *a = &c->plan->store[k];
        if (!map_pass_stores(c->plan, c->pass, &m->store[k]) || c->stored[k] || !plainly_stored(a)
            || code_store_rows(c, &m->store[k]) > 1
            || map_node_of(c->plan, m->store[k].value, 0) != n)
            continue;
        store_plain(c, a, 0);
        c->stored[k] = true;
        code_read_done(c, n);
    }
}

/* Channels that are stored beside each other are kept beside each other. */
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
    at = code_floats(c, (size_t)unit * (size_t)c->plan->rows);
    *block = code_in_buffers(at, MAP_STAY);
    for (int r = 0; r < c->plan->rows; r++) {
        int n = map_node_of(c->plan, value, r);
        int operation = c->plan->node[n].operation;
        if (c->node[n].span == MAP_SPANS && c->node[n].wanted.base < 0 && !code_placed(c, n)
            && (operation < PONS_MAP_OPERATION_COUNT || operation >= MAP_NODE_JOIN_MAX)
            && c->plan->copies[value] > 1)
            c->node[n].wanted = code_in_buffers(at + (size_t)r * (size_t)unit, MAP_STAY);
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
            || c->node[n].place.walk != MAP_STAY) {
            code_bring(c, n);
            code_put(c, MAP_CODE_KEEP)->at[0] = to;
        }
        code_read_done(c, n);
    }
    code_leave(c);
    i = code_put(c, MAP_CODE_VISIT);
    i->at[0] = *block;
    i->at[1] = code_slot(c, a, 0, true);
    i->call.visit = map_visit_store(a);
    i->what = a;
    i->rows = a->rows;
}

static void store_last(code *c, int store)
{
    const map_access *a = &c->plan->store[store];
    int rows = code_store_rows(c, &c->plan->map->store[store]);

    for (int r = 0; r < rows; r++) {
        int n = map_node_of(c->plan, c->plan->map->store[store].value, r);
        map_instruction *i;
        if (plainly_stored(a)) {
            code_bring(c, n);
            store_plain(c, a, r);
            code_read_done(c, n);
            continue;
        }
        code_to_memory(c, n);
        code_leave(c);
        i = code_put(c, MAP_CODE_VISIT);
        i->at[0] = c->node[n].place;
        i->at[1] = code_slot(c, a, r, true);
        i->call.visit = map_visit_store(a);
        i->what = a;
        i->rows = 1;
        code_read_done(c, n);
    }
}

/*
 * A loaded value may still be the input's own memory. So what is stored as it was loaded goes
 * before the rest, and output 0, which may lie in that memory, comes last.
 */
static int store_turn(const code *c, const pons_store *store)
{
    if (store->to.tensor == 0)
        return 2;
    return !code_is_load(c, map_node_of(c->plan, store->value, 0));
}

static map_code fetch_code(const map_access *a)
{
    static const map_code dense[] = { [1] = MAP_CODE_FETCH_8, [2] = MAP_CODE_FETCH_16,
                                      [4] = MAP_CODE_FETCH_32 };

    if (a->pattern == MAP_DENSE)
        return dense[map_type_size(a->type)];
    return a->pattern == MAP_GROUPS ? MAP_CODE_FETCH_GROUPS : MAP_CODE_FETCH_INTERLEAVED;
}

/* What the units that come soon will read. */
static void fetch_ahead(code *c)
{
    for (int k = 0; k < c->pass->slot_count; k++) {
        const map_slot slot = c->pass->slot[k];
        map_instruction *i;
        if (slot.output || !code_fetches(slot.access))
            continue;
        i = code_put(c, fetch_code(slot.access));
        i->at[0] = code_slot(c, slot.access, slot.channel, false);
        i->what = slot.access;
        i->rows = (int)map_type_size(slot.access->type)
                * (slot.access->pattern == MAP_INTERLEAVED ? slot.access->rows : 1);
    }
}

/* What the machine reads by itself and adds to. */
static bool is_plain_load(const code *c, int n)
{
    return code_is_dense(c, n, PONS_F32) || code_is_dense(c, n, PONS_BF16);
}

/* Are these moments of what is loaded, or of that and a number that stays? 'added' may be -1. */
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

/* Where a period is long. A number of each lane must not depend on the tile. */
bool code_is_whole(const code *c, const map_reduce *r)
{
    const map_plan *p = c->plan;
    int load, added;

    return p->map->segment_count == 0 && p->cycle > 0 && p->cycle % MAP_STRIP != 0
        && r->to[0].stride[p->cut] == 0
        && (p->points % p->cycle == 0 || p->end_points == p->points)
        && is_of_plain(c, r, &load, &added);
}

/* One instruction for them. */
static map_instruction *put_moments(code *c, const map_reduce *r)
{
    static const map_code codes[2][3] = {
        { MAP_CODE_MOMENTS_F32, MAP_CODE_MOMENTS_F32_PLUS, MAP_CODE_MOMENTS_F32_PLUS_EVEN },
        { MAP_CODE_MOMENTS_BF16, MAP_CODE_MOMENTS_BF16_PLUS, MAP_CODE_MOMENTS_BF16_PLUS_EVEN },
    };
    map_instruction *i;
    int x, added;

    is_of_plain(c, r, &x, &added);
    i = code_put(c, codes[code_is_dense(c, x, PONS_BF16)][added < 0 ? 0 : 1 + c->node[added].even]);
    reduce_places(r, 0, &i->at[0], &i->at[1]);
    i->at[2] = code_slot(c, code_access(c, x), c->plan->node[x].channel, false);
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

/* All moments by cycle; true: there is nothing else. */
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
        code_drop(c, map_node_of(c->plan, r->value, 0));
    }
    return alone && c->pass->reduce_count > 0;
}

/*
 * Moments by period and nothing else. Floats wait for memory, which likes to be read in order:
 * there a period must be a unit.
 */
static bool moments_alone(code *c)
{
    const map_reduce *r = c->pass->reduce_count == 1 ? c->pass->reduce[0] : NULL;
    int x, added;

    if (r == NULL || stores_something(c) || !r->by_period || !is_of_plain(c, r, &x, &added)
        || (!code_is_dense(c, x, PONS_BF16) && c->plan->period != c->machine->unit))
        return false;
    put_moments(c, r);
    return true;
}

void code_main(code *c)
{
    const pons_map *m = c->plan->map;
    map_address **block = map_allocate(c->plan, (size_t)m->store_count + 1, sizeof *block);

    if (block == NULL) {
        c->failed = true;
        return;
    }
    c->pass->main = c->pass->code_count;
    if (whole_moments(c) || moments_alone(c)) {
        code_put(c, MAP_CODE_END);
        return;
    }
    for (int k = 0; k < m->store_count; k++)
        if (map_pass_stores(c->plan, c->pass, &m->store[k]))
            block[k] = wanted_block(c, k);
    for (int k = 0; k < c->pass->reduce_count; k++)
        for (int r = 0; r < c->pass->reduce[k]->rows; r++) {
            int n = map_node_of(c->plan, c->pass->reduce[k]->value, r);
            bool first = !c->pass->reduce[k]->whole;
            /* Nodes with places are reduced once, for all their reductions; others when made. */
            for (int j = 0; j <= k; j++)
                for (int q = 0; q < (j < k ? c->pass->reduce[j]->rows : r); q++)
                    first = first && (c->pass->reduce[j]->whole
                                      || map_node_of(c->plan, c->pass->reduce[j]->value, q) != n);
            if (first && c->node[n].place.base >= 0 && c->node[n].strip < 0
                && (c->node[n].span != MAP_SPANS || code_is_dense(c, n, PONS_F32))) {
                code_bring(c, n);
                code_reduce(c, n);
            } else if (first && !code_ready(c, n) && c->node[n].left > 0) {
                code_make(c, n);
            }
        }
    for (int turn = 0; turn < 3; turn++)
        for (int k = 0; k < m->store_count; k++)
            for (int r = 0; r < code_store_rows(c, &m->store[k]); r++) {
                int n = map_node_of(c->plan, m->store[k].value, r);
                if (map_pass_stores(c->plan, c->pass, &m->store[k]) && !c->stored[k]
                    && store_turn(c, &m->store[k]) == turn && !code_ready(c, n))
                    code_make(c, n);
            }
    for (int turn = 0; turn < 3; turn++)
        for (int k = 0; k < m->store_count; k++)
            if (map_pass_stores(c->plan, c->pass, &m->store[k]) && !c->stored[k]
                && store_turn(c, &m->store[k]) == turn) {
                if (block[k] != NULL)
                    store_block(c, k, block[k]);
                else
                    store_last(c, k);
            }
    fetch_ahead(c);
    code_put(c, MAP_CODE_END);
}
