/*
 * check_diffusion.c - tables, schedules and steps of the diffusion against golden values in double,
 * whole samplings with a golden network, and the metrics of the images.
 */
#include "config/diffusion_table.h"
#include "data/nifti/nifti_write.h"
#include "evaluate/evaluation.h"
#include "metric/image_quality.h"
#include "support/graph/golden_program.h"
#include "support/root.h"
#include "support/must.h"
#include "support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "device/device_open.h"
#include "graph/ir/shape.h"

/* Golden tables are doubles; a few operations each round to 2^-53. */
static const double TABLE_RELATIVE = 1e-10;
/* Golden images are doubles rounded to float, and so are ours. */
static const double STEP_OF_LARGEST = 1e-6;
/* Ten evaluations of a network in float, each within some 1e-6 of the largest element. */
static const double SAMPLE_OF_LARGEST = 1e-4;

static diffusion_options options_of(const char *betas)
{
    return (diffusion_options){
        .betas = strcmp(betas, "cosine") == 0 ? BETAS_COSINE : BETAS_LINEAR, .beta_start = 1e-4,
        .beta_end = 0.02, .timesteps = 1000, .steps = 10
    };
}

/* a_t of a timestep; -1 is the image itself. */
static double share_at(const char *betas, int t)
{
    diffusion_options o = options_of(betas);
    double beta[1000], share = 1;

    diffusion_betas(&o, beta);
    for (int i = 0; i <= t; i++)
        share *= 1 - beta[i];
    return share;
}

/* The next case of a kind, or NULL. */
static const json_t *next_case(const golden *g, const char *kind, size_t *at)
{
    while (*at < json_array_size(g->cases)) {
        const json_t *c = json_array_get(g->cases, (*at)++);

        if (strcmp(golden_text(c, "kind"), kind) == 0)
            return c;
    }
    return NULL;
}

static double item(const json_t *c, const char *key, size_t i)
{
    return json_number_value(json_array_get(json_object_get(c, key), i));
}

static void assert_near(double found, double expected, double relative, const char *what)
{
    ck_assert_msg(fabs(found - expected) <= relative * fabs(expected), "%s: %.17g, expected %.17g",
                  what, found, expected);
}

START_TEST(betas_and_their_products_are_golden)
{
    const json_t *c;
    golden g;
    size_t at = 0, count = 0;

    golden_open(&g, "diffusion");
    while ((c = next_case(&g, "betas", &at)) != NULL) {
        const char *name = golden_text(c, "name");
        diffusion_options o = options_of(name);
        double beta[1000];

        diffusion_betas(&o, beta);
        for (size_t i = 0; i < json_array_size(json_object_get(c, "at")); i++, count++) {
            int t = (int)item(c, "at", i);

            assert_near(beta[t], item(c, "beta", i), TABLE_RELATIVE, name);
            assert_near(share_at(name, t), item(c, "alpha_bar", i), TABLE_RELATIVE, name);
        }
    }
    ck_assert_int_eq((int)count, 20);
    golden_close(&g);
}
END_TEST

static int schedule_of(const char *name)
{
    static const char *const names[] = { "non_uniform", "uniform_3d", "uniform_2d",
                                         "uniform_head" };
    int found = 0;

    for (int i = 0; i < 4; i++)
        found = strncmp(name, names[i], strlen(names[i])) == 0 ? i : found;
    return found;
}

START_TEST(schedules_are_golden)
{
    const json_t *c;
    golden g;
    size_t at = 0;
    int count = 0;

    golden_open(&g, "diffusion");
    for (; (c = next_case(&g, "schedule", &at)) != NULL; count++) {
        const char *name = golden_text(c, "name");
        const json_t *values = json_object_get(c, "values");
        diffusion_options o = options_of("linear");
        diffusion_table t;

        o.steps = (int64_t)golden_number(c, "count");
        o.schedule = schedule_of(name);
        MUST(diffusion_table_make(&o, &t, &error));
        ck_assert_msg(t.count == (int)json_array_size(values), "%s has %d steps", name, t.count);
        for (int i = 0; i < t.count; i++) {
            ck_assert_msg(t.timestep[i] == (int)item(c, "values", (size_t)i), "%s[%d] is %d", name,
                          i, t.timestep[i]);
            assert_near(t.share[i], share_at("linear", t.timestep[i]), TABLE_RELATIVE, name);
        }
    }
    ck_assert_int_eq(count, 7);
    golden_close(&g);
}
END_TEST

