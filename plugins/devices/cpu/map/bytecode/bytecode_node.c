/*
 * bytecode_node.c - the machine instructions of nodes.
 *
 * Code is generated from the results back to the loads, so that a value stays in the accumulator
 * until its next use. A value with further uses is kept in a strip.
 */
#include "cpu/map/bytecode/bytecode.h"

#include <string.h>

/* ---- the accumulator ------------------------------------------------------------------------- */

static void strip_new(code *c, int n)
{
    int k;

    if (c->strip_free_count > 0) {
        k = c->strip_free[--c->strip_free_count];
    } else {
        k = c->strip_count++;
        c->strip_of[k] = (int)(bytecode_floats(c, (size_t)c->machine->unit) / MAP_ROW);
    }
    c->node[n].strip = k;
    c->node[n].place = bytecode_in_buffers((size_t)c->strip_of[k] * MAP_ROW, MAP_STAY);
}

/* Count one read less; after its last read a node frees its strip. */
void bytecode_read_done(code *c, int n)
{
    node_state *s = &c->node[n];

    if (s->left == BYTECODE_FOREVER)
        return;
    if (--s->left == 0) {
        if (s->strip >= 0)
            c->strip_free[c->strip_free_count++] = s->strip;
        c->reading -= bytecode_is_dense(c, n, PONS_F32);
    }
}

void bytecode_drop(code *c, int n)
{
    const map_node *node = &c->plan->node[n];

    bytecode_read_done(c, n);
    if (c->node[n].left != 0 || bytecode_ready(c, n))
        return;
    c->reading -= bytecode_is_load(c, n);
    for (int k = 0; k < node->argument_count; k++)
        bytecode_drop(c, node->argument[k]);
}

static void keep_node(code *c, int n)
{
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else
        strip_new(c, n);
    bytecode_put(c, MAP_CODE_KEEP)->at[0] = c->node[n].place;
}

/* Keep the node in the accumulator, if it is still needed, before the accumulator changes. */
void bytecode_leave(code *c)
{
    if (c->accumulator >= 0 && c->node[c->accumulator].left > 0 && !bytecode_placed(c,
                                                                                    c->accumulator))
        keep_node(c, c->accumulator);
    c->accumulator = -1;
}


/* Record that the accumulator holds the node, and make its reductions and early stores. */
static void node_arrived(code *c, int n)
{
    c->accumulator = n;
    if (c->node[n].span != MAP_SPANS) {
        keep_node(c, n);
        return;
    }
    if (c->node[n].wanted.base >= 0 && !bytecode_placed(c, n))
        keep_node(c, n);
    bytecode_reduce(c, n);
    bytecode_store_early(c, n);
}

/* ---- instructions ---------------------------------------------------------------------------- */

void bytecode_bring(code *c, int n)
{
    if (c->accumulator == n)
        return;
    if (!bytecode_placed(c, n)) {
        bytecode_make_node(c, n);
        if (c->accumulator == n)
            return;
    }
    bytecode_leave(c);
    bytecode_put(c, c->node[n].even ? MAP_CODE_LOAD_EVEN : MAP_CODE_LOAD_F32)->at[0] =
        c->node[n].place;
    c->accumulator = n;
}

void bytecode_to_memory(code *c, int n)
{
    if (!bytecode_placed(c, n) && c->accumulator != n)
        bytecode_make_node(c, n);
    if (!bytecode_placed(c, n))
        keep_node(c, n);
}

/* A VISIT whose result goes to a strip, or to the node's required address. */
static map_instruction *visit(code *c, int n, map_visit function, const void *what, int rows)
{
    map_instruction *i;

    bytecode_leave(c);
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else if (!bytecode_placed(c, n))
        strip_new(c, n);
    i = bytecode_put(c, MAP_CODE_VISIT);
    i->at[0] = c->node[n].place;
    i->call.visit = function;
    i->what = what;
    i->rows = rows;
    return i;
}

