/*
 * check_bf16_gemm.c - convolutions of many channels on AMX tiles and on AVX512-BF16 vectors,
 * Winograd convolutions, and convolutions of few channels on AMX tiles. The program is skipped
 * without AVX512-BF16. Each family and direction has chosen shapes and BF16_GEMM_ROUNDS random
 * ones.
 *
 * Tensors hold small whole numbers. Every product and sum is exact in bf16 and in float, whatever
 * the order, so results must equal the reference in double to the last bit. The rounding error of
 * Winograd is measured with other numbers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/conv/bf16_gemm/bf16_gemm.h"
#include "cpu/conv/conv_testing.h"
#include "cpu/cpu_testing.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "support/graph/units.h"
#include "support/guarded.h"
#include "support/suite.h"

typedef struct shape_case {
    int cases, x[3], ins, outs, groups; /* channels of all groups */
    int kernel[3], stride[3], dilation[3], low[3], high[3];
} shape_case;

#define ONE { 1, 1, 1 }
#define TWO { 2, 2, 2 }
#define THREE { 3, 3, 3 }
#define FIVE { 5, 5, 5 }
#define NONE { 0, 0, 0 }

enum {
    BY_INPUT = PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,
    BY_WEIGHT = PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT
};

static const shape_case shapes[] = {
    { 2, { 6, 5, 7 }, 32, 48, 1, THREE, ONE, ONE, ONE, ONE },
    { 1, { 4, 4, 4 }, 16, 16, 1, ONE, ONE, ONE, NONE, NONE },
    { 2, { 5, 7, 6 }, 33, 17, 1, THREE, TWO, ONE, ONE, ONE },
    { 1, { 8, 6, 4 }, 5, 80, 1, TWO, TWO, ONE, NONE, NONE },
    { 1, { 7, 8, 9 }, 40, 20, 1, { 3, 1, 2 }, { 1, 3, 2 }, { 2, 1, 3 }, { 2, 0, 1 }, { 1, 0, 4 } },
    { 2, { 5, 4, 6 }, 24, 36, 4, THREE, ONE, ONE, ONE, ONE },
    { 1, { 6, 6, 6 }, 7, 7, 7, THREE, TWO, ONE, ONE, ONE },
    { 3, { 1, 1, 1 }, 19, 21, 1, THREE, ONE, ONE, ONE, ONE },
    { 2, { 1, 2, 3 }, 16, 32, 1, ONE, TWO, ONE, NONE, NONE },
    { 1, { 2, 9, 3 }, 8, 8, 1, { 5, 5, 5 }, ONE, ONE, TWO, TWO },
    { 1, { 1, 90, 70 }, 18, 33, 1, { 1, 3, 3 }, ONE, ONE, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, { 34, 36, 33 }, 20, 9, 1, { 1, 1, 3 }, ONE, ONE, { 0, 0, 1 }, { 0, 0, 1 } },
    { 2, { 9, 14, 14 }, 130, 100, 1, { 1, 3, 3 }, ONE, ONE, { 0, 1, 1 }, { 0, 1, 1 } },
    { 3, { 40, 38, 35 }, 17, 30, 1, THREE, TWO, ONE, ONE, ONE },
    { 2, { 20, 38, 35 }, 17, 30, 1, THREE, ONE, ONE, { 9, 0, 1 }, { 12, 1, 1 } },
    { 2, { 41, 40, 26 }, 6, 34, 1, { 2, 1, 2 }, { 2, 1, 2 }, ONE, { 1, 0, 0 }, NONE },
    { 2, { 20, 38, 36 }, 17, 30, 1, THREE, ONE, ONE, { 1, 0, 1 }, ONE },
    { 2, { 3, 6, 28 }, 18, 33, 1, { 2, 3, 5 }, ONE, ONE, { 0, 1, 3 }, { 1, 1, 1 } },
    { 1, { 5, 6, 52 }, 20, 17, 1, { 1, 2, 5 }, { 1, 3, 2 }, ONE, { 0, 0, 2 }, { 0, 1, 1 } },
    { 1, { 4, 5, 30 }, 16, 16, 1, { 1, 2, 3 }, ONE, { 1, 2, 2 }, { 0, 1, 2 }, { 0, 1, 2 } },
    { 1, { 14, 16, 16 }, 130, 100, 1, { 3, 1, 3 }, ONE, ONE, { 1, 0, 1 }, { 1, 0, 1 } },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* A problem of a kernel: a request, and guarded memory for its tensors. */
typedef struct problem {
    pons_convolution attributes;
    pons_tensor input[2], output;
    pons_request request;
    guarded memory[3];
} problem;

static int64_t count_of(const pons_tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->shape.rank; i++)
        n *= t->shape.extent[i];
    return n;
}

