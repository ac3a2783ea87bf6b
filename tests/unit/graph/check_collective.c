/*
 * check_collective.c - sums over replicas inside the graph: two replicas on two threads, joined by
 * a pairwise sum in memory, against one replica with all the images (R10).
 */
#include <math.h>
#include <pthread.h>
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
#include "support/tolerance.h"

enum { REPLICAS = 2, SLOTS = 32, VOXELS = 4 * 3 * 5, CHANNELS = 2 };

/* ---- the sums between the replicas ----------------------------------------------------------- */

typedef struct slot {
    double *part[REPLICAS];
    void *to[REPLICAS];
    int64_t count;
    int arrived, left;
} slot;

typedef struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    slot slot[SLOTS];
    bool broken;
} meeting;

typedef struct seat {
    meeting *meeting;
    int rank, next;
    int under_way, most;         /* sums with the same number between start and wait              */
    pons_type type;
    program_collective collective;
} seat;

static double number_at(pons_type type, const void *memory, int64_t i)
{
    return type == PONS_F64 ? ((const double *)memory)[i] : (double)((const float *)memory)[i];
}

static void number_put(pons_type type, void *memory, int64_t i, double value)
{
    if (type == PONS_F64)
        ((double *)memory)[i] = value;
    else
        ((float *)memory)[i] = (float)value;
}

static pons_status start_meeting_sum(void *context, void *buffer, int64_t count, pons_type type,
                                     void **pending, pons_error *err)
{
    seat *mine = context;
    slot *s = &mine->meeting->slot[mine->next++ % SLOTS];

    pthread_mutex_lock(&mine->meeting->lock);
    while (s->part[mine->rank] != NULL)
        pthread_cond_wait(&mine->meeting->changed, &mine->meeting->lock);
    s->part[mine->rank] = malloc(sizeof(double) * (size_t)count);
    for (int64_t i = 0; i < count; i++)
        s->part[mine->rank][i] = number_at(type, buffer, i);
    s->to[mine->rank] = buffer;
    s->count = count;
    s->arrived++;
    pthread_cond_broadcast(&mine->meeting->changed);
    pthread_mutex_unlock(&mine->meeting->lock);
    mine->type = type;
    mine->under_way += count == 1;
    mine->most = mine->under_way > mine->most ? mine->under_way : mine->most;
    *pending = s;
    return PONS_OK;
}

static void slot_clear(slot *s)
{
    for (int r = 0; r < REPLICAS; r++)
        free(s->part[r]);
    *s = (slot){ .count = 0 };
}

static pons_status finish_meeting_sum(void *context, void *pending, pons_error *err)
{
    seat *mine = context;
    meeting *m = mine->meeting;
    slot *s = pending;

    if (m->broken)
        return pons_fail(err, PONS_COMMUNICATION, "replica 1 has gone");
    pthread_mutex_lock(&m->lock);
    while (s->arrived < REPLICAS)
        pthread_cond_wait(&m->changed, &m->lock);
    mine->under_way -= s->count == 1;
    for (int64_t i = 0; i < s->count; i++)
        number_put(mine->type, s->to[mine->rank], i, s->part[0][i] + s->part[1][i]);
    if (++s->left == REPLICAS)
        slot_clear(s);
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    return PONS_OK;
}

static void take_seat(meeting *m, seat *s, int rank)
{
    *s = (seat){ .meeting = m, .rank = rank };
    s->collective = (program_collective){ REPLICAS, rank, s, start_meeting_sum, finish_meeting_sum,
        NULL, NULL };
}

/* ---- a network with synchronised batch statistics and a loss over all replicas --------------- */

#define SHAPE(...)                                                                                \
    pons_shape_make((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)),                  \
                    (int64_t[]){ __VA_ARGS__ })

static pons_node *layer(pons_graph *g, pons_node *x, const char *name, int64_t in, int64_t out)
{
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_node *w = pons_parameter_leaf(g, name, PONS_ROLE_WEIGHT, SHAPE(out, 3, 3, 3, in),
                                       (pons_init){ PONS_INIT_UNIFORM, 0.4 });

    for (int i = 0; i < 3; i++)
        c.pad_low[i] = c.pad_high[i] = 1;
    return pons_convolve(g, x, w, &c);
}

