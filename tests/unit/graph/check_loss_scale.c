/*
 * check_loss_scale.c - the loss scale of fp16. A step that overflows halves the scale and changes
 * nothing else; 2000 consecutive finite steps double it. Reported values and updates do not
 * contain the scale.
 *
 * The graph has one weight of 0.5 and eight voxels of 1. The gradient by each voxel is the target,
 * 16, times the scale; fp16 holds it for scales of 2048 and less. The weight gradient is 128.
 */
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "support/graph/descent.h"
#include "support/must.h"
#include "support/suite.h"

enum { VOXELS = 8, TARGET = 16, GRADIENT = VOXELS * TARGET, FITS = 2048 };

static device reference;

typedef struct bench {
    storage *storage;
    program *program;
    int steps;
} bench;

static bench open_scaled_bench(precision p, double clip_norm, loss_scaling scaling)
{
    const pons_shape image = { 5, { 1, 2, 2, 2, 1 } };
    const pons_convolution plain = PONS_CONVOLUTION_INIT;
    const program_settings settings = { .precision = p, .micro_batches = 1, .accumulate = 1,
                                        .clip_norm = clip_norm, .scaling = scaling,
                                        .optimizer = &descent, .bucket = 1 << 20 };
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "x", PONS_F32, image), *t = node_input(g, "t", PONS_F32, image);
    pons_node *w, *loss;
    bench b = { .steps = 0 };

    g->scope = SCOPE_MODEL;
    w = pons_parameter_leaf(g, "w", PONS_ROLE_WEIGHT, (pons_shape){ 5, { 1, 1, 1, 1, 1 } },
                            (pons_init){ PONS_INIT_CONSTANT, 0.5 });
    loss = pons_convolve(g, x, w, &plain);
    g->scope = SCOPE_LOSS;
    loss = pons_sum_all(g, pons_mul(g, loss, t));
    device_reference(&reference, false);
    MUST(storage_new(&reference, &b.storage, &error));
    MUST(program_new(b.storage, &reference, g, loss, 0, NULL, &settings, &b.program, &error));
    MUST(storage_initialise(b.storage, 1, &error));
    return b;
}

static bench open_bench(precision p, double clip_norm)
{
    return open_scaled_bench(p, clip_norm, (loss_scaling){ 0 });
}

static void close_bench(bench *b)
{
    program_free(b->program);
    storage_free(b->storage);
}

static step_result step(bench *b)
{
    step_result result;

    for (int i = 0; i < VOXELS; i++) {
        ((float *)program_input(b->program, "x", NULL))[i] = 1;
        ((float *)program_input(b->program, "t", NULL))[i] = TARGET;
    }
    MUST(program_step_begin(b->program, (uint64_t)++b->steps, &error));
    MUST(program_micro(b->program, 0, &error));
    MUST(program_step_finish(b->program, 1e-3, &result, &error));
    return result;
}

static double weight(const bench *b)
{
    return *(const float *)storage_item(b->storage, STORAGE_PARAMETER, 0).memory;
}

/* Run steps until one is applied. */
static step_result step_until_applied(bench *b)
{
    step_result result = step(b);

    while (!result.applied && b->steps < 30)
        result = step(b);
    return result;
}

START_TEST(an_overflow_halves_the_scale_and_changes_nothing_else)
{
    bench b = open_bench(PRECISION_FP16, 0);

    for (double scale = 65536; scale > FITS; scale /= 2) {
        step_result r = step(&b);
        ck_assert(!r.applied);
        ck_assert_double_eq(r.scale, scale / 2);
        ck_assert_double_eq(storage_get(b.storage, STORAGE_SCALE), scale / 2);
        ck_assert_double_eq(storage_get(b.storage, STORAGE_APPLIED), 0);
        ck_assert_double_eq(weight(&b), 0.5);
    }
    ck_assert(step(&b).applied);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_SCALE), FITS);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_APPLIED), 1);
    close_bench(&b);
}
END_TEST

