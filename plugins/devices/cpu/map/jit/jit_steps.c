/*
 * jit_steps.c - a run of instructions as steps: the values that each step reads and makes, and
 * their registers.
 */
#include "cpu/map/jit/jit_internal.h"

/* ---- effects of instructions ----------------------------------------------------------------- */

const jit_trait jit_traits[MAP_CODE_COUNT] = {
    [MAP_CODE_LOAD_F32] = { ROLE_LOAD, 1, 0 },
    [MAP_CODE_LOAD_BF16] = { ROLE_MAKE, 0, 0 },
    [MAP_CODE_LOAD_EVEN] = { ROLE_LOAD, 1, 1 },
    [MAP_CODE_LOAD_U8 ... MAP_CODE_PAIR_SECOND_BF16] = { ROLE_MAKE, 0, 0 },
    [MAP_CODE_KEEP] = { ROLE_KEEP, 0, 0 },
    [MAP_CODE_STORE_F32 ... MAP_CODE_STREAM_BF16] = { ROLE_USE, 0, 0 },
    [MAP_CODE_FETCH_32 ... MAP_CODE_FETCH_8] = { ROLE_FETCH, 0, 0 },
    [MAP_CODE_GROUPS_F32 ... MAP_CODE_GROUPS_BF16] = { ROLE_MAKE, 0, 0 },
    [MAP_CODE_STORE_GROUPS_F32 ... MAP_CODE_STORE_GROUPS_BF16] = { ROLE_USE, 0, 0 },
    [MAP_CODE_NEG ... MAP_CODE_NOT] = { ROLE_CHANGE, 0, 0 },
    [MAP_CODE_ADD ... MAP_CODE_LESS_EQUAL] = { ROLE_CHANGE, 1, 0 },
    [MAP_CODE_ADD_EVEN ... MAP_CODE_DIV_R_EVEN] = { ROLE_CHANGE, 1, 1 },
    [MAP_CODE_ADD_BF16 ... MAP_CODE_SUB_R_BF16] = { ROLE_CHANGE, 0, 0 },
    [MAP_CODE_SELECT_EQUAL ... MAP_CODE_SELECT_GREATER_EQUAL_R] = { ROLE_CHANGE, 3, 0 },
    [MAP_CODE_SELECT_ALL_EQUAL ... MAP_CODE_SELECT_ALL_GREATER_EQUAL_R] = { ROLE_CHANGE, 3, 3 },
    [MAP_CODE_SELECT_GT ... MAP_CODE_SELECT_GT_R] = { ROLE_CHANGE, 3, 2 },
    [MAP_CODE_SELECT_GT_ONE ... MAP_CODE_SELECT_GT_ONE_R] = { ROLE_CHANGE, 3, 6 },
    [MAP_CODE_LEAKY_RELU] = { ROLE_CHANGE, 2, 3 },
    [MAP_CODE_LEAKY_RELU_BY] = { ROLE_CHANGE, 3, 3 },
    [MAP_CODE_LEAKY_RELU_GRADIENT] = { ROLE_CHANGE, 3, 0 },
    [MAP_CODE_LEAKY_RELU_GRADIENT_EVEN] = { ROLE_CHANGE, 3, 6 },
    [MAP_CODE_SUM ... MAP_CODE_MOMENTS] = { ROLE_USE, 0, 0 },
};

/* ---- steps ----------------------------------------------------------------------------------- */

static bool same_address(map_address a, map_address b)
{
    return a.base == b.base && a.addressing == b.addressing && a.place == b.place;
}

static int value_new(jit_compiler *c)
{
    c->value[c->value_count] = (value){ .last = -1 };
    return c->value_count++;
}

/* True if the main program writes to the address, so that it differs from unit to unit. */
static bool is_written(const jit_compiler *c, map_address a)
{
    int64_t strip = (int64_t)c->machine->unit * (int64_t)sizeof(float);

    for (int k = 0; k < c->program_count; k++) {
        const map_instruction *i = &c->program[k];
        bool writes = i->code == MAP_CODE_KEEP || i->code == MAP_CODE_CALL
                   || i->code == MAP_CODE_VISIT;
        int64_t size = strip * (i->code == MAP_CODE_VISIT && i->rows > 1 ? i->rows : 1);
        for (int n = 0; writes && n < (i->code == MAP_CODE_VISIT ? 2 : 1); n++)
            if (i->at[n].base == 0 && a.place < i->at[n].place + size
                && i->at[n].place < a.place + strip)
                return true;
    }
    return false;
}

