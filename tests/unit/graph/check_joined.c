/*
 * check_joined.c - the sums that [distribute] sync_batchnorm and [loss] sync join: the batch norm
 * of models and every loss plugin. Two replicas, joined as in a process, run against one replica
 * with all the cases (R10). Values, gradients and running statistics are compared.
 */
#include "support/graph/descent.h"
#include "support/graph/golden_program.h"
#include "support/must.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <string.h>

#include "device/device_open.h"
#include "device/local_comm.h"
#include "device/replica_threads.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/node.h"
#include "graph/ir/shape.h"

#define SHAPE(...)                                                                                \
    pons_shape_make((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),                  \
                    (int64_t[]){ __VA_ARGS__ })

enum { REPLICAS = 2, CLASSES = 3, CHANNELS = 2, WIDTH = 4, PLACES = 3 * 4 * 5 };

static const struct trial {
    const char *loss, *options;
    bool regions, masked;
    bool joins;               /* the loss alone differs without joined sums                       */
} trials[] = {
    { "dice", "{}", false, false, false },
    { "dice", "{\"batch\":true}", false, false, true },
    { "dice", "{\"batch\":true,\"squared_pred\":true,\"include_background\":false}", false, true,
      true },
    { "dice", "{\"jaccard\":true,\"weight\":[1,2,3],\"reduction\":\"sum\"}", true, false, true },
    { "dice", "{\"batch\":true,\"reduction\":\"sum\"}", true, true, true },
    { "dice_ce", "{}", false, false, false },
    { "dice_ce", "{}", false, true, true },
    { "dice_ce", "{\"weight\":[0.5,1,2],\"label_smoothing\":0.1}", false, false, true },
    { "dice_ce", "{\"batch\":true,\"weight\":[0.5,1,2]}", false, true, true },
    { "dice_ce", "{\"reduction\":\"sum\"}", false, false, true },
    { "dice_focal", "{}", true, true, false },
    { "dice_focal", "{\"batch\":true,\"gamma\":3,\"alpha\":[0.3]}", false, false, true },
    { "dice_focal", "{\"reduction\":\"sum\",\"weight\":[1,2,3]}", true, true, true },
    { "generalized_dice", "{\"batch\":true}", false, false, true },
    { "tversky", "{\"batch\":true,\"alpha\":0.3}", true, true, true },
    { "focal", "{}", false, true, false },
    { "cross_entropy", "{\"ignore_index\":1}", false, true, true },
    { "bce", "{\"pos_weight\":[1,2,3]}", true, true, true },
    { "mse", "{}", false, false, false },
    { "l1", "{\"reduction\":\"sum\"}", true, false, true },
    { "nnunet", "{\"batch_dice\":true}", false, false, true },
    { "nnunet", "{\"batch_dice\":true}", true, true, true },
};
enum { TRIALS = sizeof trials / sizeof *trials };

/* ---- the network ----------------------------------------------------------------------------- */

/* Number of replicas, cases of each replica, and the parts that are joined. */
typedef struct arrangement {
    int replicas, cases;
    bool norms, loss;
    double offset;            /* of the images                                                    */
} arrangement;

static pons_node *parameter(pons_graph *g, const char *name, pons_role role, pons_shape shape,
                            double bound)
{
    return pons_parameter_leaf(g, name, role, shape, (pons_init){ PONS_INIT_UNIFORM, bound });
}

static pons_node *build_network(pons_graph *g, pons_node *x)
{
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_node *mean = pons_state_leaf(g, "running_mean", SHAPE(WIDTH), 0);
    pons_node *variance = pons_state_leaf(g, "running_var", SHAPE(WIDTH), 1);
    pons_node *w = parameter(g, "first", PONS_ROLE_WEIGHT, SHAPE(WIDTH, 1, 1, 1, CHANNELS), 1);
    pons_node *b = parameter(g, "bias", PONS_ROLE_BIAS, SHAPE(WIDTH), 1);

    x = pons_add(g, pons_convolve(g, x, w, &c), b);
    x = pons_batch_norm(g, x, parameter(g, "scale", PONS_ROLE_NORM_SCALE, SHAPE(WIDTH), 2),
                        parameter(g, "shift", PONS_ROLE_NORM_SHIFT, SHAPE(WIDTH), 1), mean,
                        variance, 0.1, 1e-5);
    x = pons_prelu(g, x, parameter(g, "slope", PONS_ROLE_SLOPE, SHAPE(1), 0.5));
    w = parameter(g, "second", PONS_ROLE_WEIGHT, SHAPE(CLASSES, 1, 1, 1, WIDTH), 1);
    return pons_convolve(g, x, w, &c);
}

