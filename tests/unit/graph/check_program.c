/*
 * check_program.c - compiled graphs on the reference device: evaluation, a training step against
 * finite differences, folding, skipped steps, states, averages, names.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_open.h"
#include "graph/program/program.h"

#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/program/explain.h"
#include "graph/reference/reference.h"
#include "support/graph/descent.h"
#include "support/suite.h"

/* ---- a small network: convolution, bias, batch norm, prelu, mean square ---------------------- */

typedef struct net {
    pons_graph *graph;
    pons_node *loss, *logits;
} net;

static pons_shape shape(int rank, const int64_t *extent)
{
    return pons_shape_make(rank, extent);
}

#define SHAPE(...)                                                                                \
    shape((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), (int64_t[]){ __VA_ARGS__ })

static pons_node *layer(pons_graph *g, pons_node *x, const char *name, int64_t in, int64_t out)
{
    pons_init uniform = { PONS_INIT_UNIFORM, 0.3 };
    pons_convolution c = PONS_CONVOLUTION_INIT;

    for (int i = 0; i < 3; i++)
        c.pad_low[i] = c.pad_high[i] = 1;
    x = pons_convolve(g, x, pons_parameter_leaf(g, pons_name(g, "%s.weight", name),
                                                PONS_ROLE_WEIGHT, SHAPE(out, 3, 3, 3, in),
                                                uniform), &c);
    return pons_add(g, x, pons_parameter_leaf(g, pons_name(g, "%s.bias", name), PONS_ROLE_BIAS,
                                              SHAPE(out), uniform));
}

/* The parameter depth is the image's extent along its first axis. */
static net build_deep(bool training, bool norm, int64_t depth)
{
    net n = { graph_new(training), NULL, NULL };
    pons_graph *g = n.graph;
    pons_node *x = node_input(g, "image", PONS_F32, SHAPE(2, depth, 3, 5, 2));
    pons_node *target = node_input(g, "target", PONS_F32, SHAPE(2, depth, 3, 5, 1));
    pons_node *slope = pons_parameter_leaf(g, "act.weight", PONS_ROLE_SLOPE, SHAPE(1),
                                           (pons_init){ PONS_INIT_CONSTANT, 0.25 });

    x = layer(g, x, "first", 2, 3);
    if (norm)
        x = pons_batch_norm(g, x, NULL, NULL, pons_state_leaf(g, "norm.mean", SHAPE(3), 0),
                            pons_state_leaf(g, "norm.variance", SHAPE(3), 1), 0.1, 1e-5);
    x = pons_prelu(g, x, slope);
    n.logits = layer(g, x, "second", 3, 1);
    n.loss = pons_mean_all(g, pons_square(g, pons_sub(g, n.logits, target)));
    return n;
}

static net build_net(bool training, bool norm) { return build_deep(training, norm, 4); }

static void fill(program *p, const char *name, unsigned seed)
{
    pons_tensor t;
    void *memory = program_input(p, name, &t);

    ck_assert_ptr_nonnull(memory);
    for (int64_t i = 0; i < shape_count(t.shape); i++) {
        seed = seed * 1664525u + 1013904223u;
        double value = (double)(seed >> 9) / (1 << 22) - 1;
        if (t.type == PONS_F64)
            ((double *)memory)[i] = value;
        else
            ((float *)memory)[i] = (float)value;
    }
}

static void fill_both(program *p, unsigned seed)
{
    fill(p, "image", seed);
    fill(p, "target", seed + 1000);
}

static double number_at(const device *d, const void *memory, int64_t i)
{
    return d->wide ? ((const double *)memory)[i] : ((const float *)memory)[i];
}

typedef struct bench {
    device device;
    storage *storage;
    program *train, *evaluate;
    program_settings settings;
} bench;

static pons_error error;

static program *make_program(bench *b, net n, bool training)
{
    program *p = NULL;
    program_settings s = b->settings;
    pons_node *output[] = { n.logits, n.loss };

    if (!training)
        s.optimizer = NULL;
    ck_assert_msg(program_new(b->storage, &b->device, n.graph, training ? n.loss : NULL,
                              training ? 0 : 2, output, &s, &p, &error) == PONS_OK, "%s",
                  error.text);
    return p;
}

/* FLOAT and WIDE are reference devices in float and double; CPU is the plugin. */
enum { FLOAT = 0, WIDE, CPU };

static void bench_begin(bench *b, int kind, program_settings settings)
{
    pons_device_settings two = { .index = 0, .count = 1, .threads = 2 };

    error = (pons_error)PONS_ERROR_INIT;
    memset(b, 0, sizeof *b);
    if (kind == CPU) {
        ck_assert_msg(device_open("cpu", &two, NULL, &b->device, &error) == PONS_OK, "%s",
                      error.text);
        ck_assert_int_eq(device_attach(&b->device, &error), PONS_OK);
    } else {
        device_reference(&b->device, kind == WIDE);
    }
    b->settings = settings;
    b->settings.precision = PRECISION_FP32;
    if (b->settings.optimizer == NULL)
        b->settings.optimizer = &descent;
    if (b->settings.accumulate == 0)
        b->settings.accumulate = b->settings.micro_batches = 1;
    ck_assert_int_eq(storage_new(&b->device, &b->storage, &error), PONS_OK);
}

