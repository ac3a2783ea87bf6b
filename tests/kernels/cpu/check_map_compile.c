/*
 * check_map_compile.c - compiled programs of the map machine give the bits of its interpreter.
 * Programs are drawn at random from every instruction, with operands of every kind.
 */
#include "support/soak.h"
#include "support/suite.h"

#include "cpu/cpu_testing.h"
#include "cpu/map/jit/jit.h"
#include "cpu/map/jit/x86_assembler.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { UNIT = 128, LANES = 384, PERIOD = 256, CYCLE = 144, STRIPS = 80, CONSTANTS = 12, MOST = 600,
       BASES = 16 };

/* Offsets in the worker's buffers, in floats. */
enum {
    AT_CONSTANTS = 0,
    AT_EVEN = AT_CONSTANTS + CONSTANTS * UNIT, /* a period whose vectors are the same             */
    AT_PERIOD = AT_EVEN + PERIOD,
    AT_STRIPS = AT_PERIOD + PERIOD,
    AT_SUMS = AT_STRIPS + STRIPS * UNIT,
    AT_MEANS = AT_SUMS + 3 * PERIOD,       /* means and squares, of whole periods and of the rest */
    AT_TILED = AT_MEANS + 4 * PERIOD,
    FLOATS = AT_TILED + 5 * LANES
};

/* Bases after that of the buffers. */
enum { IN_F32 = 1, IN_BF16, IN_U8, IN_PAIRS_F32, IN_PAIRS_BF16, IN_GROUPS_F32, IN_GROUPS_BF16,
       OUT_F32, OUT_BF16, OUT_GROUPS_F32, OUT_GROUPS_BF16 };

typedef struct world {
    _Alignas(64) float buffers[FLOATS];
    _Alignas(64) char memory[BASES][4 * LANES * 2 + 64];
} world;

typedef struct program {
    map_instruction code[MOST];
    int count;
    bool kept[STRIPS];         /* the strip holds a value                                         */
    bool accumulator;          /* the accumulator holds a value                                   */
    int outputs;
} program;

static uint64_t state;

static unsigned random_below(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

/* A random number; the special values of float arithmetic are among them. */
static float random_float(void)
{
    const float special[] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-41f, -1e-41f, 3e38f,
                              nanf("0x3fffff"), 1e-39f };

    return random_below(24) == 0 ? special[random_below(10)]
        : (float)((int)random_below(4001) - 2000) / 256;
}

static int32_t group_table[2][LANES];
static const map_access groups[2] = { { .table = group_table[0] }, { .table = group_table[1] } };

