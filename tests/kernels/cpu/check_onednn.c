/*
 * check_onednn.c - convolutions and matrix products of oneDNN against the reference kernel. Every
 * tensor, packed weight and workspace lies between guard pages. Extents begin at 1. Numbers of
 * channels are those of the golden networks and those beside the library's block sizes.
 */
#include "support/suite.h"

#include "cpu/conv/conv_testing.h"
#include "cpu/conv/onednn/onednn.h"
#include "cpu/isa.h"
#include "support/graph/convolution_trial.h"

static pons_status prepare_convolution(cpu_device *device, const pons_request *request,
                                       pons_kernel *kernel, bool *supported, pons_error *err)
{
    return conv_prepare_by("onednn", device, request, kernel, supported, err);
}

static pons_status prepare_product(cpu_device *device, const pons_request *request,
                                   pons_kernel *kernel, bool *supported, pons_error *err)
{
    return onednn_prepare_matmul(device, request, kernel, supported, err);
}

static pons_convolution padded_convolution(int pad, int stride)
{
    pons_convolution how = PONS_CONVOLUTION_INIT;

    for (int i = 0; i < 3; i++) {
        how.pad_low[i] = how.pad_high[i] = pad;
        how.stride[i] = stride;
    }
    return how;
}

/*
 * Number of directions that the library supports. With AVX-512 the device declines only a gradient
 * of a strided 1x1x1 kernel (known_wrong). With less it declines most gradients, whose code the
 * library generates at the first run.
 */
static int layer_agrees(const int64_t channels[2], const int64_t extent[3], int kernel, int stride)
{
    const int64_t kernels[3] = { kernel, kernel, kernel };
    sample s = sample_make(channels, extent, kernels, padded_convolution((kernel - 1) / 2, stride));
    int taken = directions_agree(s, prepare_convolution, true);

    if (isa_runs(ISA_AVX512))
        ck_assert_int_ge(taken, kernel == 1 && stride > 1 ? 2 : 3);
    return taken;
}

START_TEST(small_images_of_every_channel_count_agree_with_the_reference)
{
    static const int64_t widths[] = { 1, 2, 3, 4, 8, 12, 16, 17, 24, 32, 33 };
    int taken = 0;

    trial_seed(21);
    for (int in = 0; in < 11; in++)
        for (int out = 0; out < 11; out++) {
            const int64_t channels[2] = { widths[in], widths[out] };
            const int64_t extent[3] = { 1 + trial_draw(3), 1 + trial_draw(3), 1 + trial_draw(3) };

            taken += layer_agrees(channels, extent, 1 + (int)trial_draw(3),
                                  1 + (int)trial_draw(2));
        }
    ck_assert_int_ge(taken, 11 * 11 / 3);
}
END_TEST

START_TEST(onednn_layers_of_networks_agree_with_the_reference)
{
    static const struct { int64_t in, out; int kernel, stride; } layers[] = {
        { 16, 32, 3, 2 }, { 32, 64, 3, 1 }, { 128, 256, 3, 2 }, { 16, 32, 1, 2 }, { 17, 8, 1, 2 },
        { 20, 33, 1, 1 }, { 64, 16, 2, 2 }, { 48, 2, 1, 1 }, { 1, 16, 3, 2 }, { 24, 24, 3, 1 },
    };
    int taken = 0;

    trial_seed(22);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const int64_t channels[2] = { layers[i].in, layers[i].out };
        const int64_t extent[3] = { 5 + trial_draw(3), 7, 9 + trial_draw(12) };

        taken += layer_agrees(channels, extent, layers[i].kernel, layers[i].stride);
    }
    ck_assert_int_ge(taken, (int)(sizeof layers / sizeof *layers) / 2);
}
END_TEST

/*
 * Odd shapes. The device declines about half of them with AVX-512 and most without. Kernels of pons
 * compute those.
 */
START_TEST(onednn_convolutions_of_any_kind_agree_with_the_reference)
{
    int taken = 0, rounds = 40;

    trial_seed(23);
    for (int round = 0; round < rounds; round++)
        taken += directions_agree(sample_draw(6, 1), prepare_convolution, true);
    ck_assert_int_ge(taken, isa_runs(ISA_AVX512) ? rounds : 1);
}
END_TEST

