/*
 * check_update.c - the update section against plain loops: merged kernels, tensor slots, constants
 * and expressions that depend on a role, skipped steps.
 */
#include <math.h>
#include <string.h>

#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/program/explain.h"
#include "graph/program/program.h"
#include "graph/reference/reference.h"
#include "support/suite.h"

enum { TENSORS = 5, STEPS = 4, ELEMENTS_MAX = 300 };

static const struct {
    const char *name;
    pons_role role;
    pons_shape shape;
} tensors[TENSORS] = {
    { "a.weight", PONS_ROLE_WEIGHT, { 5, { 4, 1, 3, 3, 2 } } },
    { "a.bias", PONS_ROLE_BIAS, { 1, { 4 } } },
    { "a.slope", PONS_ROLE_SLOPE, { 1, { 1 } } },
    { "b.weight", PONS_ROLE_WEIGHT, { 5, { 3, 3, 3, 1, 4 } } },
    { "b.scale", PONS_ROLE_NORM_SCALE, { 1, { 130 } } },
};

typedef struct numbers {
    double value[TENSORS][ELEMENTS_MAX], gradient[TENSORS][ELEMENTS_MAX];
    double slot[3][TENSORS][ELEMENTS_MAX];
} numbers;

typedef struct optimizer_case {
    const char *name;
    const pons_optimizer_operations *operations;
    void (*loop)(numbers *x, int tensor, int64_t count, int step, double lr);
    int kernels;              /* kernels of the update section                                    */
} optimizer_case;

/* ---- adam: element slots, powers of the step ------------------------------------------------- */

static const pons_slot adam_slots[] = {
    { "m", PONS_SLOT_ELEMENT }, { "v", PONS_SLOT_ELEMENT }, { "none", PONS_SLOT_ELEMENT },
    PONS_SLOTS_END
};

static pons_status adam_update(pons_graph *g, const void *config, const pons_parameter *p,
                               pons_error *err)
{
    pons_node *m = pons_lerp(g, p->gradient, p->slot[0], 0.9);
    pons_node *v = pons_lerp(g, pons_square(g, p->gradient), p->slot[1], 0.99);
    pons_node *a = pons_sub(g, pons_scalar(g, 1), pons_pow(g, pons_scalar(g, 0.9), p->step));
    pons_node *b = pons_sub(g, pons_scalar(g, 1), pons_pow(g, pons_scalar(g, 0.99), p->step));
    pons_node *root = pons_add_scalar(g, pons_sqrt(g, pons_div(g, v, b)), 1e-3);

    pons_assign(g, p->slot[0], m);
    pons_assign(g, p->slot[1], v);
    pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, pons_div(g, pons_div(g, m, a),
                                                                              root))));
    return pons_graph_status(g, err);
}

static void adam_loop(numbers *x, int t, int64_t count, int step, double lr)
{
    for (int64_t i = 0; i < count; i++) {
        double *m = &x->slot[0][t][i], *v = &x->slot[1][t][i], g = x->gradient[t][i];

        *m = 0.9 * *m + 0.1 * g;
        *v = 0.99 * *v + 0.01 * g * g;
        x->value[t][i] -= lr * *m / (1 - pow(0.9, step))
                          / (sqrt(*v / (1 - pow(0.99, step))) + 1e-3);
    }
}

/* ---- the form of novograd: a tensor slot that reads itself ----------------------------------- */

static const pons_slot norm_slots[] = {
    { "m", PONS_SLOT_ELEMENT }, { "v", PONS_SLOT_TENSOR }, PONS_SLOTS_END
};

static pons_status norm_update(pons_graph *g, const void *config, const pons_parameter *p,
                               pons_error *err)
{
    pons_node *norm = pons_sum_all(g, pons_square(g, p->gradient)), *m, *v;

    v = pons_select(g, pons_equal(g, p->slot[1], pons_scalar(g, 0)), norm,
                    pons_lerp(g, norm, p->slot[1], 0.5));
    /* The old second moment is read per element as well. */
    m = pons_add(g, pons_scale(g, p->slot[0], 0.9),
                 pons_add(g, pons_div(g, p->gradient, pons_add_scalar(g, pons_sqrt(g, v), 1e-3)),
                          pons_scale(g, p->slot[1], 1e-3)));
    pons_assign(g, p->slot[0], m);
    pons_assign(g, p->slot[1], v);
    pons_assign(g, p->value, pons_sub(g, p->value, pons_mul(g, p->lr, m)));
    return pons_graph_status(g, err);
}

