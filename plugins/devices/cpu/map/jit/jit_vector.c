/*
 * jit_vector.c - the machine code of steps, vector by vector.
 *
 * Each step gives the bits of its interpreter instruction, except for the choice between two NaN
 * operands of a sum or product: there the C compiler decides.
 */
#include "cpu/map/jit/jit_internal.h"

/* The step and vector for which code is written. */
typedef struct at {
    jit_compiler *c;
    const step *s;
    int part;                  /* index among the vectors processed together                      */
} at;

static int reg(at a, int v) { return a.c->value[v].reg[a.part]; }

static void put_vector(at a, x86_operation o, int to, int left, x86_operand right)
{
    x86_put(a.c->code, o, to, left, right, 0, false, -1);
}

/* Operand k, in a register or in memory. */
static x86_operand operand_of(at a, int k)
{
    if (a.s->from[k] >= 0)
        return x86_vector(reg(a, a.s->from[k]));
    return jit_operand(a.c, &a.s->i->at[k], (int64_t)a.part * LANES * 4);
}

/* Operand k in a register; 'spare' receives it from memory. */
static int load_operand(at a, int k, int spare)
{
    x86_operand o = operand_of(a, k);

    if (!o.memory)
        return o.number;
    put_vector(a, x86_load, spare, 0, o);
    return spare;
}

static void widen_bf16(at a, int to, x86_operand words)
{
    put_vector(a, x86_words_widened, to, 0, words);
    x86_put(a.c->code, x86_shift, X86_SHIFT_LEFT, to, x86_vector(to), 0, false, 16);
}

static x86_operand words_at(at a, int k)
{
    return jit_operand(a.c, &a.s->i->at[k], (int64_t)a.part * LANES * 2);
}

static void write_mask(at a, int mask, int what, int left, x86_operand right)
{
    x86_put(a.c->code, x86_compare, mask, left, right, 0, false, what);
}

/* Blend: lanes of the mask from 'then', others from 'otherwise'. */
static void write_blend(at a, int to, int mask, int otherwise, x86_operand then)
{
    x86_put(a.c->code, x86_blend, to, otherwise, then, mask, false, -1);
}

static void one_or_zero(at a, int mask)
{
    x86_put(a.c->code, x86_broadcast, reg(a, a.s->to), 0, jit_broadcast_source(a.c, CONSTANT_ONE),
            mask, true, -1);
}

/* Leaky ReLU: x > [0] ? accumulator : accumulator times [1]. */
static void write_leaky_relu(at a, int x)
{
    int in = reg(a, a.s->in);

    write_mask(a, 1, X86_GREATER, x, operand_of(a, 0));
    put_vector(a, x86_mul, TEMPORARY + 1, in, operand_of(a, 1));
    write_blend(a, reg(a, a.s->to), 1, TEMPORARY + 1, x86_vector(in));
}

static void write_leaky_relu_gradient(at a)
{
    enum { x = TEMPORARY, below, above, bend };
    int g = reg(a, a.s->in), q = load_operand(a, 1, bend);

    write_mask(a, 1, X86_GREATER, load_operand(a, 0, x), x86_vector(q));
    write_blend(a, below, 1, g, x86_vector(q));
    put_vector(a, x86_mul, below, below, operand_of(a, 2));
    write_blend(a, above, 1, q, x86_vector(g));
    put_vector(a, x86_add, reg(a, a.s->to), above, x86_vector(below));
}

/* vector_max_nan of interpreter_vector.h: NaN propagates. */
static void write_max_nan(at a, int to, x86_operation larger, int x, x86_operand y)
{
    put_vector(a, larger, TEMPORARY + 1, x, y);
    write_mask(a, 1, X86_NOT_EQUAL, x, x86_vector(x));
    write_blend(a, to, 1, TEMPORARY + 1, x86_vector(x));
}

static void write_reduction(at a)
{
    x86_operand m = jit_operand(a.c, &a.s->i->at[0], (int64_t)a.part * LANES * 4);
    int in = reg(a, a.s->in);

    put_vector(a, x86_load, TEMPORARY, 0, m);
    if (a.s->i->code == MAP_CODE_SUM)
        put_vector(a, x86_add, TEMPORARY, TEMPORARY, x86_vector(in));
    else
        write_max_nan(a, TEMPORARY, a.s->i->code == MAP_CODE_MAXIMUM ? x86_max : x86_min, in,
                      x86_vector(TEMPORARY));
    put_vector(a, x86_store, TEMPORARY, 0, m);
}