static pons_node *all_reduced(pons_graph *g, pons_node *x, bool sync)
{
    return sync ? pons_all_reduce(g, x) : x;
}

/*
 * The statistics over all replicas: the mean of means, then the mean of variance and squared
 * distance to it.
 */
static pons_node *joined_norm(pons_graph *g, pons_node *x, bool sync)
{
    pons_node *count = all_reduced(g, pons_scalar(g, 1), sync), *mean, *variance, *all;

    pons_moments(g, x, PONS_BATCH | PONS_SPATIAL, 0, &mean, &variance);
    all = pons_div(g, all_reduced(g, mean, sync), count);
    variance = pons_add(g, variance, pons_square(g, pons_sub(g, mean, all)));
    variance = pons_div(g, all_reduced(g, variance, sync), count);
    return pons_div(g, pons_sub(g, x, all), pons_sqrt(g, pons_add_scalar(g, variance, 1e-5)));
}

/* The sum of a mean over voxels and a Dice over all images. */
static pons_node *build_loss(pons_graph *g, pons_node *y, pons_node *target, bool sync)
{
    pons_node *p = pons_sigmoid(g, y);
    pons_node *both = all_reduced(g, pons_sum_all(g, pons_mul(g, p, target)), sync);
    pons_node *all = all_reduced(g, pons_sum_all(g, pons_add(g, p, pons_square(g, target))), sync);

    return pons_add(g, pons_mean_all(g, pons_square(g, pons_sub(g, y, target))),
                    pons_neg(g, pons_div(g, both, pons_add_scalar(g, all, 1))));
}

typedef struct replica {
    device device;
    storage *storage;
    program *program;
    seat seat;
    step_result result;
    pons_status status;
    pons_error error;
} replica;

/* Everything is synchronised, or all but the statistics, or all but the loss. */
typedef enum synchronised { ALL = 0, NOT_NORM, NOT_LOSS } synchronised;

static void replica_open(replica *r, const device *d, precision precision, int images, int count,
                         synchronised sync)
{
    pons_graph *g = graph_new(true);
    pons_node *x = node_input(g, "image", PONS_F32, SHAPE(images, 4, 3, 5, CHANNELS));
    pons_node *target = node_input(g, "target", PONS_F32, SHAPE(images, 4, 3, 5, 1));
    program_settings settings = { .precision = precision, .micro_batches = count,
        .accumulate = 1, .optimizer = &descent, .seed = 3,
        .collective = count > 1 ? &r->seat.collective : NULL };
    pons_error err = PONS_ERROR_INIT;

    x = pons_tanh(g, joined_norm(g, layer(g, x, "first", CHANNELS, 3), sync != NOT_NORM));
    x = build_loss(g, layer(g, x, "second", 3, 1), target, sync != NOT_LOSS);
    r->device = *d;
    ck_assert_int_eq(storage_new(d, &r->storage, &err), PONS_OK);
    ck_assert_msg(program_new(r->storage, d, g, x, 0, NULL, &settings, &r->program, &err)
                  == PONS_OK, "%s", err.text);
    ck_assert_int_eq(storage_initialise(r->storage, 1, &err), PONS_OK);
}

static void replica_close(replica *r)
{
    program_free(r->program);
    storage_free(r->storage);
}

static void fill_replica_input(replica *r, const char *name, int64_t first)
{
    pons_tensor t;
    void *memory = program_input(r->program, name, &t);

    for (int64_t i = 0; i < shape_count(t.shape); i++)
        number_put(t.type, memory, i, sin(1.3 * (double)(first + i) * (double)(first + i + 1)));
}

/* Run one step; the replica's images follow those of the replicas before it. */
static void *run_replica(void *context)
{
    replica *r = context;

    fill_replica_input(r, "image", r->seat.rank * VOXELS * CHANNELS);
    fill_replica_input(r, "target", r->seat.rank * VOXELS);
    r->error = (pons_error)PONS_ERROR_INIT;
    r->status = program_step_begin(r->program, 0, &r->error);
    if (r->status == PONS_OK)
        r->status = program_micro(r->program, (uint64_t)r->seat.rank, &r->error);
    if (r->status == PONS_OK)
        r->status = program_step_finish(r->program, 0, &r->result, &r->error);
    return NULL;
}