typedef struct small_image {
    int64_t in, out, x[3], kernel[3];
    int stride[3], low[3], high[3];
    bool wrong;
} small_image;

/* Whether the library supports the convolution, or one of its gradients, in bf16. */
static bool supports_image(const small_image *i, pons_kernel_kind kind)
{
    const int64_t channels[2] = { i->in, i->out };
    pons_convolution how = PONS_CONVOLUTION_INIT;
    sample s;

    for (int k = 0; k < 3; k++) {
        how.stride[k] = i->stride[k];
        how.pad_low[k] = i->low[k];
        how.pad_high[k] = i->high[k];
    }
    s = sample_make(channels, i->x, i->kernel, how);
    s.x.type = s.y.type = PONS_BF16;
    if (kind == PONS_KERNEL_CONVOLUTION)
        return trial_agrees(&(trial){ .kind = kind, .library = true, .input_count = 2,
                                      .input = { s.x, { PONS_BF16, s.w.shape } },
                                      .attributes = &s.how, .output = s.y }, prepare_convolution);
    if (kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT)
        return trial_agrees(&(trial){ .kind = kind, .library = true, .input_count = 2,
                                      .input = { s.y, { PONS_BF16, s.w.shape } },
                                      .attributes = &s.how, .output = s.x }, prepare_convolution);
    return trial_agrees(&(trial){ .kind = kind, .library = true,
                                  .input_count = 2, .input = { s.x, s.y }, .attributes = &s.how,
                                  .output = { PONS_F32, s.w.shape } }, prepare_convolution);
}

/*
 * Shapes that oneDNN 2.6.3 gets wrong, and shapes next to them. It reads uninitialised memory (16
 * to 24 channels), adds wrong terms (to 32, from 16 to 64) or reads outside of x (1 to 64).
 */