START_TEST(a_schedule_without_room_is_refused)
{
    diffusion_options o = options_of("linear");
    diffusion_table t;
    int accepted = 0;

    error = (pons_error)PONS_ERROR_INIT;
    o.timesteps = 100000;
    ck_assert_int_eq(diffusion_table_make(&o, &t, &error), PONS_CONFIG);
    ck_assert_ptr_nonnull(strstr(error.text, "the betas of 100000 leave nothing of the image"));
    error = (pons_error)PONS_ERROR_INIT;
    o.timesteps = 8;
    ck_assert_int_eq(diffusion_table_make(&o, &t, &error), PONS_CONFIG);
    ck_assert_str_eq(error.text, "[diffusion] steps: found 10, expected at most timesteps, 8");
    for (o.schedule = 0; o.schedule < 4; o.schedule++)
        for (o.timesteps = 10; o.timesteps < 60; o.timesteps++)
            for (o.steps = 2; o.steps <= 20; o.steps++) {
                error = (pons_error)PONS_ERROR_INIT;
                if (diffusion_table_make(&o, &t, &error) != PONS_OK)
                    continue;
                accepted++;
                for (int i = 1; i < t.count; i++)
                    ck_assert(t.timestep[i] > t.timestep[i - 1] && t.share[i] < t.share[i - 1]);
                ck_assert_int_lt(t.timestep[t.count - 1], o.timesteps);
            }
    ck_assert_int_gt(accepted, 1000);
}
END_TEST

/* ---- steps ----------------------------------------------------------------------------------- */

static double *read_doubles(const safetensor *t)
{
    ck_assert_ptr_nonnull(t);
    double *x = malloc((size_t)t->count * sizeof *x);

    safetensor_doubles(t, x);
    return x;
}

/* x = image x + predicted e + fresh z, as the sampler adds them. */
static void apply_step(diffusion_step s, int64_t count, double *x, const double *e,
                       const double *z)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = s.image * x[i] + s.predicted * e[i] + (z != NULL ? s.fresh * z[i] : 0);
}

static void assert_image(const double *found, const safetensor *t, double tolerance,
                         const char *name)
{
    double *expected = read_doubles(t), largest = 0, away = 0;

    for (int64_t i = 0; i < t->count; i++) {
        largest = fmax(largest, fabs(expected[i]));
        away = fmax(away, fabs(found[i] - expected[i]));
    }
    ck_assert_msg(away <= tolerance * largest, "%s: away by %g of %g", name, away, largest);
    free(expected);
}

START_TEST(steps_of_the_sampler_are_golden)
{
    const json_t *c;
    golden g;
    size_t at = 0;
    int count = 0;

    golden_open(&g, "diffusion");
    for (; (c = next_case(&g, "ddim", &at)) != NULL; count++) {
        const char *name = golden_text(c, "name"), *betas = golden_text(c, "betas");
        const safetensor *expected = golden_find(&g, "%s/x", name);
        diffusion_step s = diffusion_step_make(share_at(betas, (int)golden_number(c, "t")),
                                               share_at(betas, (int)golden_number(c, "next")),
                                               golden_number(c, "eta"));
        double *x = read_doubles(golden_find(&g, "ddim/x"));
        double *e = read_doubles(golden_find(&g, "ddim/prediction"));
        double *z = read_doubles(golden_find(&g, "ddim/noise"));

        ck_assert_double_eq_tol(s.fresh, golden_number(c, "c1"), 1e-12);
        apply_step(s, expected->count, x, e, z);
        assert_image(x, expected, STEP_OF_LARGEST, name);
        free(x);
        free(e);
        free(z);
    }
    ck_assert_int_eq(count, 8);
    golden_close(&g);
}
END_TEST

/* ---- whole samplings ------------------------------------------------------------------------- */

/* Put x [voxels] into a channel of the image [voxels][channels]. */
static void place(float *image, int64_t voxels, int channels, int slot, const double *x)
{
    for (int64_t i = 0; i < voxels; i++)
        image[i * channels + slot] = (float)x[i];
}

/* One noise [voxels] of the stored ones. */
static const double *noise_at(const double *noise, int64_t voxels, int number)
{
    return noise != NULL ? noise + number * voxels : NULL;
}

