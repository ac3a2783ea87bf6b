/*
 * check_kernels.c - moves, pools, resizes, paddings, gathers and min/max gradients of the cpu
 * device against the reference kernels. Shapes include extents of 1 and odd ones; every type that
 * the graph uses is tested.
 */
#include "support/graph/units.h"
#include "support/suite.h"

#include "graph/ir/node.h"
#include "support/graph/kernel_trial.h"

#include <math.h>

static const pons_type floats[] = { PONS_F32, PONS_BF16 };
static const pons_type types[] = { PONS_F32, PONS_BF16, PONS_F16, PONS_U8, PONS_I32 };

static pons_status device_prepare(cpu_device *device, const pons_request *request,
                                  pons_kernel *kernel, bool *supported, pons_error *err)
{
    return cpu_operations.prepare(device, request, kernel, supported, err);
}

static int64_t random_extent(void)
{
    static const int64_t sizes[] = { 1, 1, 2, 3, 5, 8, 17, 33 };

    return sizes[trial_draw(8)];
}

/* A shape of 1 to 6 axes; the last ones are larger. */
static pons_shape random_shape(void)
{
    pons_shape s = { .rank = 1 + (int)trial_draw(6) };

    for (int i = 0; i < s.rank; i++)
        s.extent[i] = i < s.rank - 3 ? 1 + trial_draw(3) : random_extent();
    return s;
}

static pons_shape random_image_shape(void)
{
    return (pons_shape){ 5, { 1 + trial_draw(2), 1 + trial_draw(6), 1 + trial_draw(6),
        random_extent(),
                              random_extent() } };
}

/*
 * A move of a shape in every type. The result has the bits of the input. The output of an f32 input
 * may also be bf16.
 */
static void moves_agree(pons_kernel_kind kind, pons_shape in, pons_shape out,
                        const void *attributes)
{
    trial t = { .kind = kind, .input_count = 1, .attributes = attributes, .exact = true };

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        t.input[0] = (pons_tensor){ types[i], in };
        t.output = (pons_tensor){ types[i], out };
        trial_agrees(&t, device_prepare);
    }
    t.input[0].type = PONS_BF16;
    t.output.type = PONS_F32;
    trial_agrees(&t, device_prepare);
    t.input[0].type = PONS_F32;
    t.output.type = PONS_BF16;
    trial_agrees(&t, device_prepare);
}

START_TEST(transposes_agree)
{
    trial_seed(1);
    for (int round = 0; round < 20; round++) {
        pons_transpose_attributes a;
        pons_shape in = random_shape(), out = in;

        for (int i = 0; i < in.rank; i++)
            a.order[i] = i;
        for (int i = in.rank - 1; i > 0; i--) {
            int j = (int)trial_draw(i + 1), kept = a.order[i];
            a.order[i] = a.order[j];
            a.order[j] = kept;
        }
        for (int i = 0; i < in.rank; i++)
            out.extent[i] = in.extent[a.order[i]];
        moves_agree(PONS_KERNEL_TRANSPOSE, in, out, &a);
    }
}
END_TEST

START_TEST(large_transposes_agree)
{
    static const pons_transpose_attributes first = { { 0, 4, 1, 2, 3 } };
    static const pons_transpose_attributes last = { { 0, 2, 3, 4, 1 } };
    static const pons_transpose_attributes back = { { 4, 3, 2, 1, 0 } };

    trial_seed(2);
    moves_agree(PONS_KERNEL_TRANSPOSE, (pons_shape){ 5, { 2, 7, 33, 65, 5 } },
                (pons_shape){ 5, { 2, 5, 7, 33, 65 } }, &first);
    moves_agree(PONS_KERNEL_TRANSPOSE, (pons_shape){ 5, { 2, 37, 9, 33, 65 } },
                (pons_shape){ 5, { 2, 9, 33, 65, 37 } }, &last);
    moves_agree(PONS_KERNEL_TRANSPOSE, (pons_shape){ 5, { 2, 37, 9, 3, 65 } },
                (pons_shape){ 5, { 65, 3, 9, 37, 2 } }, &back);
}
END_TEST