static pons_node *build(const golden_plugin *plugin, const struct trial *t, const arrangement *a,
                        pons_graph *g)
{
    const pons_loss_operations *loss = plugin->plugin->operations;
    pons_node *x = node_input(g, "image", PONS_F32, SHAPE(a->cases, 3, 4, 5, CHANNELS)), *value;
    pons_task task = { .size = sizeof task, .channels = CHANNELS, .classes = CLASSES,
                       .flat_axis = -1,
                       .target = t->regions ? PONS_TARGET_REGIONS : PONS_TARGET_LABELS };
    pons_target target = { .activation = t->regions ? PONS_ACTIVATION_SIGMOID
                                                    : PONS_ACTIVATION_SOFTMAX };

    g->join_norms = a->norms;
    g->join_loss = a->loss;
    target.node = node_input(g, "target", PONS_U8,
                             SHAPE(a->cases, 3, 4, 5, t->regions ? CLASSES : 1));
    if (t->masked)
        target.valid = node_input(g, "valid", PONS_U8, SHAPE(a->cases, 3, 4, 5, 1));
    x = build_network(g, x);
    g->scope = SCOPE_LOSS;
    MUST(loss->build(g, plugin->options, &task, x, &target, &value, &error));
    return value;
}

/* ---- replicas -------------------------------------------------------------------------------- */

typedef struct part {
    storage *storage;
    program *program;
    step_result result;
} part;

typedef struct team {
    arrangement arrangement;
    golden_plugin plugin;
    json_t *options;
    device device;
    local_comm *comm;
    replica_threads *replica_threads;
    part part[REPLICAS];
} team;

/* Fill the values of all cases in order; the replica's part begins at its first case. */
static void fill(const team *m, int number)
{
    static const char *const names[] = { "image", "target", "valid" };

    for (int k = 0; k < 3; k++) {
        pons_tensor tensor;
        void *memory = program_input(m->part[number].program, names[k], &tensor);
        int64_t count = memory != NULL ? shape_count(tensor.shape) : 0, first = count * number;
        int range = k == 2 ? 2 : tensor.shape.extent[4] > 1 ? 2 : CLASSES;

        for (int64_t i = 0; i < count; i++) {
            double at = (double)(first + i), value = sin(1.3 * at * (at + 1)) + (at > 150);
            if (k > 0)
                ((uint8_t *)memory)[i] = (uint8_t)((int)(7 * (value + 2) + (double)k) % range);
            else if (tensor.type == PONS_F64)
                ((double *)memory)[i] = value + m->arrangement.offset;
            else
                ((float *)memory)[i] = (float)(value + m->arrangement.offset);
        }
    }
}

static void start_replica(void *context, int number)
{
    local_comm_abort(((team *)context)->comm, number);
}

static void team_open(team *m, const struct trial *t, const arrangement *a, const golden_mode *mode)
{
    *m = (team){ .arrangement = *a };
    MUST(json_parse(t->options, strlen(t->options), "options", PONS_DATA, &m->options, &error));
    golden_load(&m->plugin, PONS_KIND_LOSS, t->loss, sizeof(pons_loss_operations), m->options,
                false);
    golden_device(mode, &m->device);
    MUST(local_comm_new(a->replicas, &m->comm, &error));
    MUST(replica_threads_open(a->replicas, start_replica, m, &m->replica_threads, &error));
    for (int r = 0; r < a->replicas; r++) {
        program_settings settings = golden_settings(mode);
        pons_graph *g = graph_new(true);

        settings.micro_batches = a->replicas;
        settings.optimizer = &descent;
        settings.collective = a->replicas > 1 ? local_comm_collective(m->comm, r) : NULL;
        settings.bucket = 64;
        MUST(storage_new(&m->device, &m->part[r].storage, &error));
        MUST(program_new(m->part[r].storage, &m->device, g, build(&m->plugin, t, a, g), 0, NULL,
                         &settings, &m->part[r].program, &error));
        MUST(storage_initialise(m->part[r].storage, 5, &error));
        fill(m, r);
    }
}

static void team_close(team *m)
{
    replica_threads_close(m->replica_threads);
    for (int r = 0; r < m->arrangement.replicas; r++) {
        program_free(m->part[r].program);
        storage_free(m->part[r].storage);
    }
    local_comm_free(m->comm);
    device_close(&m->device);
    golden_unload(&m->plugin);
    json_decref(m->options);
}