static void write_moments(at a)
{
    enum { distance = TEMPORARY, mean, rest, square };
    x86_operand means = jit_operand(a.c, &a.s->i->at[0], (int64_t)a.part * LANES * 4);
    x86_operand squares = jit_operand(a.c, &a.s->i->at[1], (int64_t)a.part * LANES * 4);
    int x = reg(a, a.s->in);

    put_vector(a, x86_load, mean, 0, means);
    put_vector(a, x86_sub, distance, x, x86_vector(mean));
    put_vector(a, x86_multiply_add, mean, distance, x86_vector(a.c->value[a.s->from[2]].reg[0]));
    put_vector(a, x86_sub, rest, x, x86_vector(mean));
    put_vector(a, x86_load, square, 0, squares);
    put_vector(a, x86_multiply_add, square, distance, x86_vector(rest));
    put_vector(a, x86_store, mean, 0, means);
    put_vector(a, x86_store, square, 0, squares);
}

static x86_operand pair_at(at a, pointer_kind kind, int64_t bytes)
{
    return jit_interleaved_operand(a.c, &a.s->i->at[0], kind, bytes);
}

/* One of two bf16 values, the halves of a 32-bit word. */
static void write_pair_bf16(at a, bool second)
{
    int to = reg(a, a.s->to);

    put_vector(a, x86_load, to, 0, pair_at(a, POINTER_PAIR_16, (int64_t)a.part * LANES * 4));
    if (second)
        put_vector(a, x86_and, to, to, jit_constant(a.c, CONSTANT_UPPER));
    else
        x86_put(a.c->code, x86_shift, X86_SHIFT_LEFT, to, x86_vector(to), 0, false, 16);
}

static void write_pair_f32(at a, bool second)
{
    int64_t bytes = (int64_t)a.part * LANES * 8;
    int to = reg(a, a.s->to);

    put_vector(a, x86_load, TEMPORARY, 0, pair_at(a, POINTER_PAIR_32, bytes));
    put_vector(a, x86_load, to, 0, x86_at(X86_CODE, (int64_t)a.c->pair_places + 64 * second));
    put_vector(a, x86_permute_two, to, TEMPORARY, pair_at(a, POINTER_PAIR_32, bytes + 64));
}

/*
 * Round to nearest even, into the lower halves of 'to'; the slow path. The bits are those of
 * lane_to_bf16.
 */
static void round_bf16(const jit_compiler *c, int to, int from)
{
    x86_code *x = c->code;

    x86_put(x, x86_add_integer, to, from, jit_constant(c, CONSTANT_HALF), 0, false, -1);
    x86_put(x, x86_test_integer, 2, from, jit_constant(c, CONSTANT_ODD), 0, false, -1);
    x86_put(x, x86_add_integer, to, to, jit_constant(c, CONSTANT_BIT), 2, false, -1);
    x86_put(x, x86_compare, 2, from, x86_vector(from), 0, false, X86_UNORDERED);
    x86_put(x, x86_or, to, from, jit_constant(c, CONSTANT_QUIET), 2, false, -1);
    x86_put(x, x86_shift, X86_SHIFT_RIGHT, to, x86_vector(to), 0, false, 16);
}

static void store_bf16_slowly(const jit_compiler *c, int from, x86_operand to)
{
    round_bf16(c, TEMPORARY, from);
    x86_put(c->code, x86_store_words, TEMPORARY, 0, to, 0, false, -1);
}

/*
 * Store one or two vectors as bf16. The out-of-line code handles subnormal values, which are rare.
 */
static void write_bf16(at a, x86_operand to, bool stream, int count)
{
    jit_compiler *c = a.c;
    int first = reg(a, a.s->in), second = count == 2 ? c->value[a.s->in].reg[1] : first;
    late *l = &c->late[c->late_count];

    if (c->machine->compiles != MAP_COMPILES_BF16) {
        store_bf16_slowly(c, first, to);
        to.displacement += LANES * 2;
        if (count == 2)
            store_bf16_slowly(c, second, to);
        return;
    }
    x86_put(c->code, x86_classify, 1, 0, x86_vector(first), 0, false, 0x20);
    if (count == 2)
        x86_put(c->code, x86_classify, 2, 0, x86_vector(second), 0, false, 0x20);
    x86_test_masks(c->code, 1, count);
    *l = (late){ x86_jump_unless_zero(c->code), 0, { first, second }, count, to };
    c->late_count++;
    if (count == 2) {
        put_vector(a, x86_bf16_of_two, TEMPORARY, second, x86_vector(first));
        put_vector(a, stream ? x86_stream : x86_store, TEMPORARY, 0, to);
    } else {
        put_vector(a, x86_bf16_of_one, TEMPORARY, 0, x86_vector(first));
        put_vector(a, stream ? x86_stream_half : x86_store_half, TEMPORARY, 0, to);
    }
    l->back = c->code->size;
}