static void visit_done(code *c, int n)
{
    bool wanted = false;

    if (c->node[n].span != MAP_SPANS)
        return;
    for (int i = 0; i < c->pass->reduce_count; i++)
        for (int r = 0; r < c->pass->reduce[i]->rows; r++)
            wanted = wanted || map_node_of(c->plan, c->pass->reduce[i]->value, r) == n;
    if (wanted) {
        bytecode_bring(c, n);
        bytecode_reduce(c, n);
    }
}

/* Adjacent strips for all channels of a value. */
static map_address block_new(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    size_t unit = (size_t)c->machine->unit, at = bytecode_floats(c, unit * (size_t)c->plan->rows);

    for (int r = 0; r < c->plan->copies[node->value]; r++)
        c->node[map_node_of(c->plan, node->value, r)].place =
            bytecode_in_buffers(at + unit * (size_t)r, MAP_STAY);
    return bytecode_in_buffers(at, MAP_STAY);
}

/* The load instruction of the node, or 0. */
static map_code load_code(const code *c, int n)
{
    const map_access *a = bytecode_access(c, n);
    int wide = a->type == PONS_F32, second = c->plan->node[n].channel;

    if (bytecode_is_dense(c, n, PONS_BF16))
        return MAP_CODE_LOAD_BF16;
    if (bytecode_is_dense(c, n, PONS_U8))
        return MAP_CODE_LOAD_U8;
    if (bytecode_is_groups(a))
        return wide ? MAP_CODE_GROUPS_F32 : MAP_CODE_GROUPS_BF16;
    if (bytecode_is_interleaved2(a))
        return (map_code)((wide ? MAP_CODE_PAIR_FIRST_F32 : MAP_CODE_PAIR_FIRST_BF16) + second);
    return (map_code)0;
}

static void load_node(code *c, int n)
{
    const map_access *a = bytecode_access(c, n);
    int channel = c->plan->node[n].channel;
    map_code load = load_code(c, n);
    map_instruction *i;

    if (load != 0) {
        bytecode_leave(c);
        i = bytecode_put(c, load);
        i->at[0] = bytecode_slot(c, a, bytecode_is_interleaved2(a) ? 0 : channel, false);
        i->what = a;
        c->reading--;
        node_arrived(c, n);
        return;
    }
    if (a->pattern == MAP_INTERLEAVED) {
        map_address block = block_new(c, n);
        int value = c->plan->node[n].value;
        bytecode_leave(c);
        i = bytecode_put(c, MAP_CODE_VISIT);
        i->at[0] = block;
        i->call.visit = map_visit_load(a);
        i->what = a;
        i->rows = a->rows;
        i->at[1] = bytecode_slot(c, a, 0, false);
        c->reading -= a->rows;
        for (int r = 0; r < a->rows; r++)
            visit_done(c, map_node_of(c->plan, value, r));
        return;
    }
    i = visit(c, n, map_visit_load(a), a, 1);
    i->at[1] = bytecode_slot(c, a, channel, false);
    c->reading--;
    visit_done(c, n);
}

/* Iota and random values; in the channel form random values of all channels at once. */
static void index_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    const pons_value *v = &c->plan->map->value[node->value];
    map_instruction *i;

    if (node->operation == PONS_VALUE_IOTA) {
        visit(c, n, map_visit_iota, v, c->plan->rows)->at[1].place = node->channel;
        visit_done(c, n);
        return;
    }
    bytecode_leave(c);
    if (c->plan->rows > 1) {
        map_address block = block_new(c, n);
        size_t spare = bytecode_floats(c, (size_t)c->machine->unit * (size_t)c->plan->rows);
        i = bytecode_put(c, MAP_CODE_VISIT);
        i->at[0] = block;
        i->at[1] = bytecode_in_buffers(spare, MAP_STAY);
    } else {
        strip_new(c, n);
        i = bytecode_put(c, MAP_CODE_VISIT);
        i->at[0] = c->node[n].place;
    }
    i->call.visit = map_visit_random;
    i->what = v;
    i->rows = c->plan->rows;
    for (int r = 0; r < c->plan->copies[node->value]; r++)
        visit_done(c, map_node_of(c->plan, c->plan->node[n].value, r));
}