START_TEST(flips_and_crops_agree)
{
    trial_seed(3);
    for (int round = 0; round < 20; round++) {
        pons_shape in = random_shape(), out = in;
        pons_flip_attributes f = { (unsigned)trial_draw(1 << in.rank) };
        pons_crop_attributes c = { { 0 }, { 0 } };

        moves_agree(PONS_KERNEL_FLIP, in, in, &f);
        for (int i = 0; i < in.rank; i++) {
            c.start[i] = trial_draw(3) > 0 ? 0 : trial_draw(in.extent[i]);
            c.step[i] = 1 + trial_draw(3) / 2;
            out.extent[i] = (in.extent[i] - 1 - c.start[i]) / c.step[i] + 1;
        }
        moves_agree(PONS_KERNEL_CROP, in, out, &c);
    }
}
END_TEST

START_TEST(long_rows_agree)
{
    pons_crop_attributes c = { { 1, 0 }, { 1, 1 } };
    pons_flip_attributes f = { PONS_AXIS(0) | PONS_AXIS(1) };

    trial_seed(4);
    moves_agree(PONS_KERNEL_CROP, (pons_shape){ 2, { 3, 40001 } }, (pons_shape){ 2, { 2, 40001 } },
                &c);
    moves_agree(PONS_KERNEL_FLIP, (pons_shape){ 2, { 3, 9001 } }, (pons_shape){ 2, { 3, 9001 } },
                &f);
    moves_agree(PONS_KERNEL_COPY, (pons_shape){ 2, { 3, 40001 } }, (pons_shape){ 2, { 3, 40001 } },
                NULL);
}
END_TEST

static void pads_agree(pons_pad_mode mode)
{
    for (int round = 0; round < 14; round++) {
        pons_shape in = random_shape(), out = in;
        pons_pad_attributes p = { .mode = mode };

        for (int i = 0; i < in.rank; i++) {
            int64_t most = mode == PONS_PAD_REFLECT ? in.extent[i] : 4;
            bool padded = trial_draw(2) == 1;
            p.low[i] = padded ? trial_draw(most < 4 ? most : 4) : 0;
            p.high[i] = padded ? trial_draw(most < 4 ? most : 4) : 0;
            p.step[i] = mode == PONS_PAD_ZERO ? 1 + trial_draw(3) / 2 : 1;
            out.extent[i] = p.low[i] + (in.extent[i] - 1) * p.step[i] + 1 + p.high[i];
        }
        moves_agree(PONS_KERNEL_PAD, in, out, &p);
        for (int i = 0; i < 4 && mode != PONS_PAD_ZERO; i++)
            trial_agrees(&(trial){ .kind = PONS_KERNEL_PAD_GRADIENT, .input_count = 1,
                                   .input = { { floats[i & 1], out } },
                                   .output = { floats[i >> 1], in }, .attributes = &p },
                         device_prepare);
    }
}

START_TEST(pads_and_their_gradients_agree)
{
    trial_seed(5);
    pads_agree(PONS_PAD_ZERO);
    pads_agree(PONS_PAD_EDGE);
    pads_agree(PONS_PAD_REFLECT);
}
END_TEST

START_TEST(concatenations_agree)
{
    trial_seed(6);
    for (int round = 0; round < 60; round++) {
        pons_type type = types[round % 5];
        trial t = { .kind = PONS_KERNEL_CONCATENATE, .input_count = 1 + (int)trial_draw(4),
                    .exact = true, .output = { type, random_shape() } };
        pons_axis_attributes a = { (int)trial_draw(t.output.shape.rank) };

        t.attributes = &a;
        t.output.shape.extent[a.axis] = 0;
        for (int i = 0; i < t.input_count; i++) {
            t.input[i] = t.output;
            t.input[i].shape.extent[a.axis] = random_extent();
        }
        for (int i = 0; i < t.input_count; i++)
            t.output.shape.extent[a.axis] += t.input[i].shape.extent[a.axis];
        trial_agrees(&t, device_prepare);
    }
}
END_TEST

