/*
 * map_code.c - the programs of a pass: its nodes as instructions of the machine, and their places.
 *
 * Code is written from what is wanted (reductions, stores) back to the loads, so that a value goes on
 * in the accumulator to where it is needed next. What is needed again is kept in a strip of its own.
 * What stays from tile to tile is computed by programs apart and has a place from the begin.
 *
 * Stores come last, so that an output may lie in the memory of an input that is read at the same
 * place; one may come earlier when nothing is left to read.
 */
#include "map.h"

#include <string.h>

enum { PLACED_FOREVER = 1 << 30 };

typedef struct node_state {
    map_address place;    /* base -1: in the accumulator or nowhere                               */
    map_address wanted;   /* base -1, or where it must be kept                                    */
    int left;             /* times that it will still be read                                     */
    int strip;            /* of the strips that come and go, or -1                                */
    uint8_t span;         /* MAP_SPANS: new for every unit                                        */
    bool needed;
} node_state;

typedef struct code {
    map_plan *plan;
    map_pass *pass;
    const map_machine *machine;
    node_state *node;
    int *strip_of, *strip_free, strip_count, strip_free_count; /* home of each, in strips         */
    int code_room, slot_room;
    int accumulator;      /* the node in it, or -1                                                */
    int reading;          /* reads from the memory of inputs that are still to come               */
    bool *stored;         /* [store]                                                              */
    bool failed;
    map_instruction lost;
    map_slot lost_slot;
} code;

static const map_address nowhere = { .base = -1 };

static map_address in_buffers(size_t floats, map_walk walk)
{
    return (map_address){ .place = (int64_t)(floats * sizeof(float)), .walk = walk };
}

static bool placed(const code *c, int n) { return c->node[n].place.base >= 0; }

static size_t floats_new(code *c, size_t count)
{
    size_t at = c->pass->buffer_floats;

    c->pass->buffer_floats += (count + MAP_ROW - 1) & ~(size_t)(MAP_ROW - 1);
    return at;
}

static bool grow(code *c, void *list, int count, int *room, size_t size)
{
    int more = 2 * *room + 32;
    void **at = list, *memory;

    if (count < *room)
        return true;
    memory = map_allocate(c->plan, (size_t)more, size);
    if (memory == NULL) {
        c->failed = true;
        return false;
    }
    if (count > 0)
        memcpy(memory, *at, (size_t)count * size);
    *at = memory;
    *room = more;
    return true;
}

static map_instruction *put(code *c, map_code operation)
{
    map_pass *p = c->pass;
    map_instruction *i = &c->lost;

    if (grow(c, &p->code, p->code_count, &c->code_room, sizeof *p->code))
        i = &p->code[p->code_count++];
    *i = (map_instruction){ .run = c->machine->code[operation] };
    return i;
}

/* ---- places ---------------------------------------------------------------------------------- */

static map_address slot_address(code *c, const map_access *access, int channel, bool output)
{
    static const map_walk walk[] = { [1] = MAP_BYTES, [2] = MAP_HALVES, [4] = MAP_LANES };
    map_pass *p = c->pass;
    bool dense = access->pattern == MAP_DENSE;
    map_slot *slot = &c->lost_slot;
    int k = 0;

    while (k < p->slot_count && (p->slot[k].access != access || p->slot[k].channel != channel))
        k++;
    if (k == p->slot_count) {
        if (grow(c, &p->slot, p->slot_count, &c->slot_room, sizeof *p->slot))
            slot = &p->slot[p->slot_count++];
        *slot = (map_slot){ access, channel, output, 0 };
        if (dense)
            slot->stage = floats_new(c, (size_t)c->machine->unit);
    }
    return (map_address){ .base = k + 1,
                          .walk = dense ? walk[map_type_size(access->type)] : MAP_STAY };
}

static const map_access *load_access(const code *c, int n)
{
    return &c->plan->load[c->plan->map->value[c->plan->node[n].value].operand];
}

static bool is_load(const code *c, int n) { return c->plan->node[n].operation == PONS_VALUE_LOAD; }

static bool is_dense(const code *c, int n, pons_type type)
{
    return is_load(c, n) && load_access(c, n)->pattern == MAP_DENSE
        && load_access(c, n)->type == type && c->node[n].span == MAP_SPANS;
}

