/*
 * bytecode.c - the programs of a pass and the addresses of its nodes.
 *
 * Invariant values are computed by programs of their own and have fixed addresses. bytecode_node.c
 * writes the instructions of nodes. bytecode_output.c writes those of reductions and stores: the
 * main program is generated from them backwards to the loads.
 */
#include "cpu/map/bytecode/bytecode.h"

#include <string.h>

#include "base/integer.h"

static const map_address nowhere = { .base = -1 };

map_address bytecode_in_buffers(size_t floats, map_addressing addressing)
{
    return (map_address){ .place = (int64_t)(floats * sizeof(float)), .addressing = addressing };
}

bool bytecode_placed(const code *c, int n) { return c->node[n].place.base >= 0; }

size_t bytecode_floats(code *c, size_t count)
{
    size_t at = c->pass->buffer_floats;

    c->pass->buffer_floats += (count + MAP_ROW - 1) & ~(size_t)(MAP_ROW - 1);
    return at;
}

static bool bytecode_grow(code *c, void *list, int count, int *room, size_t size)
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

map_instruction *bytecode_put(code *c, map_code operation)
{
    map_pass *p = c->pass;
    map_instruction *i = &c->lost;

    if (bytecode_grow(c, &p->code, p->code_count, &c->code_room, sizeof *p->code))
        i = &p->code[p->code_count++];
    *i = (map_instruction){ .run = c->machine->code[operation], .code = operation };
    return i;
}

/* ---- addresses ------------------------------------------------------------------------------- */

map_address bytecode_slot(code *c, const map_access *access, int channel, bool output)
{
    static const map_addressing addressing[] = { [1] = MAP_BYTES, [2] = MAP_WORDS, [4]
        = MAP_LANES };
    map_pass *p = c->pass;
    bool dense = access->pattern == MAP_DENSE;
    map_slot *slot = &c->lost_slot;
    int k = 0;

    while (k < p->slot_count && (p->slot[k].access != access || p->slot[k].channel != channel))
        k++;
    if (k == p->slot_count) {
        if (bytecode_grow(c, &p->slot, p->slot_count, &c->slot_room, sizeof *p->slot))
            slot = &p->slot[p->slot_count++];
        *slot = (map_slot){ .access = access, .channel = channel, .output = output };
        if (dense)
            slot->stage = bytecode_floats(c, (size_t)c->machine->unit);
        if (dense && output && access->stream) {
            size_t count = (size_t)c->plan->row + 2 * MAP_LINE / sizeof(float);
            slot->non_temporal = bytecode_floats(c, count);
            p->non_temporal = true;
        }
    }
    return (map_address){ .base = k + 1,
                          .addressing = dense ? addressing[map_type_size(access->type)]
                              : MAP_STAY };
}

const map_access *bytecode_access(const code *c, int n)
{
    return &c->plan->load[c->plan->map->value[c->plan->node[n].value].operand];
}

bool bytecode_is_load(const code *c,
                      int n) { return c->plan->node[n].operation == PONS_VALUE_LOAD; }

bool bytecode_is_dense(const code *c, int n, pons_type type)
{
    return bytecode_is_load(c, n) && bytecode_access(c, n)->pattern == MAP_DENSE
        && bytecode_access(c, n)->type == type && c->node[n].span == MAP_SPANS;
}

bool bytecode_is_groups(const map_access *a)
{
    return a->pattern == MAP_GROUPS && (a->type == PONS_F32 || a->type == PONS_BF16);
}

bool bytecode_is_interleaved2(const map_access *a)
{
    return a->pattern == MAP_INTERLEAVED && a->rows == 2
        && (a->type == PONS_F32 || a->type == PONS_BF16);
}

bool bytecode_prefetches(const map_access *a)
{
    return a->pattern == MAP_DENSE || a->pattern == MAP_INTERLEAVED || a->pattern == MAP_GROUPS;
}

