/*
 * jit_steps.c - a run of instructions as steps: what each reads and makes, and in which
 * registers that is.
 */
#include "cpu/map/jit/jit_internal.h"

/* ---- what each instruction does -------------------------------------------------------------- */

const compile_trait compile_traits[MAP_CODE_COUNT] = {
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
    [MAP_CODE_PICK_EQUAL ... MAP_CODE_PICK_GREATER_EQUAL_R] = { ROLE_CHANGE, 3, 0 },
    [MAP_CODE_PICK_ALL_EQUAL ... MAP_CODE_PICK_ALL_GREATER_EQUAL_R] = { ROLE_CHANGE, 3, 3 },
    [MAP_CODE_ABOVE ... MAP_CODE_ABOVE_R] = { ROLE_CHANGE, 3, 2 },
    [MAP_CODE_ABOVE_ONE ... MAP_CODE_ABOVE_ONE_R] = { ROLE_CHANGE, 3, 6 },
    [MAP_CODE_BEND] = { ROLE_CHANGE, 2, 3 },
    [MAP_CODE_BEND_BY] = { ROLE_CHANGE, 3, 3 },
    [MAP_CODE_BEND_GRADIENT] = { ROLE_CHANGE, 3, 0 },
    [MAP_CODE_BEND_GRADIENT_EVEN] = { ROLE_CHANGE, 3, 6 },
    [MAP_CODE_SUM ... MAP_CODE_MOMENTS] = { ROLE_USE, 0, 0 },
};

/* ---- steps ----------------------------------------------------------------------------------- */

static bool same_address(map_address a, map_address b)
{
    return a.base == b.base && a.walk == b.walk && a.place == b.place;
}

static int value_new(compiler *c)
{
    c->value[c->value_count] = (value){ .last = -1 };
    return c->value_count++;
}

/* Does the main program write there, and so other numbers for each unit? */
static bool is_written(const compiler *c, map_address a)
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

/* A number of the unit, or of each lane of a vector, that no vector changes. */
static bool is_steady(const compiler *c, map_address a, bool even)
{
    if (a.base != 0 || (a.walk != MAP_STAY && !even))
        return false;
    return !is_written(c, a);
}

/* The value that an operand is, or IN_MEMORY. */
static int find_value(compiler *c, map_address a, bool even)
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

static int find_reciprocal(compiler *c, int which)
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

static void keep_value(compiler *c, map_address a, int v)
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

/* Does what comes behind the run read the strip before it writes it? Visits might. */
static bool is_read_later(const compiler *c, map_address a)
{
    for (int k = c->end; k < c->program_count; k++) {
        const map_instruction *i = &c->program[k];
        const compile_trait *t = &compile_traits[i->code];
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

static void read_value(compiler *c, int v)
{
    if (v < 0)
        return;
    c->value[v].last = c->step_count;
    c->value[v].reads++;
}

static void add_step(compiler *c, step s)
{
    read_value(c, s.in);
    for (int k = 0; k < 4; k++)
        read_value(c, s.from[k]);
    c->step[c->step_count++] = s;
}

/* The run's instructions; what only moves a value is no step. */
static void make_steps(compiler *c)
{
    int in = NOWHERE;

    c->step_count = c->value_count = c->kept_count = 0;
    for (int k = c->first; k < c->end && !c->failed; k++) {
        const map_instruction *i = &c->program[k];
        const compile_trait *t = &compile_traits[i->code];
        step s = { i, in, NOWHERE, { NOWHERE, NOWHERE, NOWHERE, NOWHERE } };
        if (in == NOWHERE
            && (t->role == ROLE_CHANGE || t->role == ROLE_KEEP || t->role == ROLE_USE)) {
            /* What a call before the run has left. */
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
            s.from[2] = find_reciprocal(c, i->at[0].walk == MAP_MOMENTS_LANES);
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

/* Groups of 'together' registers, the first of each. */
typedef struct pool { int free[POOL], count; } pool;

/* If the value is not read behind step s. */
static void put_back(const compiler *c, pool *p, int v, int s)
{
    if (v >= 0 && !c->value[v].steady && c->value[v].last <= s)
        p->free[p->count++] = c->value[v].reg[0];
}

/* Steady values have the last registers, one each; returns how many the others have. */
static int give_steady(compiler *c)
{
    int left = POOL;

    for (int v = 0; v < c->value_count; v++)
        if (c->value[v].steady && c->value[v].reads > 0)
            c->value[v].reg[0] = c->value[v].reg[1] = --left;
    return left;
}

/*
 * Registers for all values, of 'together' vectors at a time. A step's result may lie where a value
 * was that it reads last: each vector of it is written when that vector of all others is read.
 */
static bool give_registers(compiler *c)
{
    pool p = { .count = 0 };
    int left = give_steady(c);

    if (left < 0)
        return false;
    for (int k = 0; k + c->together <= left; k += c->together)
        p.free[p.count++] = k;
    for (int s = 0; s < c->step_count; s++) {
        const step *x = &c->step[s];
        put_back(c, &p, x->in, s);
        for (int k = 0; k < 4; k++) {
            bool twice = x->from[k] == x->in;
            for (int j = 0; j < k; j++)
                twice = twice || x->from[j] == x->from[k];
            if (!twice)
                put_back(c, &p, x->from[k], s);
        }
        if (x->to < 0)
            continue;
        if (p.count == 0)
            return false;
        c->value[x->to].reg[0] = p.free[--p.count];
        c->value[x->to].reg[1] = c->value[x->to].reg[0] + 1;
        put_back(c, &p, x->to, s); /* what nobody reads */
    }
    return true;
}

/* Do all that read the steady value find it in memory, too? */
static bool can_release(const compiler *c, int v)
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

/* The steady value that is read least goes back to memory. */
static bool release_steady(compiler *c)
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

bool compile_steps(compiler *c)
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
