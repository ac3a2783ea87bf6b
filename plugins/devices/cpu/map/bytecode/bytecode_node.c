/*
 * bytecode_node.c - nodes as instructions of the machine.
 *
 * Code is written from what is wanted back to the loads, so that a value goes on in the accumulator
 * to where it is needed next. What is needed again is kept in a strip of its own.
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
        c->strip_of[k] = (int)(code_floats(c, (size_t)c->machine->unit) / MAP_ROW);
    }
    c->node[n].strip = k;
    c->node[n].place = code_in_buffers((size_t)c->strip_of[k] * MAP_ROW, MAP_STAY);
}

/* One read less; what is not read any more leaves its strip. */
void code_read_done(code *c, int n)
{
    node_state *s = &c->node[n];

    if (s->left == CODE_FOREVER)
        return;
    if (--s->left == 0) {
        if (s->strip >= 0)
            c->strip_free[c->strip_free_count++] = s->strip;
        c->reading -= code_is_dense(c, n, PONS_F32);
    }
}

void code_drop(code *c, int n)
{
    const map_node *node = &c->plan->node[n];

    code_read_done(c, n);
    if (c->node[n].left != 0 || code_ready(c, n))
        return;
    c->reading -= code_is_load(c, n);
    for (int k = 0; k < node->argument_count; k++)
        code_drop(c, node->argument[k]);
}

static void keep(code *c, int n)
{
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else
        strip_new(c, n);
    code_put(c, MAP_CODE_KEEP)->at[0] = c->node[n].place;
}

/* The accumulator is about to change. */
void code_leave(code *c)
{
    if (c->accumulator >= 0 && c->node[c->accumulator].left > 0 && !code_placed(c, c->accumulator))
        keep(c, c->accumulator);
    c->accumulator = -1;
}


/* The accumulator holds the node now. */
static void arrived(code *c, int n)
{
    c->accumulator = n;
    if (c->node[n].span != MAP_SPANS) {
        keep(c, n);
        return;
    }
    if (c->node[n].wanted.base >= 0 && !code_placed(c, n))
        keep(c, n);
    code_reduce(c, n);
    code_store_early(c, n);
}

/* ---- instructions ---------------------------------------------------------------------------- */

void code_bring(code *c, int n)
{
    if (c->accumulator == n)
        return;
    if (!code_placed(c, n)) {
        code_make(c, n);
        if (c->accumulator == n)
            return;
    }
    code_leave(c);
    code_put(c, c->node[n].even ? MAP_CODE_LOAD_EVEN : MAP_CODE_LOAD_F32)->at[0] =
        c->node[n].place;
    c->accumulator = n;
}

void code_to_memory(code *c, int n)
{
    if (!code_placed(c, n) && c->accumulator != n)
        code_make(c, n);
    if (!code_placed(c, n))
        keep(c, n);
}

/* What a visit leaves in a strip, or in the place that is wanted. */
static map_instruction *visit(code *c, int n, map_visit function, const void *what, int rows)
{
    map_instruction *i;

    code_leave(c);
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else if (!code_placed(c, n))
        strip_new(c, n);
    i = code_put(c, MAP_CODE_VISIT);
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
        code_bring(c, n);
        code_reduce(c, n);
    }
}

/* All channels of a value that lie beside each other, at once. */
static map_address block_new(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    size_t unit = (size_t)c->machine->unit, at = code_floats(c, unit * (size_t)c->plan->rows);

    for (int r = 0; r < c->plan->copies[node->value]; r++)
        c->node[map_node_of(c->plan, node->value, r)].place =
            code_in_buffers(at + unit * (size_t)r, MAP_STAY);
    return code_in_buffers(at, MAP_STAY);
}

/* The instruction that reads the node, or 0. */
static map_code load_code(const code *c, int n)
{
    const map_access *a = code_access(c, n);
    int wide = a->type == PONS_F32, second = c->plan->node[n].channel;

    if (code_is_dense(c, n, PONS_BF16))
        return MAP_CODE_LOAD_BF16;
    if (code_is_dense(c, n, PONS_U8))
        return MAP_CODE_LOAD_U8;
    if (code_is_groups(a))
        return wide ? MAP_CODE_GROUPS_F32 : MAP_CODE_GROUPS_BF16;
    if (code_is_pair(a))
        return (map_code)((wide ? MAP_CODE_PAIR_FIRST_F32 : MAP_CODE_PAIR_FIRST_BF16) + second);
    return (map_code)0;
}