/* Integers that no float represents keep their bits. */
START_TEST(large_integers_are_moved_exactly)
{
    const pons_tensor x = { PONS_I32, { 1, { 3 } } };
    const pons_flip_attributes f = { PONS_AXIS(0) };
    const pons_request r = { .kind = PONS_KERNEL_FLIP, .name = "flip", .input_count = 1,
                             .output_count = 1, .input = &x, .output = &x, .attributes = &f };
    const pons_device_settings settings = { .count = 1, .threads = 1 };
    int32_t from[3] = { INT32_MAX, -16777217, 5 }, to[3];
    void *in = from, *out = to, *device;
    pons_call call = { &in, &out, NULL, NULL };
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { 0 };
    bool supported;

    ck_assert_int_eq(cpu_operations.open(&settings, &device, &err), PONS_OK);
    ck_assert_int_eq(cpu_operations.prepare(device, &r, &k, &supported, &err), PONS_OK);
    ck_assert_int_eq(k.run(&k, &call, &err), PONS_OK);
    ck_assert_int_eq(to[0], 5);
    ck_assert_int_eq(to[1], -16777217);
    ck_assert_int_eq(to[2], INT32_MAX);
    k.free(&k);
    cpu_operations.close(device);
}
END_TEST

/* Indices run from -1 to one past the end. */
START_TEST(gathers_agree)
{
    trial_seed(7);
    for (int round = 0; round < 60; round++) {
        pons_type type = types[round % 5];
        trial t = { .kind = PONS_KERNEL_GATHER, .input_count = 2, .exact = true,
                    .input = { { type, random_shape() }, { PONS_I32, { 1,
                        { random_extent() } } } } };
        pons_axis_attributes a = { (int)trial_draw(t.input[0].shape.rank) };

        t.attributes = &a;
        t.most = t.input[0].shape.extent[a.axis];
        t.output = t.input[0];
        t.output.shape.extent[a.axis] = t.input[1].shape.extent[0];
        if (type == PONS_I32)
            t.most = 0x7fffff;
        trial_agrees(&t, device_prepare);
    }
}
END_TEST

START_TEST(arg_max_agrees_with_the_reference)
{
    trial_seed(8);
    for (int round = 0; round < 48; round++) {
        trial t = { .kind = PONS_KERNEL_ARG_MAX, .input_count = 1, .exact = true,
                    .whole = round & 1,
                    .input = { { types[round % 4], random_shape() } } };
        pons_axis_attributes a = { (int)trial_draw(t.input[0].shape.rank) };

        t.attributes = &a;
        t.output = (pons_tensor){ PONS_I32, t.input[0].shape };
        t.output.shape.extent[a.axis] = 1;
        trial_agrees(&t, device_prepare);
    }
}
END_TEST

START_TEST(minmax_gradients_agree_with_the_reference)
{
    trial_seed(9);
    for (int round = 0; round < 60; round++) {
        trial t = { .kind = PONS_KERNEL_REDUCE_MINMAX_GRADIENT, .input_count = 2, .exact = true,
                    .whole = round & 1, .input = { { floats[round >> 1 & 1], random_shape() } } };
        pons_minmax_attributes a = { (unsigned)trial_draw(1 << t.input[0].shape.rank),
                                     round >> 2 & 1 };

        t.attributes = &a;
        t.output = t.input[1] = t.input[0];
        for (int i = 0; i < t.input[0].shape.rank; i++)
            if ((a.axes & PONS_AXIS(i)) != 0)
                t.input[1].shape.extent[i] = 1;
        trial_agrees(&t, device_prepare);
    }
}
END_TEST