static void bench_open(bench *b, int kind, bool norm, program_settings settings)
{
    bench_begin(b, kind, settings);
    b->train = make_program(b, build_net(true, norm), true);
    b->evaluate = make_program(b, build_net(false, norm), false);
    ck_assert_int_eq(storage_initialise(b->storage, 1, &error), PONS_OK);
}

static void bench_close(bench *b)
{
    program_free(b->train);
    program_free(b->evaluate);
    storage_free(b->storage);
    if (!b->device.reference)
        device_close(&b->device);
}

static step_result step(bench *b, unsigned seed, double lr)
{
    step_result r;

    ck_assert_int_eq(program_step_begin(b->train, 0, &error), PONS_OK);
    for (int m = 0; m < b->settings.accumulate; m++) {
        fill_both(b->train, seed + (unsigned)m);
        ck_assert_int_eq(program_micro(b->train, (uint64_t)m, &error), PONS_OK);
    }
    ck_assert_int_eq(program_step_finish(b->train, lr, &r, &error), PONS_OK);
    return r;
}

static double evaluate_loss(bench *b, unsigned seed)
{
    fill_both(b->evaluate, seed);
    program_weights_changed(b->evaluate);
    ck_assert_int_eq(program_evaluate(b->evaluate, &error), PONS_OK);
    return number_at(&b->device, program_output(b->evaluate, 1, NULL), 0);
}

static storage_tensor tensor_named(const storage *s, storage_group group, const char *name)
{
    for (int i = 0; i < storage_count(s, group); i++)
        if (strcmp(storage_item(s, group, i).name, name) == 0)
            return storage_item(s, group, i);
    ck_abort_msg("no tensor '%s'", name);
    return (storage_tensor){ 0 };
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(gradients_agree_with_finite_differences)
{
    bench b;

    bench_open(&b, WIDE, false, (program_settings){ 0 });
    step(&b, 3, 0);
    for (int i = 0; i < storage_count(b.storage, STORAGE_PARAMETER); i++) {
        storage_tensor t = storage_item(b.storage, STORAGE_PARAMETER, i);
        const double *gradient = program_gradient(b.train, t.name);
        double *value = t.memory, h = 1e-6;

        for (int64_t k = 0; k < shape_count(t.shape); k += 7) {
            double old = value[k], above, below;

            value[k] = old + h;
            above = evaluate_loss(&b, 3);
            value[k] = old - h;
            below = evaluate_loss(&b, 3);
            value[k] = old;
            ck_assert_double_eq_tol(gradient[k], (above - below) / (2 * h),
                                    1e-7 + 1e-5 * fabs(gradient[k]));
        }
    }
    bench_close(&b);
}
END_TEST

START_TEST(a_step_of_sgd_moves_against_the_gradient)
{
    bench b;
    double before[64], loss;
    step_result r;

    bench_open(&b, WIDE, false, (program_settings){ 0 });
    storage_tensor t = tensor_named(b.storage, STORAGE_PARAMETER, "second.weight");
    memcpy(before, t.memory, 64 * sizeof *before);
    loss = evaluate_loss(&b, 3);
    r = step(&b, 3, 0.125);
    ck_assert(r.applied);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_APPLIED), 1);
    ck_assert_double_eq_tol(r.loss, loss, 1e-12);
    const double *gradient = program_gradient(b.train, "second.weight");
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq_tol(((double *)t.memory)[i], before[i] - 0.125 * gradient[i], 1e-15);
    ck_assert(evaluate_loss(&b, 3) < loss);
    bench_close(&b);
}
END_TEST

START_TEST(the_gradient_norm_covers_all_parameters)
{
    bench b;
    double sum = 0;
    step_result r;

    bench_open(&b, WIDE, false, (program_settings){ 0 });
    r = step(&b, 9, 0);
    for (int i = 0; i < storage_count(b.storage, STORAGE_PARAMETER); i++) {
        storage_tensor t = storage_item(b.storage, STORAGE_PARAMETER, i);
        const double *gradient = program_gradient(b.train, t.name);

        for (int64_t k = 0; k < shape_count(t.shape); k++)
            sum += gradient[k] * gradient[k];
    }
    ck_assert_double_eq_tol(r.grad_norm, sqrt(sum), 1e-12);
    bench_close(&b);
}
END_TEST

START_TEST(clipping_scales_the_step)
{
    bench b, c;
    step_result r;

    bench_open(&b, WIDE, false, (program_settings){ 0 });
    r = step(&b, 9, 1);
    bench_open(&c, WIDE, false, (program_settings){ .clip_norm = r.grad_norm / 4 });
    storage_tensor t = tensor_named(c.storage, STORAGE_PARAMETER, "first.weight");
    double before = ((double *)t.memory)[5];
    step(&c, 9, 1);
    const double *gradient = program_gradient(c.train, "first.weight");
    double factor = r.grad_norm / 4 / (r.grad_norm + 1e-6);
    ck_assert_double_eq_tol(((double *)t.memory)[5], before - factor * gradient[5], 1e-14);
    bench_close(&b);
    bench_close(&c);
}
END_TEST