static void load_node(code *c, int n)
{
    const map_access *a = code_access(c, n);
    int channel = c->plan->node[n].channel;
    map_code load = load_code(c, n);
    map_instruction *i;

    if (load != 0) {
        code_leave(c);
        i = code_put(c, load);
        i->at[0] = code_slot(c, a, code_is_pair(a) ? 0 : channel, false);
        i->what = a;
        c->reading--;
        arrived(c, n);
        return;
    }
    if (a->pattern == MAP_INTERLEAVED) {
        map_address block = block_new(c, n);
        int value = c->plan->node[n].value;
        code_leave(c);
        i = code_put(c, MAP_CODE_VISIT);
        i->at[0] = block;
        i->call.visit = map_visit_load(a);
        i->what = a;
        i->rows = a->rows;
        i->at[1] = code_slot(c, a, 0, false);
        c->reading -= a->rows;
        for (int r = 0; r < a->rows; r++)
            visited(c, map_node_of(c->plan, value, r));
        return;
    }
    i = visit(c, n, map_visit_load(a), a, 1);
    i->at[1] = code_slot(c, a, channel, false);
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
    code_leave(c);
    if (c->plan->rows > 1) {
        map_address block = block_new(c, n);
        size_t spare = code_floats(c, (size_t)c->machine->unit * (size_t)c->plan->rows);
        i = code_put(c, MAP_CODE_VISIT);
        i->at[0] = block;
        i->at[1] = code_in_buffers(spare, MAP_STAY);
    } else {
        strip_new(c, n);
        i = code_put(c, MAP_CODE_VISIT);
        i->at[0] = c->node[n].place;
    }
    i->call.visit = map_visit_random;
    i->what = v;
    i->rows = c->plan->rows;
    for (int r = 0; r < c->plan->copies[node->value]; r++)
        visited(c, map_node_of(c->plan, c->plan->node[n].value, r));
}

/* Forward, with the arguments exchanged, and the same with the second even or in bf16. */
typedef struct two_codes { map_code code, other, even, other_even, bf16, other_bf16; } two_codes;

static const two_codes two[MAP_NODE_PICK] = {
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
    [MAP_NODE_JOIN_MAX] = { .code = MAP_CODE_JOIN_MAX, .other = MAP_CODE_JOIN_MAX_R },
    [MAP_NODE_JOIN_MIN] = { .code = MAP_CODE_JOIN_MIN, .other = MAP_CODE_JOIN_MIN_R },
};

/* bf16 that the instruction itself can read. */
static bool readable(const code *c, int n)
{
    return !code_ready(c, n) && c->node[n].left == 1 && code_is_dense(c, n, PONS_BF16);
}

static void two_bf16(code *c, int n, map_code operation, int in, int memory)
{
    code_bring(c, in);
    code_read_done(c, in);
    code_read_done(c, memory);
    code_leave(c);
    c->reading--;
    code_put(c, operation)->at[0] = code_slot(c, code_access(c, memory),
                                            c->plan->node[memory].channel, false);
    arrived(c, n);
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

    if (!code_ready(c, a) && !(t->bf16 != 0 && readable(c, a) && a != b))
        code_make(c, a);
    if (t->bf16 != 0 && readable(c, b) && a != b && code_ready(c, a)) {
        two_bf16(c, n, t->bf16, a, b);
        return;
    }
    if (!code_ready(c, b))
        code_make(c, b);
    if (t->bf16 != 0 && readable(c, a) && a != b) {
        two_bf16(c, n, t->other_bf16, b, a);
        return;
    }
    reverse = c->accumulator == b && a != b;
    memory = reverse ? a : b;
    code_to_memory(c, memory);
    code_bring(c, reverse ? b : a);
    code_read_done(c, reverse ? b : a);
    code_leave(c);
    code_put(c, two_code(t, reverse, c->node[memory].even))->at[0] = c->node[memory].place;
    code_read_done(c, memory);
    arrived(c, n);
}

static bool uniform(const code *c, int n) { return c->node[n].span == MAP_UNIFORM; }
static bool even(const code *c, int n) { return c->node[n].even; }

/*
 * x > q ? g : g m with even q and m, as leaky and parametric rectifiers have it of x itself:
 * without leaving the accumulator.
 */
static bool bend_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n], *product = &c->plan->node[node->argument[3]];
    int x = node->argument[0], q = node->argument[1], g = node->argument[2];
    int other = node->argument[3], m;
    map_instruction *i;

    if (node->comparison != PONS_MAP_GREATER || !even(c, q) || product->operation != PONS_MAP_MUL
        || code_ready(c, other) || c->node[other].left != 1)
        return false;
    m = product->argument[product->argument[0] == g];
    if ((product->argument[0] != g && product->argument[1] != g) || !even(c, m))
        return false;
    if (x != g)
        code_to_memory(c, x);
    code_bring(c, g);
    code_read_done(c, x);
    code_read_done(c, g);
    code_read_done(c, g);
    code_leave(c);
    c->node[other].left = 0;
    i = code_put(c, x == g ? MAP_CODE_BEND : MAP_CODE_BEND_BY);
    i->at[0] = c->node[q].place;
    i->at[1] = c->node[m].place;
    if (x != g)
        i->at[2] = c->node[x].place;
    arrived(c, n);
    return true;
}

