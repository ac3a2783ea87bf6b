/*
 * check_wide.c - convolutions of many channels on the tile registers of AMX and on vectors of
 * pairs, with fewer products, and of few channels on the tile registers; skipped where there is
 * none of it. Shapes that were chosen, and WIDE_ROUNDS random ones of each family and direction.
 *
 * Tensors hold small whole numbers: every product and sum is exact, in bf16 as in float, whatever
 * the order, so results must equal the reference's in double to the last bit. How much is rounded
 * where fewer products are made is seen with other numbers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu/conv/few_channels_amx/few_channels_amx.h"
#include "cpu/conv/winograd/winograd.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "guarded.h"
#include "suite.h"
#include "units.h"

typedef struct shape_case {
    int cases, x[3], ins, outs, groups; /* channels of all groups */
    int kernel[3], stride[3], dilation[3], low[3], high[3];
} shape_case;

#define ONE { 1, 1, 1 }
#define TWO { 2, 2, 2 }
#define THREE { 3, 3, 3 }
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

/* What a kernel works on: a request, and guarded memory for its tensors. */
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

/* A number that has an exact bf16, as every whole one up to 255: its upper half as a float. */
static void put(pons_type type, void *to, int64_t at, double value)
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

/* Of a double as the type keeps it. */
static double get(pons_type type, const void *from, int64_t at)
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

static double rounded(pons_type type, double value)
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

static double below_one(uint32_t random)
{
    return rounded(PONS_BF16, random * 0x1p-31 - 1);
}

static void fill(problem *p, double (*number)(uint32_t random))
{
    uint32_t random = 12345;

    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < count_of(&p->input[i]); k++) {
            random = random * 1664525u + 1013904223u;
            put(p->input[i].type, p->memory[i].memory, k, number(random));
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
    fill(p, small_whole);
}

static void problem_clear(problem *p)
{
    for (int i = 0; i < 3; i++)
        guarded_free(&p->memory[i]);
}