static void norm_loop(numbers *x, int t, int64_t count, int step, double lr)
{
    double sum = 0, old = x->slot[1][t][0], *v = &x->slot[1][t][0];

    for (int64_t i = 0; i < count; i++)
        sum += x->gradient[t][i] * x->gradient[t][i];
    *v = old == 0 ? sum : 0.5 * sum + 0.5 * old;
    for (int64_t i = 0; i < count; i++) {
        double *m = &x->slot[0][t][i];

        *m = 0.9 * *m + x->gradient[t][i] / (sqrt(*v) + 1e-3) + 1e-3 * old;
        x->value[t][i] -= lr * *m;
    }
}

/* ---- two levels of reduction, and expressions that depend on role or shape ------------------- */

static pons_status layer_update(pons_graph *g, const void *config, const pons_parameter *p,
                                pons_error *err)
{
    double decay = p->role == PONS_ROLE_WEIGHT ? 0.01 : 0.002;
    pons_node *mean = pons_mean_all(g, p->gradient);
    pons_node *centred = pons_sub(g, p->gradient, mean);
    pons_node *spread = pons_mean_all(g, pons_square(g, centred));
    pons_node *largest = pons_reduce_max(g, pons_abs(g, p->value), (1u << p->shape.rank) - 1);
    pons_node *change = pons_div(g, centred, pons_add_scalar(g, pons_sqrt(g, spread), 0.1));

    change = pons_add(g, change, pons_scale(g, p->value, decay));
    if (p->role == PONS_ROLE_BIAS)
        change = pons_neg(g, change);
    change = pons_mul(g, pons_mul(g, p->lr, largest), change);
    pons_assign(g, p->value, pons_sub(g, p->value, change));
    return pons_graph_status(g, err);
}

static void layer_loop(numbers *x, int t, int64_t count, int step, double lr)
{
    double mean = 0, spread = 0, largest = 0, sign = tensors[t].role == PONS_ROLE_BIAS ? -1 : 1;
    double decay = tensors[t].role == PONS_ROLE_WEIGHT ? 0.01 : 0.002;

    for (int64_t i = 0; i < count; i++) {
        mean += x->gradient[t][i] / (double)count;
        largest = fmax(largest, fabs(x->value[t][i]));
    }
    for (int64_t i = 0; i < count; i++)
        spread += pow(x->gradient[t][i] - mean, 2) / (double)count;
    for (int64_t i = 0; i < count; i++)
        x->value[t][i] -= lr * largest * sign * ((x->gradient[t][i] - mean) / (sqrt(spread) + 0.1)
                                                 + decay * x->value[t][i]);
}

static const pons_slot no_slots[] = { PONS_SLOTS_END };
static const pons_optimizer_operations adam = { .slots = adam_slots, .update = adam_update };
static const pons_optimizer_operations norm = { .slots = norm_slots, .update = norm_update };
static const pons_optimizer_operations layer = { .slots = no_slots, .update = layer_update };

static const optimizer_case cases[] = {
    { "adam", &adam, adam_loop, 2 },
    { "norm", &norm, norm_loop, 3 },
    /* The classes are the biases, the slope, whose mean is its sum, and the others. */
    { "layer", &layer, layer_loop, 5 + 4 + 5 },
};

/* ---- a program whose gradients are its inputs ------------------------------------------------ */

typedef struct bench {
    device device;
    storage *storage;
    program *program;
} bench;

static pons_error error;

static void bench_open(bench *b, const pons_optimizer_operations *operations, double ema)
{
    pons_graph *g = graph_new(true);
    pons_node *loss = NULL;
    program_settings s = { .precision = PRECISION_FP32, .micro_batches = 1, .accumulate = 1,
                           .optimizer = operations, .ema_decay = ema };

    error = (pons_error)PONS_ERROR_INIT;
    device_reference(&b->device, true);
    ck_assert_int_eq(storage_new(&b->device, &b->storage, &error), PONS_OK);
    for (int t = 0; t < TENSORS; t++) {
        pons_node *p = pons_parameter_leaf(g, tensors[t].name, tensors[t].role, tensors[t].shape,
                                           (pons_init){ PONS_INIT_UNIFORM, 1 });
        pons_node *in = node_input(g, tensors[t].name, PONS_F32, tensors[t].shape);
        pons_node *part = pons_sum_all(g, pons_mul(g, p, in));

        loss = loss != NULL ? pons_add(g, loss, part) : part;
    }
    ck_assert_msg(program_new(b->storage, &b->device, g, loss, 0, NULL, &s, &b->program, &error)
                  == PONS_OK, "%s", error.text);
    ck_assert_int_eq(storage_initialise(b->storage, 3, &error), PONS_OK);
}

static void bench_close(bench *b)
{
    program_free(b->program);
    storage_free(b->storage);
}