static pons_status step(void *context, int number, pons_error *err)
{
    part *p = &((team *)context)->part[number];

    if (program_step_begin(p->program, 0, err) != PONS_OK
        || program_micro(p->program, (uint64_t)number, err) != PONS_OK)
        return err->status;
    return program_step_finish(p->program, 0, &p->result, err);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static double number_at(const part *p, const void *memory, int64_t i)
{
    return storage_type(p->storage) == PONS_F64 ? ((const double *)memory)[i]
                                                : (double)((const float *)memory)[i];
}

/*
 * Relative differences. Gradients and states are relative to their tensor's largest element, or to
 * 1 % of the network's (R32).
 */
typedef struct difference {
    double loss, gradient, states;
} difference;

static double largest_gradient(const part *p)
{
    double most = 0;

    for (int i = 0; i < storage_count(p->storage, STORAGE_PARAMETER); i++) {
        storage_tensor t = storage_item(p->storage, STORAGE_PARAMETER, i);
        for (int64_t k = 0; k < shape_count(t.shape); k++)
            most = fmax(most, fabs(number_at(p, program_gradient(p->program, t.name), k)));
    }
    return most;
}

/*
 * Largest difference of 'one' from 'other' times 'factor', relative to the largest element or to
 * 'floor'.
 */
static double relative_gap(const part *p, pons_shape shape, const void *one, const void *other,
                           double factor, double floor)
{
    double most = floor, gap = 0;

    for (int64_t k = 0; k < shape_count(shape); k++) {
        most = fmax(most, fabs(number_at(p, one, k)));
        gap = fmax(gap, fabs(number_at(p, other, k) * factor - number_at(p, one, k)));
    }
    return gap / most;
}

static difference compare(const team *whole, const team *shared)
{
    const part *one = &whole->part[0];
    double floor = 0.01 * largest_gradient(one);
    difference d = { 0, 0, 0 };

    for (int r = 0; r < REPLICAS; r++) {
        const part *other = &shared->part[r];

        d.loss = fmax(d.loss, fabs(other->result.loss - one->result.loss)
                              / fabs(one->result.loss));
        for (int i = 0; i < storage_count(one->storage, STORAGE_PARAMETER); i++) {
            storage_tensor t = storage_item(one->storage, STORAGE_PARAMETER, i);
            d.gradient = fmax(d.gradient, relative_gap(one, t.shape,
                                                       program_gradient(one->program, t.name),
                                                       program_gradient(other->program, t.name),
                                                       1.0 / REPLICAS, floor));
        }
        for (int i = 0; i < storage_count(one->storage, STORAGE_STATE); i++) {
            storage_tensor t = storage_item(one->storage, STORAGE_STATE, i);
            d.states = fmax(d.states, relative_gap(one, t.shape, t.memory,
                                                   storage_item(other->storage, STORAGE_STATE,
                                                                i).memory,
                                                   1, 0));
        }
    }
    return d;
}

/* The difference of several replicas with 'cases' each from one replica with all cases. */
static difference run(const struct trial *t, arrangement a, const golden_mode *mode,
                      void (*look)(const team *shared))
{
    arrangement all = { 1, REPLICAS * a.cases, false, false, a.offset };
    team whole, shared;
    difference d;

    team_open(&whole, t, &all, mode);
    team_open(&shared, t, &a, mode);
    MUST(replica_threads_run(whole.replica_threads, step, &whole, &error));
    MUST(replica_threads_run(shared.replica_threads, step, &shared, &error));
    d = compare(&whole, &shared);
    if (look != NULL)
        look(&shared);
    team_close(&whole);
    team_close(&shared);
    return d;
}

static void check_within(const struct trial *t, difference d, double loss, double gradient)
{
    ck_assert_msg(d.loss <= loss, "%s %s: loss differs by %g", t->loss, t->options, d.loss);
    ck_assert_msg(d.gradient <= gradient, "%s %s: gradients differ by %g", t->loss, t->options,
                  d.gradient);
    ck_assert_msg(d.states <= gradient, "%s %s: running statistics differ by %g", t->loss,
                  t->options, d.states);
}

START_TEST(two_joined_replicas_equal_one_with_all_cases_in_double)
{
    for (int cases = 1; cases <= 2; cases++) {
        arrangement a = { REPLICAS, cases, true, true, 0 };

        check_within(&trials[_i], run(&trials[_i], a, &golden_modes[0], NULL), DOUBLE_ABSOLUTE,
                     DOUBLE_ABSOLUTE);
    }
}
END_TEST

/*
 * Float kernels differ in the order of their sums; the bounds are those of golden losses and
 * networks.
 */
START_TEST(fused_joined_replicas_equal_one_with_all_cases)
{
    for (int mode = 2; mode < golden_mode_count; mode++) {
        arrangement a = { REPLICAS, 2, true, true, 0 };

        check_within(&trials[_i], run(&trials[_i], a, &golden_modes[mode], NULL), LOSS_RELATIVE,
                     GRADIENT_OF_LARGEST);
    }
}
END_TEST

START_TEST(missing_sums_of_norms_and_losses_are_detected)
{
    const struct trial *t = &trials[_i];
    difference norms = run(t, (arrangement){ REPLICAS, 1, false, true, 0 }, &golden_modes[0], NULL);
    difference loss = run(t, (arrangement){ REPLICAS, 1, true, false, 0 }, &golden_modes[0], NULL);

    ck_assert_double_gt(norms.loss, 1e-4);
    ck_assert_double_gt(norms.gradient, 1e-3);
    ck_assert_double_gt(norms.states, 1e-4);
    if (t->joins)
        ck_assert_double_gt(loss.loss, 1e-5);
    else
        check_within(t, loss, DOUBLE_ABSOLUTE, DOUBLE_ABSOLUTE);
}
END_TEST

/*
 * The images are far from zero. In float the mean of squares minus the square of the mean would
 * lose every digit of the variance: 1e4^2 x 2^-24 = 6 beside a variance near 1.
 */
START_TEST(variance_survives_a_mean_far_from_zero)
{
    arrangement a = { REPLICAS, 2, true, true, 1e4 };
    difference d = run(&trials[5], a, &golden_modes[1], NULL);

    /* The images themselves are rounded to 2^-24 x 1e4 = 6e-4 of a deviation near 1. */
    ck_assert_double_le(d.states, 2e-3);
}
END_TEST

static program_nonfinite nonfinite[REPLICAS];

static pons_status find_nonfinite(void *context, int number, pons_error *err)
{
    return program_find_nonfinite(((team *)context)->part[number].program, (uint64_t)number,
                                  &nonfinite[number], err);
}

/*
 * The replica with the non-finite value finds it at once; the other one still waits for its sums.
 */
START_TEST(a_non_finite_value_of_one_replica_is_found_on_both)
{
    arrangement a = { REPLICAS, 1, true, true, 0 };
    team m;

    team_open(&m, &trials[1], &a, &golden_modes[3]);
    ((float *)program_input(m.part[1].program, "image", &(pons_tensor){ 0 }))[7] = NAN;
    MUST(replica_threads_run(m.replica_threads, step, &m, &error));
    for (int r = 0; r < REPLICAS; r++)
        ck_assert(!m.part[r].result.applied);
    MUST(replica_threads_run(m.replica_threads, find_nonfinite, &m, &error));
    ck_assert_str_eq(nonfinite[1].name, "image");
    ck_assert_ptr_nonnull(nonfinite[0].name);
    ck_assert_ptr_nonnull(strstr(nonfinite[0].name, ": wait"));
    ck_assert_int_lt(nonfinite[1].index, nonfinite[0].index);
    ((float *)program_input(m.part[1].program, "image", &(pons_tensor){ 0 }))[7] = 0;
    MUST(replica_threads_run(m.replica_threads, find_nonfinite, &m, &error));
    for (int r = 0; r < REPLICAS; r++)
        ck_assert_msg(nonfinite[r].name == NULL, "'%s' is whole and finite", nonfinite[r].name);
    team_close(&m);
}
END_TEST

static void look_at_bias(const team *shared)
{
    for (int r = 0; r < REPLICAS; r++) {
        const part *p = &shared->part[r];
        const void *bias = program_gradient(p->program, "bias");

        for (int k = 0; k < WIDTH; k++)
            ck_assert_double_eq(number_at(p, bias, k), 0);
    }
}

START_TEST(bias_before_a_joined_norm_has_an_exact_zero_gradient)
{
    for (int mode = 0; mode < golden_mode_count; mode++)
        run(&trials[5], (arrangement){ REPLICAS, 1, true, true, 0 }, &golden_modes[mode],
            look_at_bias);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("joined");

    tcase_add_loop_test(c, two_joined_replicas_equal_one_with_all_cases_in_double, 0, TRIALS);
    tcase_add_loop_test(c, fused_joined_replicas_equal_one_with_all_cases, 0, TRIALS);
    tcase_add_loop_test(c, missing_sums_of_norms_and_losses_are_detected, 0, TRIALS);
    tcase_add_test(c, variance_survives_a_mean_far_from_zero);
    tcase_add_test(c, a_non_finite_value_of_one_replica_is_found_on_both);
    tcase_add_test(c, bias_before_a_joined_norm_has_an_exact_zero_gradient);
    return suite_run();
}