/* Packed weights against a guard; the memory that the kernel reads instead of them. */
static guarded pack(problem *p, pons_kernel *kernel)
{
    guarded packed = guarded_new((kernel->pack_size[1] + 63) / 64 * 64, true);
    pons_error err = PONS_ERROR_INIT;

    memset(packed.memory, 0xff, packed.size); /* as scratch memory */
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

    memset(scratch.memory, 0xff, size); /* not a number, wherever it is read before it is written */
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

static const wide_unit *unit; /* of the family 'wide' */

static pons_status wide(int threads, const pons_request *request, pons_kernel *kernel,
                        bool *supported, pons_error *err)
{
    if (request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return wide_prepare_weight(unit, threads, request, kernel, supported, err);
    return wide_prepare_image(unit, threads, request, kernel, supported, err);
}

/* Declines where vectors are thought to be faster. */
static pons_status narrow(int threads, const pons_request *request, pons_kernel *kernel,
                          bool *supported, pons_error *err)
{
    if (request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        return narrow_tile_prepare_weight(threads, request, kernel, supported, err);
    return narrow_tile_prepare(narrow_lanes_row(map_lanes_count() - 1), threads, request, kernel,
                               supported, err);
}

/* Sums of 4 numbers and quarters of sums of 9 weights are exact in bf16, too. */
static pons_status transformed(int threads, const pons_request *request, pons_kernel *kernel,
                               bool *supported, pons_error *err)
{
    return (request->kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT
            ? winograd_prepare_weight
            : winograd_prepare)(&wide_dots, threads, request, kernel, supported, err);
}

static void describe(const shape_case *s, char *to, size_t size)
{
    snprintf(to, size, "%d x %d %d %d, %d -> %d, groups %d, kernel %d %d %d, stride %d %d %d, "
             "dilation %d %d %d, low %d %d %d, high %d %d %d", s->cases, s->x[0], s->x[1], s->x[2],
             s->ins, s->outs, s->groups, s->kernel[0], s->kernel[1], s->kernel[2], s->stride[0],
             s->stride[1], s->stride[2], s->dilation[0], s->dilation[1], s->dilation[2],
             s->low[0], s->low[1], s->low[2], s->high[0], s->high[1], s->high[2]);
}

static void compare(const problem *found, const problem *truth, const shape_case *s, int threads)
{
    pons_type type = found->output.type;
    char text[300];

    describe(s, text, sizeof text);
    for (int64_t i = 0; i < count_of(&found->output); i++) {
        double is = get(type, found->memory[2].memory, i);
        double should = rounded(type, get(PONS_F64, truth->memory[2].memory, i));
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

    problem_init(&p, s, kind, PONS_BF16, threads != 2);
    p.request.packable = threads == 1 ? 0 : 2;
    ck_assert(make(threads, &p.request, &kernel, &supported, &err) == PONS_OK);
    if (supported) {
        run(&p, &kernel);
        compare(&p, truth, s, threads);
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

static int below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static void some_axis(shape_case *s, int axis, int least, int most, bool dilated)
{
    int span;

    s->kernel[axis] = dilated || below(4) == 0 ? 1 + below(4) : 3;
    s->stride[axis] = 1 + below(3);
    s->dilation[axis] = dilated ? 1 + below(2) : 1;
    s->low[axis] = below(s->kernel[axis]);
    s->high[axis] = below(s->kernel[axis] + 1);
    s->x[axis] = least + below(most - least + 1);
    span = s->dilation[axis] * (s->kernel[axis] - 1) + 1 - s->low[axis] - s->high[axis];
    if (s->x[axis] < span)
        s->x[axis] = span;
}

/* For fewer products: planes by 3 x 3, padded by one on all sides mostly. */
static void some_plane(shape_case *s)
{
    int stride = 1 + below(2);

    for (int i = 1; i < 3; i++) {
        bool padded = below(4) > 0;
        s->kernel[i] = 3;
        s->stride[i] = stride;
        s->low[i] = padded ? 1 : below(5);
        s->high[i] = padded ? 1 : below(5);
        s->x[i] = 3 + below(14);
    }
}

static shape_case some_shape(family make, bool weight)
{
    static const int many[] = { 5, 8, 15, 16, 17, 32, 33, 40 };
    static const int least[2][3] = { { 1, 1, 1 }, { 1, 6, 24 } };
    static const int most[2][3] = { { 5, 6, 13 }, { 3, 14, 60 } };
    shape_case s = { .cases = 1 + below(2), .groups = 1 };
    bool few = make == narrow, plain = make == transformed;

    s.ins = few ? 1 + below(4) : many[below(8)];
    s.outs = few && below(2) == 0 ? 1 + below(4) : many[below(8)];
    if (few && !weight && below(2) == 0) {
        int ins = s.ins;
        s.ins = s.outs;
        s.outs = ins;
    }
    for (int i = 0; i < 3; i++)
        some_axis(&s, i, least[few][i], most[few][i], !few && !plain);
    if (plain)
        some_plane(&s);
    return s;
}

static int round_count(void)
{
    const char *text = getenv("WIDE_ROUNDS");

    return text != NULL ? atoi(text) : 60;
}

/* Of the shapes at least one in 'one_in' is not declined. */
static void check_random(family make, pons_kernel_kind kind, int one_in)
{
    int rounds = round_count(), taken = 0;

    for (int round = 0; round < rounds; round++) {
        state = (uint64_t)round * 7919 + kind;
        below(2);
        shape_case s = some_shape(make, kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
        taken += check_shape(&s, make, kind);
    }
    ck_assert_int_ge(taken * one_in, rounds);
}

static void check_unit(pons_kernel_kind kind)
{
    for (int shape = 0; shape < SHAPES; shape++)
        if (shapes[shape].groups == 1 || kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
            ck_assert(check_shape(&shapes[shape], wide, kind));
    check_random(wide, kind, 1);
}

/*
 * On every unit that runs here; and the grid of the tiles' gradients on vectors, which go anywhere.
 */
static void check_kind(pons_kernel_kind kind)
{
    static wide_unit panels;

    panels = wide_dots;
    panels.lines = NULL;
    unit = &panels;
    if (kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        check_unit(kind);
    unit = &wide_dots;
    check_unit(kind);
    unit = &wide_tiles;
    if (wide_tiles_run())
        check_unit(kind);
}

START_TEST(convolution_is_exact)
{
    check_kind(PONS_KERNEL_CONVOLUTION);
}
END_TEST

START_TEST(gradient_by_the_input_is_exact)
{
    check_kind(PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT);
}
END_TEST

START_TEST(gradient_by_the_weight_is_exact)
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
    { 1, { 3, 2, 1 }, 16, 16, 1, THREE, TWO, ONE, ONE, ONE },
};

/* By the weight, too, with any stride and dilation along D. */
static const shape_case deep[] = {
    { 2, { 11, 9, 13 }, 20, 24, 1, THREE, { 2, 1, 1 }, { 2, 1, 1 }, ONE, ONE },
    { 2, { 11, 9, 13 }, 20, 24, 1, THREE, { 3, 2, 2 }, { 2, 1, 1 }, ONE, ONE },
    { 2, { 14, 41, 20 }, 16, 33, 1, THREE, { 1, 2, 2 }, { 2, 1, 1 }, { 1, 0, 1 }, { 1, 2, 0 } },
    { 1, { 4, 13, 30 }, 33, 40, 1, { 2, 3, 3 }, TWO, { 3, 1, 1 }, { 3, 4, 0 }, { 0, 1, 3 } },
};

/* What is left to others. */
static const shape_case refused[] = {
    { 1, { 4, 9, 9 }, 16, 16, 1, THREE, { 1, 1, 2 }, ONE, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, THREE, { 1, 3, 3 }, ONE, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, THREE, ONE, { 1, 1, 2 }, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, THREE, ONE, { 1, 2, 1 }, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 2, THREE, ONE, ONE, ONE, ONE },
    { 1, { 4, 9, 9 }, 16, 16, 1, { 3, 3, 1 }, ONE, ONE, { 1, 1, 0 }, { 1, 1, 0 } },
    { 1, { 4, 9, 9 }, 16, 16, 1, { 3, 2, 3 }, ONE, ONE, ONE, ONE },
};

static void check_fewer_products(pons_kernel_kind kind)
{
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
        ck_assert(check_shape(&planes[i], transformed, kind));
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++)
        ck_assert(check_shape(&deep[i], transformed, kind) ==
                  (kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        ck_assert(!check_shape(&refused[i], transformed, kind));
    check_random(transformed, kind, 8);
}

START_TEST(convolution_with_fewer_products_is_exact)
{
    check_fewer_products(PONS_KERNEL_CONVOLUTION);
}
END_TEST

START_TEST(gradient_by_the_input_with_fewer_products_is_exact)
{
    check_fewer_products(PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT);
}
END_TEST

START_TEST(gradient_by_the_weight_with_fewer_products_is_exact)
{
    check_fewer_products(PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
}
END_TEST

/* Of numbers between -1 and 1. */
static problem compute(const shape_case *s, family make, pons_kernel_kind kind, int threads)
{
    problem p;
    pons_kernel kernel = { .run = NULL };
    pons_error err = PONS_ERROR_INIT;
    bool supported = false;

    problem_init(&p, s, kind, PONS_BF16, true);
    fill(&p, below_one);
    ck_assert(make(threads, &p.request, &kernel, &supported, &err) == PONS_OK);
    ck_assert(supported);
    run(&p, &kernel);
    return p;
}

static void same_bits(const shape_case *s, pons_kernel_kind kind)
{
    static const int threads[] = { 2, 3, 7 };
    problem one = compute(s, transformed, kind, 1);

    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        problem p = compute(s, transformed, kind, threads[i]);
        ck_assert_msg(memcmp(p.memory[2].memory, one.memory[2].memory, one.memory[2].size) == 0,
                      "kind %d: bits of %d threads are others", (int)kind, threads[i]);
        problem_clear(&p);
    }
    problem_clear(&one);
}

START_TEST(fewer_products_have_the_same_bits_on_any_threads)
{
    static const shape_case shape = { 3, { 7, 17, 20 }, 40, 100, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case few_sums = { 2, { 9, 34, 38 }, 16, 16, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case strided = { 1, { 9, 30, 45 }, 33, 70, 1, THREE, TWO, ONE, ONE, ONE };
    static const shape_case small = { 2, { 6, 6, 6 }, 64, 130, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case few_strided = { 2, { 40, 48, 50 }, 16, 17, 1, THREE, TWO, ONE, ONE,
                                            ONE };

    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_WEIGHT; kind++)
        same_bits(&shape, (pons_kernel_kind)kind);
    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_WEIGHT; kind++)
        same_bits(&strided, (pons_kernel_kind)kind);
    same_bits(&few_sums, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    same_bits(&few_strided, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    same_bits(&small, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
}
END_TEST

/* The root mean square of the error, of what is computed. */
static double error_of(const shape_case *s, family make, pons_kernel_kind kind)
{
    problem truth, p = compute(s, make, kind, 2);
    double error = 0, size = 0;

    problem_init(&truth, s, kind, PONS_F64, true);
    fill(&truth, below_one);
    compute_truth(&truth);
    for (int64_t i = 0; i < count_of(&p.output); i++) {
        double should = get(PONS_F64, truth.memory[2].memory, i);
        double away = get(p.output.type, p.memory[2].memory, i) - should;

        error += away * away;
        size += should * should;
    }
    problem_clear(&p);
    problem_clear(&truth);
    return sqrt(error / size);
}

/*
 * The result is rounded; with fewer products both factors are, too. Squares of the terms of a
 * result add up to 5 / 3 of its own for each axis: 2 of 4 source points by 1 of 3 weights, and
 * twice by 3 / 4. So do those of a gradient by the weight, which is not rounded: of the two
 * products that a tile has for each weight two weights make 1 point of y by 2 of x and twice 2 by 2
 * / 4, the third the latter alone. With a stride sums of points are rounded and points stay what
 * they are: a weight at the kernel's corner has 6 squares of a rounding, one at its edge 2, the one
 * in its middle none.
 */
START_TEST(fewer_products_round_by_the_size_of_their_terms)
{
    static const shape_case s = { 1, { 5, 24, 26 }, 32, 32, 1, THREE, ONE, ONE, ONE, ONE };
    static const shape_case strided = { 1, { 9, 48, 52 }, 32, 32, 1, THREE, TWO, ONE, ONE, ONE };
    const double terms = 25.0 / 9, strided_terms = (4 * 6 + 4 * 2) / 9.0, rounding = 0x1p-9;
    double fewer;

    unit = &wide_dots;
    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_INPUT; kind++) {
        double plain = error_of(&s, wide, (pons_kernel_kind)kind);
        fewer = error_of(&s, transformed, (pons_kernel_kind)kind);

        printf("kind %d: away by %.2f of 2^-9 of the result's size, with fewer products %.2f\n",
               kind, plain / rounding, fewer / rounding);
        ck_assert_double_le(plain, rounding);
        ck_assert_double_le(fewer, 1.1 * sqrt(1 + 2 * terms) * plain);
    }
    fewer = error_of(&s, transformed, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    printf("gradient by the weight: with fewer products %.2f\n", fewer / rounding);
    ck_assert_double_le(fewer, sqrt(2 * terms) * rounding);
    fewer = error_of(&strided, transformed, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT);
    printf("with a stride: %.2f\n", fewer / rounding);
    ck_assert_double_le(fewer, sqrt(strided_terms) * rounding);
}
END_TEST

/* Who makes it on vectors of pairs, with so much scratch memory at most; 0: any. */
static const char *maker_of(const shape_case *s, pons_kernel_kind kind, size_t limit)
{
    const pons_device_settings settings = { .count = 1, .threads = 2, .workspace_limit = limit };
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { .run = NULL };
    bool supported = false;
    const char *name;
    void *device;
    problem p;

    ck_assert(cpu_operations.open(&settings, &device, &err) == PONS_OK);
    ((cpu_device *)device)->wide = &wide_dots;
    problem_init(&p, s, kind, PONS_BF16, true);
    p.request.packable = kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT ? 0 : 2;
    ck_assert(convolution_prepare(device, &p.request, &kernel, &supported, &err) == PONS_OK);
    ck_assert(supported);
    name = kernel.implementation;
    kernel.free(&kernel);
    problem_clear(&p);
    cpu_operations.close(device);
    return name;
}

START_TEST(the_device_makes_fewer_products_where_they_are_faster)
{
    static const struct {
        shape_case shape;
        bool image, weight; /* forward and by the input; by the weight */
    } rows[] = {
        { { 1, { 8, 24, 24 }, 32, 32, 1, THREE, ONE, ONE, ONE, ONE }, true, true },
        { { 2, { 6, 6, 6 }, 64, 64, 1, THREE, ONE, ONE, ONE, ONE }, true, true },
        { { 1, { 5, 8, 8 }, 64, 64, 1, THREE, ONE, ONE, ONE, ONE }, true, true },
        { { 1, { 8, 24, 24 }, 12, 32, 1, THREE, ONE, ONE, ONE, ONE }, true, false },
        { { 1, { 8, 3, 3 }, 64, 64, 1, THREE, ONE, ONE, ONE, ONE }, false, true },
        { { 2, { 8, 1, 1 }, 64, 64, 1, THREE, ONE, ONE, ONE, ONE }, false, false },
        { { 1, { 8, 48, 48 }, 32, 64, 1, THREE, TWO, ONE, ONE, ONE }, true, true },
        { { 1, { 8, 48, 48 }, 16, 32, 1, THREE, TWO, ONE, ONE, ONE }, false, true },
        { { 1, { 8, 48, 48 }, 12, 32, 1, THREE, TWO, ONE, ONE, ONE }, false, false },
        { { 1, { 8, 48, 48 }, 16, 32, 1, { 1, 3, 3 }, { 1, 2, 2 }, ONE, { 0, 1, 1 }, { 0, 1, 1 } },
          false, false },
        { { 2, { 8, 24, 24 }, 64, 64, 1, THREE, TWO, ONE, ONE, ONE }, true, true },
        { { 2, { 8, 12, 12 }, 64, 64, 1, THREE, TWO, ONE, ONE, ONE }, false, true },
        { { 2, { 9, 9, 9 }, 64, 64, 1, THREE, TWO, ONE, ONE, ONE }, false, true },
        { { 1, { 9, 9, 9 }, 64, 64, 1, THREE, TWO, ONE, ONE, ONE }, false, false },
        { { 1, { 8, 24, 24 }, 32, 32, 1, ONE, ONE, ONE, NONE, NONE }, false, false },
    };

    for (int kind = PONS_KERNEL_CONVOLUTION; kind <= BY_WEIGHT; kind++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const char *name = maker_of(&rows[i].shape, (pons_kernel_kind)kind, 0);
            bool fewer = kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT ? rows[i].weight
                                                                         : rows[i].image;
            ck_assert_msg((strcmp(name, "winograd") == 0) == fewer, "kind %d, row %d: %s", kind,
                          (int)i, name);
        }
        ck_assert_str_ne(maker_of(&rows[0].shape, (pons_kernel_kind)kind, 1), "winograd");
    }
}
END_TEST

START_TEST(convolution_with_few_channels_is_exact)
{
    check_random(narrow, PONS_KERNEL_CONVOLUTION, 6);
}
END_TEST

START_TEST(gradient_by_the_input_with_few_channels_is_exact)
{
    check_random(narrow, PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, 6);
}
END_TEST

START_TEST(gradient_by_the_weight_with_few_input_channels_is_exact)
{
    check_random(narrow, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT, 6);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("wide");

    units_say_wide();
    if (!wide_dots_run())
        return 77;

    tcase_add_test(c, convolution_is_exact);
    tcase_add_test(c, gradient_by_the_input_is_exact);
    tcase_add_test(c, gradient_by_the_weight_is_exact);
    tcase_add_test(c, convolution_with_fewer_products_is_exact);
    tcase_add_test(c, gradient_by_the_input_with_fewer_products_is_exact);
    tcase_add_test(c, gradient_by_the_weight_with_fewer_products_is_exact);
    tcase_add_test(c, fewer_products_have_the_same_bits_on_any_threads);
    tcase_add_test(c, the_device_makes_fewer_products_where_they_are_faster);
    tcase_add_test(c, fewer_products_round_by_the_size_of_their_terms);
    if (!wide_tiles_run())
        return suite_run();
    tcase_add_test(c, convolution_with_few_channels_is_exact);
    tcase_add_test(c, gradient_by_the_input_with_few_channels_is_exact);
    tcase_add_test(c, gradient_by_the_weight_with_few_input_channels_is_exact);
    return suite_run();
}