static void pool_agrees(pons_shape in, const pons_pool *p, pons_type type, bool whole)
{
    pons_shape out = in;

    for (int i = 0; i < 3; i++) {
        int64_t span = in.extent[1 + i] + p->pad_low[i] + p->pad_high[i] - p->kernel[i];
        int64_t n = span < 0 ? 0 : span / p->stride[i] + 1;
        if (p->ceil && (span < 0 || span % p->stride[i] != 0)
            && n * p->stride[i] < in.extent[1 + i] + p->pad_low[i])
            n++;
        out.extent[1 + i] = n;
    }
    trial_agrees(&(trial){ .kind = PONS_KERNEL_POOL, .input_count = 1, .input = { { type, in } },
                           .output = { type, out }, .attributes = p, .whole = whole,
                           .exact = p->mode == PONS_POOL_MAX }, device_prepare);
    trial_agrees(&(trial){ .kind = PONS_KERNEL_POOL_GRADIENT, .input_count = 2,
                           .input = { { type, in }, { type, out } }, .output = { type, in },
                           .attributes = p, .whole = whole }, device_prepare);
}

START_TEST(pools_and_their_gradients_agree)
{
    trial_seed(10);
    for (int round = 0; round < 60; round++) {
        pons_shape in = random_image_shape();
        pons_pool p = { .mode = round % 2 == 0 ? PONS_POOL_MAX : PONS_POOL_MEAN,
                        .ceil = round / 2 % 2 };

        for (int i = 0; i < 3; i++) {
            p.kernel[i] = 1 + (int)trial_draw(4);
            p.stride[i] = 1 + (int)trial_draw(3);
            p.pad_low[i] = (int)trial_draw(p.kernel[i] / 2 + 1);
            p.pad_high[i] = (int)trial_draw(p.kernel[i] / 2 + 1);
            if (in.extent[1 + i] < p.kernel[i])
                in.extent[1 + i] = p.kernel[i] - (p.ceil && p.stride[i] > 1 && p.kernel[i] > 1);
        }
        in.extent[4] = round % 7 == 0 ? 130 : in.extent[4];
        pool_agrees(in, &p, floats[round / 4 % 2], round / 8 % 2);
    }
}
END_TEST

START_TEST(resizes_and_their_gradients_agree)
{
    trial_seed(11);
    for (int round = 0; round < 48; round++) {
        pons_resize_attributes a = { (pons_resize_mode)(1 + round % 4) };
        pons_shape in = random_image_shape(), out = in;

        for (int i = 0; i < 3; i++)
            out.extent[1 + i] = 1 + trial_draw(12);
        for (int type = 0; type < 2; type++) {
            pons_tensor x = { floats[type], in }, y = { floats[type], out };
            trial_agrees(&(trial){ .kind = PONS_KERNEL_RESIZE, .input_count = 1, .input = { x },
                                   .output = y, .attributes = &a }, device_prepare);
            trial_agrees(&(trial){ .kind = PONS_KERNEL_RESIZE_GRADIENT, .input_count = 1,
                                   .input = { y }, .output = x, .attributes = &a },
                         device_prepare);
        }
        if (a.mode < PONS_RESIZE_LINEAR)
            moves_agree(PONS_KERNEL_RESIZE, in, out, &a);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("kernels");

    units_say_rows();
    tcase_add_test(c, transposes_agree);
    tcase_add_test(c, large_transposes_agree);
    tcase_add_test(c, flips_and_crops_agree);
    tcase_add_test(c, long_rows_agree);
    tcase_add_test(c, pads_and_their_gradients_agree);
    tcase_add_test(c, concatenations_agree);
    tcase_add_test(c, gathers_agree);
    tcase_add_test(c, large_integers_are_moved_exactly);
    tcase_add_test(c, arg_max_agrees_with_the_reference);
    tcase_add_test(c, minmax_gradients_agree_with_the_reference);
    tcase_add_test(c, pools_and_their_gradients_agree);
    tcase_add_test(c, resizes_and_their_gradients_agree);
    return suite_run();
}