/* One replica has both images; two replicas have one image each. */
typedef struct comparison {
    meeting meeting;
    replica whole, part[REPLICAS];
} comparison;

static void compare_open(comparison *c, const device *d, precision precision, synchronised sync)
{
    memset(c, 0, sizeof *c);
    pthread_mutex_init(&c->meeting.lock, NULL);
    pthread_cond_init(&c->meeting.changed, NULL);
    replica_open(&c->whole, d, precision, REPLICAS, 1, ALL);
    for (int r = 0; r < REPLICAS; r++) {
        take_seat(&c->meeting, &c->part[r].seat, r);
        replica_open(&c->part[r], d, precision, 1, REPLICAS, sync);
    }
}

static void compare_run(comparison *c)
{
    pthread_t thread[REPLICAS];

    run_replica(&c->whole);
    for (int r = 0; r < REPLICAS; r++)
        ck_assert_int_eq(pthread_create(&thread[r], NULL, run_replica, &c->part[r]), 0);
    for (int r = 0; r < REPLICAS; r++)
        pthread_join(thread[r], NULL);
}

static void compare_close(comparison *c)
{
    replica_close(&c->whole);
    for (int r = 0; r < REPLICAS; r++)
        replica_close(&c->part[r]);
    for (int i = 0; i < SLOTS; i++)
        slot_clear(&c->meeting.slot[i]);
}

/* Largest difference of a gradient, relative to its largest element. */
static double gradient_difference(const comparison *c, int parameter)
{
    storage_tensor p = storage_item(c->whole.storage, STORAGE_PARAMETER, parameter);
    pons_type type = storage_type(c->whole.storage);
    const void *whole = program_gradient(c->whole.program, p.name);
    double most = 0, apart = 0;

    for (int64_t i = 0; i < shape_count(p.shape); i++) {
        double expected = number_at(type, whole, i);

        most = fmax(most, fabs(expected));
        for (int r = 0; r < REPLICAS; r++) {
            double sum = number_at(type, program_gradient(c->part[r].program, p.name), i);
            apart = fmax(apart, fabs(sum / REPLICAS - expected));
        }
    }
    ck_assert_double_gt(most, 0);
    return apart / most;
}

/* Largest relative difference of the loss and the gradients. */
static double largest_difference(const comparison *c)
{
    double whole = c->whole.result.loss, most = 0;

    for (int r = 0; r < REPLICAS; r++) {
        ck_assert_msg(c->part[r].status == PONS_OK, "%s", c->part[r].error.text);
        most = fmax(most, fabs(c->part[r].result.loss - whole) / fabs(whole));
    }
    for (int i = 0; i < storage_count(c->whole.storage, STORAGE_PARAMETER); i++)
        most = fmax(most, gradient_difference(c, i));
    return most;
}

static double difference_on(const device *d, precision precision, synchronised sync)
{
    comparison c;
    double most;

    compare_open(&c, d, precision, sync);
    compare_run(&c);
    most = largest_difference(&c);
    compare_close(&c);
    return most;
}

START_TEST(two_replicas_equal_one_with_all_images_in_double)
{
    device d;

    device_reference(&d, true);
    ck_assert_double_le(difference_on(&d, PRECISION_FP32, ALL), DOUBLE_ABSOLUTE);
}
END_TEST

START_TEST(missing_sums_of_statistics_or_loss_are_detected)
{
    device d;

    device_reference(&d, true);
    ck_assert_double_gt(difference_on(&d, PRECISION_FP32, NOT_NORM), 1e-4);
    ck_assert_double_gt(difference_on(&d, PRECISION_FP32, NOT_LOSS), 1e-4);
}
END_TEST