START_TEST(small_images_that_onednn_computes_wrong_are_declined)
{
    static const small_image plain = { 16, 16, { 4, 4, 4 }, { 3, 3, 3 }, { 1, 1, 1 }, { 1, 1, 1 },
                                       { 1, 1, 1 }, false };
    static const small_image rows[] = {
        { 16, 24, { 1, 4, 1 }, { 1, 1, 2 }, { 2, 1, 2 }, { 0, 0, 0 }, { 0, 0, 2 }, true },
        { 16, 32, { 3, 1, 4 }, { 3, 1, 3 }, { 2, 1, 1 }, { 1, 0, 0 }, { 1, 0, 0 }, true },
        { 16, 32, { 4, 1, 4 }, { 3, 1, 3 }, { 2, 1, 1 }, { 1, 0, 0 }, { 1, 0, 0 }, false },
        { 16, 64, { 3, 1, 5 }, { 2, 3, 3 }, { 2, 2, 1 }, { 1, 1, 2 }, { 1, 2, 1 }, true },
        { 1, 64, { 3, 3, 1 }, { 3, 1, 1 }, { 1, 2, 2 }, { 1, 0, 0 }, { 0, 0, 0 }, true },
        { 1, 64, { 3, 3, 1 }, { 3, 1, 1 }, { 1, 2, 1 }, { 1, 0, 0 }, { 0, 0, 0 }, false },
        { 1, 64, { 3, 3, 2 }, { 3, 1, 1 }, { 1, 2, 2 }, { 1, 0, 0 }, { 0, 0, 0 }, false },
    };
    bool bf16;

    trial_seed(25);
    bf16 = supports_image(&plain, PONS_KERNEL_CONVOLUTION); /* some processors have no bf16 */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(supports_image(&rows[i], PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
                          == (bf16 && !rows[i].wrong), "row %d", (int)i);
    ck_assert(supports_image(&plain, PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT) == bf16);
}
END_TEST

/* Input gradients of 1x1x1 convolutions that oneDNN 2.6.3 gets wrong: the channels of y are odd. */
START_TEST(gradients_of_odd_channels_are_declined)
{
    static const small_image rows[] = {
        { 3, 1, { 5, 6, 5 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 }, true },
        { 16, 3, { 1, 5, 12 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 }, true },
        { 32, 33, { 6, 5, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 }, true },
        { 16, 32, { 6, 5, 2 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 }, false },
    };
    bool bf16;

    trial_seed(26);
    bf16 = supports_image(&rows[3], PONS_KERNEL_CONVOLUTION); /* some processors have no bf16 */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(supports_image(&rows[i], PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT)
                          == (bf16 && !rows[i].wrong), "row %d", (int)i);
}
END_TEST

/*
 * Shapes for which oneDNN's kernels of tile registers end the process, since a window lies in the
 * padding, or add wrong terms. Those for vectors are right.
 */
START_TEST(shapes_that_tile_registers_get_wrong_agree_with_the_reference)
{
    static const small_image rows[] = {
        { 16, 32, { 3, 2, 5 }, { 3, 2, 3 }, { 2, 2, 3 }, { 0, 0, 2 }, { 1, 2, 0 }, false },
        { 5, 17, { 2, 3, 6 }, { 1, 2, 2 }, { 3, 2, 1 }, { 0, 1, 0 }, { 0, 2, 0 }, false },
        { 17, 16, { 12, 12, 7 }, { 1, 3, 2 }, { 2, 2, 3 }, { 0, 1, 1 }, { 0, 3, 1 }, false },
        { 32, 48, { 6, 12, 7 }, { 1, 1, 3 }, { 2, 2, 2 }, { 0, 0, 1 }, { 0, 0, 0 }, false },
        { 48, 4, { 3, 2, 7 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 0, 0, 0 }, false },
        { 16, 5, { 9, 12, 6 }, { 1, 2, 2 }, { 3, 3, 3 }, { 0, 0, 0 }, { 0, 0, 0 }, false },
    };
    int taken = 0, all = (int)(sizeof rows / sizeof *rows);

    trial_seed(27);
    for (int i = 0; i < all; i++)
        taken += supports_image(&rows[i], PONS_KERNEL_CONVOLUTION);
    ck_assert(taken == 0 || taken == all);
}
END_TEST

START_TEST(onednn_matrix_products_agree_with_the_reference)
{
    static const int64_t sizes[] = { 1, 2, 5, 16, 31, 40, 130 };
    int taken = 0;

    trial_seed(24);
    for (int round = 0; round < 64; round++) {
        pons_matmul_attributes how = { round & 1, round >> 1 & 1 };
        int64_t m = sizes[trial_draw(7)], n = sizes[trial_draw(7)], k = sizes[trial_draw(7)];
        int64_t batch = 1 + trial_draw(3);
        pons_type type = sample_types[round >> 2 & 1];
        trial t = { .kind = PONS_KERNEL_MATMUL, .input_count = 2, .attributes = &how,
                    .library = true };

        t.input[0] = (pons_tensor){ type, { 3, { batch, how.transpose_a ? k : m,
                                                 how.transpose_a ? m : k } } };
        t.input[1] = (pons_tensor){ type, { 3, { batch, how.transpose_b ? n : k,
                                                 how.transpose_b ? k : n } } };
        t.output = (pons_tensor){ type, { 3, { batch, m, n } } };
        taken += trial_agrees(&t, prepare_product);
    }
    /* with less the library generates all code at the first run */
    ck_assert_int_ge(taken, isa_runs(ISA_AVX512) ? 32 : 0);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("onednn");

    tcase_add_test(c, small_images_of_every_channel_count_agree_with_the_reference);
    tcase_add_test(c, onednn_layers_of_networks_agree_with_the_reference);
    tcase_add_test(c, onednn_convolutions_of_any_kind_agree_with_the_reference);
    tcase_add_test(c, small_images_that_onednn_computes_wrong_are_declined);
    tcase_add_test(c, gradients_of_odd_channels_are_declined);
    tcase_add_test(c, shapes_that_tile_registers_get_wrong_agree_with_the_reference);
    tcase_add_test(c, onednn_matrix_products_agree_with_the_reference);
    return suite_run();
}
