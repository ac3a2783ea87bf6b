/*
 * jit_operands.c - operands and constants of compiled code.
 *
 * A general register holds the sum of an operand's base and its addressing offset during a unit.
 * rsi is the unit, rdi the instruction, rax is free.
 */
#include "cpu/map/jit/jit_internal.h"

static const x86_register pointer_registers[POINTERS] = {
    X86_RCX, X86_RDX, X86_R8, X86_R9, X86_R10, X86_R11, X86_RBX, X86_RBP, X86_R12, X86_R13, X86_R14
};

static int pointer_find(jit_compiler *c, pointer p)
{
    int k = 0;

    while (k < c->pointer_count
           && (c->pointer[k].kind != p.kind || c->pointer[k].base != p.base
               || c->pointer[k].addressing != p.addressing || c->pointer[k].table != p.table))
        k++;
    if (k == POINTERS || (k == c->pointer_count && c->pointers_loaded)) {
        c->failed = true;
        return 0;
    }
    if (k == c->pointer_count) {
        p.in = pointer_registers[k];
        c->pointer[c->pointer_count++] = p;
    }
    return k;
}

x86_operand jit_operand(jit_compiler *c, const map_address *a, int64_t bytes)
{
    pointer p = { POINTER_OPERAND, a->base, a->addressing, NULL, X86_RAX, 0 };

    return x86_at(c->pointer[pointer_find(c, p)].in, a->place + bytes);
}

x86_operand jit_interleaved_operand(jit_compiler *c, const map_address *a, pointer_kind kind,
                                    int64_t bytes)
{
    pointer p = { kind, a->base, MAP_STAY, NULL, X86_RAX, 0 };

    return x86_at(c->pointer[pointer_find(c, p)].in, a->place + bytes);
}

/* Sixteen lanes at an offset from a table. The offset goes to rax. */
x86_operand jit_group_operand(jit_compiler *c, const map_instruction *i, int vector, bool half)
{
    const map_access *access = i->what;
    pointer p = { POINTER_TABLE, 0, MAP_LANES, access->table, X86_RAX, 0 };
    x86_register table = c->pointer[pointer_find(c, p)].in;
    x86_operand at = jit_operand(c, &i->at[0], 0);

    x86_load_signed_32(c->code, X86_RAX, x86_at(table, (int64_t)vector * LANES * 4));
    x86_scale(c->code, X86_RAX, half ? 1 : 2);
    at.indexed = true;
    at.index = X86_RAX;
    return at;
}

/* Find all pointers of the steps, before any code. */
void jit_find_pointers(jit_compiler *c)
{
    c->pointer_count = 0;
    c->pointers_loaded = false;
    for (int v = 0; v < c->value_count; v++)
        if (c->value[v].steady && !c->value[v].reciprocal && c->value[v].reads > 0)
            jit_operand(c, &c->value[v].at, 0);
    for (int s = 0; s < c->step_count; s++) {
        const step *x = &c->step[s];
        const map_instruction *i = x->i;
        int count = i->code == MAP_CODE_MOMENTS ? 2 : 1;
        const map_access *access = i->what;
        switch (i->code) {
        case MAP_CODE_PAIR_FIRST_F32: case MAP_CODE_PAIR_SECOND_F32:
            jit_interleaved_operand(c, &i->at[0], POINTER_PAIR_32, 0);
            continue;
        case MAP_CODE_PAIR_FIRST_BF16: case MAP_CODE_PAIR_SECOND_BF16:
            jit_interleaved_operand(c, &i->at[0], POINTER_PAIR_16, 0);
            continue;
        case MAP_CODE_GROUPS_F32: case MAP_CODE_GROUPS_BF16:
        case MAP_CODE_STORE_GROUPS_F32: case MAP_CODE_STORE_GROUPS_BF16:
            pointer_find(c, (pointer){ POINTER_TABLE, 0, MAP_LANES, access->table, X86_RAX, 0 });
            break;
        default:
            break;
        }
        if (jit_traits[i->code].count == 0) {
            bool none = jit_traits[i->code].role == ROLE_CHANGE
                     && (i->code < MAP_CODE_ADD_BF16 || i->code > MAP_CODE_SUB_R_BF16);
            for (int k = 0; k < count && !none; k++)
                jit_operand(c, &i->at[k], 0);
        }
        for (int k = 0; k < jit_traits[i->code].count; k++)
            if (x->from[k] == IN_MEMORY)
                jit_operand(c, &i->at[k], 0);
    }
    for (int k = 0; k < c->pointer_count; k++)
        if (c->pointer[k].kind == POINTER_TABLE)
            c->pointer[k].constant = x86_constant(c->code, &c->pointer[k].table, sizeof(void *));
    c->pointers_loaded = true;
}

/* A constant as the source of a broadcast. jit_constant makes it a broadcast operand. */
x86_operand jit_broadcast_source(const jit_compiler *c, int which)
{
    return x86_at(X86_CODE, (int64_t)c->constant[which]);
}

