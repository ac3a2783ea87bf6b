/*
 * check_few_channels.c - convolutions with few channels on a side, in all three directions. Every
 * instruction set that runs here is compared with the reference in double. Shapes are random
 * (extents from 1, strides to 3, paddings, flat images) and lie between guard pages. One, two and
 * three threads must give equal bits.
 */
#include "cpu/conv/conv_testing.h"
#include "cpu/conv/few_channels/few_channels.h"
#include "cpu/cpu_testing.h"
#include "graph/ir/node.h"
#include "graph/ir/shape.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "support/graph/convolutions.h"
#include "support/graph/kernel_trial.h"
#include "support/graph/units.h"
#include "support/guarded.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>

static uint64_t state;

static int random_below(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((state >> 33) % (uint64_t)n);
}

static int random_channels(bool few)
{
    static const int many[] = { 5, 8, 13, 16, 20, 32, 33, 48, 64 };

    return few ? 1 + random_below(FEW_CHANNELS_MAX) : many[random_below(9)];
}

static void random_axis(sliding *s, int i)
{
    static const int extents[] = { 1, 2, 3, 4, 5, 7, 9, 11 };

    s->kernel[i] = 1 + random_below(random_below(4) > 0 ? 3 : 5);
    s->stride[i] = 1 + random_below(3);
    s->dilation[i] = 1;
    s->low[i] = random_below(s->kernel[i]);
    s->high[i] = random_below(s->kernel[i] + 2); /* some points of y may read nothing */
    do {
        s->extent[i] = i == 2 && random_below(3) > 0 ? 1 + random_below(75)
            : extents[random_below(8)];
    } while (sliding_extent(s, i) < 1);
}

static sliding random_sliding(pons_kernel_kind kind, pons_type type)
{
    sliding s = { .kind = kind, .cases = 1 + random_below(3), .type = type };
    int few = random_below(3);

    s.in = random_channels(few != 0);
    s.out = random_channels(few != 1);
    for (int i = 0; i < 3; i++)
        random_axis(&s, i);
    if (random_below(3) == 0)
        for (int i = 0; i < 3; i++)
            s.stride[i] = 1;
    if (random_below(4) == 0)
        s.extent[0] = s.kernel[0] = s.stride[0] = 1, s.low[0] = s.high[0] = 0;
    return s;
}

/* ---- running a kernel ------------------------------------------------------------------------ */

typedef struct sample {
    sliding s;
    sliding_request r;
    guarded in[2], truth;
    int64_t count;
    double largest;
} sample;

static guarded tensor_new(const pons_tensor *t)
{
    return guarded_new((size_t)tensor_count(t) * type_size(t->type), random_below(2));
}

static void fill_tensor(const pons_tensor *t, guarded *g)
{
    for (int64_t i = 0; i < tensor_count(t); i++)
        map_number_store(t->type, g->memory, i, (float)(random_below(511) - 255) / 256);
}

static bool run_kernel(const device *d, const pons_request *r, guarded in[2], guarded *out)
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { 0 };
    pons_call call = { (void *[]){ in[0].memory, in[1].memory }, (void *[]){ out->memory },
                       NULL, NULL };
    bool supported = false;
    guarded scratch;

    ck_assert(d->operations->prepare(d->handle, r, &kernel, &supported, &err) == PONS_OK);
    if (!supported || (!d->reference && strncmp(kernel.implementation, "few_channels", 12) != 0)) {
        if (kernel.free != NULL)
            kernel.free(&kernel);
        return false;
    }
    scratch = guarded_new((kernel.scratch_size + 63) / 64 * 64, true);
    memset(scratch.memory, 0xff, scratch.size);
    memset(out->memory, 0xff, out->size);
    call.scratch = scratch.memory;
    ck_assert(kernel.run(&kernel, &call, &err) == PONS_OK);
    guarded_free(&scratch);
    if (kernel.free != NULL)
        kernel.free(&kernel);
    return true;
}

static void make_truth(sample *p)
{
    pons_tensor wide = p->r.output[0];
    pons_request request = p->r.request;
    device reference;

    device_reference(&reference, true);
    wide.type = PONS_F64;
    request.output = &wide;
    p->truth = tensor_new(&wide);
    p->count = tensor_count(&wide);
    ck_assert(run_kernel(&reference, &request, p->in, &p->truth));
    p->largest = 0;
    for (int64_t i = 0; i < p->count; i++)
        p->largest = fmax(p->largest, fabs(((double *)p->truth.memory)[i]));
}