static void sample(const golden *g, const json_t *c, program *p, int64_t voxels)
{
    const char *name = golden_text(c, "name");
    int slot = (int)golden_number(c, "slot"), count;
    const safetensor *drawn = golden_find(g, "%s/noise", name);
    double *x = read_doubles(golden_find(g, "sampling/start"));
    double *noise = drawn != NULL ? read_doubles(drawn) : NULL, *e;
    pons_tensor tensor;

    count = (int)json_array_size(json_object_get(c, "schedule"));
    e = malloc((size_t)voxels * sizeof *e);
    for (int n = 0; n < count; n++) {
        int t = (int)item(c, "schedule", (size_t)(count - 1 - n));
        int next = n < count - 1 ? (int)item(c, "schedule", (size_t)(count - 2 - n)) : -1;
        float *image = program_input(p, "image", &tensor);

        golden_read(golden_find(g, "sampling/condition"), tensor, true, image);
        place(image, voxels, (int)tensor.shape.extent[4], slot, x);
        *(float *)program_input(p, "timestep", &tensor) = (float)t;
        MUST(program_evaluate(p, &error));
        const float *made = program_output(p, 0, &tensor);
        for (int64_t i = 0; i < voxels; i++)
            e[i] = made[i];
        apply_step(diffusion_step_make(share_at("linear", t), share_at("linear", next),
                                       golden_number(c, "eta")),
                   voxels, x, e, noise_at(noise, voxels, n));
        assert_image(x, golden_find(g, "%s/%d", name, n + 1), SAMPLE_OF_LARGEST, name);
    }
    free(x);
    free(e);
    free(noise);
}

START_TEST(ten_steps_with_a_golden_network_are_golden)
{
    const golden_mode mode = { "cpu, fp32", "cpu", false, false, PRECISION_FP32 };
    program_settings settings = golden_settings(&mode);
    golden weights, g;
    golden_plugin model;
    device d;
    storage *s;
    program *p;
    const json_t *c;
    size_t at = 0;
    int count = 0;

    golden_open(&weights, "fast_ddpm");
    golden_open(&g, "diffusion");
    golden_device(&mode, &d);
    pons_shape image = golden_image_shape(golden_find(&g, "sampling/condition"));
    pons_task task = golden_network_task(json_array_get(weights.cases, 0), image);
    golden_load(&model, PONS_KIND_MODEL, "fast_ddpm", sizeof(pons_model_operations),
                golden_network_options(json_array_get(weights.cases, 0)), false);
    golden_net net = golden_build_task(&model, NULL, image, &task, false);
    MUST(storage_new(&d, &s, &error));
    MUST(program_new(s, &d, net.graph, NULL, 1, net.outputs.item, &settings, &p, &error));
    golden_restore(&weights, "fast_ddpm_2level/state", s);
    program_weights_changed(p);
    image.extent[4] = 1;
    for (; (c = next_case(&g, "sampling", &at)) != NULL; count++)
        sample(&g, c, p, shape_count(image));
    ck_assert_int_eq(count, 3);
    program_free(p);
    storage_free(s);
    golden_unload(&model);
    device_close(&d);
    golden_close(&g);
    golden_close(&weights);
}
END_TEST

/* ---- metrics --------------------------------------------------------------------------------- */

static float *read_floats(const safetensor *t)
{
    double *from = read_doubles(t);
    float *x = malloc((size_t)t->count * sizeof *x);

    for (int64_t i = 0; i < t->count; i++)
        x[i] = (float)from[i];
    free(from);
    return x;
}

START_TEST(psnr_ssim_and_mae_are_monai_s)
{
    const json_t *c;
    golden g;
    size_t n;
    int count = 0;

    golden_open(&g, "images");
    json_array_foreach(g.cases, n, c) {
        const safetensor *t = golden_find(&g, "%s/prediction", golden_text(c, "name"));
        float *image = read_floats(t);
        float *truth = read_floats(golden_find(&g, "%s/label", golden_text(c, "name")));
        const ssim_window window = { (int)golden_number(c, "window"), golden_number(c, "sigma") };
        int64_t extent[3] = { t->rank == 5 ? t->extent[2] : 1, t->extent[t->rank - 2],
                              t->extent[t->rank - 1] };
        int64_t voxels = extent[0] * extent[1] * extent[2];

        for (int64_t i = 0; i < t->extent[0]; i++, count++) {
            image_quality q;

            MUST(image_quality_measure(image + i * voxels, truth + i * voxels, extent,
                                       golden_number(c, "data_range"), &window, &q, &error));
            ck_assert_double_eq_tol(q.psnr, item(c, "psnr", (size_t)i), 1e-4);
            ck_assert_double_eq_tol(q.ssim, item(c, "ssim", (size_t)i), 1e-5);
            ck_assert_double_eq_tol(q.mae, item(c, "mae", (size_t)i), 1e-6);
        }
        free(image);
        free(truth);
    }
    ck_assert_int_eq(count, 4);
    golden_close(&g);
}
END_TEST