/* The quickest form of a choice. */
static map_code pick_code(const code *c, map_code plain, int p, int q, int third)
{
    bool reverse = plain == MAP_CODE_PICK_GREATER_R;

    if (uniform(c, p) && uniform(c, q))
        return (map_code)(plain - MAP_CODE_PICK_EQUAL + MAP_CODE_PICK_ALL_EQUAL);
    if ((plain != MAP_CODE_PICK_GREATER && !reverse) || !even(c, q))
        return plain;
    return (map_code)((even(c, third) ? MAP_CODE_ABOVE_ONE : MAP_CODE_ABOVE) + reverse);
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
    code_to_memory(c, p);
    code_to_memory(c, q);
    if (!code_ready(c, then))
        code_make(c, then);
    if (!code_ready(c, other))
        code_make(c, other);
    then_in = c->accumulator == then && then != other;
    code_to_memory(c, then_in ? other : then);
    code_bring(c, then_in ? then : other);
    code_read_done(c, then_in ? then : other);
    code_leave(c);
    i = code_put(c, pick_code(c, (map_code)(picks[node->comparison] + then_in), p, q,
                         then_in ? other : then));
    i->at[0] = c->node[p].place;
    i->at[1] = c->node[q].place;
    i->at[2] = c->node[then_in ? other : then].place;
    code_read_done(c, p);
    code_read_done(c, q);
    code_read_done(c, then_in ? other : then);
    arrived(c, n);
}

static void bend_gradient_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    int x = node->argument[0], q = node->argument[1], g = node->argument[2], m = node->argument[3];
    map_instruction *i;

    code_to_memory(c, x);
    code_to_memory(c, q);
    code_to_memory(c, m);
    code_bring(c, g);
    code_read_done(c, g);
    code_leave(c);
    i = code_put(c, even(c, q) && even(c, m) ? MAP_CODE_BEND_GRADIENT_EVEN
                                             : MAP_CODE_BEND_GRADIENT);
    i->at[0] = c->node[x].place;
    i->at[1] = c->node[q].place;
    i->at[2] = c->node[m].place;
    code_read_done(c, x);
    code_read_done(c, q);
    code_read_done(c, m);
    arrived(c, n);
}

static void one_node(code *c, int n, map_code operation)
{
    int a = c->plan->node[n].argument[0];

    code_bring(c, a);
    code_read_done(c, a);
    code_leave(c);
    code_put(c, operation);
    arrived(c, n);
}

/* Through a function over lanes in memory. */
static void call_node(code *c, int n)
{
    const map_node *node = &c->plan->node[n];
    map_address at[3] = { { 0 } };
    map_instruction *i;

    for (int k = 0; k < node->argument_count; k++)
        code_to_memory(c, node->argument[k]);
    code_leave(c);
    for (int k = 0; k < 3; k++)
        at[k] = c->node[node->argument[k < node->argument_count ? k : 0]].place;
    for (int k = 0; k < node->argument_count; k++)
        code_read_done(c, node->argument[k]);
    if (c->node[n].wanted.base >= 0)
        c->node[n].place = c->node[n].wanted;
    else
        strip_new(c, n);
    i = code_put(c, MAP_CODE_CALL);
    i->at[0] = c->node[n].place;
    memcpy(&i->at[1], at, sizeof at);
    i->call.function = c->plan->lanes->operation[node->operation][0];
    c->accumulator = n;
    if (c->node[n].span == MAP_SPANS) {
        code_reduce(c, n);
        code_store_early(c, n);
    }
}

void code_make(code *c, int n)
{
    static const map_code one[PONS_MAP_OPERATION_COUNT] = {
        [PONS_MAP_NEG] = MAP_CODE_NEG, [PONS_MAP_ABS] = MAP_CODE_ABS,
        [PONS_MAP_SQRT] = MAP_CODE_SQRT, [PONS_MAP_NOT] = MAP_CODE_NOT,
    };
    int operation = c->plan->node[n].operation;

    if (c->failed)
        c->node[n].place = code_in_buffers(0, MAP_STAY);
    else if (operation == PONS_VALUE_LOAD)
        load_node(c, n);
    else if (operation == MAP_NODE_PICK)
        pick_node(c, n);
    else if (operation == MAP_NODE_BEND_GRADIENT)
        bend_gradient_node(c, n);
    else if (two[operation].code != 0)
        two_node(c, n);
    else if (operation >= PONS_MAP_OPERATION_COUNT)
        index_node(c, n);
    else if (one[operation] != 0)
        one_node(c, n, one[operation]);
    else
        call_node(c, n);
}