/* True for a value that is the same in all vectors of a unit. */
static bool is_steady(const jit_compiler *c, map_address a, bool even)
{
    if (a.base != 0 || (a.addressing != MAP_STAY && !even))
        return false;
    return !is_written(c, a);
}

/* The value of an operand, or IN_MEMORY. */
static int find_value(jit_compiler *c, map_address a, bool even)
{
    int v;

    for (int k = c->kept_count - 1; k >= 0; k--)
        if (same_address(c->kept[k].at, a))
            return c->kept[k].value;
    if (!is_steady(c, a, even))
        return IN_MEMORY;
    for (int k = 0; k < c->value_count; k++)
        if (c->value[k].steady && !c->value[k].reciprocal && same_address(c->value[k].at, a))
            return k;
    v = value_new(c);
    c->value[v].steady = true;
    c->value[v].at = a;
    return v;
}

static int find_reciprocal(jit_compiler *c, int which)
{
    int v;

    for (int k = 0; k < c->value_count; k++)
        if (c->value[k].reciprocal && c->value[k].at.place == which)
            return k;
    v = value_new(c);
    c->value[v].steady = c->value[v].reciprocal = true;
    c->value[v].at.place = which;
    return v;
}

static void keep_value(jit_compiler *c, map_address a, int v)
{
    int k = 0;

    while (k < c->kept_count && !same_address(c->kept[k].at, a))
        k++;
    if (k == KEEPS) {
        c->failed = true;
        return;
    }
    c->kept[k].at = a;
    c->kept[k].value = v;
    c->kept_count += k == c->kept_count;
}

/*
 * True if instructions after the run may read the strip before they write it. A visit may read it.
 */
static bool is_read_later(const jit_compiler *c, map_address a)
{
    for (int k = c->end; k < c->program_count; k++) {
        const map_instruction *i = &c->program[k];
        const jit_trait *t = &jit_traits[i->code];
        int first = i->code == MAP_CODE_CALL, count = first ? 4 : t->count;
        for (int n = first; n < count; n++)
            if (same_address(i->at[n], a))
                return true;
        if ((i->code == MAP_CODE_KEEP || i->code == MAP_CODE_CALL) && same_address(i->at[0], a))
            return false;
        if (i->code == MAP_CODE_VISIT)
            return true;
    }
    return false;
}

static void read_value(jit_compiler *c, int v)
{
    if (v < 0)
        return;
    c->value[v].last = c->step_count;
    c->value[v].reads++;
}

static void add_step(jit_compiler *c, step s)
{
    read_value(c, s.in);
    for (int k = 0; k < 4; k++)
        read_value(c, s.from[k]);
    c->step[c->step_count++] = s;
}

/* Turn the run's instructions into steps; instructions that only move a value need none. */
static void make_steps(jit_compiler *c)
{
    int in = NOWHERE;

    c->step_count = c->value_count = c->kept_count = 0;
    for (int k = c->first; k < c->end && !c->failed; k++) {
        const map_instruction *i = &c->program[k];
        const jit_trait *t = &jit_traits[i->code];
        step s = { i, in, NOWHERE, { NOWHERE, NOWHERE, NOWHERE, NOWHERE } };
        if (in == NOWHERE
            && (t->role == ROLE_CHANGE || t->role == ROLE_KEEP || t->role == ROLE_USE)) {
            /* The result of a call before the run. */
            if (c->first == 0 || c->program[c->first - 1].code != MAP_CODE_CALL) {
                c->failed = true;
                return;
            }
            s.in = in = value_new(c);
            add_step(c, (step){ &c->program[c->first - 1], NOWHERE, in,
                                { IN_MEMORY, NOWHERE, NOWHERE, NOWHERE } });
        }
        for (int n = 0; n < t->count; n++)
            s.from[n] = find_value(c, i->at[n], t->even >> n & 1);
        if (i->code == MAP_CODE_MOMENTS)
            s.from[2] = find_reciprocal(c, i->at[0].addressing == MAP_MOMENTS_LANES);
        switch (t->role) {
        case ROLE_LOAD:
            if (s.from[0] >= 0) {
                in = s.from[0];
                break;
            }
            /* fall through */
        case ROLE_MAKE:
            s.in = NOWHERE;
            in = s.to = value_new(c);
            add_step(c, s);
            break;
        case ROLE_CHANGE:
            in = s.to = value_new(c);
            add_step(c, s);
            break;
        case ROLE_KEEP:
            keep_value(c, i->at[0], in);
            if (is_read_later(c, i->at[0]))
                add_step(c, s);
            break;
        case ROLE_USE:
            add_step(c, s);
            break;
        case ROLE_FETCH:
            s.in = NOWHERE;
            add_step(c, s);
            break;
        case ROLE_ALONE:
            c->failed = true;
        }
    }
}

