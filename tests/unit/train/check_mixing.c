/*
 * check_mixing.c - the samples of a micro-batch that MixUp and CutMix mix: distributions
 * of the shares, images and targets voxel by voxel, refusals.
 */
#include "replica/mixing_nodes.h"
#include "support/must.h"
#include "support/suite.h"

#include <string.h>

#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"

enum { SAMPLES = 65536, FEW = 512, OUT_IMAGE = 0, OUT_NODE, OUT_SHARE, OUT_OTHER, OUTPUTS };

/* A step whose outputs are the mixed image and the target. */
typedef struct mixed {
    experiment experiment;
    device device;
    storage *storage;
    program *program;
    pons_shape image, target;
    const double *image_out, *node, *share, *other;
} mixed;

static pons_node *output_of(pons_graph *g, pons_node *x)
{
    return pons_cast(g, x != NULL ? x : pons_scalar(g, -1), PONS_F32);
}

static void build(mixed *m)
{
    pons_graph *g = graph_new(true);
    pons_node *image = node_input(g, "image", PONS_F32, m->image);
    pons_node *target = node_input(g, "target", PONS_U8, m->target), *loss;
    program_settings settings = { .precision = PRECISION_FP32, .micro_batches = 1, .accumulate = 1,
                                  .seed = 3 };
    mixed_target out;

    MUST(mixing_nodes_add(&m->experiment, g, &image, target, &out, &error));
    pons_node *outputs[OUTPUTS] = { output_of(g, image), output_of(g, out.node),
                                    output_of(g, out.share), output_of(g, out.other) };
    g->scope = SCOPE_MODEL;
    pons_node *weight = pons_parameter_leaf(g, "weight", PONS_ROLE_WEIGHT,
                                            pons_shape_make(1, (int64_t[]){ 1 }),
                                            (pons_init){ PONS_INIT_CONSTANT, 1 });
    loss = pons_mul(g, pons_mean_all(g, image), pons_sum_all(g, weight));
    for (int i = 1; i < OUTPUTS; i++)
        loss = pons_add(g, loss, pons_mean_all(g, outputs[i]));
    MUST(program_new(m->storage, &m->device, g, loss, OUTPUTS, outputs, &settings, &m->program,
                     &error));
}

/* Sample n has n in all voxels, and the class n mod 251. */
static void run(mixed *m)
{
    double *image = program_input(m->program, "image", NULL);
    uint8_t *target = program_input(m->program, "target", NULL);
    int64_t n = m->image.extent[0], voxels = shape_count(m->image) / n;
    int64_t labels = shape_count(m->target) / n;
    step_result r;

    for (int64_t i = 0; i < n * voxels; i++)
        image[i] = (double)(i / voxels);
    for (int64_t i = 0; i < n * labels; i++)
        target[i] = (uint8_t)(i / labels % 251);
    MUST(storage_initialise(m->storage, 1, &error));
    MUST(program_step_begin(m->program, 0, &error));
    MUST(program_micro(m->program, 0, &error));
    MUST(program_step_finish(m->program, 0, &r, &error));
    m->image_out = program_output(m->program, OUT_IMAGE, NULL);
    m->node = program_output(m->program, OUT_NODE, NULL);
    m->share = program_output(m->program, OUT_SHARE, NULL);
    m->other = program_output(m->program, OUT_OTHER, NULL);
}

static void open_mixed(mixed *m, double mixup, double cutmix, pons_shape image, bool whole)
{
    memset(m, 0, sizeof *m);
    m->experiment.sections.train.mixup = mixup;
    m->experiment.sections.train.cutmix = cutmix;
    m->image = m->target = image;
    m->target.extent[4] = 1;
    for (int axis = 1; whole && axis <= 3; axis++)
        m->target.extent[axis] = 1;
    device_reference(&m->device, true);
    MUST(storage_new(&m->device, &m->storage, &error));
    build(m);
    run(m);
}