static void describe_sliding(const sliding *s, char *to, size_t size)
{
    snprintf(to, size, "kind %d, %d x %d %d %d, %d -> %d, kernel %d %d %d, stride %d %d %d, low %d "
             "%d %d, high %d %d %d, type %d", s->kind, s->cases, s->extent[0], s->extent[1],
             s->extent[2], s->in, s->out, s->kernel[0], s->kernel[1], s->kernel[2], s->stride[0],
             s->stride[1], s->stride[2], s->low[0], s->low[1], s->low[2], s->high[0], s->high[1],
             s->high[2], s->type);
}

static void compare_outputs(const sample *p, const guarded *found, const char *row)
{
    pons_type type = p->r.output[0].type;
    double tolerance = (type == PONS_BF16 ? BF16_ROUNDING : FLOAT_OF_LARGEST) * p->largest;
    char text[300];

    describe_sliding(&p->s, text, sizeof text);
    for (int64_t i = 0; i < p->count; i++) {
        double expected = ((double *)p->truth.memory)[i];
        double got = (double)map_number_load(type, found->memory, i);
        ck_assert_msg(fabs(got - expected) <= tolerance, "%s: %s: element %ld is %.9g, not %.9g",
                      row, text, (long)i, got, expected);
    }
}

static bool check_row(const sample *p, int row)
{
    guarded first = tensor_new(&p->r.output[0]), other = tensor_new(&p->r.output[0]);
    bool own = true;

    for (int threads = 1; threads <= 3 && own; threads++) {
        pons_device_settings settings = { .count = 1, .threads = threads };
        pons_error err = PONS_ERROR_INIT;
        device cpu = { .operations = &cpu_operations };
        guarded *out = threads == 1 ? &first : &other;

        ck_assert(cpu_operations.open(&settings, &cpu.handle, &err) == PONS_OK);
        cpu_device_choose_row(cpu.handle, row);
        own = run_kernel(&cpu, &p->r.request, (guarded *)p->in, out);
        cpu_operations.close(cpu.handle);
        if (own && threads == 1)
            compare_outputs(p, &first, isa_map_lanes(row)->name);
        else if (own)
            ck_assert_msg(memcmp(first.memory, other.memory, first.size) == 0,
                          "%d threads give other bits", threads);
    }
    guarded_free(&first);
    guarded_free(&other);
    return own;
}

/* Number of instruction sets with a kernel of pons for the shape. */
static int check_sliding(const sliding *s)
{
    sample p = { .s = *s };
    int own = 0;

    sliding_make(s, &p.r);
    for (int i = 0; i < 2; i++) {
        p.in[i] = tensor_new(&p.r.input[i]);
        fill_tensor(&p.r.input[i], &p.in[i]);
    }
    make_truth(&p);
    for (int row = 0; row < isa_rows_count(); row++)
        own += check_row(&p, row);
    guarded_free(&p.in[0]);
    guarded_free(&p.in[1]);
    guarded_free(&p.truth);
    return own;
}

static const pons_kernel_kind kinds[] = { PONS_KERNEL_CONVOLUTION,
                                          PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT,
                                          PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT };

static void check_random(pons_type type, int rounds)
{
    for (int kind = 0; kind < 3; kind++) {
        int own = 0;

        for (int round = 0; round < rounds; round++) {
            state = (uint64_t)(kind * 100000 + round) * 7919 + type;
            random_below(2);
            sliding s = random_sliding(kinds[kind], type);
            own += check_sliding(&s);
        }
        /* The library is not tested: pons has a kernel of its own for most of these shapes. */
        ck_assert_int_gt(own, rounds * isa_rows_count() * 2 / 3);
    }
}

static int rounds(void)
{
    const char *text = getenv("FEW_CHANNELS_ROUNDS");
    return text != NULL ? atoi(text) : 30;
}

START_TEST(random_shapes_agree_with_the_reference_in_fp32)
{
    check_random(PONS_F32, rounds());
}
END_TEST

START_TEST(random_shapes_agree_with_the_reference_in_bf16)
{
    check_random(PONS_BF16, rounds());
}
END_TEST

/*
 * Kernels of 3 along W and H have their own loops where bf16 is multiplied in pairs. Widths make
 * whole vectors end at the end of a row or close to it.
 */