bool bytecode_ready(const code *c, int n) { return bytecode_placed(c, n) || c->accumulator == n; }

/* ---- invariant values ------------------------------------------------------------------------ */

/* True if the address of an operand does not depend on the fastest outer axis. */
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

/*
 * The span of an iota. It is uniform if each channel has its own constant, periodic if it depends
 * on the inner axes, at whose begin every tile begins.
 */
static map_span iota_span(const map_plan *plan, int value)
{
    const pons_value *v = &plan->map->value[value];
    int64_t divisor = v->divisor > 0 ? v->divisor : 1;
    int64_t extent = plan->rows > 1 ? plan->rows : plan->inner;

    if (v->modulus <= 0 || divisor > extent || v->modulus > extent
        || extent % (divisor * v->modulus) != 0)
        return MAP_SPANS;
    if (plan->rows > 1)
        return MAP_UNIFORM;
    return plan->cycle > 0 && plan->map->segment_count == 0 ? MAP_PERIODIC : MAP_SPANS;
}

static map_span node_span(const code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    map_span span = MAP_UNIFORM;

    if (node->operation == PONS_VALUE_CONSTANT)
        return MAP_UNIFORM;
    if (node->operation == PONS_VALUE_LOAD)
        return load_span(c, bytecode_access(c, n));
    if (node->operation == PONS_VALUE_IOTA)
        return iota_span(c->plan, node->value);
    if (node->argument_count == 0)
        return MAP_SPANS;
    for (int i = 0; i < node->argument_count; i++)
        span = c->node[node->argument[i]].span > span ? c->node[node->argument[i]].span : span;
    return span;
}

static bool load_is_even(const code *c, const map_access *a)
{
    int lanes = c->machine->vector;

    for (int p = lanes; p < c->plan->cycle && p < c->plan->points; p++)
        if (a->table[p] != a->table[p % lanes])
            return false;
    return true;
}

/* True if every vector of a node has the same lanes; its span is known. */
static bool node_is_even(const code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    bool even = c->node[n].span <= MAP_PERIODIC;

    if (c->node[n].span == MAP_UNIFORM)
        return true;
    if (node->operation == PONS_VALUE_LOAD)
        return even && load_is_even(c, bytecode_access(c, n));
    if (node->argument_count == 0)
        return even && c->machine->vector % c->plan->inner == 0;
    for (int i = 0; i < node->argument_count; i++)
        even = even && c->node[node->argument[i]].even;
    return even;
}

static map_address steady_address(code *c, map_span span)
{
    size_t lanes[] = { (size_t)c->machine->unit, (size_t)c->plan->cycle_lanes,
                       (size_t)c->plan->row };
    static const map_addressing addressing[] = { MAP_STAY, MAP_PERIOD, MAP_LANES };

    return bytecode_in_buffers(bytecode_floats(c, lanes[span]), addressing[span]);
}

static void constant_address(code *c, int n)
{
    map_pass *p = c->pass;
    float number = c->plan->node[n].number;
    int k = 0;

    while (k < p->constant_count && memcmp(&p->constant[k].number, &number, sizeof number) != 0)
        k++;
    if (k == p->constant_count)
        p->constant[p->constant_count++] = (map_constant){
            bytecode_floats(c, (size_t)c->machine->unit), number };
    c->node[n].place = bytecode_in_buffers(p->constant[k].home, MAP_STAY);
}