static void close_mixed(mixed *m)
{
    program_free(m->program);
    storage_free(m->storage);
}

static pons_shape image_of(int64_t n, int64_t d, int64_t h, int64_t w)
{
    return pons_shape_make(5, (int64_t[]){ n, d, h, w, 1 });
}

/*
 * x = 2 b - 1 of Beta(a, a) has E x^2 = 1 / (2 a + 1), E x^4 = 3 / ((2 a + 1) (2 a + 3)). A mean
 * of 65,536 numbers between 0 and 1 has a standard deviation of at most 0.002.
 */
START_TEST(shares_of_mixup_have_the_moments_of_beta)
{
    static const double alphas[] = { 0.1, 0.4, 1, 5 };
    double a = alphas[_i], second = 0, fourth = 0;
    mixed m;

    open_mixed(&m, a, 0, image_of(SAMPLES, 1, 1, 1), false);
    for (int64_t i = 0; i < SAMPLES; i++) {
        double x = 2 * m.share[i] - 1;
        ck_assert(x >= 0 && x <= 1);
        second += x * x / SAMPLES;
        fourth += x * x * x * x / SAMPLES;
    }
    ck_assert_double_eq_tol(second, 1 / (2 * a + 1), 0.008);
    ck_assert_double_eq_tol(fourth, 3 / ((2 * a + 1) * (2 * a + 3)), 0.008);
    close_mixed(&m);
}
END_TEST

/* An odd number of samples leaves none unmixed. */
START_TEST(mixup_mixes_a_sample_and_its_label_by_the_same_share)
{
    const int64_t samples = _i == 0 ? FEW : 3;
    mixed m;

    open_mixed(&m, 0.4, 0, image_of(samples, 1, 2, 3), true);
    for (int64_t i = 0; i < samples; i++) {
        int64_t partner = (i + 1) % samples;
        double expected = m.share[i] * (double)i + (1 - m.share[i]) * (double)partner;

        for (int v = 0; v < 6; v++)
            ck_assert_double_eq_tol(m.image_out[6 * i + v], expected, 1e-9 * FEW);
        ck_assert_double_eq(m.node[i], (double)(i % 251));
        ck_assert_double_eq(m.other[i], (double)(partner % 251));
    }
    close_mixed(&m);
}
END_TEST

/* The voxels of sample i that its partner has filled are a box; returns their number. */
static int box_of(const mixed *m, int64_t i)
{
    const int64_t *n = m->image.extent;
    int64_t low[3] = { n[1], n[2], n[3] }, high[3] = { 0 }, voxels = n[1] * n[2] * n[3];
    int count = 0, inside = 1;

    for (int64_t v = 0; v < voxels; v++) {
        int64_t at[3] = { v / (n[2] * n[3]), v / n[3] % n[2], v % n[3] };
        double value = m->image_out[i * voxels + v];

        if (value == (double)i)
            continue;
        ck_assert_double_eq(value, (double)((i + 1) % n[0]));
        for (int axis = 0; axis < 3; axis++) {
            low[axis] = at[axis] < low[axis] ? at[axis] : low[axis];
            high[axis] = at[axis] + 1 > high[axis] ? at[axis] + 1 : high[axis];
        }
        count++;
    }
    for (int axis = 0; axis < 3; axis++)
        inside *= high[axis] > low[axis] ? (int)(high[axis] - low[axis]) : 0;
    ck_assert_int_eq(count, inside);
    return count;
}

/*
 * The edge e of the box at alpha = 1 has a uniform e^2 (e^3 in 3D), and e - e^2 / 4 of it is in the
 * image on average. The mean box has 0.32 of the image in 2D and 0.24 in 3D, less the loss by
 * rounding two ends down. The standard deviation of the mean of 512 is 0.012.
 */