/*
 * The pairwise sum: sum(a, n) = sum(a, p) + sum(a + p, n - p), p the largest power of two below n.
 */
static void pairwise_sum_into(float *const *item, int count, int64_t size, float *out)
{
    float *left, *right;
    int p = 1;

    if (count == 1) {
        memcpy(out, item[0], (size_t)size * sizeof *out);
        return;
    }
    while (2 * p < count)
        p *= 2;
    left = malloc((size_t)size * sizeof *left);
    right = malloc((size_t)size * sizeof *right);
    pairwise_sum_into(item, p, size, left);
    pairwise_sum_into(item + p, count - p, size, right);
    for (int64_t i = 0; i < size; i++)
        out[i] = left[i] + right[i];
    free(left);
    free(right);
}

START_TEST(accumulation_is_the_pairwise_sum_of_gradients_bitwise)
{
    int accumulate = _i % 9 + 1, kind = _i < 9 ? FLOAT : CPU;
    const char *names[] = { "first.weight", "second.weight", "act.weight", "second.bias" };
    float *part[9][4], sum[256];
    bench one, all;

    bench_open(&one, kind, true, (program_settings){ 0 });
    bench_open(&all, kind, true,
               (program_settings){ .accumulate = accumulate, .micro_batches = accumulate });
    step(&all, 20, 0);
    for (int m = 0; m < accumulate; m++) {
        step(&one, 20 + (unsigned)m, 0);
        for (int k = 0; k < 4; k++) {
            int64_t size = shape_count(tensor_named(one.storage, STORAGE_PARAMETER,
                                                    names[k]).shape);

            part[m][k] = malloc((size_t)size * sizeof(float));
            memcpy(part[m][k], program_gradient(one.train, names[k]), (size_t)size * sizeof(float));
        }
    }
    for (int k = 0; k < 4; k++) {
        int64_t size = shape_count(tensor_named(one.storage, STORAGE_PARAMETER, names[k]).shape);
        float *item[9];

        for (int m = 0; m < accumulate; m++)
            item[m] = part[m][k];
        pairwise_sum_into(item, accumulate, size, sum);
        ck_assert_mem_eq(sum, program_gradient(all.train, names[k]), (size_t)size * sizeof(float));
        for (int m = 0; m < accumulate; m++)
            free(part[m][k]);
    }
    bench_close(&one);
    bench_close(&all);
}
END_TEST

static void run_steps(bench *b, int count)
{
    for (int i = 0; i < count; i++)
        step(b, 50 + 10 * (unsigned)i, 0.05);
}

static void assert_equal_storage(const bench *a, const bench *b)
{
    for (int g = 0; g < STORAGE_GROUP_COUNT; g++) {
        ck_assert_int_eq(storage_count(a->storage, g), storage_count(b->storage, g));
        for (int i = 0; i < storage_count(a->storage, g); i++) {
            storage_tensor x = storage_item(a->storage, g, i), y = storage_item(b->storage, g, i);
            size_t size = (size_t)shape_count(x.shape) * (a->device.wide ? 8 : 4);

            ck_assert_msg(memcmp(x.memory, y.memory, size) == 0, "'%s' differs", x.name);
        }
    }
}

START_TEST(released_memory_is_never_read)
{
    program_settings plain = { .accumulate = 2, .micro_batches = 2, .ema_decay = 0.9 };
    program_settings filled = plain, apart = plain;
    bench a, b, c;

    filled.fill_nan = true;
    apart.testing.no_reuse = true;
    bench_open(&a, _i == 0 ? FLOAT : CPU, true, plain);
    bench_open(&b, _i == 0 ? FLOAT : CPU, true, filled);
    bench_open(&c, _i == 0 ? FLOAT : CPU, true, apart);
    run_steps(&a, 3);
    run_steps(&b, 3);
    run_steps(&c, 3);
    assert_equal_storage(&a, &b);
    assert_equal_storage(&a, &c);
    ck_assert(evaluate_loss(&a, 5) == evaluate_loss(&b, 5));
    bench_close(&a);
    bench_close(&b);
    bench_close(&c);
}
END_TEST

START_TEST(reuse_makes_the_arena_smaller)
{
    bench a, c;
    program_facts with, without;

    bench_open(&a, FLOAT, true, (program_settings){ 0 });
    bench_open(&c, FLOAT, true, (program_settings){ .testing.no_reuse = true });
    program_describe(a.train, &with);
    program_describe(c.train, &without);
    ck_assert_uint_lt(with.arena, without.arena);
    ck_assert_uint_eq(with.sum_of_tensors, without.sum_of_tensors);
    ck_assert_int_eq(with.parameter_count, 3 * 27 * 2 + 3 + 27 * 3 + 1 + 1);
    for (int i = 0; i < with.kernel_count; i++) {
        kernel_facts f = program_kernel(a.train, i);

        ck_assert_uint_gt(f.bytes, 0);
        ck_assert_uint_le(f.arena, with.arena);
        ck_assert_str_eq(f.implementation, "reference");
    }
    bench_close(&a);
    bench_close(&c);
}
END_TEST