void jit_out_of_line(jit_compiler *c)
{
    for (int k = 0; k < c->late_count; k++) {
        late *l = &c->late[k];
        x86_land(c->code, l->jump);
        for (int n = 0; n < l->count; n++) {
            store_bf16_slowly(c, l->reg[n], l->to);
            l->to.displacement += LANES * 2;
        }
        x86_land_at(c->code, x86_jump_always(c->code), l->back);
    }
}

/* ---- families of instructions ---------------------------------------------------------------- */

typedef struct form form;

struct form {
    void (*write)(at a, const form *f);
    const x86_operation *operation;
    int what;                  /* predicate of a comparison                                       */
    bool reverse;              /* the accumulator is the second operand, or PICK's 'then'         */
};

static void write_two(at a, const form *f)
{
    int in = reg(a, a.s->in), to = reg(a, a.s->to);

    if (f->reverse)
        put_vector(a, *f->operation, to, load_operand(a, 0, TEMPORARY), x86_vector(in));
    else
        put_vector(a, *f->operation, to, in, operand_of(a, 0));
}

/* write_two with a bf16 operand. */
static void write_two_bf16(at a, const form *f)
{
    int in = reg(a, a.s->in), to = reg(a, a.s->to);

    widen_bf16(a, TEMPORARY, words_at(a, 0));
    put_vector(a, *f->operation, to, f->reverse ? TEMPORARY : in,
               x86_vector(f->reverse ? in : TEMPORARY));
}

static void write_two_max_nan(at a, const form *f)
{
    int in = reg(a, a.s->in), to = reg(a, a.s->to);

    if (f->reverse)
        write_max_nan(a, to, *f->operation, in, operand_of(a, 0));
    else
        write_max_nan(a, to, *f->operation, load_operand(a, 0, TEMPORARY), x86_vector(in));
}

static void write_compare(at a, const form *f)
{
    write_mask(a, 1, f->what, reg(a, a.s->in), operand_of(a, 0));
    one_or_zero(a, 1);
}

/* Select: [0] compared with [1] ? [2] : accumulator; reversed, ? accumulator : [2]. */
static void write_select(at a, const form *f)
{
    int in = reg(a, a.s->in), to = reg(a, a.s->to);

    write_mask(a, 1, f->what, load_operand(a, 0, TEMPORARY), operand_of(a, 1));
    if (f->reverse)
        write_blend(a, to, 1, load_operand(a, 2, TEMPORARY), x86_vector(in));
    else
        write_blend(a, to, 1, in, operand_of(a, 2));
}