static void strip_new(code *c, int n)
{
    int k;

    if (c->strip_free_count > 0) {
        k = c->strip_free[--c->strip_free_count];
    } else {
        k = c->strip_count++;
        c->strip_of[k] = (int)(floats_new(c, (size_t)c->machine->unit) / MAP_ROW);
    }
    c->node[n].strip = k;
    c->node[n].place = in_buffers((size_t)c->strip_of[k] * MAP_ROW, MAP_STAY);
}

/* One read less; what is not read any more leaves its strip. */
static void read_done(code *c, int n)
{
    node_state *s = &c->node[n];

    if (s->left == PLACED_FOREVER)
        return;
    if (--s->left == 0) {
        if (s->strip >= 0)
            c->strip_free[c->strip_free_count++] = s->strip;
        c->reading -= is_dense(c, n, PONS_F32);
    }
}

static void keep(code *c, int n)
{
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else
        strip_new(c, n);
    put(c, MAP_CODE_KEEP)->at[0] = c->node[n].place;
}

/* The accumulator is about to change. */
static void leave(code *c)
{
    if (c->accumulator >= 0 && c->node[c->accumulator].left > 0 && !placed(c, c->accumulator))
        keep(c, c->accumulator);
    c->accumulator = -1;
}

static void reduce_node(code *c, int n);
static void store_early(code *c, int n);

/* The accumulator holds the node now. */
static void arrived(code *c, int n)
{
    c->accumulator = n;
    if (c->node[n].span != MAP_SPANS) {
        keep(c, n);
        return;
    }
    if (c->node[n].wanted.base >= 0 && !placed(c, n))
        keep(c, n);
    reduce_node(c, n);
    store_early(c, n);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static void make(code *c, int n);

static void bring(code *c, int n)
{
    if (c->accumulator == n)
        return;
    if (!placed(c, n)) {
        make(c, n);
        if (c->accumulator == n)
            return;
    }
    leave(c);
    put(c, MAP_CODE_LOAD_F32)->at[0] = c->node[n].place;
    c->accumulator = n;
}

static void to_memory(code *c, int n)
{
    if (!placed(c, n) && c->accumulator != n)
        make(c, n);
    if (!placed(c, n))
        keep(c, n);
}

/* What a visit leaves in a strip, or in the place that is wanted. */
static map_instruction *visit(code *c, int n, map_visit function, const void *what, int rows)
{
    map_instruction *i;

    leave(c);
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else if (!placed(c, n))
        strip_new(c, n);
    i = put(c, MAP_CODE_VISIT);
    i->at[0] = c->node[n].place;
    i->call.visit = function;
    i->what = what;
    i->rows = rows;
    return i;
}

static void visited(code *c, int n)
{
    bool wanted = false;

    if (c->node[n].span != MAP_SPANS)
        return;
    for (int i = 0; i < c->pass->reduce_count; i++)
        for (int r = 0; r < c->pass->reduce[i]->rows; r++)
            wanted = wanted || map_node_of(c->plan, c->pass->reduce[i]->value, r) == n;
    if (wanted) {
        bring(c, n);
        reduce_node(c, n);
    }
}

/* All channels of a value that lie beside each other, at once. */
static map_address block_new(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    size_t unit = (size_t)c->machine->unit, at = floats_new(c, unit * (size_t)c->plan->rows);

    for (int r = 0; r < c->plan->copies[node->value]; r++)
        c->node[map_node_of(c->plan, node->value, r)].place =
            in_buffers(at + unit * (size_t)r, MAP_STAY);
    return in_buffers(at, MAP_STAY);
}

static void load_node(code *c, int n)
{
    const map_access *a = load_access(c, n);
    int channel = c->plan->node[n].channel;
    map_instruction *i;

    if (is_dense(c, n, PONS_BF16)) {
        leave(c);
        put(c, MAP_CODE_LOAD_BF16)->at[0] = slot_address(c, a, channel, false);
        c->reading--;
        arrived(c, n);
        return;
    }
    if (a->pattern == MAP_INTERLEAVED) {
        map_address block = block_new(c, n);
        int value = c->plan->node[n].value;
        leave(c);
        i = put(c, MAP_CODE_VISIT);
        i->at[0] = block;
        i->call.visit = map_visit_load(a);
        i->what = a;
        i->rows = a->rows;
        i->at[1] = slot_address(c, a, 0, false);
        c->reading -= a->rows;
        for (int r = 0; r < a->rows; r++)
            visited(c, map_node_of(c->plan, value, r));
        return;
    }
    i = visit(c, n, map_visit_load(a), a, 1);
    i->at[1] = slot_address(c, a, channel, false);
    c->reading--;
    visited(c, n);
}

/* Numbers that follow the linear index: in the channel form of all channels at once. */
static void index_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    const pons_value *v = &c->plan->map->value[node->value];
    map_instruction *i;

    if (node->operation == PONS_VALUE_IOTA) {
        visit(c, n, map_visit_iota, v, c->plan->rows)->at[1].place = node->channel;
        visited(c, n);
        return;
    }
    leave(c);
    if (c->plan->rows > 1) {
        map_address block = block_new(c, n);
        size_t spare = floats_new(c, (size_t)c->machine->unit * (size_t)c->plan->rows);
        i = put(c, MAP_CODE_VISIT);
        i->at[0] = block;
        i->at[1] = in_buffers(spare, MAP_STAY);
    } else {
        strip_new(c, n);
        i = put(c, MAP_CODE_VISIT);
        i->at[0] = c->node[n].place;
    }
    i->call.visit = map_visit_random;
    i->what = v;
    i->rows = c->plan->rows;
    for (int r = 0; r < c->plan->copies[node->value]; r++)
        visited(c, map_node_of(c->plan, c->plan->node[n].value, r));
}