/*
 * The instruction, its reverse with exchanged arguments, and both with an even or a bf16 operand.
 */
typedef struct two_codes { map_code code, other, even, other_even, bf16, other_bf16; } two_codes;

static const two_codes two[MAP_NODE_SELECT] = {
    [PONS_MAP_ADD] = { MAP_CODE_ADD, MAP_CODE_ADD, MAP_CODE_ADD_EVEN, MAP_CODE_ADD_EVEN,
                       MAP_CODE_ADD_BF16, MAP_CODE_ADD_BF16 },
    [PONS_MAP_MUL] = { MAP_CODE_MUL, MAP_CODE_MUL, MAP_CODE_MUL_EVEN, MAP_CODE_MUL_EVEN,
                       MAP_CODE_MUL_BF16, MAP_CODE_MUL_BF16 },
    [PONS_MAP_SUB] = { MAP_CODE_SUB, MAP_CODE_SUB_R, MAP_CODE_SUB_EVEN, MAP_CODE_SUB_R_EVEN,
                       MAP_CODE_SUB_BF16, MAP_CODE_SUB_R_BF16 },
    [PONS_MAP_DIV] = { MAP_CODE_DIV, MAP_CODE_DIV_R, MAP_CODE_DIV_EVEN, MAP_CODE_DIV_R_EVEN, 0, 0 },
    [PONS_MAP_MIN] = { .code = MAP_CODE_MIN, .other = MAP_CODE_MIN_R },
    [PONS_MAP_MAX] = { .code = MAP_CODE_MAX, .other = MAP_CODE_MAX_R },
    [PONS_MAP_EQUAL] = { .code = MAP_CODE_EQUAL, .other = MAP_CODE_EQUAL },
    [PONS_MAP_NOT_EQUAL] = { .code = MAP_CODE_NOT_EQUAL, .other = MAP_CODE_NOT_EQUAL },
    [PONS_MAP_LESS] = { .code = MAP_CODE_LESS, .other = MAP_CODE_GREATER },
    [PONS_MAP_LESS_EQUAL] = { .code = MAP_CODE_LESS_EQUAL, .other = MAP_CODE_GREATER_EQUAL },
    [PONS_MAP_GREATER] = { .code = MAP_CODE_GREATER, .other = MAP_CODE_LESS },
    [PONS_MAP_GREATER_EQUAL] = { .code = MAP_CODE_GREATER_EQUAL, .other = MAP_CODE_LESS_EQUAL },
    [MAP_NODE_MAX_NAN] = { .code = MAP_CODE_MAX_NAN, .other = MAP_CODE_MAX_NAN_R },
    [MAP_NODE_MIN_NAN] = { .code = MAP_CODE_MIN_NAN, .other = MAP_CODE_MIN_NAN_R },
};

/* True for a bf16 load that an instruction can take as its operand. */
static bool is_bf16_operand(const code *c, int n)
{
    return !bytecode_ready(c, n) && c->node[n].left == 1 && bytecode_is_dense(c, n, PONS_BF16);
}

static void two_bf16(code *c, int n, map_code operation, int in, int memory)
{
    bytecode_bring(c, in);
    bytecode_read_done(c, in);
    bytecode_read_done(c, memory);
    bytecode_leave(c);
    c->reading--;
    bytecode_put(c, operation)->at[0] = bytecode_slot(c, bytecode_access(c, memory),
                                            c->plan->node[memory].channel, false);
    node_arrived(c, n);
}

static map_code two_code(const two_codes *t, bool reverse, bool even)
{
    if (even && t->even != 0)
        return reverse ? t->other_even : t->even;
    return reverse ? t->other : t->code;
}

