/*
 * check_passes.c - the memory traffic of a training step. A counting device wraps another device's
 * kernels and adds up the bytes of their operands at every call. Three layers of convolution, norm
 * and prelu must take R14's four passes each, and explain must predict the bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "device/device_open.h"
#include "graph/program/program.h"

#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/shape.h"
#include "graph/program/explain.h"
#include "support/graph/descent.h"
#include "support/suite.h"

enum { LAYERS = 3, CHANNELS = 16, EXTENT = 8, CASES = 2 };

static const int64_t volume = (int64_t)CASES * EXTENT * EXTENT * EXTENT * CHANNELS;

/* ---- the counting device --------------------------------------------------------------------- */

typedef struct counts {
    uint64_t bytes;             /* of all operands of map kernels                                 */
    int passes;                 /* map kernels with a volume among their operands                 */
    int reads, writes;          /* volumes                                                        */
} counts;

typedef struct counter {
    pons_device_operations operations;
    device inner;
    counts counts;
} counter;

/* The counted device is global because its operations have no context. */
static counter current;

typedef struct counted {
    pons_kernel inner;
    const pons_request *request;
} counted;

static size_t bytes_of(const pons_tensor *t)
{
    return (size_t)shape_count(t->shape) * type_size(t->type);
}

static void count(const pons_request *r)
{
    int reads = 0, writes = 0;

    if (r->kind != PONS_KERNEL_MAP)
        return;
    for (int i = 0; i < r->input_count; i++) {
        current.counts.bytes += bytes_of(&r->input[i]);
        reads += shape_count(r->input[i].shape) == volume;
    }
    for (int i = 0; i < r->output_count; i++) {
        current.counts.bytes += bytes_of(&r->output[i]);
        writes += shape_count(r->output[i].shape) == volume;
    }
    current.counts.reads += reads;
    current.counts.writes += writes;
    current.counts.passes += reads + writes > 0;
}

static pons_status counted_run(const pons_kernel *kernel, const pons_call *call, pons_error *err)
{
    const counted *c = kernel->state;

    count(c->request);
    return c->inner.run(&c->inner, call, err);
}

static pons_status counted_pack(const pons_kernel *kernel, int input, const void *from, void *to,
                                pons_error *err)
{
    const counted *c = kernel->state;
    return c->inner.pack(&c->inner, input, from, to, err);
}

static void counted_free(pons_kernel *kernel)
{
    counted *c = kernel->state;

    if (c->inner.free != NULL)
        c->inner.free(&c->inner);
    free(c);
}

static pons_status counted_prepare(void *handle, const pons_request *request, pons_kernel *kernel,
                                   bool *supported, pons_error *err)
{
    counted *c = calloc(1, sizeof *c);
    pons_status status;

    ck_assert_ptr_nonnull(c);
    c->request = request;
    status = current.inner.operations->prepare(handle, request, &c->inner, supported, err);
    if (status != PONS_OK || !*supported) {
        free(c);
        return status;
    }
    *kernel = c->inner;
    kernel->state = c;
    kernel->run = counted_run;
    kernel->free = counted_free;
    kernel->pack = c->inner.pack == NULL ? NULL : counted_pack;
    return PONS_OK;
}

static device counting_device(void)
{
    pons_device_settings settings = { .index = 0, .count = 1, .threads = 1 };
    pons_error err = PONS_ERROR_INIT;
    device d;

    memset(&current, 0, sizeof current);
    ck_assert_msg(device_open("cpu", &settings, NULL, &current.inner, &err) == PONS_OK, "%s",
                  err.text);
    current.operations = *current.inner.operations;
    current.operations.prepare = counted_prepare;
    d = current.inner;
    d.operations = &current.operations;
    return d;
}

/* ---- the network ----------------------------------------------------------------------------- */

/* JOINED is a batch norm over two replicas. */
typedef enum norm_kind { INSTANCE = 0, BATCH, JOINED, NORMS } norm_kind;

static pons_shape vector_of(int64_t n)
{
    return pons_shape_make(1, &n);
}