static void draw_gradients(bench *b, numbers *x, unsigned seed)
{
    for (int t = 0; t < TENSORS; t++) {
        double *in = program_input(b->program, tensors[t].name, NULL);

        for (int64_t i = 0; i < shape_count(tensors[t].shape); i++) {
            seed = seed * 1664525u + 1013904223u;
            in[i] = x->gradient[t][i] = (double)(seed >> 9) / (1 << 22) - 1;
        }
    }
}

static step_result step(bench *b, int number, double lr)
{
    step_result r;

    ck_assert_int_eq(program_step_begin(b->program, (uint64_t)number, &error), PONS_OK);
    ck_assert_int_eq(program_micro(b->program, 0, &error), PONS_OK);
    ck_assert_int_eq(program_step_finish(b->program, lr, &r, &error), PONS_OK);
    return r;
}

START_TEST(updates_agree_with_plain_loops)
{
    const optimizer_case *c = &cases[_i];
    static numbers x;
    bench b;

    memset(&x, 0, sizeof x);
    bench_open(&b, c->operations, 0);
    for (int t = 0; t < TENSORS; t++)
        memcpy(x.value[t], storage_item(b.storage, STORAGE_PARAMETER, t).memory,
               (size_t)shape_count(tensors[t].shape) * sizeof(double));
    for (int n = 1; n <= STEPS; n++) {
        draw_gradients(&b, &x, (unsigned)n);
        ck_assert(step(&b, n, 0.1 / n).applied);
        for (int t = 0; t < TENSORS; t++) {
            const double *value = storage_item(b.storage, STORAGE_PARAMETER, t).memory;

            c->loop(&x, t, shape_count(tensors[t].shape), n, 0.1 / n);
            for (int64_t i = 0; i < shape_count(tensors[t].shape); i++)
                ck_assert_double_eq_tol(value[i], x.value[t][i], 1e-12);
        }
    }
    bench_close(&b);
}
END_TEST

START_TEST(equal_expressions_share_kernels)
{
    program_facts facts;
    int count = 0;
    bench b;

    bench_open(&b, cases[_i].operations, 0.9);
    program_describe(b.program, &facts);
    for (int i = 0; i < facts.kernel_count; i++)
        count += program_kernel(b.program, i).section == SECTION_UPDATE;
    ck_assert_int_eq(count, cases[_i].kernels);
    bench_close(&b);
}
END_TEST

START_TEST(optimizer_slots_have_names_and_shapes)
{
    bench b;
    int elements = 0, numbers = 0;

    bench_open(&b, &norm, 0);
    ck_assert_int_eq(storage_count(b.storage, STORAGE_SLOT), 2 * TENSORS);
    for (int i = 0; i < 2 * TENSORS; i++) {
        storage_tensor t = storage_item(b.storage, STORAGE_SLOT, i);

        elements += t.shape.rank > 0 && strstr(t.name, ".m") != NULL;
        numbers += t.shape.rank == 0 && strstr(t.name, ".v") != NULL;
    }
    ck_assert_int_eq(elements, TENSORS);
    ck_assert_int_eq(numbers, TENSORS);
    bench_close(&b);
}
END_TEST

START_TEST(unused_optimizer_slots_take_no_memory)
{
    bench b;

    bench_open(&b, &adam, 0);
    ck_assert_int_eq(storage_count(b.storage, STORAGE_SLOT), 2 * TENSORS);
    bench_close(&b);
}
END_TEST

START_TEST(a_skipped_step_keeps_values_slots_and_averages)
{
    static numbers x;
    bench b, c;

    bench_open(&b, cases[_i].operations, 0.9);
    bench_open(&c, cases[_i].operations, 0.9);
    for (int n = 1; n <= 2; n++) {
        draw_gradients(&b, &x, (unsigned)n);
        draw_gradients(&c, &x, (unsigned)n);
        step(&b, n, 0.1);
        step(&c, n, 0.1);
    }
    ((double *)program_input(c.program, "b.scale", NULL))[129] = INFINITY;
    ck_assert(!step(&c, 3, 0.1).applied);
    for (int g = 0; g < STORAGE_GROUP_COUNT; g++)
        for (int i = 0; i < storage_count(b.storage, g); i++) {
            storage_tensor s = storage_item(b.storage, g, i), t = storage_item(c.storage, g, i);

            ck_assert_mem_eq(s.memory, t.memory, (size_t)shape_count(s.shape) * sizeof(double));
        }
    ck_assert_double_eq(storage_get(c.storage, STORAGE_APPLIED), 2);
    bench_close(&b);
    bench_close(&c);
}
END_TEST

/* ---- non-finite values ----------------------------------------------------------------------- */