START_TEST(cutmix_puts_a_box_of_the_partner_into_a_sample)
{
    static const int64_t extents[][3] = { { 1, 64, 48 }, { 16, 20, 24 } };
    static const double means[] = { 0.32, 0.24 };
    const int64_t *n = extents[_i];
    double voxels = (double)(n[0] * n[1] * n[2]), mean = 0;
    mixed m;

    open_mixed(&m, 0, 1, image_of(FEW, n[0], n[1], n[2]), true);
    for (int64_t i = 0; i < FEW; i++) {
        double cut = box_of(&m, i) / voxels;
        ck_assert_double_eq_tol(m.share[i], 1 - cut, 1e-9);
        ck_assert_double_eq(m.other[i], (double)((i + 1) % FEW % 251));
        mean += cut / FEW;
    }
    ck_assert_msg(mean > means[_i] - 0.06 && mean < means[_i] + 0.03,
                  "the boxes have %g of an image", mean);
    close_mixed(&m);
}
END_TEST

START_TEST(cutmix_cuts_a_label_of_voxels_with_its_image)
{
    mixed m;

    open_mixed(&m, 0, 1, image_of(FEW, 4, 6, 8), false);
    for (int64_t v = 0; v < FEW * 192; v++)
        ck_assert_double_eq(m.node[v], (double)((int64_t)m.image_out[v] % 251));
    ck_assert_double_eq(m.other[0], -1);
    ck_assert_double_eq(m.share[0], -1);
    close_mixed(&m);
}
END_TEST

START_TEST(with_both_a_sample_is_mixed_in_one_of_the_ways)
{
    int cut = 0, blended = 0;
    mixed m;

    open_mixed(&m, 1, 1, image_of(FEW, 1, 16, 16), true);
    for (int64_t i = 0; i < FEW; i++) {
        double first = m.image_out[256 * i], sum = 0;

        for (int v = 0; v < 256; v++)
            sum += m.image_out[256 * i + v] == first;
        if (sum < 256)
            cut += box_of(&m, i) > 0;
        else
            blended += first != (double)i;
    }
    ck_assert_msg(blended > FEW / 3 && cut > FEW / 4, "%d samples are blended, %d cut", blended,
                  cut);
    close_mixed(&m);
}
END_TEST

static void refused(const experiment *e, int64_t samples, const char *why)
{
    pons_graph *g = graph_new(true);
    pons_shape shape = image_of(samples, 1, 4, 4);
    pons_node *image = node_input(g, "image", PONS_F32, shape);
    pons_node *target = node_input(g, "target", PONS_U8, shape);
    mixed_target out;

    error = (pons_error)PONS_ERROR_INIT;
    ck_assert_int_eq(mixing_nodes_add(e, g, &image, target, &out, &error), PONS_CONFIG);
    ck_assert_msg(strstr(error.text, why) != NULL, "'%s'", error.text);
    graph_free(g);
}

START_TEST(nothing_to_mix_is_refused)
{
    experiment e = { .sections.train.mixup = 1 };

    MUST(config_open(NULL, 0, NULL, &e.config, &error));
    refused(&e, 1, "which has one\nhint: --set train.batch=2");
    e.sections.experiment.task = TASK_SYNTHESIS;
    refused(&e, 2, "[train] mixup mixes labels, which this task does not read");
    config_close(e.config);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("mixing");

    tcase_add_loop_test(c, shares_of_mixup_have_the_moments_of_beta, 0, 4);
    tcase_add_loop_test(c, mixup_mixes_a_sample_and_its_label_by_the_same_share, 0, 2);
    tcase_add_loop_test(c, cutmix_puts_a_box_of_the_partner_into_a_sample, 0, 2);
    tcase_add_test(c, cutmix_cuts_a_label_of_voxels_with_its_image);
    tcase_add_test(c, with_both_a_sample_is_mixed_in_one_of_the_ways);
    tcase_add_test(c, nothing_to_mix_is_refused);
    return suite_run();
}