START_TEST(kernels_3_wide_agree_with_the_reference_in_bf16)
{
    static const int many[] = { 16, 32, 48, 64 };
    static const int widths[] = { 2, 15, 16, 17, 31, 32, 33, 47, 48, 63, 64, 65, 96, 97 };
    int own = 0, count = 14 * 3 * 2 * 2;

    for (int round = 0; round < count; round++) {
        int width = round % 14, kind = round / 14 % 3, stride = 1 + round / 42 % 2;
        bool few_in = round / 84 == 0;
        state = (uint64_t)round * 0x9e3779b97f4a7c15u;
        random_below(2);
        sliding s = random_sliding(kinds[kind], PONS_BF16);
        s.in = few_in || random_below(3) == 0 ? 1 + random_below(FEW_CHANNELS_MAX)
            : many[random_below(4)];
        s.out = !few_in || random_below(3) == 0 ? 1 + random_below(FEW_CHANNELS_MAX)
            : many[random_below(4)];
        for (int i = 1; i < 3; i++) {
            s.kernel[i] = 3;
            s.stride[i] = stride;
            s.low[i] = 1;
            s.high[i] = random_below(3);
            s.extent[i] = i == 2 ? widths[width] : s.extent[i] % 12 + 2;
        }
        own += check_sliding(&s);
    }
    ck_assert_int_gt(own, count * isa_rows_count() / 2);
}
END_TEST

/* A bf16 convolution by 3 x 3 x 3; x has 'width' points along W. */
static sliding sliding_of_three(pons_kernel_kind kind, int in, int out, int height, int width)
{
    return (sliding){ kind, 2, { 3, height, width }, in, out, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 },
                      { 1, 1, 1 }, { 1, 1, 1 }, PONS_BF16 };
}

/*
 * Rows that are read without a copy: each number of vectors; rows end inside and between vectors.
 */
START_TEST(rows_of_two_channels_agree_with_the_reference)
{
    static const int widths[] = { 1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 80, 81, 96, 97, 112, 113 };

    for (int i = 0; i < 16; i++)
        for (int few = 1; few <= 2; few++)
            for (int turned = 0; turned < 2; turned++) {
                sliding s = turned ? sliding_of_three(kinds[1], few, 2, 6, widths[i])
                                   : sliding_of_three(kinds[0], 2, few, 6, widths[i]);
                s.kernel[1] = 1 + i % 3;
                s.low[1] = i % s.kernel[1];
                s.stride[i % 2] = 1 + i / 2 % 2;
                ck_assert_int_gt(check_sliding(&s), 0);
            }
}
END_TEST

/*
 * The input gradient makes rows twice as long. Each number of vectors; planes and rows in several
 * tasks.
 */