static void two_node(code *c, int n)
{
    const two_codes *t = &two[c->plan->node[n].operation];
    int a = c->plan->node[n].argument[0], b = c->plan->node[n].argument[1], memory;
    bool reverse;

    if (!bytecode_ready(c, a) && !(t->bf16 != 0 && is_bf16_operand(c, a) && a != b))
        bytecode_make_node(c, a);
    if (t->bf16 != 0 && is_bf16_operand(c, b) && a != b && bytecode_ready(c, a)) {
        two_bf16(c, n, t->bf16, a, b);
        return;
    }
    if (!bytecode_ready(c, b))
        bytecode_make_node(c, b);
    if (t->bf16 != 0 && is_bf16_operand(c, a) && a != b) {
        two_bf16(c, n, t->other_bf16, b, a);
        return;
    }
    reverse = c->accumulator == b && a != b;
    memory = reverse ? a : b;
    bytecode_to_memory(c, memory);
    bytecode_bring(c, reverse ? b : a);
    bytecode_read_done(c, reverse ? b : a);
    bytecode_leave(c);
    bytecode_put(c, two_code(t, reverse, c->node[memory].even))->at[0] = c->node[memory].place;
    bytecode_read_done(c, memory);
    node_arrived(c, n);
}

static bool is_uniform(const code *c, int n) { return c->node[n].span == MAP_UNIFORM; }
static bool even(const code *c, int n) { return c->node[n].even; }

/*
 * Parametric ReLU: x > q ? g : g m with even q and m, where leaky ReLU has x == g. The value stays
 * in the accumulator.
 */
static bool leaky_relu_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n], *product = &c->plan->node[node->argument[3]];
    int x = node->argument[0], q = node->argument[1], g = node->argument[2];
    int other = node->argument[3], m;
    map_instruction *i;

    if (node->comparison != PONS_MAP_GREATER || !even(c, q) || product->operation != PONS_MAP_MUL
        || bytecode_ready(c, other) || c->node[other].left != 1)
        return false;
    m = product->argument[product->argument[0] == g];
    if ((product->argument[0] != g && product->argument[1] != g) || !even(c, m))
        return false;
    if (x != g)
        bytecode_to_memory(c, x);
    bytecode_bring(c, g);
    bytecode_read_done(c, x);
    bytecode_read_done(c, g);
    bytecode_read_done(c, g);
    bytecode_leave(c);
    c->node[other].left = 0;
    i = bytecode_put(c, x == g ? MAP_CODE_LEAKY_RELU : MAP_CODE_LEAKY_RELU_BY);
    i->at[0] = c->node[q].place;
    i->at[1] = c->node[m].place;
    if (x != g)
        i->at[2] = c->node[x].place;
    node_arrived(c, n);
    return true;
}

/* The fastest form of a select. */
static map_code select_code(const code *c, map_code plain, int p, int q, int third)
{
    bool reverse = plain == MAP_CODE_SELECT_GREATER_R;

    if (is_uniform(c, p) && is_uniform(c, q))
        return (map_code)(plain - MAP_CODE_SELECT_EQUAL + MAP_CODE_SELECT_ALL_EQUAL);
    if ((plain != MAP_CODE_SELECT_GREATER && !reverse) || !even(c, q))
        return plain;
    return (map_code)((even(c, third) ? MAP_CODE_SELECT_GT_ONE : MAP_CODE_SELECT_GT) + reverse);
}

static void select_node(code *c, int n)
{
    static const map_code selects[] = {
        [PONS_MAP_EQUAL] = MAP_CODE_SELECT_EQUAL, [PONS_MAP_NOT_EQUAL] = MAP_CODE_SELECT_NOT_EQUAL,
        [PONS_MAP_GREATER] = MAP_CODE_SELECT_GREATER, [PONS_MAP_LESS] = MAP_CODE_SELECT_GREATER,
        [PONS_MAP_GREATER_EQUAL] = MAP_CODE_SELECT_GREATER_EQUAL,
        [PONS_MAP_LESS_EQUAL] = MAP_CODE_SELECT_GREATER_EQUAL,
    };
    const map_node *node = &c->plan->node[n];
    bool less = node->comparison == PONS_MAP_LESS || node->comparison == PONS_MAP_LESS_EQUAL;
    int p = node->argument[less], q = node->argument[!less];
    int then = node->argument[2], other = node->argument[3];
    bool then_in;
    map_instruction *i;

    if (leaky_relu_node(c, n))
        return;
    bytecode_to_memory(c, p);
    bytecode_to_memory(c, q);
    if (!bytecode_ready(c, then))
        bytecode_make_node(c, then);
    if (!bytecode_ready(c, other))
        bytecode_make_node(c, other);
    then_in = c->accumulator == then && then != other;
    bytecode_to_memory(c, then_in ? other : then);
    bytecode_bring(c, then_in ? then : other);
    bytecode_read_done(c, then_in ? then : other);
    bytecode_leave(c);
    i = bytecode_put(c, select_code(c, (map_code)(selects[node->comparison] + then_in), p, q,
                         then_in ? other : then));
    i->at[0] = c->node[p].place;
    i->at[1] = c->node[q].place;
    i->at[2] = c->node[then_in ? other : then].place;
    bytecode_read_done(c, p);
    bytecode_read_done(c, q);
    bytecode_read_done(c, then_in ? other : then);
    node_arrived(c, n);
}