/* A convolution with weights of a layout of the processor's, of 2 x extent^3 voxels. */
static program *make_convolution(bench *b, int64_t extent)
{
    pons_graph *g = graph_new(false);
    pons_node *x = node_input(g, "image", PONS_F32, SHAPE(2, extent, extent, extent, 16));
    net n = { g, NULL, layer(g, x, "wide", 16, 16) };

    n.loss = pons_mean_all(g, n.logits);
    return make_program(b, n, false);
}

/*
 * An evaluation of many operations packs weights before each call, into the arena, and reads the
 * weights as they are.
 */
START_TEST(an_evaluation_with_many_operations_keeps_no_packed_weights)
{
    bench b;
    program_facts few, many;
    double first;

    bench_begin(&b, CPU, (program_settings){ 0 });
    b.train = make_convolution(&b, 4);
    b.evaluate = make_convolution(&b, 40);
    ck_assert_int_eq(storage_initialise(b.storage, 1, &error), PONS_OK);
    program_describe(b.train, &few);
    program_describe(b.evaluate, &many);
    ck_assert_uint_eq(many.packed, 0);
    if (few.packed > 0) {
        fill(b.evaluate, "image", 1);
        ck_assert_int_eq(program_evaluate(b.evaluate, &error), PONS_OK);
        first = number_at(&b.device, program_output(b.evaluate, 1, NULL), 0);
        memset(tensor_named(b.storage, STORAGE_PARAMETER, "wide.weight").memory, 0,
               16 * 27 * 16 * sizeof(float));
        ck_assert_int_eq(program_evaluate(b.evaluate, &error), PONS_OK);
        ck_assert(number_at(&b.device, program_output(b.evaluate, 1, NULL), 0) != first);
    }
    bench_close(&b);
}
END_TEST

START_TEST(a_non_finite_step_changes_nothing)
{
    program_settings s = { .ema_decay = 0.5 };
    bench a, b;
    step_result r;
    pons_tensor t;
    program_nonfinite found;

    bench_open(&a, _i == 0 ? FLOAT : CPU, true, s);
    bench_open(&b, _i == 0 ? FLOAT : CPU, true, s);
    run_steps(&a, 2);
    run_steps(&b, 2);
    ck_assert_int_eq(program_step_begin(b.train, 2, &error), PONS_OK);
    fill_both(b.train, 1);
    ((float *)program_input(b.train, "image", &t))[3] = NAN;
    ck_assert_int_eq(program_micro(b.train, 0, &error), PONS_OK);
    ck_assert_int_eq(program_step_finish(b.train, 0.1, &r, &error), PONS_OK);
    ck_assert(!r.applied);
    assert_equal_storage(&a, &b);
    ck_assert_double_eq(storage_get(b.storage, STORAGE_APPLIED), 2);
    ck_assert_int_eq(program_find_nonfinite(b.train, 0, &found, &error), PONS_OK);
    ck_assert_str_eq(found.name, "image");
    ck_assert_int_eq(found.index, -1);
    fill_both(b.train, 1);
    ck_assert_int_eq(program_find_nonfinite(b.train, 0, &found, &error), PONS_OK);
    ck_assert_ptr_null(found.name);
    ((float *)tensor_named(b.storage, STORAGE_PARAMETER, "second.bias").memory)[0] = INFINITY;
    ck_assert_int_eq(program_find_nonfinite(b.train, 0, &found, &error), PONS_OK);
    ck_assert_str_eq(found.name, "second.bias");
    bench_close(&a);
    bench_close(&b);
}
END_TEST

/* A tensor of several kernels is checked after the last one; NaN fills it before. */
START_TEST(a_partly_written_tensor_is_not_checked)
{
    net n = { graph_new(true), NULL, NULL };
    pons_node *x = node_input(n.graph, "image", PONS_F32, SHAPE(2, 4, 3, 5, 2));
    pons_node *target = node_input(n.graph, "target", PONS_F32, SHAPE(2, 4, 3, 5, 1));
    program_nonfinite found;
    bench b;

    x = layer(n.graph, x, "first", 2, 3);
    x = pons_concatenate(n.graph, 2, (pons_node *[]){ pons_square(n.graph, x),
                                                      layer(n.graph, x, "other", 3, 3) }, 4);
    n.logits = layer(n.graph, x, "second", 6, 1);
    n.loss = pons_mean_all(n.graph, pons_square(n.graph, pons_sub(n.graph, n.logits, target)));
    bench_begin(&b, _i == 0 ? FLOAT : CPU, (program_settings){ .fill_nan = true });
    b.train = make_program(&b, n, true);
    ck_assert_int_eq(storage_initialise(b.storage, 1, &error), PONS_OK);
    ck_assert(step(&b, 1, 0).applied);
    ck_assert_int_eq(program_find_nonfinite(b.train, 0, &found, &error), PONS_OK);
    ck_assert_msg(found.name == NULL, "'%s' is finite", found.name);
    bench_close(&b);
}
END_TEST

