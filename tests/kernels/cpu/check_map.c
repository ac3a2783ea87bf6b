/*
 * check_map.c - map kernels of the cpu device against the interpreter of the core.
 *
 * Random maps of all forms. Results of exact operations must be equal bit by bit. Other results and
 * reductions stay within bounds that follow from the magnitude of the values. Buffers lie against
 * guard pages. One, two and three threads, in place or not, with cached or non-temporal stores,
 * must give equal bits on every instruction set.
 */
#include "support/graph/units.h"
#include "support/suite.h"

#include "cpu/cpu_testing.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "support/guarded.h"

#include <math.h>
#include <string.h>

/* ---- random numbers of a seed ---------------------------------------------------------------- */

static uint64_t state;

static uint32_t random_bits(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

static int random_below(int n) { return (int)(random_bits() % (uint32_t)n); }

/* ---- a random map ---------------------------------------------------------------------------- */

#define TENSORS 12
#define VALUES 40

typedef struct sample {
    pons_map map;
    pons_operand load[TENSORS];
    pons_value value[VALUES];
    pons_store store[4];
    pons_reduction reduction[3];
    double bound[VALUES];      /* bound of the value's magnitude                                  */
    bool exact[VALUES];        /* every operation below it is exact or correctly rounded          */
    int64_t start[8], length[8];
    int64_t input_count[TENSORS], output_count[TENSORS];
    bool output_reduced[TENSORS], output_exact[TENSORS];
    double output_bound[TENSORS];
    pons_tensor input[TENSORS], output[TENSORS];
    int inputs, outputs;
    int64_t points;
} sample;

static const pons_type types[] = { PONS_F32, PONS_F32, PONS_F32, PONS_BF16, PONS_U8, PONS_I32,
                                   PONS_F16 };

static int64_t operand_span(const sample *s, const pons_operand *o)
{
    int64_t n = o->offset + 1;

    if (s->map.segment_count > 0) {
        int64_t end = 0;
        for (int i = 0; i < s->map.segment_count; i++)
            if (s->start[i] + s->length[i] > end)
                end = s->start[i] + s->length[i];
        return o->offset + (o->index == PONS_INDEX_ELEMENT ? end
                            : o->index == PONS_INDEX_SEGMENT ? s->map.segment_count : 1);
    }
    for (int i = 0; i < s->map.axis_count; i++)
        n += (s->map.extent[i] - 1) * o->stride[i];
    return n;
}

/* Strides over the axes of 'kept' in a random order, dense or with gaps. */
static void random_strides(const sample *s, pons_operand *o, unsigned kept, bool plain)
{
    int order[PONS_MAP_AXES], n = s->map.axis_count;
    int64_t stride = plain || random_below(3) > 0 ? 1 : 1 + random_below(3);

    for (int i = 0; i < n; i++)
        order[i] = n - 1 - i;
    if (!plain && random_below(4) == 0)
        for (int i = n - 1; i > 0; i--) {
            int k = random_below(i + 1), t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
    for (int i = 0; i < n; i++) {
        int a = order[i];
        o->stride[a] = kept >> a & 1 ? stride : 0;
        if (kept >> a & 1)
            stride *= s->map.extent[a] + (!plain && random_below(5) == 0 ? random_below(4) : 0);
    }
    o->offset = plain ? 0 : random_below(3) == 0 ? random_below(20) : 0;
}

static pons_operand random_operand(const sample *s, unsigned kept)
{
    pons_operand o = { .index = PONS_INDEX_SPACE };

    if (s->map.segment_count > 0) {
        o.index = (pons_index_space)(PONS_INDEX_ELEMENT + random_below(3));
        o.offset = random_below(3) == 0 ? random_below(7) : 0;
    } else {
        random_strides(s, &o, kept, random_below(2) == 0);
    }
    return o;
}

static unsigned all_axes(const sample *s) { return (1u << s->map.axis_count) - 1; }

static void add_value(sample *s, pons_value v, double bound, bool exact)
{
    s->value[s->map.value_count] = v;
    s->bound[s->map.value_count] = bound;
    s->exact[s->map.value_count++] = exact;
}

static void add_load(sample *s)
{
    unsigned last = s->map.axis_count > 0 ? 1u << (s->map.axis_count - 1) : 0;
    unsigned kept = random_below(2) ? all_axes(s) : (unsigned)random_bits() & all_axes(s);
    pons_operand o = random_operand(s, kept);
    pons_value v = { .operation = PONS_VALUE_LOAD, .operand = s->map.load_count };

    o.tensor = s->inputs;
    o.type = types[random_below(7)];
    v.per_point = s->map.channels > 0 && !(kept & last);
    s->load[s->map.load_count++] = o;
    s->input_count[s->inputs] = operand_span(s, &o);
    s->input[s->inputs++].type = o.type;
    add_value(s, v, 4, true);
}

static void add_leaf(sample *s)
{
    pons_value v = { .operation = PONS_VALUE_CONSTANT, .per_point = s->map.channels > 0 };

    switch (random_below(4)) {
    case 0:
        v.operation = PONS_VALUE_IOTA;
        v.divisor = 1 + random_below(7);
        v.modulus = 1 + random_below(9);
        v.per_point = s->map.channels > 0 && random_below(2);
        add_value(s, v, 9, true);
        break;
    case 1:
        v.operation = (uint16_t)(PONS_VALUE_UNIFORM + random_below(2));
        v.stream = random_bits();
        v.per_point = s->map.channels > 0 && random_below(2);
        add_value(s, v, 6, true);
        break;
    default:
        v.number = (random_below(33) - 16) * 0.125;
        add_value(s, v, 2, true);
    }
}

/* Bound of a result's magnitude by operation; 0 if the arguments do not suit the operation. */
static double bound_of_result(int operation, double a, double b, double c)
{
    switch (operation) {
    case PONS_MAP_ADD: case PONS_MAP_SUB: return a + b;
    case PONS_MAP_MUL: return a * b;
    case PONS_MAP_MIN: case PONS_MAP_MAX: return a > b ? a : b;
    case PONS_MAP_SELECT: return b > c ? b : c;
    case PONS_MAP_EXP: case PONS_MAP_EXPM1: return a <= 3 ? exp(a) : 0;
    case PONS_MAP_FLOOR: return a + 1;
    case PONS_MAP_NEG: case PONS_MAP_ABS: case PONS_MAP_ROUND:
    case PONS_MAP_STOP_GRADIENT: return a;
    case PONS_MAP_SIN: case PONS_MAP_COS: case PONS_MAP_TANH: case PONS_MAP_ERF:
    case PONS_MAP_SIGN: case PONS_MAP_ISFINITE: case PONS_MAP_NOT: case PONS_MAP_AND:
    case PONS_MAP_OR: case PONS_MAP_EQUAL: case PONS_MAP_NOT_EQUAL: case PONS_MAP_LESS:
    case PONS_MAP_LESS_EQUAL: case PONS_MAP_GREATER: case PONS_MAP_GREATER_EQUAL: return 1;
    default: return 0;
    }
}

static bool is_exact_operation(int operation)
{
    return operation != PONS_MAP_EXP && operation != PONS_MAP_EXPM1 && operation != PONS_MAP_SIN
        && operation != PONS_MAP_COS && operation != PONS_MAP_TANH && operation != PONS_MAP_ERF;
}

/* Discontinuous operations: a small error of the argument is not small in the result. */
static bool is_discontinuous(int operation)
{
    return operation == PONS_MAP_FLOOR || operation == PONS_MAP_ROUND || operation == PONS_MAP_SIGN
        || operation == PONS_MAP_NOT || operation == PONS_MAP_AND || operation == PONS_MAP_OR
        || (operation >= PONS_MAP_EQUAL && operation <= PONS_MAP_GREATER_EQUAL);
}

static const uint8_t arity[] = {
#define PONS_X(NAME, name, count) count,
    PONS_MAP_OPERATIONS(PONS_X)
#undef PONS_X
};

static void add_operation(sample *s)
{
    int operation = random_below(PONS_MAP_OPERATION_COUNT), n = s->map.value_count;
    pons_value v = { .operation = (uint16_t)operation, .argument_count = arity[operation],
                     .per_point = s->map.channels > 0 };
    double b[3] = { 0 }, bound;
    bool exact = true;

    for (int i = 0; i < v.argument_count; i++) {
        v.argument[i] = n > 6 && random_below(3) ? n - 1 - random_below(6) : random_below(n);
        b[i] = s->bound[v.argument[i]];
        exact = exact && s->exact[v.argument[i]];
        v.per_point = v.per_point && s->value[v.argument[i]].per_point;
    }
    bound = bound_of_result(operation, b[0], b[1], b[2]);
    if (bound == 0 || bound > 64 || (is_discontinuous(operation) && !exact)
        || (operation == PONS_MAP_SELECT && !s->exact[v.argument[0]]))
        return;
    add_value(s, v, bound, exact && is_exact_operation(operation));
}

static void add_channel(sample *s)
{
    int a = random_below(s->map.value_count), operation = PONS_VALUE_CHANNEL_SUM + random_below(4);
    pons_value v = { .operation = (uint16_t)operation, .per_point = 1, .argument_count = 1,
                     .argument = { a } };
    bool sum = operation == PONS_VALUE_CHANNEL_SUM, place = operation == PONS_VALUE_CHANNEL_ARG_MAX;
    double bound = sum ? s->bound[a] * s->map.channels : place ? s->map.channels : s->bound[a];

    if (s->value[a].per_point || bound > 256 || (place && !s->exact[a]))
        return;
    add_value(s, v, bound, s->exact[a] && !sum);
}

static int random_value(const sample *s, bool wide)
{
    for (int tries = 0; tries < 50; tries++) {
        int v = s->map.value_count - 1 - random_below(s->map.value_count < 10 ? s->map.value_count
                                                      : 10);
        if (!wide || !s->value[v].per_point)
            return v;
    }
    return -1;
}

static void add_output(sample *s, const pons_operand *o, int value, bool reduced, double bound)
{
    s->output_count[s->outputs] = operand_span(s, o);
    s->output[s->outputs].type = o->type;
    s->output_reduced[s->outputs] = reduced;
    s->output_exact[s->outputs] = s->exact[value] && !reduced;
    s->output_bound[s->outputs++] = bound;
}

static void add_store(sample *s)
{
    int v = random_value(s, false);
    unsigned kept = all_axes(s), last = s->map.axis_count > 0 ? 1u << (s->map.axis_count - 1) : 0;
    pons_operand o;

    if (s->value[v].per_point)
        kept &= ~last;
    o = random_operand(s, kept);
    o.index = s->map.segment_count > 0 ? PONS_INDEX_ELEMENT : PONS_INDEX_SPACE;
    o.tensor = s->outputs;
    o.type = s->exact[v] ? types[random_below(7)] : PONS_F32;
    s->store[s->map.store_count++] = (pons_store){ v, o };
    add_output(s, &o, v, false, s->bound[v]);
}

static void add_reduction(sample *s)
{
    int v = random_value(s, false), kinds = random_below(4);
    pons_reduction r = { .kind = (pons_reduction_kind)(PONS_REDUCE_SUM + kinds), .value = v };
    unsigned kept = (unsigned)random_bits() & (unsigned)random_bits() & all_axes(s);
    unsigned last = s->map.axis_count > 0 ? 1u << (s->map.axis_count - 1) : 0;
    double bound = s->bound[v];

    if (s->value[v].per_point)
        kept &= ~last;
    if (r.kind == PONS_REDUCE_MOMENTS && (kept & last)
        && s->map.extent[s->map.axis_count - 1] % 2 == 0
        && s->map.extent[s->map.axis_count - 1] > 1 && s->map.segment_count == 0)
        r.groups = random_below(2) * 2;
    for (int k = 0; k < (r.kind == PONS_REDUCE_MOMENTS ? 2 : 1); k++) {
        r.to[k] = random_operand(s, kept);
        if (s->map.segment_count > 0)
            r.to[k].index = k == 1 ? r.to[0].index
                          : random_below(2) ? PONS_INDEX_SEGMENT : PONS_INDEX_SCALAR;
        r.to[k].tensor = s->outputs;
        r.to[k].type = PONS_F32;
        if (r.kind == PONS_REDUCE_SUM)
            bound = s->bound[v] * (double)s->points;
        add_output(s, &r.to[k], v, true, k == 0 ? bound : bound * bound);
    }
    s->reduction[s->map.reduction_count++] = r;
}

static void sample_space(sample *s, int form)
{
    static const int small[] = { 1, 1, 2, 3, 3, 4, 5, 7, 8, 16, 17, 24, 33 };
    int64_t limit = 60000;

    s->points = 0;
    if (form == 2) {
        int64_t at = 0;
        s->map.segment_count = 1 + random_below(6);
        for (int i = 0; i < s->map.segment_count; i++) {
            s->start[i] = at;
            s->length[i] = 1 + random_below(random_below(3) == 0 ? 5000 : 90);
            at += (s->length[i] + 63) / 64 * 64;
            s->points += s->length[i];
        }
        s->map.segment_start = s->start;
        s->map.segment_length = s->length;
        return;
    }
    s->map.axis_count = form == 1 ? 1 + random_below(4) : random_below(6);
    s->points = 1;
    for (int a = s->map.axis_count - 1; a >= 0; a--) {
        int64_t e = small[random_below(13)];
        if (form == 1 && a == s->map.axis_count - 1)
            e = random_below(3) == 0 ? 1 + random_below(64) : 1 + random_below(5);
        else if (random_below(3) == 0)
            e = 1 + random_below(3000);
        if (s->points * e > limit)
            e = limit / s->points;
        s->map.extent[a] = e;
        s->points *= e;
    }
    if (form == 1)
        s->map.channels = (int)s->map.extent[s->map.axis_count - 1];
}

static void sample_make(sample *s, uint64_t seed)
{
    int form, operations;

    memset(s, 0, sizeof *s);
    state = seed * 7919 + 1;
    random_bits();
    form = random_below(5) == 0 ? 2 : random_below(5) < 2 ? 1 : 0;
    sample_space(s, form);
    for (int i = 1 + random_below(4); i > 0; i--)
        add_load(s);
    for (int i = random_below(3); i > 0; i--)
        add_leaf(s);
    operations = random_below(30);
    for (int i = 0; i < operations && s->map.value_count < VALUES - 2; i++) {
        add_operation(s);
        if (s->map.channels > 0 && random_below(5) == 0)
            add_channel(s);
    }
    for (int i = random_below(3); i > 0; i--)
        add_reduction(s);
    for (int i = random_below(3) + (s->map.reduction_count == 0); i > 0; i--)
        add_store(s);
    s->map.load = s->load;
    s->map.value = s->value;
    s->map.store = s->store;
    s->map.reduction = s->reduction;
    for (int i = 0; i < s->inputs; i++)
        s->input[i].shape = (pons_shape){ 1, { s->input_count[i] } };
    for (int i = 0; i < s->outputs; i++)
        s->output[i].shape = (pons_shape){ 1, { s->output_count[i] } };
}

/* ---- running a map --------------------------------------------------------------------------- */

typedef struct buffers {
    guarded item[TENSORS];
    void *pointer[TENSORS];
    int count;
} buffers;

static buffers buffers_new(int n, const pons_tensor *tensor, int filler)
{
    buffers b = { .count = n };

    for (int i = 0; i < n; i++) {
        size_t size = (size_t)tensor[i].shape.extent[0] * map_type_size(tensor[i].type);
        b.item[i] = guarded_new(size, random_below(4) > 0);
        b.pointer[i] = b.item[i].memory;
        memset(b.pointer[i], filler, size);
    }
    return b;
}

static void buffers_free(buffers *b)
{
    for (int i = 0; i < b->count; i++)
        guarded_free(&b->item[i]);
}

static void fill_inputs(const sample *s, buffers *b)
{
    for (int i = 0; i < s->inputs; i++)
        for (int64_t k = 0; k < s->input_count[i]; k++) {
            float x = (float)(random_below(65) - 32) * 0.125f;
            bool whole = s->input[i].type == PONS_U8 || s->input[i].type == PONS_I32;
            map_number_store(s->input[i].type, b->pointer[i], k, whole ? (float)random_below(5)
                             : x);
        }
}

static uint64_t run_map(const pons_device_operations *operations, void *handle, const sample *s,
                        buffers *in, buffers *out, uint64_t try_share)
{
    static const pons_step_key step_key = { 5, 6, 7 };
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { 0 };
    pons_request request = { .kind = PONS_KERNEL_MAP, .name = "sample", .input_count = s->inputs,
                             .output_count = s->outputs, .input = s->input, .output = s->output,
                             .attributes = &s->map };
    pons_call call = { in->pointer, out->pointer, NULL, &step_key };
    bool supported = false;
    guarded scratch;
    uint64_t share;
    void *own = out->pointer[0];

    ck_assert(operations->prepare(handle, &request, &kernel, &supported, &err) == PONS_OK);
    ck_assert(supported);
    scratch = guarded_new((kernel.scratch_size + 63) / 64 * 64, true);
    memset(scratch.memory, 0xff, scratch.size);
    call.scratch = scratch.memory;
    share = kernel.share;
    if (share & try_share) {
        int i = __builtin_ctzll(share & try_share);
        size_t size = (size_t)s->output_count[0] * map_type_size(s->output[0].type);
        ck_assert_int_ge((int)s->input_count[i], (int)s->output_count[0]);
        out->pointer[0] = in->pointer[i];
        ck_assert(kernel.run(&kernel, &call, &err) == PONS_OK);
        /* The comparison reads the output in its own memory. */
        memcpy(own, out->pointer[0], size);
        out->pointer[0] = own;
    } else {
        ck_assert(kernel.run(&kernel, &call, &err) == PONS_OK);
    }
    if (kernel.free)
        kernel.free(&kernel);
    guarded_free(&scratch);
    return share;
}

static void compare_with_reference(const sample *s, const buffers *a, const buffers *b, int seed,
                                   const char *row)
{
    for (int i = 0; i < s->outputs; i++)
        for (int64_t k = 0; k < s->output_count[i]; k++) {
            double x = (double)map_number_load(s->output[i].type, a->pointer[i], k);
            double y = (double)map_number_load(s->output[i].type, b->pointer[i], k);
            /* The float reference rounds as the device does; functions differ by 2 ulp each. */
            double tolerance = s->output_exact[i] ? 0 : 1e-5 * s->output_bound[i];
            if (s->output_reduced[i])
                tolerance += 1e-6 * s->output_bound[i];
            ck_assert_msg(x == y || fabs(x - y) <= tolerance || (x != x && y != y),
                          "map %d on %s: output %d element %ld is %.9g, should be %.9g (bound %g)",
                          seed, row, i, (long)k, x, y, s->output_bound[i]);
        }
}

static bool same_bits(const sample *s, const buffers *a, const buffers *b)
{
    bool same = true;

    for (int i = 0; i < s->outputs; i++)
        same = same && memcmp(a->pointer[i], b->pointer[i], a->item[i].size) == 0;
    return same;
}

/*
 * Rows whose lanes compile maps are counted twice: the additional rows, behind all others, run the
 * interpreter.
 */
static int row_count(void)
{
    int n = isa_rows_count();

    for (int k = 0; k < isa_rows_count(); k++)
        n += isa_map_lanes(k)->machine->compiles != MAP_COMPILES_NOT;
    return n;
}

static bool is_interpreted(int row) { return row >= isa_rows_count(); }

/* The rows that compile maps are the last ones of the table. */
static int real_row(int row)
{
    return is_interpreted(row) ? row - (row_count() - isa_rows_count()) : row;
}

static const char *row_name(int row)
{
    static char name[64];

    snprintf(name, sizeof name, "%s%s", isa_map_lanes(real_row(row))->name,
             is_interpreted(row) ? ", not compiled" : "");
    return name;
}

static void *open_cpu(int threads, int row)
{
    pons_device_settings settings = { .count = 1, .threads = threads };
    pons_error err = PONS_ERROR_INIT;
    void *d;

    ck_assert(cpu_operations.open(&settings, &d, &err) == PONS_OK);
    cpu_device_choose_row(d, real_row(row));
    if (is_interpreted(row))
        cpu_device_interpret(d);
    return d;
}

static void check_row(const sample *s, buffers *in, const buffers *truth, int row, int seed)
{
    const char *name = row_name(row);
    buffers first = buffers_new(s->outputs, s->output, 0xff), other, copy;
    uint64_t share;

    for (int way = 0; way < 4; way++) {
        bool past = way == 3;
        void *d = open_cpu(past ? 2 : way + 1, row);
        if (past)
            cpu_device_store_non_temporal(d);
        other = way == 0 ? first : buffers_new(s->outputs, s->output, 0xff);
        share = run_map(&cpu_operations, d, s, in, &other, 0);
        ck_assert_msg(way == 0 || same_bits(s, &first, &other), "map %d on %s: %d threads%s give "
                      "other bits", seed, name, past ? 2 : way + 1, past ? ", past caches," : "");
        if (way > 0)
            buffers_free(&other);
        cpu_operations.close(d);
    }
    compare_with_reference(s, &first, truth, seed, name);
    if (share != 0 && s->output[0].shape.extent[0]
            == s->input[__builtin_ctzll(share)].shape.extent[0]) {
        void *d = open_cpu(2, row);
        if (seed % 2 != 0)
            cpu_device_store_non_temporal(d);
        copy = buffers_new(s->inputs, s->input, 0);
        for (int i = 0; i < s->inputs; i++)
            memcpy(copy.pointer[i], in->pointer[i], in->item[i].size);
        other = buffers_new(s->outputs, s->output, 0xff);
        run_map(&cpu_operations, d, s, &copy, &other, share);
        for (int64_t k = 0; s->store[0].to.offset == 0 && k < s->outputs; k++)
            if (k > 0)
                ck_assert_msg(memcmp(other.pointer[k], first.pointer[k], first.item[k].size) == 0,
                              "map %d on %s: output %d differs in place", seed, name, (int)k);
        for (int64_t k = 0; k < s->output_count[0]; k++) {
            /* An element that the map does not write still holds the input in place. */
            float x = map_number_load(s->output[0].type, first.pointer[0], k);
            float y = map_number_load(s->output[0].type, other.pointer[0], k);
            uint32_t raw = 0;
            memcpy(&raw, (char *)first.pointer[0] + k * (int64_t)map_type_size(s->output[0].type),
                   map_type_size(s->output[0].type));
            ck_assert_msg(x == y || x != x || raw == 0xff || raw == UINT32_MAX,
                          "map %d on %s: element %ld differs in place", seed, name, (long)k);
        }
        buffers_free(&copy);
        buffers_free(&other);
        cpu_operations.close(d);
    }
    buffers_free(&first);
}

START_TEST(random_maps_agree_with_the_core_interpreter)
{
    int from = getenv("PONS_TEST_SEED") ? atoi(getenv("PONS_TEST_SEED")) : 0;
    int to = getenv("PONS_TEST_SEED") ? from + 1 : 40;
    device plain;

    device_reference(&plain, false);
    for (int seed = from; seed < to; seed++) {
        static sample s;
        buffers in, truth;

        sample_make(&s, (uint64_t)seed * 4 + (uint64_t)_i);
        in = buffers_new(s.inputs, s.input, 0);
        truth = buffers_new(s.outputs, s.output, 0xff);
        fill_inputs(&s, &in);
        run_map(plain.operations, plain.handle, &s, &in, &truth, 0);
        for (int row = 0; row < row_count(); row++)
            check_row(&s, &in, &truth, row, seed);
        buffers_free(&in);
        buffers_free(&truth);
    }
}
END_TEST

/* Output 0 is -in0 in the memory of in1; output 1 is in1 unchanged. */
START_TEST(an_input_is_read_before_its_memory_is_overwritten)
{
    enum { COUNT = 5000 };
    static sample s;
    const pons_operand dense = { .type = PONS_F32, .index = PONS_INDEX_SPACE, .stride = { 1 } };
    buffers in, out;

    memset(&s, 0, sizeof s);
    s.map = (pons_map){ .axis_count = 1, .extent = { COUNT }, .load_count = 2, .value_count = 3,
                        .store_count = 2, .load = s.load, .value = s.value, .store = s.store };
    s.inputs = s.outputs = 2;
    for (int i = 0; i < 2; i++) {
        s.load[i] = s.store[i].to = dense;
        s.load[i].tensor = s.store[i].to.tensor = i;
        s.value[i] = (pons_value){ .operation = PONS_VALUE_LOAD, .operand = i };
        s.input[i] = s.output[i] = (pons_tensor){ PONS_F32, { 1, { COUNT } } };
        s.input_count[i] = s.output_count[i] = COUNT;
    }
    s.value[2] = (pons_value){ .operation = PONS_MAP_NEG, .argument_count = 1 };
    s.store[0].value = 2;
    s.store[1].value = 1;
    in = buffers_new(2, s.input, 0);
    out = buffers_new(2, s.output, 0xff);
    for (int i = 0; i < 2 * COUNT; i++)
        ((float *)in.pointer[i / COUNT])[i % COUNT] = (float)(i + 1);
    void *d = open_cpu(2, 0);
    run_map(&cpu_operations, d, &s, &in, &out, UINT64_C(2));
    cpu_operations.close(d);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_float_eq(((float *)out.pointer[0])[i], (float)-(i + 1));
        ck_assert_float_eq(((float *)out.pointer[1])[i], (float)(COUNT + i + 1));
    }
    buffers_free(&in);
    buffers_free(&out);
}
END_TEST

/*
 * Outputs of 64 MiB and more are written with non-temporal stores, from the first whole cache line
 * on.
 */
START_TEST(large_outputs_use_non_temporal_stores)
{
    enum { COUNT = (1 << 25) + 77 };
    static sample s;
    const pons_type type = _i == 0 ? PONS_F32 : PONS_BF16;
    const int count = _i == 0 ? COUNT / 2 : COUNT, offset = 3;
    const pons_operand dense = { .type = type, .index = PONS_INDEX_SPACE, .stride = { 1 } };
    buffers in, out;

    memset(&s, 0, sizeof s);
    s.map = (pons_map){ .axis_count = 1, .extent = { count }, .load_count = 1, .value_count = 2,
                        .store_count = 2, .load = s.load, .value = s.value, .store = s.store };
    s.inputs = 1;
    s.outputs = 2;
    s.load[0] = s.store[0].to = s.store[1].to = dense;
    s.store[1].to.tensor = 1;
    s.store[1].to.offset = offset;
    s.value[0] = (pons_value){ .operation = PONS_VALUE_LOAD };
    s.value[1] = (pons_value){ .operation = PONS_MAP_NEG, .argument_count = 1 };
    s.store[0].value = s.store[1].value = 1;
    s.input[0] = s.output[0] = (pons_tensor){ type, { 1, { count } } };
    s.output[1] = (pons_tensor){ type, { 1, { count + offset } } };
    s.input_count[0] = s.output_count[0] = count;
    s.output_count[1] = count + offset;
    in = buffers_new(1, s.input, 0);
    for (int i = 0; i < count; i++)
        map_number_store(type, in.pointer[0], i, (float)(i & 0xff));
    for (int row = 0; row < row_count(); row++) {
        void *d = open_cpu(2, row);
        out = buffers_new(2, s.output, 0xff);
        run_map(&cpu_operations, d, &s, &in, &out, 0);
        cpu_operations.close(d);
        for (int i = 0; i < count; i++) {
            float x = map_number_load(type, out.pointer[0], i);
            float y = map_number_load(type, out.pointer[1], i + offset);
            if (x != -(float)(i & 0xff) || y != x)
                ck_abort_msg("element %d is %g and %g, should be %d", i, (double)x, (double)y,
                             -(i & 0xff));
        }
        buffers_free(&out);
    }
    buffers_free(&in);
}
END_TEST

/* Inputs that include every special value of float arithmetic. */
static void fill_special(const sample *s, buffers *b)
{
    const float special[] = { 0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-41f, -1e-41f, 3e38f,
                              nanf("0x3fffff"), /* a NaN whose upper half is that of infinity     */
                              1e-39f };         /* a denormal number of bf16 as well              */

    fill_inputs(s, b);
    for (int i = 0; i < s->inputs; i++)
        for (int64_t k = 0; k < s->input_count[i]; k++)
            if (random_below(4) == 0)
                map_number_store(s->input[i].type, b->pointer[i], k, special[random_below(10)]);
}

/*
 * Every row, with cached and with non-temporal stores, gives the bits of the interpreter. NaN is
 * compared as NaN, without its payload.
 */
static void check_bits(const sample *s, const char *what)
{
    device plain;
    buffers in = buffers_new(s->inputs, s->input, 0), out[2];

    device_reference(&plain, false);
    fill_special(s, &in);
    out[0] = buffers_new(s->outputs, s->output, 0xff);
    run_map(plain.operations, plain.handle, s, &in, &out[0], 0);
    for (int way = 0; way < 2 * row_count(); way++) {
        const int row = way / 2;
        void *d = open_cpu(2, row);
        if (way % 2 != 0)
            cpu_device_store_non_temporal(d);
        out[1] = buffers_new(s->outputs, s->output, 0xff);
        run_map(&cpu_operations, d, s, &in, &out[1], 0);
        cpu_operations.close(d);
        for (int i = 0; i < s->outputs; i++)
            for (int64_t k = 0; k < s->output_count[i]; k++) {
                float x = map_number_load(s->output[i].type, out[0].pointer[i], k);
                float y = map_number_load(s->output[i].type, out[1].pointer[i], k);
                if ((x == x || y == y) && memcmp(&x, &y, sizeof x) != 0)
                    ck_abort_msg("%s on %s%s: output %d element %ld is %a, should be %a", what,
                                 row_name(row), way % 2 != 0 ? ", past caches" : "", i, (long)k,
                                 (double)y, (double)x);
            }
        buffers_free(&out[1]);
    }
    buffers_free(&out[0]);
    buffers_free(&in);
}

static int special_load(sample *s, pons_type type, int64_t rows, int64_t columns, int64_t offset)
{
    pons_operand o = { .tensor = s->inputs, .type = type, .index = PONS_INDEX_SPACE,
                       .stride = { rows, columns }, .offset = offset };

    s->load[s->map.load_count++] = o;
    s->input_count[s->inputs] = operand_span(s, &o);
    s->input[s->inputs] = (pons_tensor){ type, { 1, { operand_span(s, &o) } } };
    add_value(s, (pons_value){ .operation = PONS_VALUE_LOAD, .operand = s->inputs++ }, 1, true);
    return s->map.value_count - 1;
}

static int special_value(sample *s, int operation, int count, int a, int b, int c)
{
    add_value(s, (pons_value){ .operation = (uint16_t)operation, .argument_count = (uint8_t)count,
                               .argument = { a, b, c } }, 1, true);
    return s->map.value_count - 1;
}

static void special_store(sample *s, int value, pons_type type, int64_t rows, int64_t offset)
{
    pons_operand o = { .tensor = s->outputs, .type = type, .index = PONS_INDEX_SPACE,
                       .stride = { rows, 1 }, .offset = offset };

    s->store[s->map.store_count++] = (pons_store){ value, o };
    add_output(s, &o, value, false, 1);
    s->output[s->outputs - 1].shape = (pons_shape){ 1, { s->output_count[s->outputs - 1] } };
}

static void special_map_begin(sample *s, int64_t rows, int64_t channels)
{
    memset(s, 0, sizeof *s);
    state = 11;
    s->map = (pons_map){ .axis_count = 2, .extent = { rows, channels }, .load = s->load,
                         .value = s->value, .store = s->store, .reduction = s->reduction };
}

/* The slope is a single number, one for each channel or one for each element. */
START_TEST(leaky_relu_gradient_is_the_sum_of_both_selections)
{
    static const int64_t rows[] = { 0, 0, 16 }, columns[] = { 0, 1, 1 };
    static sample s;
    int x, g, m, zero, above, upper, lower, product;

    special_map_begin(&s, 1003, 16);
    x = special_load(&s, PONS_F32, 16, 1, 0);
    g = special_load(&s, PONS_BF16, 16, 1, 0);
    m = special_load(&s, PONS_F32, rows[_i], columns[_i], 0);
    add_value(&s, (pons_value){ .operation = PONS_VALUE_CONSTANT }, 1, true);
    zero = s.map.value_count - 1;
    above = special_value(&s, PONS_MAP_GREATER, 2, x, zero, 0);
    upper = special_value(&s, PONS_MAP_SELECT, 3, above, g, zero);
    lower = special_value(&s, PONS_MAP_SELECT, 3, above, zero, g);
    special_store(&s, special_value(&s, PONS_MAP_ADD, 2, upper,
                                    special_value(&s, PONS_MAP_MUL, 2, lower, m, 0), 0),
                  PONS_F32, 16, 0);
    special_store(&s, special_value(&s, PONS_MAP_MUL, 2, lower, x, 0), PONS_F32, 16, 0);
    product = special_value(&s, PONS_MAP_MUL, 2, g, m, 0);
    special_store(&s, special_value(&s, PONS_MAP_SELECT, 3, above, g, product), PONS_BF16, 16, 0);
    check_bits(&s, "gradient of a bend");
}
END_TEST

static void special_moments(sample *s, pons_reduction_kind kind, int value, int64_t channels)
{
    pons_reduction *r = &s->reduction[s->map.reduction_count++];

    *r = (pons_reduction){ .kind = kind, .value = value };
    for (int k = 0; k < (kind == PONS_REDUCE_MOMENTS ? 2 : 1); k++) {
        r->to[k] = (pons_operand){ .tensor = s->outputs, .type = PONS_F32,
                                   .index = PONS_INDEX_SPACE, .stride = { 0, 1 } };
        s->output_count[s->outputs] = channels;
        s->output[s->outputs++] = (pons_tensor){ PONS_F32, { 1, { channels } } };
    }
}

/*
 * Moments alone have the bits of moments beside another reduction. The input is the loaded tensor,
 * alone or plus a number of each channel or plus one number. With 96 channels a period is three
 * units of lanes. With 70 channels it is long, and moments are summed by cycle.
 */
START_TEST(moments_are_independent_of_other_reductions)
{
    static const int64_t channels[] = { 1, 3, 16, 32, 70, 96, 320 };
    const pons_type type = _i % 2 == 0 ? PONS_F32 : PONS_BF16;
    const int64_t c = channels[_i / 2];
    static sample s;
    buffers in, out[2];

    for (int added = 0; added < 3; added++)
        for (int64_t rows = 0; rows < 3; rows++)
            for (int row = 0; row < row_count(); row++) {
                for (int beside = 0; beside < 2; beside++) {
                    void *d = open_cpu(2, row);
                    int x;
                    special_map_begin(&s, (int64_t[]){ 5, 1024, 22223 }[rows] / c + 2, c);
                    x = special_load(&s, type, c, 1, 0);
                    if (added > 0)
                        x = special_value(&s, PONS_MAP_ADD, 2,
                                          special_load(&s, PONS_F32, 0, added == 1, 0), x, 0);
                    special_moments(&s, PONS_REDUCE_MOMENTS, x, c);
                    if (beside)
                        special_moments(&s, PONS_REDUCE_SUM, x, c);
                    if (beside == 0) {
                        in = buffers_new(s.inputs, s.input, 0);
                        fill_inputs(&s, &in);
                    }
                    out[beside] = buffers_new(s.outputs, s.output, 0xff);
                    run_map(&cpu_operations, d, &s, &in, &out[beside], 0);
                    cpu_operations.close(d);
                }
                for (int k = 0; k < 2; k++)
                    ck_assert_msg(memcmp(out[0].pointer[k], out[1].pointer[k], (size_t)c * 4) == 0,
                                  "%ld channels on %s, rows %ld, added %d", (long)c,
                                  row_name(row), (long)rows, added);
                buffers_free(&in);
                buffers_free(&out[0]);
                buffers_free(&out[1]);
            }
}
END_TEST

/*
 * The results that long_channel_periods_agree expects. x and the scale are whole numbers, so the
 * order of sums does not matter.
 */
static void check_long(const buffers *in, const buffers *out, int64_t rows, int64_t c,
                       pons_type type, const char *row)
{
    for (int64_t k = 0; k < c; k++) {
        double scale = (double)map_number_load(PONS_F32, in->pointer[1], k), sum = 0, most = -1e9;
        double mean = 0, square = 0;
        for (int64_t r = 0; r < rows; r++) {
            double x = (double)map_number_load(type, in->pointer[0], r * c + k), y = x * scale;
            sum += y;
            most = y > most ? y : most;
            mean += x / (double)rows;
            square += x * x / (double)rows;
            ck_assert_msg((double)map_number_load(type, out->pointer[4], r * c + k) == y,
                          "%ld of %ld channels, row %ld on %s", (long)k, (long)c, (long)r, row);
        }
        ck_assert_msg((double)map_number_load(PONS_F32, out->pointer[0], k) == sum
                      && (double)map_number_load(PONS_F32, out->pointer[1], k) == most,
                      "%ld of %ld channels, %ld rows on %s: the sum is %g, should be %g", (long)k,
                      (long)c, (long)rows, row,
                      (double)map_number_load(PONS_F32, out->pointer[0], k), sum);
        /* The bound allows some hundred roundings of numbers of at most 8 and of their squares. */
        ck_assert_double_eq_tol((double)map_number_load(PONS_F32, out->pointer[2], k), mean, 1e-4);
        ck_assert_double_eq_tol((double)map_number_load(PONS_F32, out->pointer[3], k),
                                square - mean * mean, 1e-3);
    }
}

/*
 * A number of each channel, sums, extremes and moments of so many channels that a period is long.
 * Vectors at the end read past the cycle that is stored in place of the period. With 130 channels
 * the tiles are not whole units. With 600 a cycle is longer than the stored part of shorter ones.
 */
START_TEST(long_channel_periods_agree)
{
    static const int64_t channels[] = { 9, 18, 33, 70, 100, 130, 600 };
    static const int64_t all_rows[] = { 1, 40, 1100 };
    const pons_type type = _i % 2 == 0 ? PONS_F32 : PONS_BF16;
    const int64_t c = channels[_i / 2];
    static sample s;

    for (int n = 0; n < 3; n++) {
        const int64_t rows = all_rows[n];
        buffers in, out;
        int x, y;
        special_map_begin(&s, rows, c);
        x = special_load(&s, type, c, 1, 0);
        y = special_value(&s, PONS_MAP_MUL, 2, x, special_load(&s, PONS_F32, 0, 1, 0), 0);
        special_moments(&s, PONS_REDUCE_SUM, y, c);
        special_moments(&s, PONS_REDUCE_MAX, y, c);
        special_moments(&s, PONS_REDUCE_MOMENTS, x, c);
        special_store(&s, y, type, c, 0);
        in = buffers_new(s.inputs, s.input, 0);
        for (int64_t k = 0; k < rows * c; k++)
            map_number_store(type, in.pointer[0], k, (float)(random_below(17) - 8));
        for (int64_t k = 0; k < c; k++)
            map_number_store(PONS_F32, in.pointer[1], k, (float)(1 + k % 5));
        for (int row = 0; row < row_count(); row++) {
            void *d = open_cpu(2, row);
            out = buffers_new(s.outputs, s.output, 0xff);
            run_map(&cpu_operations, d, &s, &in, &out, 0);
            cpu_operations.close(d);
            check_long(&in, &out, rows, c, type, row_name(row));
            buffers_free(&out);
        }
        buffers_free(&in);
    }
}
END_TEST

/* Slices of 32 of 48 channels; the last unit of lanes is not whole. */
START_TEST(channel_slices_keep_nan)
{
    const pons_type type = _i == 0 ? PONS_F32 : PONS_BF16;
    static sample s;
    int x, y;

    special_map_begin(&s, 333, 32);
    x = special_load(&s, type, 48, 1, 16);
    y = special_value(&s, PONS_MAP_NEG, 1, special_load(&s, PONS_F32, 32, 1, 0), 0, 0);
    special_store(&s, y, type, 48, 16);
    special_store(&s, y, type, 32, 0);
    special_store(&s, special_value(&s, PONS_MAP_MUL, 2, x, y, 0), type, 48, 16);
    check_bits(&s, "slice");
}
END_TEST

/* Channels beside a byte of each point; the last unit of lanes is not whole. */
START_TEST(interleaved_channels_are_separated)
{
    static const int channels[] = { 2, 3, 4, 5, 7, 14 };
    const pons_type type = _i % 2 == 0 ? PONS_F32 : PONS_BF16;
    const int c = channels[_i / 2]; /* a sum of more than two depends on their order             */
    const int join = c == 2 ? PONS_VALUE_CHANNEL_SUM : PONS_VALUE_CHANNEL_MAX;
    static sample s;
    int x, z, label, y, sum;

    special_map_begin(&s, 1003, c);
    s.map.channels = c;
    x = special_load(&s, type, c, 1, 0);
    label = special_load(&s, PONS_U8, 1, 0, 0);
    s.value[label].per_point = 1;
    z = special_load(&s, type, c, 1, 0);
    y = special_value(&s, PONS_MAP_SUB, 2, special_value(&s, PONS_MAP_MUL, 2, x, label, 0), z, 0);
    sum = special_value(&s, join, 1, y, 0, 0);
    s.value[sum].per_point = 1;
    special_store(&s, special_value(&s, PONS_MAP_SUB, 2, y, sum, 0), PONS_F32, c, 0);
    special_store(&s, y, type, c, 0);
    check_bits(&s, "channels");
}
END_TEST

/*
 * A number for each point is combined with all channels of the point. Units begin inside a point's
 * lanes.
 */
START_TEST(per_point_values_are_repeated_for_each_channel)
{
    static const int channels[] = { 2, 3, 5, 14, 16, 17, 150 };
    const pons_type type = _i % 2 == 0 ? PONS_BF16 : PONS_U8;
    const int c = channels[_i / 2];
    static sample s;
    int x, y;

    special_map_begin(&s, 4003 / c, c);
    x = special_load(&s, PONS_F32, c, 1, 0);
    y = special_load(&s, type, 1, 0, 0);
    special_store(&s, special_value(&s, PONS_MAP_MUL, 2, x, y, 0), PONS_F32, c, 0);
    special_store(&s, special_value(&s, PONS_MAP_SUB, 2, y, x, 0), PONS_F32, c, 0);
    check_bits(&s, "numbers of points");
}
END_TEST

/* Six channels: the first three indices repeat with the channels, the others do not. */
START_TEST(an_index_may_repeat_with_the_channels)
{
    static const struct { int64_t divisor, modulus; } indices[] = {
        { 1, 6 }, { 2, 3 }, { 1, 3 }, { 1, 9 }, { 5, 3 }, { 7, 6 },
    };
    static sample s;
    int x, index;

    special_map_begin(&s, 1003, 6);
    s.map.channels = 6;
    x = special_load(&s, PONS_F32, 6, 1, 0);
    index = special_value(&s, PONS_VALUE_IOTA, 0, 0, 0, 0);
    s.value[index].divisor = indices[_i].divisor;
    s.value[index].modulus = indices[_i].modulus;
    special_store(&s, special_value(&s, PONS_MAP_EQUAL, 2, x, index, 0), PONS_F32, 6, 0);
    special_store(&s, special_value(&s, PONS_MAP_SUB, 2, x, index, 0), PONS_F32, 6, 0);
    check_bits(&s, "index");
}
END_TEST

START_TEST(min_and_max_over_channels_keep_nan)
{
    static const int operations[] = { PONS_VALUE_CHANNEL_MAX, PONS_VALUE_CHANNEL_MIN };
    static sample s;
    int extreme;

    special_map_begin(&s, 1003, 5);
    s.map.channels = 5;
    extreme = special_value(&s, operations[_i], 1, special_load(&s, PONS_F32, 5, 1, 0), 0, 0);
    s.value[extreme].per_point = 1;
    special_store(&s, extreme, PONS_F32, 1, 0);
    s.store[0].to.stride[1] = 0;
    check_bits(&s, "extreme over channels");
}
END_TEST

/* A comparison of two scalars selects one operand for all lanes. */
START_TEST(a_scalar_condition_selects_one_operand_for_all)
{
    static const int compare[] = { PONS_MAP_EQUAL, PONS_MAP_NOT_EQUAL, PONS_MAP_GREATER,
                                   PONS_MAP_GREATER_EQUAL, PONS_MAP_LESS, PONS_MAP_LESS_EQUAL };
    static sample s;

    for (int round = 0; round < 8; round++) {
        int a, b, p, q, test;
        special_map_begin(&s, 70 + round, 16);
        state += (uint64_t)round;
        p = special_load(&s, PONS_F32, 0, 0, 0);
        q = special_load(&s, PONS_F32, 0, 0, 0);
        a = special_load(&s, PONS_F32, 16, 1, 0);
        b = special_value(&s, PONS_MAP_NEG, 1, a, 0, 0);
        test = special_value(&s, compare[_i], 2, p, q, 0);
        special_store(&s, special_value(&s, PONS_MAP_SELECT, 3, test, a, b), PONS_F32, 16, 0);
        special_store(&s, special_value(&s, PONS_MAP_SELECT, 3, test, b, a), PONS_F32, 16, 0);
        check_bits(&s, "choice");
    }
}
END_TEST

static int boxed_load(sample *s, pons_type type, const int64_t stride[4])
{
    pons_operand o = { .tensor = s->inputs, .type = type, .index = PONS_INDEX_SPACE };

    memcpy(o.stride, stride, sizeof *stride * 4);
    s->load[s->map.load_count++] = o;
    s->input_count[s->inputs] = operand_span(s, &o);
    s->input[s->inputs] = (pons_tensor){ type, { 1, { operand_span(s, &o) } } };
    add_value(s, (pons_value){ .operation = PONS_VALUE_LOAD, .operand = s->inputs++ }, 1, true);
    return s->map.value_count - 1;
}

static void boxed_store(sample *s, int value, pons_type type, const int64_t stride[4], int offset)
{
    pons_operand o = { .tensor = s->outputs, .type = type, .index = PONS_INDEX_SPACE,
                       .offset = offset };

    memcpy(o.stride, stride, sizeof *stride * 4);
    s->store[s->map.store_count++] = (pons_store){ value, o };
    add_output(s, &o, value, false, 1);
    s->output[s->outputs - 1].shape = (pons_shape){ 1, { s->output_count[s->outputs - 1] } };
}

/*
 * Boxes of several tiles inside larger tensors: each row begins at another offset in a cache line,
 * and the first one is not aligned to a cache line. Elements between the rows keep their values.
 * Inputs are a whole tensor, one number for each channel and one for each row.
 */
START_TEST(boxes_use_non_temporal_stores_at_any_alignment)
{
    static const int channels[] = { 1, 3, 5, 16, 17, 33 };
    static const pons_type stored[] = { PONS_F32, PONS_BF16, PONS_U8 };
    const int c = channels[_i];
    const int64_t points = 9000 / c + 13, run = points * c, row = run + 7, plane = 3 * row + 5;
    const int64_t whole[4] = { 3 * run, run, c, 1 }, of_channel[4] = { 0, 0, 0, 1 };
    const int64_t of_row[4] = { 3, 1, 0, 0 }, apart[4] = { plane, row, c, 1 };
    static sample s;

    for (int offset = 0; offset < 64; offset = offset < 3 ? offset + 1 : 2 * offset + 1) {
        int x, y;
        memset(&s, 0, sizeof s);
        state = 11;
        s.map = (pons_map){ .axis_count = 4, .extent = { 2, 3, points, c }, .load = s.load,
                            .value = s.value, .store = s.store };
        x = special_value(&s, PONS_MAP_MUL, 2, boxed_load(&s, PONS_F32, whole),
                          boxed_load(&s, PONS_BF16, of_channel), 0);
        x = special_value(&s, PONS_MAP_SUB, 2, x, boxed_load(&s, PONS_F32, of_row), 0);
        y = special_value(&s, PONS_MAP_GREATER, 2, x, boxed_load(&s, PONS_BF16, whole), 0);
        for (int k = 0; k < 3; k++)
            boxed_store(&s, stored[k] == PONS_U8 ? y : x, stored[k], apart, offset);
        boxed_store(&s, x, PONS_F32, whole, 0);
        check_bits(&s, "box");
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("map");

    units_say_rows();
    tcase_add_loop_test(c, random_maps_agree_with_the_core_interpreter, 0, 4);
    tcase_add_loop_test(c, large_outputs_use_non_temporal_stores, 0, 2);
    tcase_add_loop_test(c, boxes_use_non_temporal_stores_at_any_alignment, 0, 6);
    tcase_add_loop_test(c, leaky_relu_gradient_is_the_sum_of_both_selections, 0, 3);
    tcase_add_loop_test(c, moments_are_independent_of_other_reductions, 0, 14);
    tcase_add_loop_test(c, long_channel_periods_agree, 0, 14);
    tcase_add_loop_test(c, channel_slices_keep_nan, 0, 2);
    tcase_add_loop_test(c, interleaved_channels_are_separated, 0, 12);
    tcase_add_loop_test(c, per_point_values_are_repeated_for_each_channel, 0, 14);
    tcase_add_loop_test(c, an_index_may_repeat_with_the_channels, 0, 6);
    tcase_add_loop_test(c, min_and_max_over_channels_keep_nan, 0, 2);
    tcase_add_loop_test(c, a_scalar_condition_selects_one_operand_for_all, 0, 6);
    tcase_add_test(c, an_input_is_read_before_its_memory_is_overwritten);
    return suite_run();
}