START_TEST(a_window_larger_than_the_image_has_no_ssim)
{
    const ssim_window window = { 11, 1.5 };
    float image[10 * 11 * 12] = { 0 };
    image_quality q;

    MUST(image_quality_measure(image, image, (int64_t[]){ 10, 11, 12 }, 2, &window, &q, &error));
    ck_assert(isnan(q.ssim) && isinf(q.psnr) && q.mae == 0);
    MUST(image_quality_measure(image, image, (int64_t[]){ 1, 11, 12 }, 2, &window, &q, &error));
    ck_assert_double_eq_tol(q.ssim, 1, 1e-12);
}
END_TEST

/* Write image 'number' of a golden tensor [N, channels, ...] to a file of the root. */
static const char *write_image(const char *name, const safetensor *t, size_t number)
{
    float *x = read_floats(t);
    volume v = { .type = PONS_F32, .channels = 1, .affine = { { 1 }, { 0, 1 }, { 0, 0, 1 } } };

    v.extent[0] = t->rank == 5 ? t->extent[2] : 1;
    v.extent[1] = t->extent[t->rank - 2];
    v.extent[2] = t->extent[t->rank - 1];
    v.voxels = x + (int64_t)number * pons_volume_count(&v);
    MUST(nifti_write(name, &v, NULL, &error));
    free(x);
    return name;
}

START_TEST(files_of_images_have_monai_s_metrics)
{
    const json_t *c;
    golden g;
    size_t n;
    int count = 0;

    make_root();
    golden_open(&g, "images");
    json_array_foreach(g.cases, n, c) {
        const safetensor *t = golden_find(&g, "%s/prediction", golden_text(c, "name"));
        const safetensor *truth = golden_find(&g, "%s/label", golden_text(c, "name"));

        for (size_t i = 0; i < (size_t)t->extent[0]; i++, count++) {
            const char *made = write_image(in_root("made.nii.gz"), t, i);
            const char *label = write_image(in_root("label.nii.gz"), truth, i);
            evaluation e;

            MUST(evaluation_open(&e, &error));
            e.range = golden_number(c, "data_range");
            MUST(evaluation_find_channels(&e, label, &error));
            MUST(evaluation_add_images(&e, "one", made, label, &error));
            ck_assert_int_eq(e.case_count, 1);
            ck_assert_double_eq_tol(e.cases[0].mean[METRIC_PSNR], item(c, "psnr", i), 1e-4);
            ck_assert_double_eq_tol(e.cases[0].mean[METRIC_SSIM], item(c, "ssim", i), 1e-5);
            ck_assert_double_eq_tol(e.cases[0].mean[METRIC_MAE], item(c, "mae", i), 1e-6);
            evaluation_close(&e);
        }
    }
    ck_assert_int_eq(count, 4);
    golden_close(&g);
    remove_root();
}
END_TEST

/* The peak of the process's memory in KiB. */
static long peak_memory(void)
{
    struct rusage used;

    ck_assert_int_eq(getrusage(RUSAGE_SELF, &used), 0);
    return used.ru_maxrss;
}

START_TEST(similarity_takes_planes_of_memory_and_no_volume)
{
    enum { PLANE = 64 * 64, PLANES = 512, MIB_OF_MOMENTS = PLANE * PLANES / 1024 * 40 / 1024 };
    const ssim_window window = { 11, 1.5 };
    float *image = malloc(PLANES * PLANE * sizeof *image);
    image_quality q;

    for (int64_t i = 0; i < PLANES * PLANE; i++)
        image[i] = (float)(i % 97) / 97;
    long before = peak_memory();
    MUST(image_quality_measure(image, image, (int64_t[]){ PLANES, 64, 64 }, 2, &window, &q,
                               &error));
    ck_assert_double_eq_tol(q.ssim, 1, 1e-9);
    ck_assert_int_lt((peak_memory() - before) / 1024, MIB_OF_MOMENTS / 4);
    free(image);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("diffusion");

    tcase_add_test(c, betas_and_their_products_are_golden);
    tcase_add_test(c, schedules_are_golden);
    tcase_add_test(c, a_schedule_without_room_is_refused);
    tcase_add_test(c, steps_of_the_sampler_are_golden);
    tcase_add_test(c, ten_steps_with_a_golden_network_are_golden);
    tcase_add_test(c, psnr_ssim_and_mae_are_monai_s);
    tcase_add_test(c, files_of_images_have_monai_s_metrics);
    tcase_add_test(c, a_window_larger_than_the_image_has_no_ssim);
    tcase_add_test(c, similarity_takes_planes_of_memory_and_no_volume);
    return suite_run();
}