START_TEST(states_take_the_mean_of_contributions)
{
    bench one, two;
    double mean[3] = { 0 };

    bench_open(&one, WIDE, true, (program_settings){ 0 });
    for (int m = 0; m < 2; m++) {
        storage_tensor t = tensor_named(one.storage, STORAGE_STATE, "norm.mean");

        for (int i = 0; i < 3; i++)
            ((double *)t.memory)[i] = 0;
        step(&one, 70 + (unsigned)m, 0);
        for (int i = 0; i < 3; i++)
            mean[i] += ((double *)t.memory)[i] / 2; /* 0 + 0.1 (mean - 0) */
    }
    bench_open(&two, WIDE, true, (program_settings){ .accumulate = 2, .micro_batches = 2 });
    step(&two, 70, 0);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(
            ((double *)tensor_named(two.storage, STORAGE_STATE, "norm.mean").memory)[i], mean[i],
            1e-12);
    bench_close(&one);
    bench_close(&two);
}
END_TEST

/* A NaN in a parameter makes its gradient NaN; a NaN in a state stays in the state. */
START_TEST(an_update_names_non_finite_weights_and_states)
{
    program_settings s = { .ema_decay = 0 };
    int states = 0;
    bench b;

    for (int g = STORAGE_PARAMETER; g <= STORAGE_STATE; g++) {
        bench_open(&b, _i, true, s);
        int count = storage_count(b.storage, g);
        for (int i = 0; i < count; i++) {
            storage_tensor t = storage_item(b.storage, g, i);
            ck_assert_ptr_null(step(&b, 1, 0.1).nonfinite);
            if (b.device.wide)
                ((double *)t.memory)[0] = NAN;
            else
                ((float *)t.memory)[0] = NAN;
            storage_changed(b.storage);
            step_result r = step(&b, 2, 0.1);
            ck_assert_str_eq(r.nonfinite, t.name);
            ck_assert_int_eq(r.applied, g == STORAGE_STATE);
            states += g == STORAGE_STATE;
            bench_close(&b);
            bench_open(&b, _i, true, s);
        }
        bench_close(&b);
    }
    ck_assert_int_eq(states, 2);
}
END_TEST

START_TEST(weight_averages_follow_and_can_be_selected)
{
    bench b;
    double first, weights, averages;

    bench_open(&b, WIDE, false, (program_settings){ .ema_decay = 0.75 });
    storage_tensor p = tensor_named(b.storage, STORAGE_PARAMETER, "first.bias");
    storage_tensor e = tensor_named(b.storage, STORAGE_EMA, "first.bias");
    first = *(double *)p.memory;
    ck_assert_double_eq(first, *(double *)e.memory);
    step(&b, 3, 0.1);
    ck_assert_double_eq_tol(*(double *)e.memory, 0.75 * first + 0.25 * *(double *)p.memory, 1e-15);
    weights = evaluate_loss(&b, 3);
    storage_use_ema(b.storage, true);
    averages = evaluate_loss(&b, 3);
    ck_assert_double_ne(weights, averages);
    storage_use_ema(b.storage, false);
    ck_assert_double_eq(evaluate_loss(&b, 3), weights);
    bench_close(&b);
}
END_TEST

START_TEST(initial_values_depend_on_seed_and_name_alone)
{
    bench a, b;

    bench_open(&a, FLOAT, true, (program_settings){ 0 });
    bench_open(&b, WIDE, false, (program_settings){ 0 });
    storage_tensor x = tensor_named(a.storage, STORAGE_PARAMETER, "second.weight");
    storage_tensor y = tensor_named(b.storage, STORAGE_PARAMETER, "second.weight");
    double largest = 0;

    for (int i = 0; i < 81; i++) {
        ck_assert_float_eq(((float *)x.memory)[i], (float)((double *)y.memory)[i]);
        largest = fmax(largest, fabs(((double *)y.memory)[i]));
    }
    ck_assert(largest <= 0.3 && largest > 0.28);
    ck_assert_double_eq(((float *)tensor_named(a.storage, STORAGE_PARAMETER,
                                               "act.weight").memory)[0], 0.25);
    ck_assert_double_eq(((float *)tensor_named(a.storage, STORAGE_STATE,
                                               "norm.variance").memory)[2], 1);
    bench_close(&a);
    bench_close(&b);
}
END_TEST

START_TEST(a_known_parameter_with_another_shape_is_refused)
{
    bench b;
    program *p = NULL;
    pons_graph *g = graph_new(false);
    pons_node *x = pons_parameter_leaf(g, "second.bias", PONS_ROLE_BIAS, SHAPE(2),
                                       (pons_init){ PONS_INIT_CONSTANT, 0 });

    bench_open(&b, FLOAT, false, (program_settings){ 0 });
    x = pons_exp(g, x);
    ck_assert_int_eq(program_new(b.storage, &b.device, g, NULL, 1, &x, &b.settings, &p, &error),
                     PONS_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error.text, "'second.bias' has shape [2]"));
    bench_close(&b);
}
END_TEST