static size_t number_size(pons_type type)
{
    return type == PONS_BF16 ? 2 : type == PONS_F32 ? 4 : 8;
}

/*
 * The value is exact in bf16, like every whole number up to 255. Its bf16 is the upper half of the
 * float.
 */
static void store_number(pons_type type, void *to, int64_t at, double value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    if (type == PONS_BF16)
        ((uint16_t *)to)[at] = (uint16_t)(bits >> 16);
    else if (type == PONS_F32)
        ((float *)to)[at] = f;
    else
        ((double *)to)[at] = f;
}

/* An element of any type, as a double. */
static double load_number(pons_type type, const void *from, int64_t at)
{
    uint32_t bits = 0;
    float f;

    if (type == PONS_F64)
        return ((const double *)from)[at];
    if (type == PONS_F32)
        return ((const float *)from)[at];
    bits = (uint32_t)((const uint16_t *)from)[at] << 16;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double rounded_number(pons_type type, double value)
{
    float f = (float)value;
    uint32_t bits;

    if (type != PONS_BF16)
        return value;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double small_whole(uint32_t random)
{
    return (int)(random >> 24) % 5 - 2;
}

static double number_below_one(uint32_t random)
{
    return rounded_number(PONS_BF16, random * 0x1p-31 - 1);
}

static void fill_inputs(problem *p, double (*number)(uint32_t random))
{
    uint32_t random = 12345;

    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < count_of(&p->input[i]); k++) {
            random = random * 1664525u + 1013904223u;
            store_number(p->input[i].type, p->memory[i].memory, k, number(random));
        }
}

static void problem_init(problem *p, const shape_case *s, pons_kernel_kind kind, pons_type type,
                         bool at_end)
{
    pons_tensor x = { type, { 5, { s->cases, s->x[0], s->x[1], s->x[2], s->ins } } };
    pons_tensor w = { type, { 5, { s->outs, s->kernel[0], s->kernel[1], s->kernel[2],
                                   s->ins / s->groups } } };
    pons_tensor y = { type, { 5, { s->cases, 0, 0, 0, s->outs } } };

    p->attributes = (pons_convolution){ .groups = s->groups };
    for (int i = 0; i < 3; i++) {
        p->attributes.stride[i] = s->stride[i];
        p->attributes.dilation[i] = s->dilation[i];
        p->attributes.pad_low[i] = s->low[i];
        p->attributes.pad_high[i] = s->high[i];
        y.shape.extent[1 + i] = (s->x[i] + s->low[i] + s->high[i] -
                                 s->dilation[i] * (s->kernel[i] - 1) - 1) / s->stride[i] + 1;
    }
    if (kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT) {
        w.type = type == PONS_BF16 ? PONS_F32 : type;
        p->input[0] = x;
        p->input[1] = y;
        p->output = w;
    } else {
        p->input[0] = kind == PONS_KERNEL_CONVOLUTION ? x : y;
        p->input[1] = w;
        p->output = kind == PONS_KERNEL_CONVOLUTION ? y : x;
    }
    p->request = (pons_request){ .kind = kind, .name = "test", .input_count = 2,
                                 .output_count = 1, .input = p->input, .output = &p->output,
                                 .attributes = &p->attributes };
    for (int i = 0; i < 3; i++) {
        const pons_tensor *t = i < 2 ? &p->input[i] : &p->output;
        p->memory[i] = guarded_new((size_t)count_of(t) * number_size(t->type), at_end);
    }
    fill_inputs(p, small_whole);
}

static void problem_clear(problem *p)
{
    for (int i = 0; i < 3; i++)
        guarded_free(&p->memory[i]);
}

/* Packed weights against a guard page; the kernel reads them instead of the weights. */
static guarded pack(problem *p, pons_kernel *kernel)
{
    guarded packed = guarded_new((kernel->pack_size[1] + 63) / 64 * 64, true);
    pons_error err = PONS_ERROR_INIT;

    memset(packed.memory, 0xff, packed.size); /* as the workspace is */
    if (kernel->pack_size[1] > 0)
        ck_assert_msg(kernel->pack(kernel, 1, p->memory[1].memory, packed.memory, &err) == PONS_OK,
                      "%s", err.text);
    return packed;
}

static void run(problem *p, pons_kernel *kernel)
{
    size_t size = (kernel->scratch_size + 63) / 64 * 64;
    guarded scratch = guarded_new(size, true), packed = pack(p, kernel);
    void *input[2] = { p->memory[0].memory,
                       kernel->pack_size[1] > 0 ? packed.memory : p->memory[1].memory };
    void *output[1] = { p->memory[2].memory };
    pons_call call = { .input = input, .output = output, .scratch = scratch.memory };
    pons_error err = PONS_ERROR_INIT;

    memset(scratch.memory, 0xff, size); /* NaN, so that a read before the first write is found */
    memset(p->memory[2].memory, 0xff, p->memory[2].size);
    ck_assert_msg(kernel->run(kernel, &call, &err) == PONS_OK, "%s", err.text);
    kernel->free(kernel);
    guarded_free(&scratch);
    guarded_free(&packed);
}

static void compute_truth(problem *p)
{
    device d;
    pons_kernel kernel = { .run = NULL };
    pons_error err = PONS_ERROR_INIT;
    bool supported = false;

    device_reference(&d, true);
    ck_assert(d.operations->prepare(d.handle, &p->request, &kernel, &supported, &err) == PONS_OK);
    ck_assert(supported);
    run(p, &kernel);
}

/* ---- families -------------------------------------------------------------------------------- */

typedef pons_status (*family)(int threads, const pons_request *request, pons_kernel *kernel,
                              bool *supported, pons_error *err);

static pons_status prepare_by_solver(const char *name, isa set, int threads,
                                     const pons_request *request,
                                     pons_kernel *kernel, bool *supported, pons_error *err)
{
    cpu_device d = { .threads = threads };

    cpu_device_choose_isa(&d, set);
    return conv_prepare_by(name, &d, request, kernel, supported, err);
}

static isa gemm_isa;                /* instruction set of the bf16_gemm family */
static const gemm_engine *gemm_engine_used; /* engine of its weight gradients */

static pons_status prepare_bf16_gemm(int threads, const pons_request *request, pons_kernel *kernel,
                                     bool *supported, pons_error *err)
{
    conv_problem p;

    if (request->kind != PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return prepare_by_solver("bf16_gemm", gemm_isa, threads, request, kernel, supported, err);
    conv_problem_init(&p, request);
    *supported = true;
    return bf16_gemm_prepare_gradient(gemm_engine_used, threads, &p, kernel, err);
}

static pons_status prepare_few_channels(int threads, const pons_request *request,
                                        pons_kernel *kernel, bool *supported, pons_error *err)
{
    return prepare_by_solver("few_channels_amx", ISA_AMX, threads, request, kernel, supported, err);
}

/* Sums of 4 numbers and quarters of sums of 9 weights are exact in bf16, too. */
static pons_status prepare_winograd(int threads, const pons_request *request, pons_kernel *kernel,
                                    bool *supported, pons_error *err)
{
    return prepare_by_solver("winograd", ISA_AVX512BF16, threads, request, kernel, supported, err);
}

static pons_type image_type = PONS_BF16; /* type of the images of all families */

static void describe_shape(const shape_case *s, char *to, size_t size)
{
    snprintf(to, size, "%d x %d %d %d, %d -> %d, groups %d, kernel %d %d %d, stride %d %d %d, "
             "dilation %d %d %d, low %d %d %d, high %d %d %d", s->cases, s->x[0], s->x[1], s->x[2],
             s->ins, s->outs, s->groups, s->kernel[0], s->kernel[1], s->kernel[2], s->stride[0],
             s->stride[1], s->stride[2], s->dilation[0], s->dilation[1], s->dilation[2],
             s->low[0], s->low[1], s->low[2], s->high[0], s->high[1], s->high[2]);
}

static void compare_outputs(const problem *found, const problem *truth, const shape_case *s,
                            int threads)
{
    pons_type type = found->output.type;
    char text[300];

    describe_shape(s, text, sizeof text);
    for (int64_t i = 0; i < count_of(&found->output); i++) {
        double is = load_number(type, found->memory[2].memory, i);
        double should = rounded_number(type, load_number(PONS_F64, truth->memory[2].memory, i));
        ck_assert_msg(is == should, "%s, %d threads: element %ld is %g, should be %g", text,
                      threads, (long)i, is, should);
    }
}

static bool check_threads(const problem *truth, const shape_case *s, family make,
                          pons_kernel_kind kind, int threads)
{
    problem p;
    pons_kernel kernel = { .run = NULL };
    pons_error err = PONS_ERROR_INIT;
    bool supported = false;

    problem_init(&p, s, kind, image_type, threads != 2);
    p.request.packable = threads == 1 ? 0 : 2;
    ck_assert(make(threads, &p.request, &kernel, &supported, &err) == PONS_OK);
    if (supported) {
        run(&p, &kernel);
        compare_outputs(&p, truth, s, threads);
    }
    problem_clear(&p);
    return supported;
}

/* False: the family declines the shape. */
static bool check_shape(const shape_case *s, family make, pons_kernel_kind kind)
{
    problem truth;
    bool supported = true;

    problem_init(&truth, s, kind, PONS_F64, true);
    compute_truth(&truth);
    for (int threads = 1; threads <= 3 && supported; threads++)
        supported = check_threads(&truth, s, make, kind, threads);
    problem_clear(&truth);
    return supported;
}

/* ---- random shapes --------------------------------------------------------------------------- */

static uint64_t state;

static int random_below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static void random_axis(shape_case *s, int axis, int least, int most, bool dilated)
{
    int span;

    s->kernel[axis] = dilated || random_below(4) == 0 ? 1 + random_below(4) : 3;
    s->stride[axis] = 1 + random_below(3);
    s->dilation[axis] = dilated ? 1 + random_below(2) : 1;
    s->low[axis] = random_below(s->kernel[axis]);
    s->high[axis] = random_below(s->kernel[axis] + 1);
    s->x[axis] = least + random_below(most - least + 1);
    span = s->dilation[axis] * (s->kernel[axis] - 1) + 1 - s->low[axis] - s->high[axis];
    if (s->x[axis] < span)
        s->x[axis] = span;
}

/* A shape for Winograd: planes of 3 x 3 or 5 x 5, in most cases padded by half of it. */
static void random_plane(shape_case *s)
{
    int stride = 1 + random_below(2), kernel = stride == 1 && random_below(2) == 0 ? 5 : 3;

    for (int i = 1; i < 3; i++) {
        bool padded = random_below(4) > 0;
        s->kernel[i] = kernel;
        s->stride[i] = stride;
        s->low[i] = padded ? kernel / 2 : random_below(5);
        s->high[i] = padded ? kernel / 2 : random_below(5);
        s->x[i] = kernel + random_below(14);
    }
}

static shape_case random_shape(family make, bool weight)
{
    static const int many[] = { 5, 8, 15, 16, 17, 32, 33, 40 };
    static const int least[2][3] = { { 1, 1, 1 }, { 1, 6, 24 } };
    static const int most[2][3] = { { 5, 6, 13 }, { 3, 14, 60 } };
    shape_case s = { .cases = 1 + random_below(2), .groups = 1 };
    bool few = make == prepare_few_channels, plain = make == prepare_winograd;

    s.ins = few ? 1 + random_below(4) : many[random_below(8)];
    s.outs = few && random_below(2) == 0 ? 1 + random_below(4) : many[random_below(8)];
    if (few && !weight && random_below(2) == 0) {
        int ins = s.ins;
        s.ins = s.outs;
        s.outs = ins;
    }
    for (int i = 0; i < 3; i++)
        random_axis(&s, i, least[few][i], most[few][i], !few && !plain);
    if (plain)
        random_plane(&s);
    return s;
}

static int round_count(void)
{
    const char *text = getenv("BF16_GEMM_ROUNDS");

    return text != NULL ? atoi(text) : 60;
}

/* The family supports at least one in 'one_in' of the shapes. */
static void check_random(family make, pons_kernel_kind kind, int one_in)
{
    int rounds = round_count(), taken = 0;

    for (int round = 0; round < rounds; round++) {
        state = (uint64_t)round * 7919 + kind;
        random_below(2);
        shape_case s = random_shape(make, kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
        taken += check_shape(&s, make, kind);
    }
    ck_assert_int_ge(taken * one_in, rounds);
}

static void check_engine(pons_kernel_kind kind)
{
    for (int shape = 0; shape < SHAPES; shape++)
        if (shapes[shape].groups == 1 || kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
            ck_assert(check_shape(&shapes[shape], prepare_bf16_gemm, kind));
    check_random(prepare_bf16_gemm, kind, 1);
}

/*
 * Every engine that runs here is tested. The grid of panels that AMX uses for weight gradients is
 * tested on vectors, too.
 */
static void check_kind(pons_kernel_kind kind)
{
    static gemm_engine panels;

    panels = engine_avx512_bf16;
    panels.lines = NULL;
    gemm_engine_used = &panels;
    if (kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        check_engine(kind);
    gemm_engine_used = bf16_gemm_engine(gemm_isa = ISA_AVX512BF16);
    check_engine(kind);
    gemm_engine_used = bf16_gemm_engine(gemm_isa = ISA_AMX);
    if (isa_runs(ISA_AMX))
        check_engine(kind);
}

START_TEST(bf16_gemm_convolution_is_exact)
{
    check_kind(PONS_KERNEL_CONVOLUTION);
}
END_TEST

START_TEST(bf16_gemm_input_gradient_is_exact)
{
    check_kind(PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT);
}
END_TEST

START_TEST(bf16_gemm_weight_gradient_is_exact)
{
    check_kind(PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
}
END_TEST

static const shape_case planes[] = {
    { 2, { 6, 5, 7 }, 32, 48, 1, THREE, ONE, ONE, ONE, ONE },
    { 1, { 5, 30, 45 }, 33, 17, 1, THREE, ONE, ONE, ONE, ONE },
    { 1, { 17, 20, 22 }, 40, 100, 1, { 1, 3, 3 }, ONE, ONE, { 0, 1, 1 }, { 0, 1, 1 } },
    { 3, { 4, 17, 19 }, 130, 20, 1, THREE, ONE, ONE, { 1, 0, 2 }, { 2, 1, 0 } },
    { 1, { 2, 4, 6 }, 600, 70, 1, { 4, 3, 3 }, ONE, ONE, { 6, 1, 1 }, { 0, 1, 1 } },
    { 1, { 33, 9, 70 }, 16, 64, 1, THREE, ONE, ONE, ONE, ONE },
    { 1, { 4, 32, 6 }, 16, 16, 1, THREE, ONE, ONE, ONE, ONE },
    { 1, { 3, 8, 200 }, 17, 16, 1, { 2, 3, 3 }, ONE, ONE, { 1, 1, 1 }, ONE },
    { 2, { 6, 5, 7 }, 32, 48, 1, THREE, TWO, ONE, ONE, ONE },
    { 1, { 9, 30, 45 }, 33, 17, 1, THREE, TWO, ONE, ONE, ONE },
    { 1, { 17, 20, 22 }, 40, 100, 1, { 1, 3, 3 }, { 1, 2, 2 }, ONE, { 0, 1, 1 }, { 0, 1, 1 } },
    { 1, { 13, 32, 34 }, 16, 70, 1, { 2, 3, 3 }, { 3, 2, 2 }, ONE, ONE, { 4, 1, 1 } },
    { 2, { 1, 40, 64 }, 64, 64, 1, { 5, 3, 3 }, TWO, ONE, { 2, 1, 1 }, { 2, 2, 2 } },
    { 1, { 11, 14, 22 }, 24, 40, 1, THREE, { 2, 1, 1 }, ONE, ONE, ONE },
    { 3, { 5, 5, 39 }, 16, 16, 1, THREE, ONE, ONE, { 1, 4, 5 }, { 1, 0, 3 } },
    { 5, { 3, 9, 11 }, 20, 52, 1, THREE, ONE, ONE, ONE, ONE },
    { 5, { 4, 9, 11 }, 20, 52, 1, THREE, TWO, ONE, ONE, ONE },
    { 1, { 3, 1, 2 }, 16, 16, 1, THREE, ONE, ONE, ONE, ONE },
    { 1, { 2, 9, 11 }, 18, 33, 1, THREE, ONE, ONE, ONE, ONE },
    { 2, { 7, 8, 10 }, 17, 50, 1, THREE, ONE, ONE, { 0, 1, 1 }, { 0, 1, 1 } },
    { 2, { 4, 8, 10 }, 17, 50, 1, THREE, ONE, ONE, { 2, 1, 1 }, { 3, 1, 1 } },
    { 1, { 3, 2, 1 }, 16, 16, 1, THREE, TWO, ONE, ONE, ONE },
    { 1, { 6, 16, 16 }, 32, 48, 1, FIVE, ONE, ONE, TWO, TWO },
    { 2, { 5, 13, 17 }, 33, 17, 1, FIVE, ONE, ONE, TWO, TWO },
    { 3, { 3, 8, 10 }, 16, 100, 1, { 3, 5, 5 }, { 2, 1, 1 }, ONE, { 1, 2, 2 }, { 1, 2, 2 } },
    { 2, { 1, 40, 70 }, 20, 16, 1, { 1, 5, 5 }, ONE, ONE, { 0, 1, 0 }, { 0, 4, 3 } },
    { 5, { 2, 5, 6 }, 130, 20, 1, FIVE, ONE, ONE, { 3, 0, 0 }, { 2, 0, 0 } },
};

/* Shapes of the weight gradient alone: it has any stride and dilation along D. */
static const shape_case deep[] = {
    { 2, { 11, 9, 13 }, 20, 24, 1, THREE, { 2, 1, 1 }, { 2, 1, 1 }, ONE, ONE },
    { 2, { 11, 9, 13 }, 20, 24, 1, THREE, { 3, 2, 2 }, { 2, 1, 1 }, ONE, ONE },
    { 2, { 14, 41, 20 }, 16, 33, 1, THREE, { 1, 2, 2 }, { 2, 1, 1 }, { 1, 0, 1 }, { 1, 2, 0 } },
    { 1, { 4, 13, 30 }, 33, 40, 1, { 2, 3, 3 }, TWO, { 3, 1, 1 }, { 3, 4, 0 }, { 0, 1, 3 } },
};

/* Shapes that Winograd declines. */
static const shape_case refused[] = {
    { 1, { 4, 9, 9 }, 16, 16, 1, THREE, { 1, 1, 2 }, ONE, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, THREE, { 1, 3, 3 }, ONE, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, THREE, ONE, { 1, 1, 2 }, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, THREE, ONE, { 1, 2, 1 }, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 2, THREE, ONE, ONE, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, { 3, 3, 1 }, ONE, ONE, { 1, 1, 0 }, { 1, 1, 0 } },
    { 1, { 4, 9, 9 }, 16, 16, 1, { 3, 2, 3 }, ONE, ONE, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, { 3, 3, 5 }, ONE, ONE, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, FIVE, TWO, ONE, TWO, TWO },
};

static void check_winograd_of(pons_type type, pons_kernel_kind kind)
{
    image_type = type;
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
        ck_assert(check_shape(&planes[i], prepare_winograd, kind));
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
        ck_assert(check_shape(&deep[i], prepare_winograd, kind) ==
                  (kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_assert(!check_shape(&refused[i], prepare_winograd, kind));
    check_random(prepare_winograd, kind, 8);
    image_type = PONS_BF16;
}

static void check_winograd(pons_kernel_kind kind)
{
    check_winograd_of(PONS_BF16, kind);
    check_winograd_of(PONS_F32, kind);
}

START_TEST(winograd_convolution_is_exact)
{
    check_winograd(PONS_KERNEL_CONVOLUTION);
}
END_TEST

START_TEST(winograd_input_gradient_is_exact)
{
    check_winograd(PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT);
}
END_TEST

START_TEST(winograd_weight_gradient_is_exact)
{
    check_winograd(PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
}
END_TEST

/* The result of inputs between -1 and 1. */
static problem compute_result(const shape_case *s, family make, pons_kernel_kind kind, int threads)
{
    problem p;
    pons_kernel kernel = { .run = NULL };
    pons_error err = PONS_ERROR_INIT;
    bool supported = false;

    problem_init(&p, s, kind, image_type, true);
    fill_inputs(&p, number_below_one);
    ck_assert(make(threads, &p.request, &kernel, &supported, &err) == PONS_OK);
    ck_assert(supported);
    run(&p, &kernel);
    return p;
}

static void same_bits_of(pons_type type, const shape_case *s, pons_kernel_kind kind)
{
    static const int threads[] = { 2, 3, 7 };
    problem one;

    image_type = type;
    one = compute_result(s, prepare_winograd, kind, 1);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        problem p = compute_result(s, prepare_winograd, kind, threads[i]);
        ck_assert_msg(memcmp(p.memory[2].memory, one.memory[2].memory, one.memory[2].size) == 0,
                      "kind %d: bits of %d threads are others", (int)kind, threads[i]);
        problem_clear(&p);
    }
    problem_clear(&one);
    image_type = PONS_BF16;
}

static void same_bits(const shape_case *s, pons_kernel_kind kind)
{
    same_bits_of(PONS_BF16, s, kind);
    same_bits_of(PONS_F32, s, kind);
}

START_TEST(winograd_has_the_same_bits_on_any_number_of_threads)
{
    static const shape_case shape = { 3, { 7, 17, 20 }, 40, 100, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case few_sums = { 2, { 9, 34, 38 }, 16, 16, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case strided = { 1, { 9, 30, 45 }, 33, 70, 1, THREE, TWO, ONE, ONE, ONE };
    static const shape_case small = { 2, { 6, 6, 6 }, 64, 130, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case wide = { 2, { 7, 17, 20 }, 40, 60, 1, FIVE, ONE, ONE, TWO, TWO };
    static const shape_case few_strided = { 2, { 40, 48, 50 }, 16, 17, 1, THREE, TWO, ONE, ONE,
                                            ONE };

    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_WEIGHT; kind++)
        same_bits(&shape, (pons_kernel_kind)kind);
    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_WEIGHT; kind++)
        same_bits(&strided, (pons_kernel_kind)kind);
    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_WEIGHT; kind++)
        same_bits(&wide, (pons_kernel_kind)kind);
    same_bits(&few_sums, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    same_bits(&few_strided, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    same_bits(&small, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
}
END_TEST

/* Root mean square error relative to that of the result. */
static double relative_error(const shape_case *s, family make, pons_kernel_kind kind)
{
    problem truth, p = compute_result(s, make, kind, 2);
    double error = 0, size = 0;

    problem_init(&truth, s, kind, PONS_F64, true);
    fill_inputs(&truth, number_below_one);
    compute_truth(&truth);
    for (int64_t i = 0; i < count_of(&p.output); i++) {
        double should = load_number(PONS_F64, truth.memory[2].memory, i);
        double away = load_number(p.output.type, p.memory[2].memory, i) - should;

        error += away * away;
        size += should * should;
    }
    problem_clear(&p);
    problem_clear(&truth);
    return sqrt(error / size);
}

/*
 * Winograd rounds both transformed factors to bf16; the direct sum rounds the result alone. The
 * bounds follow from the squares of a result's terms, relative to those of the direct sum.
 *
 * Convolution and input gradient, along each axis: one term has 2 points and 1 weight, two terms
 * have 2 points and 3 quarters of a weight. The squares 2 + 3/2 + 3/2 are 5/3 of the direct sum's
 * 3.
 *
 * Weight gradient, whose result is not rounded: a tile has two products for each weight. Two
 * weights have 1 x 2 and twice 2 x 2 / 4, the third has only the latter. The mean of 4, 4 and 2 is
 * 5/3 of 2.
 *
 * Weight gradient with a stride: sums of points are rounded, single points are exact. A weight at
 * the kernel's corner has 6 squares of a rounding, one at its edge 2, the one in its middle none.
 *
 * The last two of five weights add two terms with 2 points and 2 quarters of a weight, and to one
 * of the points a third with 2 points and 1 weight. The mean of 7 and 9 is 8/5 of the direct sum's
 * 5. Of the gradients, the mean of 4, 2, 4, 2 and 4 is 8/5 of 2.
 */
START_TEST(winograd_rounding_error_follows_from_its_terms)
{
    static const shape_case s = { 1, { 5, 24, 26 }, 32, 32, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case strided = { 1, { 9, 48, 52 }, 32, 32, 1, THREE, TWO, ONE, ONE, ONE };
    static const shape_case wide = { 1, { 5, 24, 26 }, 32, 32, 1, FIVE, ONE, ONE, TWO, TWO };
    const double wide_terms = 64.0 / 25;
    const double terms = 25.0 / 9, strided_terms = (4 * 6 + 4 * 2) / 9.0, rounding = 0x1p-9;
    double fewer;

    gemm_isa = ISA_AVX512BF16;
    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_INPUT; kind++) {
        double plain = relative_error(&s, prepare_bf16_gemm, (pons_kernel_kind)kind);
        fewer = relative_error(&s, prepare_winograd, (pons_kernel_kind)kind);

        printf("kind %d: away by %.2f of 2^-9 of the result's size, with fewer products %.2f\n",
               kind, plain / rounding, fewer / rounding);
        ck_assert_double_le(plain, rounding);
        ck_assert_double_le(fewer, 1.1 * sqrt(1 + 2 * terms) * plain);
        fewer = relative_error(&wide, prepare_winograd, (pons_kernel_kind)kind);
        printf("of five weights: %.2f\n", fewer / rounding);
        ck_assert_double_le(fewer, 1.1 * sqrt(1 + 2 * wide_terms) * plain);
    }
    fewer = relative_error(&wide, prepare_winograd, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    printf("gradient by five weights: %.2f\n", fewer / rounding);
    ck_assert_double_le(fewer, sqrt(2 * wide_terms) * rounding);
    fewer = relative_error(&s, prepare_winograd, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    printf("gradient by the weight: with fewer products %.2f\n", fewer / rounding);
    ck_assert_double_le(fewer, sqrt(2 * terms) * rounding);
    fewer = relative_error(&strided, prepare_winograd, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    printf("with a stride: %.2f\n", fewer / rounding);
    ck_assert_double_le(fewer, sqrt(strided_terms) * rounding);
}
END_TEST

/*
 * Transformed factors in float are rounded to 2^-24 relatively, which is 2^15 times less, and
 * sums of a few hundred terms add about as much.
 */
START_TEST(winograd_error_of_floats_is_one_of_float)
{
    static const shape_case s = { 1, { 5, 24, 26 }, 32, 32, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case strided = { 1, { 9, 48, 52 }, 32, 32, 1, THREE, TWO, ONE, ONE, ONE };
    static const shape_case wide = { 1, { 5, 24, 26 }, 32, 32, 1, FIVE, ONE, ONE, TWO, TWO };

    image_type = PONS_F32;
    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_WEIGHT; kind++) {
        ck_assert_double_le(relative_error(&s, prepare_winograd, (pons_kernel_kind)kind), 0x1p-20);
        ck_assert_double_le(relative_error(&strided, prepare_winograd, (pons_kernel_kind)kind),
                            0x1p-20);
        ck_assert_double_le(relative_error(&wide, prepare_winograd, (pons_kernel_kind)kind),
                            0x1p-20);
    }
    image_type = PONS_BF16;
}
END_TEST

START_TEST(few_channels_convolution_is_exact)
{
    check_random(prepare_few_channels, PONS_KERNEL_CONVOLUTION, 6);
}
END_TEST

START_TEST(few_channels_input_gradient_is_exact)
{
    check_random(prepare_few_channels, PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, 6);
}
END_TEST

START_TEST(few_input_channels_weight_gradient_is_exact)
{
    check_random(prepare_few_channels, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT, 6);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("bf16_gemm");

    units_say_bf16_gemm();
    if (!isa_runs(ISA_AVX512BF16))
        return suite_skip("check_bf16_gemm", "products of bf16");

    tcase_add_test(c, bf16_gemm_convolution_is_exact);
    tcase_add_test(c, bf16_gemm_input_gradient_is_exact);
    tcase_add_test(c, bf16_gemm_weight_gradient_is_exact);
    tcase_add_test(c, winograd_convolution_is_exact);
    tcase_add_test(c, winograd_input_gradient_is_exact);
    tcase_add_test(c, winograd_weight_gradient_is_exact);
    tcase_add_test(c, winograd_has_the_same_bits_on_any_number_of_threads);
    tcase_add_test(c, winograd_rounding_error_follows_from_its_terms);
    tcase_add_test(c, winograd_error_of_floats_is_one_of_float);
    if (!isa_runs(ISA_AMX))
        return suite_run();
    tcase_add_test(c, few_channels_convolution_is_exact);
    tcase_add_test(c, few_channels_input_gradient_is_exact);
    tcase_add_test(c, few_input_channels_weight_gradient_is_exact);
    return suite_run();
}