static pons_node *layer(pons_graph *g, pons_node *x, int number, norm_kind norm)
{
    pons_init uniform = { PONS_INIT_UNIFORM, 0.1 }, zero = { PONS_INIT_CONSTANT, 0 };
    pons_init one = { PONS_INIT_CONSTANT, 1 }, slope = { PONS_INIT_CONSTANT, 0.25 };
    pons_convolution c = PONS_CONVOLUTION_INIT;
    int64_t weight[] = { CHANNELS, 3, 3, 3, pons_shape_of(x).extent[4] };
    pons_shape vector = vector_of(CHANNELS);

    for (int i = 0; i < 3; i++)
        c.pad_low[i] = c.pad_high[i] = 1;
    x = pons_convolve(g, x, pons_parameter_leaf(g, pons_name(g, "%d.weight", number),
                                                PONS_ROLE_WEIGHT, pons_shape_make(5, weight),
                                                uniform), &c);
    x = pons_add(g, x, pons_parameter_leaf(g, pons_name(g, "%d.bias", number), PONS_ROLE_BIAS,
                                           vector, zero));
    if (norm != INSTANCE)
        x = pons_batch_norm(g, x,
                            pons_parameter_leaf(g, pons_name(g, "%d.scale", number),
                                                PONS_ROLE_NORM_SCALE, vector, one),
                            pons_parameter_leaf(g, pons_name(g, "%d.shift", number),
                                                PONS_ROLE_NORM_SHIFT, vector, zero),
                            pons_state_leaf(g, pons_name(g, "%d.mean", number), vector, 0),
                            pons_state_leaf(g, pons_name(g, "%d.variance", number), vector, 1),
                            0.1, 1e-5);
    else
        x = pons_instance_norm(g, x, NULL, NULL, 1e-5);
    return pons_prelu(g, x, pons_parameter_leaf(g, pons_name(g, "%d.slope", number),
                                                PONS_ROLE_SLOPE, vector_of(1), slope));
}

/* The sum over two replicas with equal values. */
static pons_status double_buffer(void *context, void *buffer, int64_t n, pons_type type,
                                 void **pending, pons_error *err)
{
    for (int64_t i = 0; i < n; i++)
        ((float *)buffer)[i] *= 2;
    return PONS_OK;
}

static pons_status wait_for_none(void *context, void *pending, pons_error *err)
{
    return PONS_OK;
}

static const program_collective twins = { 2, 0, NULL, double_buffer, wait_for_none, NULL, NULL };

/* Bytes that explain predicts for the map kernels of the micro section. */
static uint64_t predicted_bytes(const program *p)
{
    program_facts facts;
    uint64_t bytes = 0;

    program_describe(p, &facts);
    for (int i = 0; i < facts.kernel_count; i++) {
        kernel_facts k = program_kernel(p, i);
        if (k.section == SECTION_MICRO && strcmp(k.kind, "map") == 0)
            bytes += k.bytes;
    }
    return bytes;
}

static counts run_step(norm_kind norm, precision how, uint64_t *bytes)
{
    device d = counting_device();
    pons_error err = PONS_ERROR_INIT;
    pons_graph *g = graph_new(true);
    int64_t image[] = { CASES, EXTENT, EXTENT, EXTENT, 4 };
    pons_node *x = node_input(g, "image", PONS_F32, pons_shape_make(5, image)), *loss;
    program_settings settings = { .precision = how, .micro_batches = 1, .accumulate = 1,
                                  .optimizer = &descent,
                                  .collective = norm == JOINED ? &twins : NULL };
    storage *s;
    program *p;

    g->join_norms = norm == JOINED;
    for (int i = 0; i < LAYERS; i++)
        x = layer(g, x, i, norm);
    loss = pons_mean_all(g, pons_square(g, x));
    ck_assert_int_eq(storage_new(&d, &s, &err), PONS_OK);
    ck_assert_msg(program_new(s, &d, g, loss, 0, NULL, &settings, &p, &err) == PONS_OK, "%s",
                  err.text);
    ck_assert_int_eq(storage_initialise(s, 0, &err), PONS_OK);
    ck_assert_int_eq(program_step_begin(p, 0, &err), PONS_OK);
    memset(&current.counts, 0, sizeof current.counts);
    ck_assert_int_eq(program_micro(p, 0, &err), PONS_OK);
    *bytes = predicted_bytes(p);
    program_free(p);
    storage_free(s);
    d.operations = current.inner.operations;
    device_close(&d);
    return current.counts;
}

/*
 * Forward, the moments read the convolution's result, and a map reads it again and writes the
 * activated volume. Backward, the sums read result and gradient, and a map reads both again and
 * writes the result's gradient. The sums of all layers but the last write the activated volume
 * again. The last layer's forward map is part of the loss, and its gradient comes from its own
 * result. Joined statistics change no pass, because their sums are per channel.
 */
static void check_passes(norm_kind norm, precision how)
{
    uint64_t bytes;
    counts c = run_step(norm, how, &bytes);

    ck_assert_int_eq(c.passes, LAYERS * 4);
    ck_assert_int_eq(c.reads, LAYERS * 2 + (LAYERS - 1) * 4 + 2);
    ck_assert_int_eq(c.writes, (LAYERS - 1) * 2 + LAYERS);
    ck_assert_uint_eq(c.bytes, bytes);
}

START_TEST(a_layer_takes_four_memory_passes)
{
    check_passes((norm_kind)_i, PRECISION_FP32);
}
END_TEST

START_TEST(a_layer_takes_four_memory_passes_in_16_bits)
{
    check_passes((norm_kind)_i, PRECISION_BF16);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("passes");

    tcase_add_loop_test(c, a_layer_takes_four_memory_passes, INSTANCE, NORMS);
    tcase_add_loop_test(c, a_layer_takes_four_memory_passes_in_16_bits, INSTANCE, NORMS);
    return suite_run();
}