x86_operand jit_constant(const jit_compiler *c, int which)
{
    x86_operand o = jit_broadcast_source(c, which);

    o.broadcast = true;
    return o;
}

/* rax holds the table of bases during this code. */
void jit_load_pointers(jit_compiler *c)
{
    x86_code *x = c->code;

    for (int k = FREE_POINTERS; k < c->pointer_count; k++)
        x86_push(x, c->pointer[k].in);
    x86_push(x, COUNTER);
    x86_load_64(x, X86_RAX, x86_at(X86_RSI, UNIT_AT(base)));
    for (int k = 0; k < c->pointer_count; k++) {
        const pointer *p = &c->pointer[k];
        int64_t lanes = UNIT_AT(offset_of_addressing) + MAP_LANES * 8;
        if (p->kind == POINTER_TABLE) {
            x86_load_64(x, p->in, x86_at(X86_CODE, (int64_t)p->constant));
            x86_add_64(x, p->in, x86_at(X86_RSI, lanes));
            continue;
        }
        x86_load_64(x, p->in, x86_at(X86_RAX, (int64_t)p->base * 8));
        if (p->kind != POINTER_OPERAND)
            x86_add_64(x, p->in, x86_at(X86_RSI, lanes));
        if (p->kind == POINTER_PAIR_32)
            x86_add_64(x, p->in, x86_at(X86_RSI, lanes));
        if (p->kind == POINTER_OPERAND && p->addressing != MAP_STAY)
            x86_add_64(x, p->in,
                       x86_at(X86_RSI, UNIT_AT(offset_of_addressing) + (int64_t)p->addressing * 8));
    }
}

void jit_load_steady(jit_compiler *c)
{
    x86_code *x = c->code;

    for (int v = 0; v < c->value_count; v++) {
        const value *a = &c->value[v];
        if (!a->steady || a->reads == 0)
            continue;
        if (!a->reciprocal) {
            x86_put(x, x86_load, a->reg[0], 0, jit_operand(c, &a->at, 0), 0, false, -1);
            continue;
        }
        x86_float_of_32(x, TEMPORARY, x86_at(X86_RSI, UNIT_AT(numbers) + 4 * a->at.place));
        x86_put(x, x86_broadcast, TEMPORARY + 1, 0, jit_broadcast_source(c, CONSTANT_ONE), 0, false,
                -1);
        x86_divide_one(x, TEMPORARY, TEMPORARY + 1, TEMPORARY);
        x86_put(x, x86_broadcast, a->reg[0], 0, x86_vector(TEMPORARY), 0, false, -1);
    }
}

void jit_constants(jit_compiler *c)
{
    static const uint32_t numbers[CONSTANTS] = {
        [CONSTANT_ONE] = 0x3f800000u, [CONSTANT_SIGN] = 0x80000000u, [CONSTANT_SIZE] = 0x7fffffffu,
        [CONSTANT_UPPER] = 0xffff0000u, [CONSTANT_HALF] = 0x7fffu, [CONSTANT_ODD] = 0x10000u,
        [CONSTANT_BIT] = 1, [CONSTANT_QUIET] = 0x400000u,
    };
    int32_t pairs[32];

    for (int k = 0; k < 32; k++)
        pairs[k] = 2 * (k % 16) + k / 16;
    c->pair_places = x86_constant(c->code, pairs, 64);
    x86_constant(c->code, pairs + 16, 64);
    for (int k = 0; k < CONSTANTS; k++)
        c->constant[k] = x86_constant(c->code, &numbers[k], sizeof numbers[k]);
}

/* Restore the caller's registers. */
void jit_restore(jit_compiler *c)
{
    x86_pop(c->code, COUNTER);
    for (int k = c->pointer_count - 1; k >= FREE_POINTERS; k--)
        x86_pop(c->code, c->pointer[k].in);
}

/* Bytes from lane to lane. For groups the table's pointer moves, not the operand's. */
static int64_t pointer_step(const pointer *p)
{
    switch (p->kind) {
    case POINTER_PAIR_32: return 8;
    case POINTER_PAIR_16: case POINTER_TABLE: return 4;
    case POINTER_OPERAND: break;
    }
    if (p->addressing == MAP_WORDS || p->addressing == MAP_BYTES)
        return p->addressing == MAP_WORDS ? 2 : 1;
    return p->addressing == MAP_STAY && p->base > 0 ? 0 : 4;
}

void jit_move_pointers(jit_compiler *c)
{
    for (int k = 0; k < c->pointer_count; k++) {
        int64_t step = pointer_step(&c->pointer[k]);
        if (step > 0)
            x86_add_number(c->code, c->pointer[k].in, step * LANES * c->together);
    }
}

void jit_rewind(jit_compiler *c, map_addressing addressing, int lanes)
{
    for (int k = 0; k < c->pointer_count; k++) {
        const pointer *p = &c->pointer[k];
        if (p->kind == POINTER_OPERAND && p->base == 0 && p->addressing == addressing)
            x86_add_number(c->code, p->in, -4 * (int64_t)lanes);
    }
}