static void world_fill(world *w)
{
    for (int k = 0; k < FLOATS; k++)
        w->buffers[k] = random_float();
    for (int c = 0; c < CONSTANTS; c++)
        for (int k = 1; k < UNIT; k++)
            w->buffers[AT_CONSTANTS + c * UNIT + k] = w->buffers[AT_CONSTANTS + c * UNIT];
    for (int k = 16; k < PERIOD; k++)
        w->buffers[AT_EVEN + k] = w->buffers[AT_EVEN + k % 16];
    for (int b = 0; b < BASES; b++)
        for (int k = 0; k < 2 * LANES; k++)
            if (b == IN_BF16 || b == IN_PAIRS_BF16 || b == IN_GROUPS_BF16)
                map_number_store(PONS_BF16, w->memory[b], k, random_float());
            else
                map_number_store(PONS_F32, w->memory[b], k, random_float());
    for (int k = 0; k < LANES; k++) {
        group_table[0][k] = (LANES / 16 - 1 - k / 16) * 16 + k % 16;
        group_table[1][k] = (k / 16 ^ 1) * 16 + k % 16;
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

static const map_lanes *lanes;

static map_instruction *add(program *p, map_code code)
{
    map_instruction *i = &p->code[p->count++];

    ck_assert_int_lt(p->count, MOST);
    *i = (map_instruction){ .run = lanes->machine->code[code], .code = code,
                            .what = &groups[random_below(2)] };
    return i;
}

static map_address buffer_at(int floats, map_addressing addressing)
{
    return (map_address){ .place = 4 * (int64_t)floats, .addressing = addressing };
}

static map_address strip_at(unsigned k) { return buffer_at(AT_STRIPS + (int)k * UNIT, MAP_STAY); }
static map_address constant_at(void)
{
    return buffer_at(AT_CONSTANTS + (int)random_below(CONSTANTS) * UNIT, MAP_STAY);
}

static map_address even_at(void)
{
    return random_below(2) ? constant_at() : buffer_at(AT_EVEN, MAP_PERIOD);
}

/* Address of floats of any kind. */
static map_address random_floats(const program *p)
{
    unsigned k = random_below(STRIPS);

    for (unsigned n = 0; n < STRIPS && random_below(8) > 0; n++, k = (k + 1) % STRIPS)
        if (p->kept[k])
            return strip_at(k);
    switch (random_below(5)) {
    case 0: return constant_at();
    case 1: return buffer_at(AT_PERIOD, MAP_PERIOD);
    case 2: return even_at();
    case 3: return buffer_at(AT_TILED, MAP_LANES);
    default: return (map_address){ .base = IN_F32, .addressing = MAP_LANES };
    }
}

static void add_load(program *p)
{
    static const struct { map_code code; int base; map_addressing addressing; } loads[] = {
        { MAP_CODE_LOAD_BF16, IN_BF16, MAP_WORDS }, { MAP_CODE_LOAD_U8, IN_U8, MAP_BYTES },
        { MAP_CODE_PAIR_FIRST_F32, IN_PAIRS_F32, MAP_STAY },
        { MAP_CODE_PAIR_SECOND_F32, IN_PAIRS_F32, MAP_STAY },
        { MAP_CODE_PAIR_FIRST_BF16, IN_PAIRS_BF16, MAP_STAY },
        { MAP_CODE_PAIR_SECOND_BF16, IN_PAIRS_BF16, MAP_STAY },
        { MAP_CODE_GROUPS_F32, IN_GROUPS_F32, MAP_STAY },
        { MAP_CODE_GROUPS_BF16, IN_GROUPS_BF16, MAP_STAY },
        { MAP_CODE_LOAD_F32, IN_F32, MAP_LANES },
    };
    unsigned k = random_below(12);

    if (k < 9)
        add(p, loads[k].code)->at[0] = (map_address){ .base = loads[k].base,
                                                      .addressing = loads[k].addressing };
    else if (k == 9)
        add(p, MAP_CODE_LOAD_EVEN)->at[0] = even_at();
    else
        add(p, MAP_CODE_LOAD_F32)->at[0] = random_floats(p);
    p->accumulator = true;
}

static void add_keep(program *p)
{
    unsigned k = random_below(STRIPS);

    add(p, MAP_CODE_KEEP)->at[0] = strip_at(k);
    p->kept[k] = true;
}

/* An instruction that changes the accumulator. */
static void add_change(program *p)
{
    map_code code = (map_code)(MAP_CODE_NEG + random_below(MAP_CODE_SUM - MAP_CODE_NEG));
    bool all = code >= MAP_CODE_SELECT_ALL_EQUAL && code <= MAP_CODE_SELECT_ALL_GREATER_EQUAL_R;
    map_instruction *i = add(p, code);

    for (int k = 0; k < 3; k++)
        i->at[k] = random_floats(p);
    if (code >= MAP_CODE_ADD_BF16 && code <= MAP_CODE_SUB_R_BF16)
        i->at[0] = (map_address){ .base = IN_BF16, .addressing = MAP_WORDS };
    if ((code >= MAP_CODE_ADD_EVEN && code <= MAP_CODE_DIV_R_EVEN) || code == MAP_CODE_LEAKY_RELU
        || code == MAP_CODE_LEAKY_RELU_BY)
        i->at[0] = even_at();
    if ((code >= MAP_CODE_SELECT_GT && code <= MAP_CODE_SELECT_GT_ONE_R)
        || code == MAP_CODE_LEAKY_RELU
        || code == MAP_CODE_LEAKY_RELU_BY || code == MAP_CODE_LEAKY_RELU_GRADIENT_EVEN)
        i->at[1] = even_at();
    if (code == MAP_CODE_SELECT_GT_ONE || code == MAP_CODE_SELECT_GT_ONE_R
        || code == MAP_CODE_LEAKY_RELU_GRADIENT_EVEN)
        i->at[2] = even_at();
    if (all)
        i->at[0] = constant_at(), i->at[1] = constant_at();
}

static void add_reduction(program *p)
{
    map_instruction *i = add(p, (map_code)(MAP_CODE_SUM + random_below(4)));

    i->at[0] = buffer_at(AT_SUMS + (int)(i->code - MAP_CODE_SUM) * PERIOD, MAP_PERIOD);
    if (i->code == MAP_CODE_MOMENTS && random_below(2)) {
        i->at[0] = buffer_at(AT_MEANS, MAP_MOMENTS_PERIOD);
        i->at[1] = buffer_at(AT_MEANS + PERIOD, MAP_MOMENTS_PERIOD);
    } else if (i->code == MAP_CODE_MOMENTS) {
        i->at[0] = buffer_at(AT_TILED + LANES, MAP_MOMENTS_LANES);
        i->at[1] = buffer_at(AT_TILED + 2 * LANES, MAP_MOMENTS_LANES);
    }
}

/* A function call between two runs, which reads and writes strips. */
static void add_call(program *p)
{
    unsigned to = random_below(STRIPS), n = random_below(2);
    map_instruction *i = add(p, MAP_CODE_CALL);

    for (int k = 1; k < 4; k++)
        i->at[k] = random_floats(p);
    i->at[0] = strip_at(to);
    i->call.function = lanes->operation[n ? PONS_MAP_EXP : PONS_MAP_POW][0];
    p->kept[to] = true;
    p->accumulator = true;
}

/* Access to a strip and the next one, like a visit that stores channels. */
static void double_and_swap(const map_unit *unit, const map_instruction *i)
{
    float *a = map_at(unit, &i->at[0]);

    for (int k = 0; k < UNIT; k++) {
        float x = a[k];
        a[k] = 2 * a[k + UNIT];
        a[k + UNIT] = 2 * x;
    }
}

static void add_visit(program *p)
{
    unsigned k = random_below(STRIPS - 1);
    map_instruction *i;

    if (!p->kept[k] || !p->kept[k + 1])
        return;
    i = add(p, MAP_CODE_VISIT);
    i->at[0] = i->at[1] = strip_at(k);
    i->call.visit = double_and_swap;
    i->rows = 2;
    p->accumulator = false;
}

static void add_store(program *p)
{
    static const struct { map_code code; int base; map_addressing addressing; } stores[] = {
        { MAP_CODE_STORE_F32, OUT_F32, MAP_LANES }, { MAP_CODE_STREAM_F32, OUT_F32, MAP_LANES },
        { MAP_CODE_STORE_BF16, OUT_BF16, MAP_WORDS },
        { MAP_CODE_STREAM_BF16, OUT_BF16, MAP_WORDS },
        { MAP_CODE_STORE_GROUPS_F32, OUT_GROUPS_F32, MAP_STAY },
        { MAP_CODE_STORE_GROUPS_BF16, OUT_GROUPS_BF16, MAP_STAY },
    };
    unsigned k = random_below(6);
    map_instruction *i = add(p, stores[k].code);

    i->at[0] = (map_address){ .base = stores[k].base, .addressing = stores[k].addressing };
    i->what = &groups[k % 2]; /* an output has a single table of groups                           */
}

static void add_fetches(program *p)
{
    int base[] = { IN_F32, IN_BF16, IN_U8 };

    for (int k = 0; k < 3; k++) {
        map_instruction *i = add(p, (map_code)(MAP_CODE_FETCH_32 + k));
        i->at[0] = (map_address){ .base = base[k], .addressing = (map_addressing)(MAP_LANES + k) };
    }
}

/* 'keeping': in how many of eight rounds the accumulator is kept. */
static void program_make(program *p, int length, unsigned keeping, bool calls)
{
    *p = (program){ 0 };
    for (int k = 0; k < length; k++) {
        unsigned what = random_below(24);
        if (!p->accumulator || what < 4)
            add_load(p);
        else if (what < 4 + 2 * keeping)
            add_keep(p);
        else if (what == 20)
            add_reduction(p);
        else if (what == 21)
            add_store(p);
        else if (what == 22 && calls)
            add_call(p);
        else if (what == 23 && calls)
            add_visit(p);
        else
            add_change(p);
    }
    if (!p->accumulator)
        add_load(p);
    add_store(p);
    /* Every strip is added once more, so that each of them affects the output. */
    for (unsigned k = 0; k < STRIPS; k++)
        if (p->kept[k])
            add(p, MAP_CODE_ADD)->at[0] = strip_at(k);
    add_store(p);
    add_fetches(p);
    add(p, MAP_CODE_END);
}

/* ---- interpreted and compiled ---------------------------------------------------------------- */

/* Three units; the last one begins the rest of a tile after its whole periods. */
static void run(world *w, const map_instruction *first, const map_plan *plan, int shift)
{
    char *base[BASES];
    map_unit u = { .base = base, .lanes = UNIT, .last = LANES, .points = LANES, .cycle = CYCLE,
                   .period = PERIOD,
                   .earlier = { 2, 4 }, .numbers = { 0, 5 }, .moments = { 0, 8 * (int64_t)LANES },
                   .plan = plan };

    base[0] = (char *)w->buffers;
    for (int b = 1; b < BASES; b++)
        base[b] = w->memory[b] + (b >= OUT_F32 ? shift : 0);
    map_unit_begin_period(&u);
    lanes->machine->begin(first, &u);
    lanes->machine->finish();
}

/* 'exact': NaN has to have the same bits, too. */
static bool same_number(float x, float y, bool exact)
{
    return (x != x && y != y && !exact) || memcmp(&x, &y, sizeof x) == 0;
}

static void check_same(const world *a, const world *b, bool exact, const char *what)
{
    for (int k = 0; k < FLOATS; k++)
        if (k < AT_STRIPS || k >= AT_SUMS)
            ck_assert_msg(same_number(a->buffers[k], b->buffers[k], exact),
                          "%s: float %d is %a, not %a", what, k, (double)b->buffers[k],
                          (double)a->buffers[k]);
    for (int m = OUT_F32; m <= OUT_GROUPS_BF16; m++)
        for (int k = 0; k < LANES; k++) {
            pons_type type = m == OUT_BF16 || m == OUT_GROUPS_BF16 ? PONS_BF16 : PONS_F32;
            float x = map_number_load(type, a->memory[m], k);
            float y = map_number_load(type, b->memory[m], k);
            ck_assert_msg(same_number(x, y, exact), "%s: output %d element %d is %a, not %a", what,
                          m, k, (double)y, (double)x);
        }
}

/*
 * Whether the program adds or multiplies. The C compiler of the interpreter then chooses which of
 * two NaNs remains.
 */
static bool program_computes(const program *p)
{
    for (int k = 0; k < p->count; k++) {
        map_code code = p->code[k].code;
        bool choice = code == MAP_CODE_NEG || code == MAP_CODE_ABS
                   || (code >= MAP_CODE_MIN && code <= MAP_CODE_MAX_R)
                   || (code >= MAP_CODE_SELECT_EQUAL && code <= MAP_CODE_SELECT_GT_ONE_R);
        if (code >= MAP_CODE_NEG && code != MAP_CODE_VISIT && !choice)
            return true;
    }
    return false;
}

/* Number of instructions in the compiled program; 0 if it was not compiled. */
static int check_program(program *p, const char *what)
{
    static world start, plain, quick;
    map_plan plan = { .lanes = lanes, .points = LANES, .period = PERIOD, .cycle = CYCLE };
    map_pass pass = { .code = p->code, .code_count = p->count };
    int left = 0;

    world_fill(&start);
    jit_compile(&plan, &pass);
    while (pass.quick != NULL && pass.quick[left++].code != MAP_CODE_END)
        ;
    for (int shift = 0; shift <= 4 && left > 0; shift += 4) { /* 4: not aligned to a cache line */
        plain = quick = start;
        run(&plain, p->code, &plan, shift);
        run(&quick, pass.quick, &plan, shift);
        check_same(&plain, &quick, !program_computes(p), what);
    }
    jit_free(&pass);
    map_release(&plan);
    return left;
}

static int find_rows(const map_lanes **row)
{
    int n = 0;

    for (int k = 0; k < isa_rows_count(); k++)
        if (isa_map_lanes(k)->machine->compiles != MAP_COMPILES_NOT)
            row[n++] = isa_map_lanes(k);
    return n;
}

/*
 * Short programs, whose values fit into registers two at a time. Long ones, with one value at a
 * time. Programs that need more registers, for values or for pointers, and are divided into several
 * runs.
 */
START_TEST(compiled_programs_give_the_bits_of_the_interpreter)
{
    static const struct { int length; unsigned keeping; bool calls, divided; } kinds[] = {
        { 4, 0, false, false }, { 12, 1, false, true }, { 12, 1, true, true },
        { 60, 3, true, true }, { 120, 6, false, true }, { 300, 8, true, true },
        { 20, 0, false, true },
    };
    static program p;
    const map_lanes *row[8];
    int rows = find_rows(row), rounds = soak_times(400, 40000), most = 0;

    for (int r = 0; r < rows; r++)
        for (int round = 0; round < rounds; round++) {
            char what[80];
            int left;
            lanes = row[r];
            state = (uint64_t)_i << 32 | (unsigned)round;
            snprintf(what, sizeof what, "%s, kind %d, round %d", lanes->name, _i, round);
            program_make(&p, kinds[_i].length, kinds[_i].keeping, kinds[_i].calls);
            left = check_program(&p, what);
            ck_assert_msg(left > 0 && left < p.count, "%s: %d of %d instructions", what, left,
                          p.count);
            most = left > most ? left : most;
        }
    if (rows > 0)
        ck_assert_int_eq(most > 2, kinds[_i].divided);
}
END_TEST

/* A map as a device prepares it: x -> bf16(max(x, 0) + x). */
static const map_instruction *prepare_map(void *device, bool *has_machine)
{
    static pons_operand load = { .type = PONS_F32, .index = PONS_INDEX_SPACE, .stride = { 1 } };
    static pons_value value[] = { { .operation = PONS_VALUE_LOAD },
                                  { .operation = PONS_VALUE_CONSTANT },
                                  { .operation = PONS_MAP_MAX, .argument_count = 2,
                                    .argument = { 0, 1 } },
                                  { .operation = PONS_MAP_ADD, .argument_count = 2,
                                    .argument = { 2, 0 } } };
    static pons_store store = { .to = { .type = PONS_BF16, .index = PONS_INDEX_SPACE,
                                        .stride = { 1 } }, .value = 3 };
    static const pons_map map = { .axis_count = 1, .extent = { 4096 }, .load_count = 1,
                                  .value_count = 4, .store_count = 1, .load = &load, .value = value,
                                  .store = &store };
    const pons_tensor in = { PONS_F32, { 1, { 4096 } } }, out = { PONS_BF16, { 1, { 4096 } } };
    const pons_request request = { .kind = PONS_KERNEL_MAP, .name = "map", .input_count = 1,
                                   .output_count = 1, .input = &in, .output = &out,
                                   .attributes = &map };
    pons_kernel kernel = { 0 };
    pons_error err = PONS_ERROR_INIT;
    const map_instruction *quick;
    bool supported;

    ck_assert(map_prepare(device, &request, &kernel, &supported, &err) == PONS_OK && supported);
    quick = ((map_plan *)kernel.state)->pass[0].quick;
    *has_machine = ((map_plan *)kernel.state)->lanes->machine->compiles != MAP_COMPILES_NOT;
    kernel.free(&kernel);
    return quick;
}

START_TEST(devices_compile_maps_if_the_isa_allows)
{
    pons_device_settings settings = { .count = 1, .threads = 1 };
    pons_error err = PONS_ERROR_INIT;
    bool compiles;
    void *d;

    ck_assert(cpu_operations.open(&settings, &d, &err) == PONS_OK);
    for (int row = 0; row < isa_rows_count(); row++) {
        cpu_device_choose_row(d, row);
        const map_instruction *quick = prepare_map(d, &compiles);
        ck_assert_int_eq(quick != NULL, compiles);
        ck_assert_int_eq(compiles, strncmp(isa_map_lanes(row)->name, "avx512", 6) == 0);
    }
    cpu_device_interpret(d);
    ck_assert_ptr_null(prepare_map(d, &compiles));
    cpu_operations.close(d);
}
END_TEST

/* mprotect fails with EACCES if it would make memory executable. */
static void forbid_executable_memory(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

START_TEST(maps_are_interpreted_if_memory_cannot_be_executable)
{
    pons_device_settings settings = { .count = 1, .threads = 1 };
    pons_error err = PONS_ERROR_INIT;
    bool compiles;
    void *d;

    ck_assert(cpu_operations.open(&settings, &d, &err) == PONS_OK);
    forbid_executable_memory();
    ck_assert_ptr_null(prepare_map(d, &compiles));
    cpu_operations.close(d);
}
END_TEST

/* ---- bytes, as written by GNU as 2.40 -------------------------------------------------------- */

static x86_operand indexed(x86_register base, x86_register index, int displacement)
{
    x86_operand o = x86_at(base, displacement);

    o.indexed = true;
    o.index = index;
    return o;
}

static x86_operand broadcast_operand(x86_register base, int displacement)
{
    x86_operand o = x86_at(base, displacement);

    o.broadcast = true;
    return o;
}

static void check_bytes(x86_code *c, const char *expected, const char *what)
{
    char text[64] = "";

    for (size_t k = 0; k < c->size && k < 20; k++)
        snprintf(text + 3 * k, 4, "%02x ", c->byte[k]);
    ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0
                      && strlen(text) == strlen(expected) + 1,
                  "%s is %s, not %s", what, text, expected);
    c->size = 0;
}

START_TEST(instructions_have_the_bytes_of_gnu_as)
{
    x86_code c = { 0 };
#define V(expected, operation, ...)                                                               \
    x86_put(&c, x86_##operation, __VA_ARGS__);                                                    \
    check_bytes(&c, expected, #operation)
#define G(expected, call)                                                                         \
    call;                                                                                         \
    check_bytes(&c, expected, #call)

    V("62 c1 7c 48 10 4d 01", load, 17, 0, x86_at(X86_R13, 64), 0, false, -1);
    V("62 41 7c 48 11 bc 24 40 23 01 00", store, 31, 0, x86_at(X86_R12, 0x12340), 0, false, -1);
    V("62 b1 7c 28 11 5c 0a 01", store_half, 3, 0, indexed(X86_RDX, X86_R9, 32), 0, false, -1);
    V("62 71 7c 48 2b 48 ff", stream, 9, 0, x86_at(X86_RAX, -64), 0, false, -1);
    V("62 71 7c 28 2b 48 ff", stream_half, 9, 0, x86_at(X86_RAX, -32), 0, false, -1);
    V("62 d1 5c 40 58 dc", add, 3, 20, x86_vector(12), 0, false, -1);
    V("62 f1 5c 40 5c 9b 00 20 00 00", sub, 3, 20, x86_at(X86_RBX, 0x2000), 0, false, -1);
    V("62 91 5c 4a 59 dd", mul, 3, 4, x86_vector(29), 2, false, -1);
    V("62 71 34 58 5e 45 02", div, 8, 9, broadcast_operand(X86_RBP, 8), 0, false, -1);
    V("62 61 7c 48 51 f1", sqrt, 30, 0, x86_vector(1), 0, false, -1);
    V("62 f1 34 40 c2 ce 1e", compare, 1, 25, x86_vector(6), 0, false, X86_GREATER);
    V("62 92 4d 49 65 eb", blend, 5, 6, x86_vector(27), 1, false, -1);
    V("62 d2 7d c9 18 78 01", broadcast, 7, 0, x86_at(X86_R8, 4), 1, true, -1);
    V("62 e2 7d 48 33 46 03", words_widened, 16, 0, x86_at(X86_RSI, 96), 0, false, -1);
    V("62 d2 7d 48 31 52 01", bytes_widened, 2, 0, x86_at(X86_R10, 16), 0, false, -1);
    V("62 f1 7c 48 5b d2", from_integer, 2, 0, x86_vector(2), 0, false, -1);
    V("62 b1 6d 40 72 f3 10", shift, X86_SHIFT_LEFT, 18, x86_vector(19), 0, false, 16);
    V("62 f1 75 48 72 d2 10", shift, X86_SHIFT_RIGHT, 1, x86_vector(2), 0, false, 16);
    V("62 f2 6d 48 77 4f 02", permute_two, 1, 2, x86_at(X86_RDI, 128), 0, false, -1);
    V("62 f2 6d 48 b8 cb", multiply_add, 1, 2, x86_vector(3), 0, false, -1);
    V("62 d3 7d 48 66 cd 20", classify, 1, 0, x86_vector(13), 0, false, 0x20);
    V("62 f2 6f 48 72 cb", bf16_of_two, 1, 2, x86_vector(3), 0, false, -1);
    V("62 f2 7e 48 72 ca", bf16_of_one, 1, 0, x86_vector(2), 0, false, -1);
    V("62 62 7e 48 33 61 01", store_words, 28, 0, x86_at(X86_RCX, 32), 0, false, -1);
    V("62 f2 65 58 27 51 01", test_integer, 2, 3, broadcast_operand(X86_RCX, 4), 0, false, -1);
    V("62 f1 6d 48 db cb", and, 1, 2, x86_vector(3), 0, false, -1);
    V("62 f1 6d 4a eb cb", or, 1, 2, x86_vector(3), 2, false, -1);
    V("62 f1 6d 48 ef cb", xor, 1, 2, x86_vector(3), 0, false, -1);
    V("62 f1 6d 48 fe cb", add_integer, 1, 2, x86_vector(3), 0, false, -1);
    V("62 f1 6c 48 5d cb", min, 1, 2, x86_vector(3), 0, false, -1);
    V("62 f1 6c 48 5f cb", max, 1, 2, x86_vector(3), 0, false, -1);
    G("4c 8b a8 00 10 00 00", x86_load_64(&c, X86_R13, x86_at(X86_RAX, 0x1000)));
    G("49 63 44 24 40", x86_load_signed_32(&c, X86_RAX, x86_at(X86_R12, 64)));
    G("4c 03 46 28", x86_add_64(&c, X86_R8, x86_at(X86_RSI, 40)));
    G("41 bf 04 00 00 00", x86_set_32(&c, X86_R15, 4));
    G("48 81 c7 00 01 00 00", x86_add_number(&c, X86_RDI, 256));
    G("81 7e 44 80 00 00 00", x86_compare_32(&c, x86_at(X86_RSI, 68), 128));
    G("41 f6 c1 3f", x86_test_8(&c, X86_R9, 63));
    G("41 56", x86_push(&c, X86_R14));
    G("5b", x86_pop(&c, X86_RBX));
    G("0f 18 89 00 10 00 00", x86_prefetch(&c, x86_at(X86_RCX, 4096), 1));
    G("41 0f 18 93 00 40 00 00", x86_prefetch(&c, x86_at(X86_R11, 16384), 2));
    G("48 c1 e0 02", x86_scale(&c, X86_RAX, 2));
    G("62 61 1e 00 2a 66 12", x86_float_of_32(&c, 28, x86_at(X86_RSI, 72)));
    G("62 01 16 00 5e e4", x86_divide_one(&c, 28, 29, 28));
    G("81 46 40 80 00 00 00", x86_add_32(&c, x86_at(X86_RSI, 64), 128));
    G("3b 46 44", x86_compare_with(&c, X86_RAX, x86_at(X86_RSI, 68)));
    G("c5 f8 98 ca", x86_test_masks(&c, 1, 2));
    G("ff 67 08", x86_jump(&c, x86_at(X86_RDI, 8)));
    G("f3 0f 1e fa", x86_entry(&c));
    free(c.byte);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("jit_compile");

    tcase_add_loop_test(c, compiled_programs_give_the_bits_of_the_interpreter, 0, 7);
    tcase_add_test(c, devices_compile_maps_if_the_isa_allows);
    tcase_add_test(c, maps_are_interpreted_if_memory_cannot_be_executable);
    tcase_add_test(c, instructions_have_the_bytes_of_gnu_as);
    return suite_run();
}