/* Forward, with the arguments exchanged, and the same with the second in bf16. */
typedef struct two_codes { map_code code, other, bf16, other_bf16; } two_codes;

static const two_codes two[MAP_NODE_PICK] = {
    [PONS_MAP_ADD] = { MAP_CODE_ADD, MAP_CODE_ADD, MAP_CODE_ADD_BF16, MAP_CODE_ADD_BF16 },
    [PONS_MAP_MUL] = { MAP_CODE_MUL, MAP_CODE_MUL, MAP_CODE_MUL_BF16, MAP_CODE_MUL_BF16 },
    [PONS_MAP_SUB] = { MAP_CODE_SUB, MAP_CODE_SUB_R, MAP_CODE_SUB_BF16, MAP_CODE_SUB_R_BF16 },
    [PONS_MAP_DIV] = { MAP_CODE_DIV, MAP_CODE_DIV_R, 0, 0 },
    [PONS_MAP_MIN] = { MAP_CODE_MIN, MAP_CODE_MIN_R, 0, 0 },
    [PONS_MAP_MAX] = { MAP_CODE_MAX, MAP_CODE_MAX_R, 0, 0 },
    [PONS_MAP_EQUAL] = { MAP_CODE_EQUAL, MAP_CODE_EQUAL, 0, 0 },
    [PONS_MAP_NOT_EQUAL] = { MAP_CODE_NOT_EQUAL, MAP_CODE_NOT_EQUAL, 0, 0 },
    [PONS_MAP_LESS] = { MAP_CODE_LESS, MAP_CODE_GREATER, 0, 0 },
    [PONS_MAP_LESS_EQUAL] = { MAP_CODE_LESS_EQUAL, MAP_CODE_GREATER_EQUAL, 0, 0 },
    [PONS_MAP_GREATER] = { MAP_CODE_GREATER, MAP_CODE_LESS, 0, 0 },
    [PONS_MAP_GREATER_EQUAL] = { MAP_CODE_GREATER_EQUAL, MAP_CODE_LESS_EQUAL, 0, 0 },
    [MAP_NODE_JOIN_MAX] = { MAP_CODE_JOIN_MAX, MAP_CODE_JOIN_MAX_R, 0, 0 },
    [MAP_NODE_JOIN_MIN] = { MAP_CODE_JOIN_MIN, MAP_CODE_JOIN_MIN_R, 0, 0 },
};

static bool ready(const code *c, int n) { return placed(c, n) || c->accumulator == n; }