START_TEST(a_new_parameter_in_an_evaluation_build_is_refused)
{
    bench b;
    program *p = NULL;
    pons_graph *g = graph_new(false);
    pons_node *x = pons_parameter_leaf(g, "third.bias", PONS_ROLE_BIAS, SHAPE(2),
                                       (pons_init){ PONS_INIT_CONSTANT, 0 });

    bench_open(&b, FLOAT, false, (program_settings){ 0 });
    x = pons_exp(g, x);
    ck_assert_int_eq(program_new(b.storage, &b.device, g, NULL, 1, &x, &b.settings, &p, &error),
                     PONS_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error.text, "'third.bias'"));
    bench_close(&b);
}
END_TEST

START_TEST(unused_parameters_are_listed_and_unchanged)
{
    bench b;
    pons_graph *g = graph_new(true);
    pons_init one = { PONS_INIT_CONSTANT, 1 };
    pons_node *used = pons_parameter_leaf(g, "used", PONS_ROLE_BIAS, SHAPE(2), one);
    pons_node *unused = pons_parameter_leaf(g, "unused", PONS_ROLE_BIAS, SHAPE(3), one);
    net n = { g, pons_sum_all(g, pons_square(g, used)), pons_exp(g, unused) };
    step_result r;
    program_facts facts;

    bench_begin(&b, WIDE, (program_settings){ 0 });
    program *p = b.train = make_program(&b, n, true);
    program_describe(p, &facts);
    ck_assert_int_eq(facts.untrained_count, 1);
    ck_assert_str_eq(program_untrained(p, 0), "unused");
    storage_initialise(b.storage, 0, &error);
    ck_assert_int_eq(program_step_begin(p, 0, &error), PONS_OK);
    ck_assert_int_eq(program_micro(p, 0, &error), PONS_OK);
    ck_assert_int_eq(program_step_finish(p, 0.25, &r, &error), PONS_OK);
    ck_assert_double_eq_tol(r.loss, 2, 1e-15);
    ck_assert_double_eq_tol(r.grad_norm, sqrt(8), 1e-15);
    ck_assert_double_eq(*(double *)tensor_named(b.storage, STORAGE_PARAMETER, "used").memory, 0.5);
    ck_assert_double_eq(*(double *)tensor_named(b.storage, STORAGE_PARAMETER, "unused").memory, 1);
    bench_close(&b);
}
END_TEST

/* 'shared' is trained all the same; 'stray' belongs to no output. */
START_TEST(parameters_of_an_output_that_is_left_out_are_not_listed)
{
    bench b;
    pons_graph *g = graph_new(true);
    pons_init one = { PONS_INIT_CONSTANT, 1 };
    pons_node *shared = pons_parameter_leaf(g, "shared", PONS_ROLE_BIAS, SHAPE(2), one);
    pons_node *head = pons_parameter_leaf(g, "head", PONS_ROLE_BIAS, SHAPE(2), one);
    pons_node *stray = pons_parameter_leaf(g, "stray", PONS_ROLE_BIAS, SHAPE(2), one);
    net n = { g, pons_sum_all(g, pons_square(g, shared)), pons_exp(g, stray) };
    program_facts facts;

    graph_leave_out(g, pons_exp(g, pons_mul(g, shared, head)));
    graph_leave_out(g, shared);
    bench_begin(&b, WIDE, (program_settings){ 0 });
    program *p = b.train = make_program(&b, n, true);
    program_describe(p, &facts);
    ck_assert_int_eq(facts.untrained_count, 1);
    ck_assert_str_eq(program_untrained(p, 0), "stray");
    bench_close(&b);
}
END_TEST

/* ---- allocations ----------------------------------------------------------------------------- */

/* The test's allocator counts the calls during a step. */
static int counting;
static long allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

#ifndef __SANITIZE_ADDRESS__
void *malloc(size_t size)
{
    allocations += counting;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    allocations += counting;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    allocations += counting;
    return __libc_realloc(memory, size);
}
#endif

START_TEST(steps_after_the_second_allocate_nothing)
{
    bench b;

    counting = 1;
    bench_open(&b, _i, true, (program_settings){ .accumulate = 3, .micro_batches = 3,
                                                 .ema_decay = 0.9 });
    counting = 0;
#ifndef __SANITIZE_ADDRESS__
    ck_assert_int_gt(allocations, 0); /* it does count */
#endif
    run_steps(&b, 2);
    evaluate_loss(&b, 1);
    allocations = 0;
    for (int i = 0; i < 3; i++) {
        fill_both(b.train, 5);
        fill_both(b.evaluate, 5);
        counting = 1;
        program_step_begin(b.train, 3, &error);
        for (int m = 0; m < 3; m++)
            program_micro(b.train, (uint64_t)m, &error);
        step_result r;
        program_step_finish(b.train, 0.1, &r, &error);
        program_evaluate(b.evaluate, &error);
        counting = 0;
    }
    ck_assert_int_eq(allocations, 0);
    bench_close(&b);
}
END_TEST