#define TWO(code, operation) [MAP_CODE_##code] = { write_two, &x86_##operation, 0, false }
#define TWO_R(code, operation) [MAP_CODE_##code] = { write_two, &x86_##operation, 0, true }
#define WITH_BF16(code, operation, reverse)                                                       \
    [MAP_CODE_##code##_BF16] = { write_two_bf16, &x86_##operation, 0, reverse }
#define WITH_NAN(code, operation, reverse)                                                        \
    [MAP_CODE_##code] = { write_two_max_nan, &x86_##operation, 0, reverse }
#define COMPARE(code) [MAP_CODE_##code] = { write_compare, NULL, X86_##code, false }
#define SELECT(code, what)                                                                        \
    [MAP_CODE_##code] = { write_select, NULL, X86_##what, false },                                \
    [MAP_CODE_##code##_R] = { write_select, NULL, X86_##what, true }

/* MIN and MAX return the second operand if both are equal or one is NaN, as the processor does. */
static const form forms[MAP_CODE_COUNT] = {
    TWO(ADD, add), TWO(ADD_EVEN, add), TWO(MUL, mul), TWO(MUL_EVEN, mul), TWO(SUB, sub),
    TWO(SUB_EVEN, sub), TWO_R(SUB_R, sub), TWO_R(SUB_R_EVEN, sub), TWO(DIV, div),
    TWO(DIV_EVEN, div), TWO_R(DIV_R, div), TWO_R(DIV_R_EVEN, div), TWO(MIN, min),
    TWO_R(MIN_R, min), TWO(MAX, max), TWO_R(MAX_R, max), WITH_BF16(ADD, add, false),
    WITH_BF16(MUL, mul, false), WITH_BF16(SUB, sub, false), WITH_BF16(SUB_R, sub, true),
    WITH_NAN(MAX_NAN, max, false), WITH_NAN(MAX_NAN_R, max, true), WITH_NAN(MIN_NAN, min, false),
    WITH_NAN(MIN_NAN_R, min, true), COMPARE(EQUAL), COMPARE(NOT_EQUAL), COMPARE(GREATER),
    COMPARE(GREATER_EQUAL), COMPARE(LESS), COMPARE(LESS_EQUAL), SELECT(SELECT_EQUAL, EQUAL),
    SELECT(SELECT_NOT_EQUAL, NOT_EQUAL), SELECT(SELECT_GREATER, GREATER),
    SELECT(SELECT_GREATER_EQUAL, GREATER_EQUAL), SELECT(SELECT_ALL_EQUAL, EQUAL),
    SELECT(SELECT_ALL_NOT_EQUAL, NOT_EQUAL), SELECT(SELECT_ALL_GREATER, GREATER),
    SELECT(SELECT_ALL_GREATER_EQUAL, GREATER_EQUAL), SELECT(SELECT_GT, GREATER),
        SELECT(SELECT_GT_ONE, GREATER),
};

/* ---- all ------------------------------------------------------------------------------------- */

/* Loads and stores; false if the instruction is neither. */
static bool write_move(at a, int in, int to)
{
    const map_instruction *i = a.s->i;
    int64_t floats = (int64_t)a.part * LANES * 4, bytes = (int64_t)a.part * LANES;
    bool streams = a.c->streams;

    switch (i->code) {
    case MAP_CODE_LOAD_F32: case MAP_CODE_LOAD_EVEN: put_vector(a, x86_load, to, 0,
                                                                operand_of(a, 0)); break;
    case MAP_CODE_CALL: put_vector(a, x86_load, to, 0, jit_operand(a.c, &i->at[0], floats)); break;
    case MAP_CODE_LOAD_BF16: widen_bf16(a, to, words_at(a, 0)); break;
    case MAP_CODE_LOAD_U8:
        put_vector(a, x86_bytes_widened, to, 0, jit_operand(a.c, &i->at[0], bytes));
        put_vector(a, x86_from_integer, to, 0, x86_vector(to));
        break;
    case MAP_CODE_PAIR_FIRST_F32: case MAP_CODE_PAIR_SECOND_F32:
        write_pair_f32(a, i->code == MAP_CODE_PAIR_SECOND_F32);
        break;
    case MAP_CODE_PAIR_FIRST_BF16: case MAP_CODE_PAIR_SECOND_BF16:
        write_pair_bf16(a, i->code == MAP_CODE_PAIR_SECOND_BF16);
        break;
    case MAP_CODE_GROUPS_F32:
        put_vector(a, x86_load, to, 0, jit_group_operand(a.c, i, a.part, false));
        break;
    case MAP_CODE_GROUPS_BF16: widen_bf16(a, to, jit_group_operand(a.c, i, a.part, true)); break;
    case MAP_CODE_KEEP: case MAP_CODE_STORE_F32:
        put_vector(a, x86_store, in, 0, jit_operand(a.c, &i->at[0], floats));
        break;
    case MAP_CODE_STREAM_F32:
        put_vector(a, streams ? x86_stream : x86_store, in, 0, jit_operand(a.c, &i->at[0], floats));
        break;
    case MAP_CODE_STORE_GROUPS_F32:
        put_vector(a, x86_store, in, 0, jit_group_operand(a.c, i, a.part, false));
        break;
    case MAP_CODE_STORE_GROUPS_BF16:
        write_bf16(a, jit_group_operand(a.c, i, a.part, true), false, 1);
        break;
    case MAP_CODE_STORE_BF16: case MAP_CODE_STREAM_BF16:
        if (a.part == 0)
            write_bf16(a, words_at(a, 0), i->code == MAP_CODE_STREAM_BF16 && streams,
                       a.c->together);
        break;
    default: return false;
    }
    return true;
}

static void write_vector(at a)
{
    const form *f = &forms[a.s->i->code];
    int in = a.s->in >= 0 ? reg(a, a.s->in) : 0, to = a.s->to >= 0 ? reg(a, a.s->to) : 0;

    if (f->write != NULL) {
        f->write(a, f);
        return;
    }
    if (write_move(a, in, to))
        return;
    switch (a.s->i->code) {
    case MAP_CODE_NEG: put_vector(a, x86_xor, to, in, jit_constant(a.c, CONSTANT_SIGN)); break;
    case MAP_CODE_ABS: put_vector(a, x86_and, to, in, jit_constant(a.c, CONSTANT_SIZE)); break;
    case MAP_CODE_SQRT: put_vector(a, x86_sqrt, to, 0, x86_vector(in)); break;
    case MAP_CODE_NOT:
        put_vector(a, x86_xor, TEMPORARY, TEMPORARY, x86_vector(TEMPORARY));
        write_mask(a, 1, X86_EQUAL, in, x86_vector(TEMPORARY));
        one_or_zero(a, 1);
        break;
    case MAP_CODE_LEAKY_RELU: write_leaky_relu(a, in); break;
    case MAP_CODE_LEAKY_RELU_BY: write_leaky_relu(a, load_operand(a, 2, TEMPORARY)); break;
    case MAP_CODE_LEAKY_RELU_GRADIENT:
    case MAP_CODE_LEAKY_RELU_GRADIENT_EVEN: write_leaky_relu_gradient(a); break;
    case MAP_CODE_SUM: case MAP_CODE_MAXIMUM: case MAP_CODE_MINIMUM: write_reduction(a); break;
    case MAP_CODE_MOMENTS: write_moments(a); break;
    default: a.c->failed = true;
    }
}

static bool is_prefetch(const step *s)
{
    return jit_traits[s->i->code].role == ROLE_FETCH;
}

/* Prefetch an operand for a later unit. */
static void write_prefetch(jit_compiler *c, const step *s)
{
    int lane = s->i->code == MAP_CODE_FETCH_32 ? 4 : s->i->code == MAP_CODE_FETCH_16 ? 2 : 1;

    for (int line = 0; line < c->machine->unit * lane; line += 64) {
        x86_prefetch(c->code, jit_operand(c, &s->i->at[0], MAP_AHEAD + line), 1);
        x86_prefetch(c->code, jit_operand(c, &s->i->at[0], MAP_FAR_AHEAD + line), 2);
    }
}

/* Jump to 'unit' for the next unit of the tile, if that is whole. */
static void write_next_unit(jit_compiler *c, size_t unit)
{
    const int cycle = c->plan->cycle, lanes = VECTORS * LANES;
    const x86_operand cycle_lane = x86_at(X86_RSI, UNIT_AT(cycle_lane));
    const x86_operand lane = x86_at(X86_RSI, UNIT_AT(lane));
    x86_code *x = c->code;
    size_t end;

    x86_load_signed_32(x, X86_RAX, lane);
    x86_add_number(x, X86_RAX, lanes);
    x86_compare_with(x, X86_RAX, x86_at(X86_RSI, UNIT_AT(last)));
    end = x86_jump_unless_less(x);
    x86_add_32(x, lane, lanes);
    jit_rewind(c, MAP_STAY, lanes);
    if (cycle > 0) {
        x86_add_32(x, cycle_lane, lanes);
        x86_compare_32(x, cycle_lane, cycle);
        x86_land_at(x, x86_jump_if_less(x), unit);
        x86_add_32(x, cycle_lane, -cycle);
        jit_rewind(c, MAP_PERIOD, cycle);
    }
    x86_land_at(x, x86_jump_always(x), unit);
    x86_land(x, end);
}

/* True if the run is the whole program and computes nothing anew for each unit. */
static bool is_whole_program(const jit_compiler *c)
{
    for (int s = 0; s < c->step_count; s++)
        if (c->step[s].i->code == MAP_CODE_MOMENTS)
            return false;
    return c->first == 0 && c->end == c->program_count - 1;
}

/* Write the loop over vectors; it fits in L1 even with many steps. */
void jit_vectors(jit_compiler *c)
{
    size_t unit = c->code->size, begin;

    for (int s = 0; s < c->step_count; s++)
        if (is_prefetch(&c->step[s]))
            write_prefetch(c, &c->step[s]);
    x86_set_32(c->code, COUNTER, (uint32_t)(VECTORS / c->together));
    begin = c->code->size;
    for (int s = 0; s < c->step_count; s++)
        for (int part = 0; part < c->together && !is_prefetch(&c->step[s]); part++)
            write_vector((at){ c, &c->step[s], part });
    jit_move_pointers(c);
    x86_add_number(c->code, COUNTER, -1);
    x86_land_at(c->code, x86_jump_unless_zero(c->code), begin);
    if (is_whole_program(c))
        write_next_unit(c, unit);
}