/* Set the span of each node, and the addresses of nodes that are not computed for every unit. */
static void steady_addresses(code *c)
{
    map_pass *p = c->pass;

    for (int n = 0; n < c->plan->node_count; n++) {
        const map_node *node = &c->plan->node[n];
        node_state *s = &c->node[n];
        s->span = node_span(c, n);
        s->even = node_is_even(c, n);
        if (!s->needed)
            continue;
        if (s->span != MAP_SPANS)
            s->left = BYTECODE_FOREVER;
        if (node->operation == PONS_VALUE_CONSTANT) {
            constant_address(c, n);
        } else if (node->operation == PONS_VALUE_LOAD && s->span != MAP_SPANS) {
            s->place = steady_address(c, s->span);
            p->steady[p->steady_count++] = (map_steady){
                bytecode_access(c, n), node->channel, s->span,
                    (size_t)s->place.place / sizeof(float) };
        } else if (node->operation == PONS_VALUE_LOAD) {
            if (bytecode_is_dense(c, n, PONS_F32))
                s->place = bytecode_slot(c, bytecode_access(c, n), node->channel, false);
            c->reading++;
        } else if (s->span != MAP_SPANS) {
            s->wanted = steady_address(c, s->span);
        }
    }
}

static void steady_programs(code *c)
{
    for (int span = 0; span < MAP_SPANS; span++) {
        int begin = c->pass->code_count;
        c->accumulator = -1;
        for (int n = 0; n < c->plan->node_count; n++)
            if (c->node[n].needed && c->node[n].span == span && !bytecode_placed(c, n))
                bytecode_make_node(c, n);
        c->pass->program[span] = c->pass->code_count > begin ? begin : -1;
        if (c->pass->code_count > begin)
            bytecode_put(c, MAP_CODE_END);
    }
    c->accumulator = -1;
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Lay out the accumulators and the partial results. */
static bool make_accumulators(code *c)
{
    map_pass *p = c->pass;

    for (int i = 0; i < p->reduce_count; i++) {
        map_reduce *r = p->reduce[i];
        size_t spare;
        r->whole = bytecode_is_by_cycle(c, r);
        if (!map_reduce_make(c->plan, r))
            return false;
        spare = 4 * (size_t)r->rows * (size_t)r->lanes;
        r->accumulator = bytecode_floats(c, (size_t)r->rows * (size_t)r->pitch);
        p->spare_floats = max_size(spare, p->spare_floats);
        r->partial = p->partial_floats;
        p->partial_floats += (size_t)r->fold[0].kept_count
                           * (r->kind == PONS_REDUCE_MOMENTS ? 2 : 1);
    }
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void want_node(code *c, int n)
{
    c->node[n].needed = true;
    c->node[n].left++;
}

/*
 * Mark the nodes that stores and reductions need, from the last to the first, and count their
 * reads.
 */
static void mark_needed(code *c)
{
    const pons_map *m = c->plan->map;

    for (int i = 0; i < m->store_count; i++)
        for (int r = 0; map_pass_stores(c->plan, c->pass, &m->store[i])
                        && r < bytecode_store_rows(c, &m->store[i]); r++)
            want_node(c, map_node_of(c->plan, m->store[i].value, r));
    for (int i = 0; i < c->pass->reduce_count; i++)
        for (int r = 0; r < c->pass->reduce[i]->rows; r++)
            want_node(c, map_node_of(c->plan, c->pass->reduce[i]->value, r));
    for (int n = c->plan->node_count - 1; n >= 0; n--)
        for (int i = 0; i < c->plan->node[n].argument_count && c->node[n].needed; i++)
            want_node(c, c->plan->node[n].argument[i]);
}

/* Interleaved loads of more than two channels read all channels at once. */
static void mark_together(code *c)
{
    for (int n = 0; n < c->plan->node_count; n++) {
        const map_node *node = &c->plan->node[n];
        bool load = node->operation == PONS_VALUE_LOAD
                 && bytecode_access(c, n)->pattern == MAP_INTERLEAVED;
        if (c->node[n].needed && load && !bytecode_is_interleaved2(bytecode_access(c, n)))
            for (int r = 0; r < c->plan->copies[node->value]; r++)
                c->node[map_node_of(c->plan, node->value, r)].needed = true;
    }
}

bool bytecode_make(map_plan *plan, map_pass *pass)
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
    steady_addresses(&c);
    if (!make_accumulators(&c))
        return false;
    steady_programs(&c);
    bytecode_main(&c);
    return !c.failed;
}