/* bf16 that the instruction itself can read. */
static bool readable(const code *c, int n)
{
    return !ready(c, n) && c->node[n].left == 1 && is_dense(c, n, PONS_BF16);
}

static void two_bf16(code *c, int n, map_code operation, int in, int memory)
{
    bring(c, in);
    read_done(c, in);
    read_done(c, memory);
    leave(c);
    c->reading--;
    put(c, operation)->at[0] = slot_address(c, load_access(c, memory),
                                            c->plan->node[memory].channel, false);
    arrived(c, n);
}

static void two_node(code *c, int n)
{
    const two_codes *t = &two[c->plan->node[n].operation];
    int a = c->plan->node[n].argument[0], b = c->plan->node[n].argument[1], memory;
    map_code operation = t->code;

    if (!ready(c, a) && !(t->bf16 != 0 && readable(c, a) && a != b))
        make(c, a);
    if (t->bf16 != 0 && readable(c, b) && a != b && ready(c, a)) {
        two_bf16(c, n, t->bf16, a, b);
        return;
    }
    if (!ready(c, b))
        make(c, b);
    if (t->bf16 != 0 && readable(c, a) && a != b) {
        two_bf16(c, n, t->other_bf16, b, a);
        return;
    }
    memory = b;
    if (c->accumulator == b && a != b) {
        memory = a;
        operation = t->other;
    }
    to_memory(c, memory);
    bring(c, memory == b ? a : b);
    read_done(c, memory == b ? a : b);
    leave(c);
    put(c, operation)->at[0] = c->node[memory].place;
    read_done(c, memory);
    arrived(c, n);
}

static bool uniform(const code *c, int n) { return c->node[n].span == MAP_UNIFORM; }

/*
 * x > q ? x : x m with uniform q and m, as leaky and parametric rectifiers have it: without leaving
 * the accumulator.
 */
static bool bend_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n], *product = &c->plan->node[node->argument[3]];
    int x = node->argument[0], q = node->argument[1], other = node->argument[3], m;
    map_instruction *i;

    if (node->comparison != PONS_MAP_GREATER || node->argument[2] != x || !uniform(c, q)
        || product->operation != PONS_MAP_MUL || ready(c, other) || c->node[other].left != 1)
        return false;
    m = product->argument[product->argument[0] == x];
    if ((product->argument[0] != x && product->argument[1] != x) || !uniform(c, m))
        return false;
    bring(c, x);
    for (int k = 0; k < 3; k++)
        read_done(c, x);
    leave(c);
    c->node[other].left = 0;
    i = put(c, MAP_CODE_BEND);
    i->at[0] = c->node[q].place;
    i->at[1] = c->node[m].place;
    arrived(c, n);
    return true;
}

/* The quickest form of a choice by 'greater'. */
static map_code pick_code(const code *c, map_code plain, int q, int third)
{
    bool reverse = plain == MAP_CODE_PICK_GREATER_R;

    if ((plain != MAP_CODE_PICK_GREATER && !reverse) || !uniform(c, q))
        return plain;
    return (map_code)((uniform(c, third) ? MAP_CODE_ABOVE_ONE : MAP_CODE_ABOVE) + reverse);
}

static void pick_node(code *c, int n)
{
    static const map_code picks[] = {
        [PONS_MAP_EQUAL] = MAP_CODE_PICK_EQUAL, [PONS_MAP_NOT_EQUAL] = MAP_CODE_PICK_NOT_EQUAL,
        [PONS_MAP_GREATER] = MAP_CODE_PICK_GREATER, [PONS_MAP_LESS] = MAP_CODE_PICK_GREATER,
        [PONS_MAP_GREATER_EQUAL] = MAP_CODE_PICK_GREATER_EQUAL,
        [PONS_MAP_LESS_EQUAL] = MAP_CODE_PICK_GREATER_EQUAL,
    };
    const map_node *node = &c->plan->node[n];
    bool less = node->comparison == PONS_MAP_LESS || node->comparison == PONS_MAP_LESS_EQUAL;
    int p = node->argument[less], q = node->argument[!less];
    int then = node->argument[2], other = node->argument[3];
    bool then_in;
    map_instruction *i;

    if (bend_node(c, n))
        return;
    to_memory(c, p);
    to_memory(c, q);
    if (!ready(c, then))
        make(c, then);
    if (!ready(c, other))
        make(c, other);
    then_in = c->accumulator == then && then != other;
    to_memory(c, then_in ? other : then);
    bring(c, then_in ? then : other);
    read_done(c, then_in ? then : other);
    leave(c);
    i = put(c, pick_code(c, (map_code)(picks[node->comparison] + then_in), q,
                         then_in ? other : then));
    i->at[0] = c->node[p].place;
    i->at[1] = c->node[q].place;
    i->at[2] = c->node[then_in ? other : then].place;
    read_done(c, p);
    read_done(c, q);
    read_done(c, then_in ? other : then);
    arrived(c, n);
}