/* Like adam with amsgrad the update keeps the larger of two values, which drops a NaN. */
static pons_status larger_update(pons_graph *g, const void *config, const pons_parameter *p,
                                 pons_error *err)
{
    pons_node *m = pons_max(g, p->slot[0], pons_square(g, p->gradient));
    pons_node *v = pons_max(g, p->slot[1], pons_sum_all(g, pons_square(g, p->gradient)));

    pons_assign(g, p->slot[0], m);
    pons_assign(g, p->slot[1], v);
    pons_assign(g, p->value, pons_sub(g, p->value, pons_div(g, p->gradient,
                                                           pons_add_scalar(g, m, 1))));
    return pons_graph_status(g, err);
}

static const pons_optimizer_operations larger = { .slots = norm_slots, .update = larger_update };

/* The name is that of tensor 't', followed by a dot or the end. */
static bool is_of(const char *name, int t)
{
    size_t length = strlen(tensors[t].name);

    return strncmp(name, tensors[t].name, length) == 0
           && (name[length] == '\0' || name[length] == '.');
}

/* The last element of each tensor that an update reads becomes NaN or infinity, one at a time. */
START_TEST(an_update_names_the_tensor_with_a_non_finite_value)
{
    static const pons_optimizer_operations *const operations[] = { &adam, &norm, &layer, &larger };
    static const double bad[] = { NAN, INFINITY };
    static numbers x;
    int items = 0;
    bench b;

    for (int g = 0; g < STORAGE_GROUP_COUNT; g++) {
        bench_open(&b, operations[_i / 2], 0.9);
        int count = storage_count(b.storage, g);
        bench_close(&b);
        for (int i = 0; i < count; i++, items++) {
            bench_open(&b, operations[_i / 2], 0.9);
            draw_gradients(&b, &x, 1);
            ck_assert_ptr_null(step(&b, 1, 0.1).nonfinite);
            storage_tensor t = storage_item(b.storage, g, i);
            ((double *)t.memory)[shape_count(t.shape) - 1] = bad[_i % 2];
            storage_changed(b.storage);
            draw_gradients(&b, &x, 2);
            const char *name = step(&b, 2, 0.1).nonfinite;
            ck_assert_msg(name != NULL, "'%s' is not found", t.name);
            for (int k = 0; k < TENSORS; k++)
                ck_assert_msg(is_of(t.name, k) == (strcmp(name, tensors[k].name) == 0),
                              "'%s' is named for '%s'", name, t.name);
            bench_close(&b);
        }
    }
    ck_assert_int_ge(items, 2 * TENSORS);
}
END_TEST

static pons_status partial_update(pons_graph *g, const void *config, const pons_parameter *p,
                                  pons_error *err)
{
    pons_assign(g, p->value, pons_sub(g, p->value, pons_sum(g, p->gradient, PONS_AXIS(0))));
    return pons_graph_status(g, err);
}

START_TEST(a_partial_reduction_in_an_update_is_refused_by_name)
{
    static const pons_optimizer_operations partial = { .slots = no_slots,
                                                       .update = partial_update };
    pons_graph *g = graph_new(true);
    pons_node *p = pons_parameter_leaf(g, "p.weight", PONS_ROLE_WEIGHT,
                                       (pons_shape){ 2, { 3, 4 } },
                                       (pons_init){ PONS_INIT_CONSTANT, 1 });
    program_settings s = { .precision = PRECISION_FP32, .optimizer = &partial };
    program *out = NULL;
    device d;
    storage *store;

    error = (pons_error)PONS_ERROR_INIT;
    device_reference(&d, true);
    ck_assert_int_eq(storage_new(&d, &store, &error), PONS_OK);
    ck_assert_int_eq(program_new(store, &d, g, pons_sum_all(g, pons_square(g, p)), 0, NULL, &s,
                                 &out, &error), PONS_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error.text, "'p.weight'"));
    ck_assert_ptr_nonnull(strstr(error.text, "whole tensor"));
    storage_free(store);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("update");
    int count = sizeof cases / sizeof cases[0];

    tcase_add_loop_test(c, updates_agree_with_plain_loops, 0, count);
    tcase_add_loop_test(c, equal_expressions_share_kernels, 0, count);
    tcase_add_test(c, optimizer_slots_have_names_and_shapes);
    tcase_add_test(c, unused_optimizer_slots_take_no_memory);
    tcase_add_loop_test(c, a_skipped_step_keeps_values_slots_and_averages, 0, count);
    tcase_add_loop_test(c, an_update_names_the_tensor_with_a_non_finite_value, 0, 8);
    tcase_add_test(c, a_partial_reduction_in_an_update_is_refused_by_name);
    return suite_run();
}