START_TEST(reported_values_and_updates_are_not_scaled)
{
    bench b = open_bench(PRECISION_FP16, 0);
    step_result r = step_until_applied(&b);

    ck_assert_double_eq(r.loss, 0.5 * GRADIENT);
    ck_assert_double_eq(r.grad_norm, GRADIENT);
    ck_assert_double_eq_tol(weight(&b), 0.5 - 1e-3 * GRADIENT, 1e-7);
    close_bench(&b);
}
END_TEST

START_TEST(clipping_uses_the_unscaled_gradient_norm)
{
    bench b = open_bench(PRECISION_FP16, 2);

    step_until_applied(&b);
    ck_assert_double_eq_tol(weight(&b), 0.5 - 1e-3 * 2, 1e-7);
    close_bench(&b);
}
END_TEST

START_TEST(two_thousand_consecutive_finite_steps_double_the_scale)
{
    bench b = open_bench(PRECISION_FP16, 0);

    step_until_applied(&b);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_FINITE_STEPS), 1);
    storage_set(b.storage, STORAGE_FINITE_STEPS, 1998);
    ck_assert_double_eq(step(&b).scale, FITS);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_FINITE_STEPS), 1999);
    ck_assert_double_eq(step(&b).scale, 2 * FITS);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_FINITE_STEPS), 0);
    ck_assert(!step(&b).applied);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_SCALE), FITS);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_FINITE_STEPS), 0);
    close_bench(&b);
}
END_TEST

/* The scale starts where the storage has it, and changes by the numbers of the settings. */
START_TEST(growth_backoff_and_interval_are_those_of_the_settings)
{
    bench b = open_scaled_bench(PRECISION_FP16, 0, (loss_scaling){ 4, 0.25, 3 });

    storage_set(b.storage, STORAGE_SCALE, FITS);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq(step(&b).scale, FITS);
    ck_assert_double_eq(step(&b).scale, 4 * FITS);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_FINITE_STEPS), 0);
    step_result r = step(&b);
    ck_assert(!r.applied);
    ck_assert_double_eq(r.scale, FITS);
    close_bench(&b);
}
END_TEST

START_TEST(an_overflow_resets_the_count_of_finite_steps)
{
    bench b = open_bench(PRECISION_FP16, 0);

    step_until_applied(&b);
    storage_set(b.storage, STORAGE_FINITE_STEPS, 1500);
    storage_set(b.storage, STORAGE_SCALE, 65536);
    ck_assert(!step(&b).applied);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_FINITE_STEPS), 0);
    close_bench(&b);
}
END_TEST

START_TEST(other_precisions_have_no_scale)
{
    static const precision others[] = { PRECISION_FP32, PRECISION_TF32, PRECISION_BF16 };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bench b = open_bench(others[i], 0);
        step_result r = step(&b);
        ck_assert(r.applied);
        ck_assert_double_eq(r.scale, 1);
        ck_assert_double_eq(storage_get(b.storage, STORAGE_FINITE_STEPS), 0);
        ck_assert_double_eq_tol(weight(&b), 0.5 - 1e-3 * GRADIENT, 1e-7);
        close_bench(&b);
    }
}
END_TEST

int main(void)
{
    TCase *c = suite_new("loss scale");

    tcase_add_test(c, an_overflow_halves_the_scale_and_changes_nothing_else);
    tcase_add_test(c, reported_values_and_updates_are_not_scaled);
    tcase_add_test(c, clipping_uses_the_unscaled_gradient_norm);
    tcase_add_test(c, two_thousand_consecutive_finite_steps_double_the_scale);
    tcase_add_test(c, growth_backoff_and_interval_are_those_of_the_settings);
    tcase_add_test(c, an_overflow_resets_the_count_of_finite_steps);
    tcase_add_test(c, other_precisions_have_no_scale);
    return suite_run();
}