/* ---- registers ------------------------------------------------------------------------------- */

/* Free groups of 'together' registers, by the first of each. */
typedef struct register_pool { int free[POOL], count; } register_pool;

/* Free the value's registers if no step after s reads it. */
static void free_registers(const jit_compiler *c, register_pool *p, int v, int s)
{
    if (v >= 0 && !c->value[v].steady && c->value[v].last <= s)
        p->free[p->count++] = c->value[v].reg[0];
}

/* Steady values have the last registers, one each. Returns the count of registers left. */
static int give_steady(jit_compiler *c)
{
    int left = POOL;

    for (int v = 0; v < c->value_count; v++)
        if (c->value[v].steady && c->value[v].reads > 0)
            c->value[v].reg[0] = c->value[v].reg[1] = --left;
    return left;
}

/*
 * Allocate registers for all values of 'together' vectors. A result may reuse the registers of a
 * value that its step reads last: each vector is written after the same vector of every operand is
 * read.
 */
static bool give_registers(jit_compiler *c)
{
    register_pool p = { .count = 0 };
    int left = give_steady(c);

    if (left < 0)
        return false;
    for (int k = 0; k + c->together <= left; k += c->together)
        p.free[p.count++] = k;
    for (int s = 0; s < c->step_count; s++) {
        const step *x = &c->step[s];
        free_registers(c, &p, x->in, s);
        for (int k = 0; k < 4; k++) {
            bool twice = x->from[k] == x->in;
            for (int j = 0; j < k; j++)
                twice = twice || x->from[j] == x->from[k];
            if (!twice)
                free_registers(c, &p, x->from[k], s);
        }
        if (x->to < 0)
            continue;
        if (p.count == 0)
            return false;
        c->value[x->to].reg[0] = p.free[--p.count];
        c->value[x->to].reg[1] = c->value[x->to].reg[0] + 1;
        free_registers(c, &p, x->to, s); /* values that no step reads */
    }
    return true;
}

/* True if every reader of the steady value can also take it from memory. */
static bool can_release(const jit_compiler *c, int v)
{
    for (int s = 0; s < c->step_count; s++) {
        const step *x = &c->step[s];
        if (x->in == v)
            return false;
        for (int k = 0; k < 4; k++)
            if (x->from[k] == v && !same_address(x->i->at[k], c->value[v].at))
                return false;
    }
    return c->value[v].steady && !c->value[v].reciprocal && c->value[v].reads > 0;
}

/* Move the steady value with the fewest reads back to memory. */
static bool release_steady(jit_compiler *c)
{
    int least = -1;

    for (int v = 0; v < c->value_count; v++)
        if (can_release(c, v) && (least < 0 || c->value[v].reads < c->value[least].reads))
            least = v;
    if (least < 0)
        return false;
    for (int s = 0; s < c->step_count; s++)
        for (int k = 0; k < 4; k++)
            if (c->step[s].from[k] == least)
                c->step[s].from[k] = IN_MEMORY;
    c->value[least].reads = 0;
    return true;
}

bool jit_steps(jit_compiler *c)
{
    for (c->together = 2; c->together > 0; c->together--) {
        make_steps(c);
        if (c->failed)
            return false;
        do {
            if (give_registers(c))
                return true;
        } while (release_steady(c));
    }
    return false;
}
