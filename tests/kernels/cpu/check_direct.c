/*
 * check_direct.c - the direct convolution and matrix product kernels against the reference kernel,
 * at any number of channels. The library is not asked.
 */
#include "support/graph/units.h"
#include "support/suite.h"

#include "cpu/conv/conv_testing.h"
#include "cpu/conv/direct/direct.h"
#include "support/graph/convolution_trial.h"

static pons_status prepare_convolution(cpu_device *device, const pons_request *request,
                                       pons_kernel *kernel, bool *supported, pons_error *err)
{
    return conv_prepare_by("direct", device, request, kernel, supported, err);
}

static pons_status prepare_product(cpu_device *device, const pons_request *request,
                                   pons_kernel *kernel, bool *supported, pons_error *err)
{
    return direct_prepare_matmul(device, request, kernel, supported, err);
}

START_TEST(direct_convolutions_of_any_kind_agree_with_the_reference)
{
    trial_seed(11);
    for (int round = 0; round < 40; round++)
        directions_agree(sample_draw(4, 2), prepare_convolution, false);
}
END_TEST

/* Shapes with several tiles of planes and rows, several blocks of outputs and partial sums. */
START_TEST(convolutions_of_several_tiles_agree_with_the_reference)
{
    static const int64_t wide[2] = { 40, 72 }, extent[3] = { 9, 11, 37 }, three[3] = { 3, 3, 3 };
    static const int64_t narrow[2] = { 24, 8 }, two[3] = { 2, 2, 2 };
    pons_convolution same = PONS_CONVOLUTION_INIT, strided = PONS_CONVOLUTION_INIT;

    for (int i = 0; i < 3; i++) {
        same.pad_low[i] = same.pad_high[i] = 1;
        strided.stride[i] = 2;
    }
    trial_seed(12);
    directions_agree(sample_make(wide, extent, three, same), prepare_convolution, false);
    directions_agree(sample_make(narrow, extent, two, strided), prepare_convolution, false);
    same.stride[0] = same.stride[1] = same.stride[2] = 2;
    directions_agree(sample_make(narrow, extent, three, same), prepare_convolution, false);
}
END_TEST

START_TEST(direct_sums_have_the_error_of_short_chains)
{
    static const int64_t sixteen[2] = { 16, 16 }, extent[3] = { 9, 11, 37 }, three[3] = { 3, 3, 3 };
    pons_convolution how = PONS_CONVOLUTION_INIT;
    pons_matmul_attributes plain = { 0 };
    sample s;

    for (int i = 0; i < 3; i++)
        how.pad_low[i] = how.pad_high[i] = 1;
    trial_seed(14);
    s = sample_make(sixteen, extent, three, how);
    s.x.type = s.y.type = s.w.type = PONS_F32;
    trial_agrees(&(trial){ .kind = PONS_KERNEL_CONVOLUTION, .input_count = 2, .products = 432,
                           .chain = 64, .input = { s.x, s.w }, .output = s.y,
                           .attributes = &s.how }, prepare_convolution);
    trial_agrees(&(trial){ .kind = PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, .input_count = 2,
                           .products = 432, .chain = 64, .input = { s.y, s.w }, .output = s.x,
                           .attributes = &s.how }, prepare_convolution);
    trial_agrees(&(trial){ .kind = PONS_KERNEL_MATMUL, .input_count = 2, .products = 1000,
                           .chain = 64, .attributes = &plain,
                           .input = { { PONS_F32, { 3, { 1, 50, 1000 } } },
                                      { PONS_F32, { 3, { 1, 1000, 40 } } } },
                           .output = { PONS_F32, { 3, { 1, 50, 40 } } } }, prepare_product);
}
END_TEST

START_TEST(direct_matrix_products_agree_with_the_reference)
{
    static const int64_t sizes[] = { 1, 2, 5, 16, 31, 40, 130 };

    trial_seed(13);
    for (int round = 0; round < 64; round++) {
        pons_matmul_attributes how = { round & 1, round >> 1 & 1 };
        int64_t m = sizes[trial_draw(7)], n = sizes[trial_draw(7)], k = sizes[trial_draw(7)];
        int64_t batch = 1 + trial_draw(3);
        pons_type type = sample_types[round >> 2 & 1];
        trial t = { .kind = PONS_KERNEL_MATMUL, .input_count = 2, .attributes = &how };

        t.input[0] = (pons_tensor){ type, { 3, { batch, how.transpose_a ? k : m,
                                                 how.transpose_a ? m : k } } };
        t.input[1] = (pons_tensor){ type, { 3, { batch, how.transpose_b ? n : k,
                                                 how.transpose_b ? k : n } } };
        t.output = (pons_tensor){ sample_types[round >> 3 & 1], { 3, { batch, m, n } } };
        trial_agrees(&t, prepare_product);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("direct");

    units_say_rows();
    tcase_add_test(c, direct_convolutions_of_any_kind_agree_with_the_reference);
    tcase_add_test(c, convolutions_of_several_tiles_agree_with_the_reference);
    tcase_add_test(c, direct_sums_have_the_error_of_short_chains);
    tcase_add_test(c, direct_matrix_products_agree_with_the_reference);
    return suite_run();
}