/* A copy of the program's input in memory of its own. */
static float *copy_of(program *p, const char *name)
{
    pons_tensor t;
    const float *from = program_input(p, name, &t);
    size_t size = ((size_t)shape_count(t.shape) * sizeof *from + 63) / 64 * 64;
    float *to = aligned_alloc(64, size);

    ck_assert_ptr_nonnull(to);
    memcpy(to, from, (size_t)shape_count(t.shape) * sizeof *from);
    return to;
}

/* Run two micro-batches, with inputs in external memory or in the program's own memory. */
static step_result lent_step(bench *b, bool lend)
{
    float *lent[2][2] = { { NULL } };
    step_result r;

    program_step_begin(b->train, 0, &error);
    for (int m = 0; m < 2; m++) {
        fill_both(b->train, 5 + (unsigned)m);
        if (lend) {
            lent[m][0] = copy_of(b->train, "image");
            lent[m][1] = copy_of(b->train, "target");
            fill_both(b->train, 7); /* the step does not read it */
            ck_assert(program_bind_external(b->train, "image", lent[m][0]));
            ck_assert(program_bind_external(b->train, "target", lent[m][1]));
        }
        ck_assert_int_eq(program_micro(b->train, (uint64_t)m, &error), PONS_OK);
    }
    ck_assert_int_eq(program_step_finish(b->train, 0.1, &r, &error), PONS_OK);
    for (int i = 0; i < 4; i++)
        free(lent[i / 2][i % 2]);
    return r;
}

START_TEST(external_inputs_are_read_in_place)
{
    step_result r[2];
    double loss[2];
    bench b;

    for (int lend = 0; lend < 2; lend++) {
        bench_open(&b, _i == 0 ? FLOAT : CPU, true,
                   (program_settings){ .accumulate = 2, .micro_batches = 2 });
        r[lend] = lent_step(&b, lend);
        loss[lend] = step(&b, 9, 0.1).loss; /* the program's own inputs again */
        ck_assert(!program_bind_external(b.train, "mask", NULL));
        bench_close(&b);
    }
    ck_assert(r[0].loss == r[1].loss && r[0].grad_norm == r[1].grad_norm);
    ck_assert(loss[0] == loss[1] && loss[0] != r[0].loss);
}
END_TEST

/* The program's own memory holds 'own', and the check does not read it. */
static void assert_found(bench *b, float *const lent[2], float own, const char *name)
{
    static const char *const names[] = { "image", "target" };
    program_nonfinite found;

    for (int i = 0; i < 2; i++) {
        ((float *)program_input(b->train, names[i], NULL))[3] = own;
        ck_assert(program_bind_external(b->train, names[i], lent[i]));
    }
    ck_assert_int_eq(program_find_nonfinite(b->train, 0, &found, &error), PONS_OK);
    if (name == NULL)
        ck_assert_msg(found.name == NULL, "'%s' is finite", found.name);
    else
        ck_assert_str_eq(found.name, name);
    ck_assert(name == NULL || found.index == -1);
}

START_TEST(non_finite_values_are_found_in_external_inputs)
{
    program_facts facts;
    float *lent[2];
    bench b;

    bench_open(&b, _i == 0 ? FLOAT : CPU, true, (program_settings){ 0 });
    step(&b, 5, 0);
    program_describe(b.train, &facts);
    ck_assert_uint_ge(facts.external_inputs, 2 * 4 * 3 * 5 * 3 * sizeof(float));
    lent[0] = copy_of(b.train, "image");
    lent[1] = copy_of(b.train, "target");
    assert_found(&b, lent, NAN, NULL);
    lent[1][119] = INFINITY;
    assert_found(&b, lent, 0, "target");
    lent[0][239] = NAN;
    assert_found(&b, lent, 0, "image");
    for (int i = 0; i < 2; i++)
        free(lent[i]);
    bench_close(&b);
}
END_TEST