static void one_node(code *c, int n, map_code operation)
{
    int a = c->plan->node[n].argument[0];

    bring(c, a);
    read_done(c, a);
    leave(c);
    put(c, operation);
    arrived(c, n);
}

/* Through a function over lanes in memory. */
static void call_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    map_address at[3] = { { 0 } };
    map_instruction *i;

    for (int k = 0; k < node->argument_count; k++)
        to_memory(c, node->argument[k]);
    leave(c);
    for (int k = 0; k < 3; k++)
        at[k] = c->node[node->argument[k < node->argument_count ? k : 0]].place;
    for (int k = 0; k < node->argument_count; k++)
        read_done(c, node->argument[k]);
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else
        strip_new(c, n);
    i = put(c, MAP_CODE_CALL);
    i->at[0] = c->node[n].place;
    memcpy(&i->at[1], at, sizeof at);
    i->call.function = c->plan->lanes->operation[node->operation][0];
    c->accumulator = n;
    if (c->node[n].span == MAP_SPANS) {
        reduce_node(c, n);
        store_early(c, n);
    }
}

static void make(code *c, int n)
{
    static const map_code one[PONS_MAP_OPERATION_COUNT] = {
        [PONS_MAP_NEG] = MAP_CODE_NEG, [PONS_MAP_ABS] = MAP_CODE_ABS,
        [PONS_MAP_SQRT] = MAP_CODE_SQRT, [PONS_MAP_NOT] = MAP_CODE_NOT,
    };
    int operation = c->plan->node[n].operation;

    if (c->failed)
        c->node[n].place = in_buffers(0, MAP_STAY);
    else if (operation == PONS_VALUE_LOAD)
        load_node(c, n);
    else if (operation == MAP_NODE_PICK)
        pick_node(c, n);
    else if (two[operation].code != 0)
        two_node(c, n);
    else if (operation >= PONS_MAP_OPERATION_COUNT)
        index_node(c, n);
    else if (one[operation] != 0)
        one_node(c, n, one[operation]);
    else
        call_node(c, n);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* Of a node that is in the accumulator. */
static void reduce_node(code *c, int n)
{
    static const map_code codes[] = {
        [PONS_REDUCE_SUM] = MAP_CODE_SUM, [PONS_REDUCE_MAX] = MAP_CODE_MAXIMUM,
        [PONS_REDUCE_MIN] = MAP_CODE_MINIMUM, [PONS_REDUCE_MOMENTS] = MAP_CODE_MOMENTS,
    };

    for (int k = 0; k < c->pass->reduce_count; k++) {
        const map_reduce *r = c->pass->reduce[k];
        bool moments = r->kind == PONS_REDUCE_MOMENTS;
        map_walk walk = r->by_period ? moments ? MAP_MOMENTS_PERIOD : MAP_PERIOD
                                     : moments ? MAP_MOMENTS_LANES : MAP_LANES;
        for (int row = 0; row < r->rows; row++) {
            size_t at = r->accumulator + (size_t)row * (size_t)r->pitch;
            map_instruction *i;
            if (map_node_of(c->plan, r->value, row) != n)
                continue;
            i = put(c, codes[r->kind]);
            i->at[0] = in_buffers(at, walk);
            i->at[1] = in_buffers(at + (size_t)r->lanes, walk);
            read_done(c, n);
        }
    }
}

static int store_rows(const code *c, const pons_store *store)
{
    return c->plan->map->value[store->value].narrow ? 1 : c->plan->rows;
}

static void store_dense(code *c, const map_access *a, int row)
{
    map_code operation = a->type == PONS_F32 ? a->stream ? MAP_CODE_STREAM_F32 : MAP_CODE_STORE_F32
                                             : a->stream ? MAP_CODE_STREAM_BF16
                                                         : MAP_CODE_STORE_BF16;

    put(c, operation)->at[0] = slot_address(c, a, row, true);
}

static bool plainly_dense(const map_access *a)
{
    return a->pattern == MAP_DENSE && (a->type == PONS_F32 || a->type == PONS_BF16);
}

/* While the node is still in the accumulator, if no input is left to read. */
static void store_early(code *c, int n)
{
    const pons_map *m = c->plan->map;

    for (int k = 0; k < m->store_count && c->reading == 0; k++) {
        const map_access *a = &c->plan->store[k];
        if (!map_pass_stores(c->plan, c->pass, &m->store[k]) || c->stored[k] || !plainly_dense(a)
            || store_rows(c, &m->store[k]) > 1 || map_node_of(c->plan, m->store[k].value, 0) != n)
            continue;
        store_dense(c, a, 0);
        c->stored[k] = true;
        read_done(c, n);
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
    at = floats_new(c, (size_t)unit * (size_t)c->plan->rows);
    *block = in_buffers(at, MAP_STAY);
    for (int r = 0; r < c->plan->rows; r++) {
        int n = map_node_of(c->plan, value, r);
        int operation = c->plan->node[n].operation;
        if (c->node[n].span == MAP_SPANS && c->node[n].wanted.base < 0 && !placed(c, n)
            && (operation < PONS_MAP_OPERATION_COUNT || operation >= MAP_NODE_JOIN_MAX)
            && c->plan->copies[value] > 1)
            c->node[n].wanted = in_buffers(at + (size_t)r * (size_t)unit, MAP_STAY);
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
            bring(c, n);
            put(c, MAP_CODE_KEEP)->at[0] = to;
        }
        read_done(c, n);
    }
    leave(c);
    i = put(c, MAP_CODE_VISIT);
    i->at[0] = *block;
    i->at[1] = slot_address(c, a, 0, true);
    i->call.visit = map_visit_store(a);
    i->what = a;
    i->rows = a->rows;
}

static void store_last(code *c, int store)
{
    const map_access *a = &c->plan->store[store];
    int rows = store_rows(c, &c->plan->map->store[store]);

    for (int r = 0; r < rows; r++) {
        int n = map_node_of(c->plan, c->plan->map->store[store].value, r);
        map_instruction *i;
        if (plainly_dense(a)) {
            bring(c, n);
            store_dense(c, a, r);
            read_done(c, n);
            continue;
        }
        to_memory(c, n);
        leave(c);
        i = put(c, MAP_CODE_VISIT);
        i->at[0] = c->node[n].place;
        i->at[1] = slot_address(c, a, r, true);
        i->call.visit = map_visit_store(a);
        i->what = a;
        i->rows = 1;
        read_done(c, n);
    }
}

/*
 * A loaded value may still be the input's own memory. So what is stored as it was loaded goes before
 * the rest, and output 0, which may lie in that memory, comes last.
 */
static int store_turn(const code *c, const pons_store *store)
{
    if (store->to.tensor == 0)
        return 2;
    return !is_load(c, map_node_of(c->plan, store->value, 0));
}

static void main_program(code *c)
{
    const pons_map *m = c->plan->map;
    map_address **block = map_allocate(c->plan, (size_t)m->store_count + 1, sizeof *block);

    if (block == NULL) {
        c->failed = true;
        return;
    }
    c->pass->main = c->pass->code_count;
    for (int k = 0; k < m->store_count; k++)
        if (map_pass_stores(c->plan, c->pass, &m->store[k]))
            block[k] = wanted_block(c, k);
    for (int k = 0; k < c->pass->reduce_count; k++)
        for (int r = 0; r < c->pass->reduce[k]->rows; r++) {
            int n = map_node_of(c->plan, c->pass->reduce[k]->value, r);
            bool first = true;
            /* Nodes with places are reduced once, for all their reductions; others when made. */
            for (int j = 0; j <= k; j++)
                for (int q = 0; q < (j < k ? c->pass->reduce[j]->rows : r); q++)
                    first = first && map_node_of(c->plan, c->pass->reduce[j]->value, q) != n;
            if (first && c->node[n].place.base >= 0 && c->node[n].strip < 0
                && (c->node[n].span != MAP_SPANS || is_dense(c, n, PONS_F32))) {
                bring(c, n);
                reduce_node(c, n);
            } else if (first && !ready(c, n) && c->node[n].left > 0) {
                make(c, n);
            }
        }
    for (int turn = 0; turn < 3; turn++)
        for (int k = 0; k < m->store_count; k++)
            for (int r = 0; r < store_rows(c, &m->store[k]); r++) {
                int n = map_node_of(c->plan, m->store[k].value, r);
                if (map_pass_stores(c->plan, c->pass, &m->store[k]) && !c->stored[k]
                    && store_turn(c, &m->store[k]) == turn && !ready(c, n))
                    make(c, n);
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
    put(c, MAP_CODE_END);
}

/* ---- what stays ------------------------------------------------------------------------------ */

/* Does the place of an operand stay the same while the fastest outer axis moves? */
static bool access_lasts(const code *c, const map_access *access)
{
    const map_pass *p = c->pass;
    const map_plan *plan = c->plan;

    for (int i = p->reduced_axes - 1; i >= 0; i--)
        if (plan->outer_extent[p->reduced_axis[i]] > 1)
            return access->outer[p->reduced_axis[i]] == 0;
    for (int i = p->kept_axes - 1; i >= 0; i--)
        if (plan->outer_extent[p->kept_axis[i]] > 1)
            return access->outer[p->kept_axis[i]] == 0;
    return true;
}

static map_span load_span(const code *c, const map_access *a)
{
    if (a->pattern == MAP_ONE)
        return MAP_UNIFORM;
    if (a->pattern == MAP_DENSE || a->pattern == MAP_INTERLEAVED || c->plan->map->segment_count > 0
        || !access_lasts(c, a))
        return MAP_SPANS;
    return a->periodic ? MAP_PERIODIC : MAP_TILED;
}

/* Does the index come again with the inner axes, at whose begin every tile begins? */
static bool iota_is_periodic(const map_plan *plan, int value)
{
    const pons_value *v = &plan->map->value[value];
    int64_t divisor = v->divisor > 0 ? v->divisor : 1;

    return plan->rows == 1 && plan->period > 0 && plan->map->segment_count == 0 && v->modulus > 0
        && divisor <= plan->inner && v->modulus <= plan->inner
        && plan->inner % (divisor * v->modulus) == 0;
}

static map_span node_span(const code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    map_span span = MAP_UNIFORM;

    if (node->operation == PONS_VALUE_CONSTANT)
        return MAP_UNIFORM;
    if (node->operation == PONS_VALUE_LOAD)
        return load_span(c, load_access(c, n));
    if (node->operation == PONS_VALUE_IOTA && iota_is_periodic(c->plan, node->value))
        return MAP_PERIODIC;
    if (node->argument_count == 0)
        return MAP_SPANS;
    for (int i = 0; i < node->argument_count; i++)
        span = c->node[node->argument[i]].span > span ? c->node[node->argument[i]].span : span;
    return span;
}

static map_address steady_place(code *c, map_span span)
{
    size_t lanes[] = { (size_t)c->machine->unit, (size_t)c->plan->period, (size_t)c->plan->row };
    static const map_walk walk[] = { MAP_STAY, MAP_PERIOD, MAP_LANES };

    return in_buffers(floats_new(c, lanes[span]), walk[span]);
}

static void constant_place(code *c, int n)
{
    map_pass *p = c->pass;
    float number = c->plan->node[n].number;
    int k = 0;

    while (k < p->constant_count && memcmp(&p->constant[k].number, &number, sizeof number) != 0)
        k++;
    if (k == p->constant_count)
        p->constant[p->constant_count++] = (map_constant){
            floats_new(c, (size_t)c->machine->unit), number };
    c->node[n].place = in_buffers(p->constant[k].home, MAP_STAY);
}

/* Spans, and places of what is not computed for every unit. */
static void steady_places(code *c)
{
    map_pass *p = c->pass;

    for (int n = 0; n < c->plan->node_count; n++) {
        const map_node *node = &c->plan->node[n];
        node_state *s = &c->node[n];
        s->span = node_span(c, n);
        if (!s->needed)
            continue;
        if (s->span != MAP_SPANS)
            s->left = PLACED_FOREVER;
        if (node->operation == PONS_VALUE_CONSTANT) {
            constant_place(c, n);
        } else if (node->operation == PONS_VALUE_LOAD && s->span != MAP_SPANS) {
            s->place = steady_place(c, s->span);
            p->steady[p->steady_count++] = (map_steady){
                load_access(c, n), node->channel, s->span, (size_t)s->place.place / sizeof(float) };
        } else if (node->operation == PONS_VALUE_LOAD) {
            if (is_dense(c, n, PONS_F32))
                s->place = slot_address(c, load_access(c, n), node->channel, false);
            c->reading++;
        } else if (s->span != MAP_SPANS) {
            s->wanted = steady_place(c, s->span);
        }
    }
}

static void steady_programs(code *c)
{
    for (int span = 0; span < MAP_SPANS; span++) {
        int begin = c->pass->code_count;
        c->accumulator = -1;
        for (int n = 0; n < c->plan->node_count; n++)
            if (c->node[n].needed && c->node[n].span == span && !placed(c, n))
                make(c, n);
        c->pass->program[span] = c->pass->code_count > begin ? begin : -1;
        if (c->pass->code_count > begin)
            put(c, MAP_CODE_END);
    }
    c->accumulator = -1;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void want(code *c, int n)
{
    c->node[n].needed = true;
    c->node[n].left++;
}

/* What stores and reductions need, marked from the last to the first, and how often. */
static void mark_needed(code *c)
{
    const pons_map *m = c->plan->map;

    for (int i = 0; i < m->store_count; i++)
        for (int r = 0; map_pass_stores(c->plan, c->pass, &m->store[i])
                        && r < store_rows(c, &m->store[i]); r++)
            want(c, map_node_of(c->plan, m->store[i].value, r));
    for (int i = 0; i < c->pass->reduce_count; i++)
        for (int r = 0; r < c->pass->reduce[i]->rows; r++)
            want(c, map_node_of(c->plan, c->pass->reduce[i]->value, r));
    for (int n = c->plan->node_count - 1; n >= 0; n--)
        for (int i = 0; i < c->plan->node[n].argument_count && c->node[n].needed; i++)
            want(c, c->plan->node[n].argument[i]);
}

/* Channels of an interleaved load or of random numbers come all together. */
static void mark_together(code *c)
{
    for (int n = 0; n < c->plan->node_count; n++) {
        const map_node *node = &c->plan->node[n];
        bool load = node->operation == PONS_VALUE_LOAD
                 && load_access(c, n)->pattern == MAP_INTERLEAVED;
        if (c->node[n].needed && load)
            for (int r = 0; r < c->plan->copies[node->value]; r++)
                c->node[map_node_of(c->plan, node->value, r)].needed = true;
    }
}

bool map_code_make(map_plan *plan, map_pass *pass)
{
    code c = { .plan = plan, .pass = pass, .machine = plan->lanes->machine, .accumulator = -1 };
    size_t nodes = (size_t)plan->node_count;

    c.node = map_allocate(plan, nodes, sizeof *c.node);
    c.strip_of = map_allocate(plan, nodes + 1, sizeof *c.strip_of);
    c.strip_free = map_allocate(plan, nodes + 1, sizeof *c.strip_free);
    c.stored = map_allocate(plan, (size_t)plan->map->store_count, sizeof *c.stored);
    pass->steady = map_allocate(plan, nodes, sizeof *pass->steady);
    pass->constant = map_allocate(plan, nodes, sizeof *pass->constant);
    if (c.node == NULL || c.strip_of == NULL || c.strip_free == NULL || c.stored == NULL
        || pass->steady == NULL || pass->constant == NULL)
        return false;
    for (size_t n = 0; n < nodes; n++) {
        c.node[n].place = c.node[n].wanted = nowhere;
        c.node[n].strip = -1;
    }
    mark_needed(&c);
    mark_together(&c);
    steady_places(&c);
    steady_programs(&c);
    main_program(&c);
    return !c.failed;
}