static void open_cpu(device *d)
{
    pons_device_settings one = { .index = 0, .count = 1, .threads = 1 };
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg(device_open("cpu", &one, NULL, d, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(device_attach(d, &err), PONS_OK);
}

START_TEST(fused_cpu_replicas_equal_one_with_all_images)
{
    device d;

    open_cpu(&d);
    ck_assert_double_le(difference_on(&d, PRECISION_FP32, ALL), GRADIENT_OF_LARGEST);
    device_close(&d);
}
END_TEST

START_TEST(sums_are_of_f32_in_a_bf16_program)
{
    device d;
    comparison c;

    open_cpu(&d);
    compare_open(&c, &d, PRECISION_BF16, ALL);
    compare_run(&c);
    ck_assert_int_eq(c.part[0].seat.type, PONS_F32);
    ck_assert_double_le(largest_difference(&c), BF16_OF_LARGEST);
    compare_close(&c);
    device_close(&d);
}
END_TEST

/* ---- number, order and failure of the sums --------------------------------------------------- */

static int count_sums(const program *p, const char *half)
{
    program_facts facts;
    int count = 0;

    program_describe(p, &facts);
    for (int i = 0; i < facts.kernel_count; i++) {
        kernel_facts k = program_kernel(p, i);
        count += strcmp(k.kind, "all_reduce") == 0 && strstr(k.name, half) != NULL;
    }
    return count;
}

/*
 * The norm and the loss have two sums each, forward and backward; a sum of a constant is a
 * constant.
 */
START_TEST(each_sum_has_a_start_and_a_wait_and_one_replica_has_none)
{
    comparison c;
    device d;

    device_reference(&d, true);
    compare_open(&c, &d, PRECISION_FP32, ALL);
    ck_assert_int_eq(count_sums(c.part[0].program, ": start"), 8);
    ck_assert_int_eq(count_sums(c.part[0].program, ": wait"), 8);
    ck_assert_int_eq(count_sums(c.whole.program, ""), 0);
    compare_close(&c);
}
END_TEST

START_TEST(both_sums_of_the_loss_are_in_flight_together)
{
    comparison c;
    device d;

    device_reference(&d, true);
    compare_open(&c, &d, PRECISION_FP32, ALL);
    compare_run(&c);
    for (int r = 0; r < REPLICAS; r++) {
        ck_assert_int_ge(c.part[r].seat.most, 2);
        ck_assert_int_eq(c.part[r].seat.under_way, 0);
    }
    compare_close(&c);
}
END_TEST

START_TEST(a_failed_sum_ends_the_step_with_its_error)
{
    comparison c;
    device d;

    device_reference(&d, true);
    compare_open(&c, &d, PRECISION_FP32, ALL);
    c.meeting.broken = true;
    run_replica(&c.part[0]);
    ck_assert_int_eq(c.part[0].status, PONS_COMMUNICATION);
    ck_assert_str_eq(c.part[0].error.text, "replica 1 has gone");
    compare_close(&c);
}
END_TEST

START_TEST(all_reduce_of_integers_is_refused)
{
    pons_graph *g = graph_new(true);
    pons_error err = PONS_ERROR_INIT;

    pons_all_reduce(g, node_input(g, "label", PONS_U8, SHAPE(2, 3)));
    ck_assert_int_eq(pons_graph_status(g, &err), PONS_PLUGIN);
    ck_assert_str_eq(err.text, "'all_reduce': sums are of f32: cast the operand");
    graph_free(g);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("collective");

    tcase_add_test(c, two_replicas_equal_one_with_all_images_in_double);
    tcase_add_test(c, missing_sums_of_statistics_or_loss_are_detected);
    tcase_add_test(c, fused_cpu_replicas_equal_one_with_all_images);
    tcase_add_test(c, sums_are_of_f32_in_a_bf16_program);
    tcase_add_test(c, each_sum_has_a_start_and_a_wait_and_one_replica_has_none);
    tcase_add_test(c, both_sums_of_the_loss_are_in_flight_together);
    tcase_add_test(c, a_failed_sum_ends_the_step_with_its_error);
    tcase_add_test(c, all_reduce_of_integers_is_refused);
    return suite_run();
}