/* A larger program moves the memory that programs share; external inputs stay in place. */
START_TEST(external_inputs_stay_bound_when_the_storage_grows)
{
    program_facts small, large;
    program_nonfinite found;
    step_result r[2];
    float *lent[2];
    bench b;

    bench_begin(&b, _i == 0 ? FLOAT : CPU, (program_settings){ .fill_nan = true });
    b.train = make_program(&b, build_net(true, true), true);
    ck_assert_int_eq(storage_initialise(b.storage, 1, &error), PONS_OK);
    fill_both(b.train, 5);
    lent[0] = copy_of(b.train, "image");
    lent[1] = copy_of(b.train, "target");
    fill_both(b.train, 7); /* the step does not read it */
    ck_assert(program_bind_external(b.train, "image", lent[0]));
    ck_assert(program_bind_external(b.train, "target", lent[1]));
    for (int grown = 0; grown < 2; grown++) {
        if (grown) {
            b.evaluate = make_program(&b, build_deep(false, true, 400), false);
            evaluate_loss(&b, 9);
        }
        ck_assert_int_eq(program_step_begin(b.train, 0, &error), PONS_OK);
        ck_assert_int_eq(program_micro(b.train, 0, &error), PONS_OK);
        ck_assert_int_eq(program_step_finish(b.train, 0, &r[grown], &error), PONS_OK);
    }
    program_describe(b.train, &small);
    program_describe(b.evaluate, &large);
    ck_assert_uint_gt(large.arena, small.arena);
    ck_assert(r[0].applied && r[0].loss == r[1].loss && r[0].grad_norm == r[1].grad_norm);
    ck_assert(step(&b, 7, 0).loss != r[0].loss);
    ck_assert(program_bind_external(b.train, "image", lent[0]));
    lent[0][3] = NAN;
    ck_assert_int_eq(program_find_nonfinite(b.train, 0, &found, &error), PONS_OK);
    ck_assert_str_eq(found.name, "image");
    for (int i = 0; i < 2; i++)
        free(lent[i]);
    bench_close(&b);
}
END_TEST

/* Gradients that are one node, a leaf or a constant get separate slots. */
START_TEST(coinciding_gradients_have_separate_slots)
{
    bench b;
    pons_graph *g = graph_new(true);
    pons_init one = { PONS_INIT_CONSTANT, 1 };
    pons_node *x = pons_parameter_leaf(g, "x", PONS_ROLE_BIAS, SHAPE(2), one);
    pons_node *y = pons_parameter_leaf(g, "y", PONS_ROLE_BIAS, SHAPE(2), one);
    pons_node *z = pons_parameter_leaf(g, "z", PONS_ROLE_BIAS, SHAPE(2), one);
    pons_node *in = node_input(g, "in", PONS_F32, SHAPE(2));
    net n = { g, pons_sum_all(g, pons_add(g, pons_add(g, x, y), pons_mul(g, z, in))), NULL };
    step_result r;

    bench_begin(&b, WIDE, (program_settings){ .micro_batches = 2, .accumulate = 2 });
    program *p = b.train = make_program(&b, n, true);
    ck_assert_int_eq(program_step_begin(p, 0, &error), PONS_OK);
    for (int m = 0; m < 2; m++) {
        ((double *)program_input(p, "in", NULL))[0] = 1 + m;
        ck_assert_int_eq(program_micro(p, (uint64_t)m, &error), PONS_OK);
    }
    ck_assert_int_eq(program_step_finish(p, 0.25, &r, &error), PONS_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_double_eq(((double *)program_gradient(p, "x"))[i], 2);
        ck_assert_double_eq(((double *)program_gradient(p, "y"))[i], 2);
    }
    ck_assert_double_eq(((double *)program_gradient(p, "z"))[0], 3);
    ck_assert_double_eq(((double *)program_gradient(p, "z"))[1], 0);
    bench_close(&b);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("program");

    tcase_add_test(c, gradients_agree_with_finite_differences);
    tcase_add_test(c, a_step_of_sgd_moves_against_the_gradient);
    tcase_add_test(c, the_gradient_norm_covers_all_parameters);
    tcase_add_test(c, clipping_scales_the_step);
    tcase_add_loop_test(c, accumulation_is_the_pairwise_sum_of_gradients_bitwise, 0, 18);
    tcase_add_loop_test(c, steps_after_the_second_allocate_nothing, FLOAT, CPU + 1);
    tcase_add_loop_test(c, released_memory_is_never_read, 0, 2);
    tcase_add_test(c, reuse_makes_the_arena_smaller);
    tcase_add_test(c, an_evaluation_with_many_operations_keeps_no_packed_weights);
    tcase_add_loop_test(c, a_non_finite_step_changes_nothing, 0, 2);
    tcase_add_loop_test(c, a_partly_written_tensor_is_not_checked, 0, 2);
    tcase_add_test(c, states_take_the_mean_of_contributions);
    tcase_add_loop_test(c, an_update_names_non_finite_weights_and_states, FLOAT, CPU + 1);
    tcase_add_test(c, weight_averages_follow_and_can_be_selected);
    tcase_add_test(c, initial_values_depend_on_seed_and_name_alone);
    tcase_add_test(c, a_known_parameter_with_another_shape_is_refused);
    tcase_add_test(c, a_new_parameter_in_an_evaluation_build_is_refused);
    tcase_add_test(c, unused_parameters_are_listed_and_unchanged);
    tcase_add_test(c, parameters_of_an_output_that_is_left_out_are_not_listed);
    tcase_add_loop_test(c, external_inputs_are_read_in_place, 0, 2);
    tcase_add_loop_test(c, non_finite_values_are_found_in_external_inputs, 0, 2);
    tcase_add_loop_test(c, external_inputs_stay_bound_when_the_storage_grows, 0, 2);
    tcase_add_test(c, coinciding_gradients_have_separate_slots);
    return suite_run();
}