START_TEST(strided_input_gradients_agree_with_the_reference)
{
    static const struct { int in, out, depth, height, width, kernel, stride, low; } rows[] = {
        { 2, 32, 3, 7, 66, 3, 2, 1 }, { 2, 32, 4, 8, 96, 3, 2, 1 }, { 2, 16, 3, 5, 97, 2, 2, 0 },
        { 1, 16, 2, 6, 170, 3, 2, 1 }, { 1, 48, 3, 5, 193, 3, 2, 2 }, { 3, 16, 2, 9, 64, 3, 2, 1 },
        { 4, 16, 3, 6, 65, 3, 2, 0 }, { 2, 16, 20, 5, 34, 3, 2, 1 }, { 2, 32, 19, 6, 33, 3, 2, 1 },
        { 2, 16, 3, 9, 67, 3, 1, 1 }, { 1, 16, 3, 8, 50, 2, 1, 1 }, { 4, 16, 2, 7, 49, 1, 1, 0 },
        { 2, 64, 3, 60, 200, 3, 2, 1 }, { 1, 64, 2, 61, 200, 3, 2, 2 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sliding s = sliding_of_three(kinds[1], rows[i].in, rows[i].out, rows[i].height,
                                     rows[i].width);
        s.extent[0] = rows[i].depth;
        s.kernel[1] = rows[i].kernel;
        s.low[1] = rows[i].low;
        s.stride[0] = 1 + i % 2;
        s.stride[1] = rows[i].stride;
        s.stride[2] = 2;
        ck_assert_int_gt(check_sliding(&s), 0);
    }
}
END_TEST

/* Rows of many channels, from one or three input channels and from pairs of them. */
START_TEST(rows_of_many_channels_agree_with_the_reference)
{
    static const struct { int in, out, height, width, kernel, stride, low; } rows[] = {
        { 1, 16, 7, 25, 3, 1, 1 }, { 1, 48, 6, 24, 3, 1, 2 }, { 3, 32, 5, 13, 3, 1, 0 },
        { 3, 16, 8, 27, 2, 1, 1 }, { 1, 32, 9, 12, 3, 3, 2 }, { 3, 16, 7, 11, 3, 3, 1 },
        { 1, 16, 60, 200, 3, 1, 1 }, { 2, 16, 8, 30, 3, 3, 2 }, { 4, 32, 7, 9, 1, 2, 0 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sliding s = sliding_of_three(kinds[0], rows[i].in, rows[i].out, rows[i].height,
                                     rows[i].width);
        s.kernel[1] = rows[i].kernel;
        s.stride[1] = rows[i].stride;
        s.low[1] = rows[i].low;
        ck_assert_int_gt(check_sliding(&s), 0);
    }
}
END_TEST

/* Layers of networks, with several blocks of planes and a short last one. */
START_TEST(few_channels_layers_of_networks_agree_with_the_reference)
{
    static const struct { int in, out, kernel, stride; } layers[] = {
        { 1, 16, 3, 2 }, { 1, 32, 3, 1 }, { 2, 2, 3, 1 }, { 4, 32, 3, 1 }, { 32, 3, 1, 1 },
        { 2, 32, 3, 2 }, { 3, 64, 3, 2 }, { 4, 48, 8, 8 }, { 64, 5, 1, 1 }, { 32, 2, 3, 1 },
        { 1, 48, 2, 2 }, { 4, 4, 3, 1 }, { 1, 1, 5, 1 },
    };

    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int kind = 0; kind < 3; kind++)
            for (int type = 0; type < 2; type++) {
                int pad = (layers[i].kernel - 1) / 2, k = layers[i].kernel, t = layers[i].stride;
                sliding s = { kinds[kind], 2, { 9, 10, 50 }, layers[i].in, layers[i].out,
                              { k, k, k }, { t, t, t }, { 1, 1, 1 }, { pad, pad, pad },
                              { pad, pad, pad }, type == 0 ? PONS_F32 : PONS_BF16 };
                check_sliding(&s);
            }
}
END_TEST

static pons_status own(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                       bool *supported, pons_error *err)
{
    return conv_prepare_by("few_channels", device, request, kernel, supported, err);
}

START_TEST(few_channels_sums_have_the_error_of_short_chains)
{
    static const struct {
        pons_kernel_kind kind;
        int in, out, stride, products, chain;
    } sums[] = {
        { PONS_KERNEL_CONVOLUTION, 2, 2, 1, 54, 18 },
        { PONS_KERNEL_CONVOLUTION, 4, 4, 1, 108, 24 },
        { PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, 4, 4, 1, 108, 24 },
        { PONS_KERNEL_CONVOLUTION, 4, 8, 2, 108, 24 },
        { PONS_KERNEL_CONVOLUTION, 4, 16, 2, 108, 24 },
        { PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, 2, 32, 2, 108, 32 },
    };

    trial_seed(15);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        int t = sums[i].stride;
        sliding s = { sums[i].kind, 2, { 9, 10, 50 }, sums[i].in, sums[i].out, { 3, 3, 3 },
                      { t, t, t }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, PONS_F32 };
        sliding_request r;
        sliding_make(&s, &r);
        trial_agrees(&(trial){ .kind = s.kind, .input_count = 2, .products = sums[i].products,
                               .chain = sums[i].chain, .input = { r.input[0], r.input[1] },
                               .output = r.output[0], .attributes = &r.attributes }, own);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("few_channels");

    units_say_rows();
    tcase_add_test(c, random_shapes_agree_with_the_reference_in_fp32);
    tcase_add_test(c, random_shapes_agree_with_the_reference_in_bf16);
    tcase_add_test(c, kernels_3_wide_agree_with_the_reference_in_bf16);
    tcase_add_test(c, rows_of_two_channels_agree_with_the_reference);
    tcase_add_test(c, strided_input_gradients_agree_with_the_reference);
    tcase_add_test(c, rows_of_many_channels_agree_with_the_reference);
    tcase_add_test(c, few_channels_sums_have_the_error_of_short_chains);
    tcase_add_test(c, few_channels_layers_of_networks_agree_with_the_reference);
    return suite_run();
}