static void leaky_relu_gradient_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    int x = node->argument[0], q = node->argument[1], g = node->argument[2], m = node->argument[3];
    map_instruction *i;

    bytecode_to_memory(c, x);
    bytecode_to_memory(c, q);
    bytecode_to_memory(c, m);
    bytecode_bring(c, g);
    bytecode_read_done(c, g);
    bytecode_leave(c);
    i = bytecode_put(c, even(c, q) && even(c, m) ? MAP_CODE_LEAKY_RELU_GRADIENT_EVEN
                                             : MAP_CODE_LEAKY_RELU_GRADIENT);
    i->at[0] = c->node[x].place;
    i->at[1] = c->node[q].place;
    i->at[2] = c->node[m].place;
    bytecode_read_done(c, x);
    bytecode_read_done(c, q);
    bytecode_read_done(c, m);
    node_arrived(c, n);
}

static void one_node(code *c, int n, map_code operation)
{
    int a = c->plan->node[n].argument[0];

    bytecode_bring(c, a);
    bytecode_read_done(c, a);
    bytecode_leave(c);
    bytecode_put(c, operation);
    node_arrived(c, n);
}

/* Call a function on lanes in memory. */
static void call_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    map_address at[3] = { { 0 } };
    map_instruction *i;

    for (int k = 0; k < node->argument_count; k++)
        bytecode_to_memory(c, node->argument[k]);
    bytecode_leave(c);
    for (int k = 0; k < 3; k++)
        at[k] = c->node[node->argument[k < node->argument_count ? k : 0]].place;
    for (int k = 0; k < node->argument_count; k++)
        bytecode_read_done(c, node->argument[k]);
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else
        strip_new(c, n);
    i = bytecode_put(c, MAP_CODE_CALL);
    i->at[0] = c->node[n].place;
    memcpy(&i->at[1], at, sizeof at);
    i->call.function = c->plan->lanes->operation[node->operation][0];
    c->accumulator = n;
    if (c->node[n].span == MAP_SPANS) {
        bytecode_reduce(c, n);
        bytecode_store_early(c, n);
    }
}

void bytecode_make_node(code *c, int n)
{
    static const map_code one[PONS_MAP_OPERATION_COUNT] = {
        [PONS_MAP_NEG] = MAP_CODE_NEG, [PONS_MAP_ABS] = MAP_CODE_ABS,
        [PONS_MAP_SQRT] = MAP_CODE_SQRT, [PONS_MAP_NOT] = MAP_CODE_NOT,
    };
    int operation = c->plan->node[n].operation;

    if (c->failed)
        c->node[n].place = bytecode_in_buffers(0, MAP_STAY);
    else if (operation == PONS_VALUE_LOAD)
        load_node(c, n);
    else if (operation == MAP_NODE_SELECT)
        select_node(c, n);
    else if (operation == MAP_NODE_LEAKY_RELU_GRADIENT)
        leaky_relu_gradient_node(c, n);
    else if (two[operation].code != 0)
        two_node(c, n);
    else if (operation >= PONS_MAP_OPERATION_COUNT)
        index_node(c, n);
    else if (one[operation] != 0)
        one_node(c, n, one[operation]);
    else
        call_node(c, n);
}
