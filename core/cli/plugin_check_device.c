/*
 * plugin_check_device.c - a device against the reference kernels: one small training step for each
 * kind of request, forward and backward, in fp32 and, for products, in bf16. What the device
 * declines runs on the reference kernels here as in a training, and is counted.
 */
#include "cli/plugin_check.h"

#include "device/open.h"
#include "graph/program.h"

#include <math.h>
#include <pons/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Differences, of the largest element: sums of fp32 in another order; products rounded to bf16. */
static const double agreement = 1e-4, half_agreement = 3e-2;

/* ---- requests -------------------------------------------------------------------------------- */

static int64_t extent_of(const pons_node *x, int axis)
{
    return pons_shape_of(x).extent[axis];
}

static pons_node *weight(pons_graph *g, const char *name, pons_shape shape)
{
    return pons_parameter_leaf(g, name, PONS_ROLE_WEIGHT, shape,
                               (pons_init){ PONS_INIT_UNIFORM, 0.5 });
}

static pons_node *vector(pons_graph *g, const char *name, const pons_node *x)
{
    return weight(g, name, pons_shape_make(1, (int64_t[]){ extent_of(x, 4) }));
}

/* A convolution with one kernel extent, stride and dilation, padded to keep the extent. */
static pons_node *convolved(pons_graph *g, pons_node *x, int k, int stride, int dilation,
                            bool depthwise)
{
    int64_t in = extent_of(x, 4), out = depthwise ? in : 5;
    int pad = dilation * (k - 1) / 2;
    pons_convolution c = { { stride, stride, stride }, { dilation, dilation, dilation },
                           { pad, pad, pad }, { pad, pad, pad }, depthwise ? (int)in : 1 };

    return pons_convolve(g, x, weight(g, "w", pons_shape_make(
        5, (int64_t[]){ out, k, k, k, depthwise ? 1 : in })), &c);
}

static pons_node *convolution_3(pons_graph *g, pons_node *x)
{
    return convolved(g, x, 3, 1, 1, false);
}

static pons_node *convolution_1(pons_graph *g, pons_node *x)
{
    return convolved(g, x, 1, 1, 1, false);
}

static pons_node *convolution_strided(pons_graph *g, pons_node *x)
{
    return convolved(g, x, 3, 2, 1, false);
}

static pons_node *convolution_1_strided(pons_graph *g, pons_node *x)
{
    return convolved(g, x, 1, 2, 1, false);
}

static pons_node *convolution_dilated(pons_graph *g, pons_node *x)
{
    return convolved(g, x, 3, 1, 2, false);
}

static pons_node *convolution_depthwise(pons_graph *g, pons_node *x)
{
    return convolved(g, x, 3, 1, 1, true);
}

static pons_node *transposed(pons_graph *g, pons_node *x, int k, int pad, int more)
{
    pons_convolution c = { { 2, 2, 2 }, { 1, 1, 1 }, { pad, pad, pad }, { pad, pad, pad }, 1 };
    pons_shape shape = pons_shape_make(5, (int64_t[]){ extent_of(x, 4), k, k, k, 5 });

    return pons_convolve_transposed(g, x, weight(g, "w", shape), &c, (int[]){ more, more, more });
}

static pons_node *transposed_2(pons_graph *g, pons_node *x)
{
    return transposed(g, x, 2, 0, 0);
}

static pons_node *transposed_3(pons_graph *g, pons_node *x)
{
    return transposed(g, x, 3, 1, 1);
}

/* [N, D H, W C] x [N, W C, 6] and its transpose. */
static pons_node *product(pons_graph *g, pons_node *x)
{
    pons_shape s = pons_shape_of(x);
    int64_t n = s.extent[0], rows = s.extent[1] * s.extent[2], depth = s.extent[3] * s.extent[4];
    pons_node *a = pons_reshape(g, x, pons_shape_make(3, (int64_t[]){ n, rows, depth }));
    pons_node *b = weight(g, "b", pons_shape_make(3, (int64_t[]){ n, depth, 6 }));
    pons_node *c = weight(g, "c", pons_shape_make(3, (int64_t[]){ n, 6, depth }));

    return pons_add(g, pons_matmul(g, a, b, false, false), pons_matmul(g, a, c, false, true));
}

static pons_node *pool(pons_graph *g, pons_node *x, bool mean, int k, int stride, int pad)
{
    pons_pool p = { PONS_POOL_MAX, { k, k, k }, { stride, stride, stride }, { pad, pad, pad },
                    { pad, pad, pad }, false };

    if (mean)
        p.mode = PONS_POOL_MEAN;
    return pons_pooling(g, x, &p);
}

static pons_node *pool_max(pons_graph *g, pons_node *x)
{
    return pool(g, x, false, 2, 2, 0);
}

static pons_node *pool_max_overlapping(pons_graph *g, pons_node *x)
{
    return pool(g, x, false, 3, 2, 1);
}

static pons_node *pool_mean(pons_graph *g, pons_node *x)
{
    return pool(g, x, true, 2, 1, 1);
}

/* Twice and 3/2 of the extent one after another, so that both directions are met. */
static pons_node *resized(pons_graph *g, pons_node *x, pons_resize_mode mode)
{
    const int64_t up[3] = { 2 * extent_of(x, 1), 2 * extent_of(x, 2), 2 * extent_of(x, 3) };
    const int64_t down[3] = { extent_of(x, 1) + 1, extent_of(x, 2), extent_of(x, 3) - 1 };

    return pons_resize(g, pons_resize(g, x, mode, up), mode, down);
}

static pons_node *resize_nearest(pons_graph *g, pons_node *x)
{
    return resized(g, x, PONS_RESIZE_NEAREST);
}

static pons_node *resize_exact(pons_graph *g, pons_node *x)
{
    return resized(g, x, PONS_RESIZE_NEAREST_EXACT);
}

static pons_node *resize_linear(pons_graph *g, pons_node *x)
{
    return resized(g, x, PONS_RESIZE_LINEAR);
}

static pons_node *transpose(pons_graph *g, pons_node *x)
{
    return pons_transpose(g, x, (int[]){ 0, 4, 1, 3, 2 });
}

static pons_node *flip(pons_graph *g, pons_node *x)
{
    return pons_flip(g, x, 1u << 1 | 1u << 3 | 1u << 4);
}

static pons_node *crop(pons_graph *g, pons_node *x)
{
    const int64_t start[5] = { 0, 1, 0, 1, 1 }, step[5] = { 1, 1, 2, 1, 1 };
    const int64_t extent[5] = { 1, extent_of(x, 1) - 1, 2, 2, extent_of(x, 4) - 1 };

    return pons_crop(g, x, start, extent, step);
}

static pons_node *padded(pons_graph *g, pons_node *x, pons_pad_mode mode)
{
    const int64_t low[5] = { 0, 1, 2, 0, 0 }, high[5] = { 0, 2, 1, 1, 0 };

    return pons_pad(g, x, mode, low, high);
}

static pons_node *pad_zero(pons_graph *g, pons_node *x)
{
    return padded(g, x, PONS_PAD_ZERO);
}

static pons_node *pad_edge(pons_graph *g, pons_node *x)
{
    return padded(g, x, PONS_PAD_EDGE);
}

static pons_node *pad_reflect(pons_graph *g, pons_node *x)
{
    return padded(g, x, PONS_PAD_REFLECT);
}

static pons_node *concatenate(pons_graph *g, pons_node *x)
{
    pons_node *y = pons_concatenate(g, 2, (pons_node *[]){ x, pons_square(g, x) }, 4);

    return pons_concatenate(g, 2, (pons_node *[]){ y, pons_scale(g, y, 0.5) }, 2);
}

/* It has no gradient for the data. */
static pons_node *gather(pons_graph *g, pons_node *x)
{
    pons_node *index = pons_offset(g, pons_neg(g, pons_iota(g, 1, 0, 3)), 2);
    pons_node *taken = pons_gather(g, pons_stop_gradient(g, x), pons_cast(g, index, PONS_I32), 2);

    return pons_add(g, taken, pons_mean_all(g, x));
}

static pons_node *arg_max(pons_graph *g, pons_node *x)
{
    pons_node *place = pons_cast(g, pons_arg_max(g, x, 4), PONS_F32);
    pons_shape s = pons_shape_of(x);

    s.extent[4] = 1;
    return pons_mul(g, x, pons_reshape(g, place, s));
}

static pons_node *extremes(pons_graph *g, pons_node *x)
{
    const unsigned volume = 1u << 1 | 1u << 2 | 1u << 3;

    return pons_sub(g, pons_maximum(g, x, volume), pons_minimum(g, x, volume));
}

static pons_node *sums(pons_graph *g, pons_node *x)
{
    pons_node *mean = pons_mean(g, pons_square(g, x), 1u << 0 | 1u << 4);

    return pons_add(g, pons_mul(g, x, mean), pons_sum(g, x, 1u << 2));
}

static pons_node *pointwise(pons_graph *g, pons_node *x)
{
    pons_node *small = pons_tanh(g, x), *root = pons_sqrt(g, pons_offset(g, pons_square(g, x), 1));

    small = pons_add(g, pons_exp(g, small), pons_log1p(g, pons_abs(g, x)));
    root = pons_add(g, pons_sin(g, root), pons_erf(g, pons_cos(g, x)));
    return pons_div(g, pons_mul(g, small, root), pons_pow(g, pons_offset(g, pons_abs(g, x), 1),
                                                          pons_real(g, 1.7)));
}

static pons_node *softmax(pons_graph *g, pons_node *x)
{
    return pons_add(g, pons_softmax(g, x, 4), pons_log_softmax(g, x, 4));
}

static pons_node *instance_norm(pons_graph *g, pons_node *x)
{
    return pons_prelu(g, pons_instance_norm(g, x, vector(g, "scale", x), vector(g, "shift", x),
                                            1e-5), vector(g, "slope", x));
}

static pons_node *batch_norm(pons_graph *g, pons_node *x)
{
    pons_shape shape = pons_shape_make(1, (int64_t[]){ extent_of(x, 4) });

    return pons_relu(g, pons_batch_norm(g, x, vector(g, "scale", x), vector(g, "shift", x),
                                        pons_state_leaf(g, "mean", shape, 0),
                                        pons_state_leaf(g, "variance", shape, 1), 0.1, 1e-5));
}

static pons_node *group_norm(pons_graph *g, pons_node *x)
{
    int groups = extent_of(x, 4) % 4 == 0 ? 4 : 1;

    return pons_leaky_relu(g, pons_group_norm(g, x, groups, vector(g, "scale", x),
                                              vector(g, "shift", x), 1e-5), 0.1);
}

static pons_node *random_numbers(pons_graph *g, pons_node *x)
{
    pons_node *noise = pons_random_normal(g, "normal", pons_shape_of(x));
    pons_node *share = pons_random_uniform(g, "uniform", pons_shape_of(x));

    return pons_add(g, pons_mul(g, x, share), pons_mul(g, noise, pons_dropout(g, x, 0.3, "drop")));
}

static pons_node *bytes(pons_graph *g, pons_node *x)
{
    pons_node *byte = pons_cast(g, pons_scale(g, pons_abs(g, x), 40), PONS_U8);

    return pons_mul(g, x, pons_cast(g, byte, PONS_F32));
}

static const struct device_case {
    const char *name;
    pons_node *(*build)(pons_graph *g, pons_node *x);
    bool half;                 /* in bf16 as well                                                 */
} cases[] = {
    { "convolution 3", convolution_3, true }, { "convolution 1", convolution_1, true },
    { "convolution 3 with stride 2", convolution_strided, true },
    { "convolution 1 with stride 2", convolution_1_strided, true },
    { "convolution 3 with dilation 2", convolution_dilated, true },
    { "convolution 3 of each channel", convolution_depthwise, true },
    { "transposed convolution 2", transposed_2, true },
    { "transposed convolution 3", transposed_3, true }, { "matrix product", product, true },
    { "pool max 2", pool_max, false }, { "pool max 3", pool_max_overlapping, false },
    { "pool mean 2", pool_mean, false }, { "resize nearest", resize_nearest, false },
    { "resize nearest exact", resize_exact, false }, { "resize linear", resize_linear, false },
    { "transpose", transpose, false }, { "flip", flip, false }, { "crop", crop, false },
    { "pad zero", pad_zero, false }, { "pad edge", pad_edge, false },
    { "pad reflect", pad_reflect, false }, { "concatenate", concatenate, false },
    { "gather", gather, false }, { "arg max", arg_max, false },
    { "maximum and minimum", extremes, false }, { "sums and means", sums, false },
    { "pointwise", pointwise, false }, { "softmax", softmax, false },
    { "instance norm", instance_norm, false }, { "batch norm", batch_norm, false },
    { "group norm", group_norm, false }, { "random numbers", random_numbers, false },
    { "bytes", bytes, false },
};

static const pons_shape shapes[] = { { 5, { 2, 5, 4, 6, 3 } }, { 5, { 1, 4, 5, 4, 16 } } };

/* ---- one step -------------------------------------------------------------------------------- */

/* What a step leaves: the output, then every parameter and state. */
typedef struct outcome {
    int64_t count;
    double *number;            /* malloc'ed                                                       */
    int kernels, own;          /* kernels, and those of the device itself                         */
} outcome;

typedef struct device_trial {
    const struct device_case *what;
    pons_shape shape;
    precision precision;
    pons_error *err;
} device_trial;

static bool append(outcome *o, const float *from, int64_t count)
{
    double *more = realloc(o->number, (size_t)(o->count + count) * sizeof *more);

    if (more == NULL)
        return false;
    for (int64_t i = 0; i < count; i++)
        more[o->count + i] = from[i];
    o->number = more;
    o->count += count;
    return true;
}

static pons_status take_outcome(const device_trial *t, const storage *s, program *p, outcome *out)
{
    pons_tensor tensor;
    const void *y = program_output(p, 0, &tensor);
    bool taken = append(out, y, shape_count(tensor.shape));
    program_facts facts;

    for (storage_group group = STORAGE_PARAMETER; group <= STORAGE_STATE; group++)
        for (int i = 0; i < storage_count(s, group) && taken; i++) {
            storage_tensor one = storage_item(s, group, i);
            taken = append(out, one.memory, shape_count(one.shape));
        }
    program_describe(p, &facts);
    for (int i = 0; i < facts.kernel_count; i++)
        out->own += strcmp(program_kernel(p, i).implementation, "reference") != 0;
    out->kernels += facts.kernel_count;
    return taken ? PONS_OK : pons_fail(t->err, PONS_DEVICE, "out of memory");
}

static pons_status take_step(const device_trial *t, const storage *s, program *p, outcome *out)
{
    step_result result;

    if (program_step_begin(p, 0, t->err) == PONS_OK && program_micro(p, 0, t->err) == PONS_OK
        && program_step_finish(p, 1, &result, t->err) == PONS_OK)
        take_outcome(t, s, p, out);
    return t->err->status;
}

/* Every element of the output with a weight of its own. */
static pons_node *weighted_sum(pons_graph *g, pons_node *y)
{
    int64_t count = shape_count(pons_shape_of(y));
    pons_shape row = pons_shape_make(1, &count);
    pons_node *share = pons_sin(g, pons_scale(g, pons_iota(g, 1, 0, count), 1.7));

    return pons_sum_all(g, pons_mul(g, pons_reshape(g, y, row), share));
}

static pons_status run_case(const device_trial *t, const device *d, outcome *out)
{
    program_settings settings = { .precision = t->precision, .micro_batches = 1, .accumulate = 1,
                                  .optimizer = &plugin_check_descent, .seed = 1 };
    pons_graph *g = graph_new(true, -1);
    storage *s = NULL;
    program *p = NULL;

    if (g == NULL)
        return pons_fail(t->err, PONS_DEVICE, "out of memory");
    g->scope = SCOPE_MODEL;
    pons_node *x = pons_parameter_leaf(g, "x", PONS_ROLE_WEIGHT, t->shape,
                                       (pons_init){ PONS_INIT_NORMAL, 1 });
    pons_node *y = t->what->build(g, x);
    g->scope = SCOPE_CORE;
    pons_node *loss = weighted_sum(g, y);
    if (pons_graph_status(g, t->err) != PONS_OK || storage_new(d, &s, t->err) != PONS_OK) {
        graph_free(g);
        return t->err->status;
    }
    if (program_new(s, d, g, loss, 1, &y, &settings, &p, t->err) == PONS_OK
        && storage_initialise(s, 1, t->err) == PONS_OK)
        take_step(t, s, p, out);
    program_free(p);
    storage_free(s);
    return t->err->status;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static pons_status compare(const device_trial *t, const outcome *expected, const outcome *found,
                           const outcome *again)
{
    const double share = t->precision == PRECISION_FP32 ? agreement : half_agreement;
    double most = 0;

    if (expected->count != found->count || found->count != again->count)
        return pons_fail(t->err, PONS_PLUGIN, "it makes %lld numbers, the reference %lld",
                         (long long)found->count, (long long)expected->count);
    for (int64_t i = 0; i < expected->count; i++)
        most = fmax(most, fabs(expected->number[i]));
    for (int64_t i = 0; i < expected->count; i++) {
        if (!(fabs(found->number[i] - expected->number[i]) <= share * most))
            return pons_fail(t->err, PONS_PLUGIN, "element %lld is %.9g, by the reference kernels "
                             "%.9g", (long long)i, found->number[i], expected->number[i]);
        if (found->number[i] != again->number[i])
            return pons_fail(t->err, PONS_PLUGIN, "element %lld is %.9g and then %.9g",
                             (long long)i, found->number[i], again->number[i]);
    }
    return PONS_OK;
}

static pons_status check_case(const device_trial *t, const device *d, outcome *total)
{
    outcome expected = { .number = NULL }, found = expected, again = expected;
    device reference;

    device_reference(&reference, false);
    if (run_case(t, &reference, &expected) == PONS_OK && run_case(t, d, &found) == PONS_OK
        && run_case(t, d, &again) == PONS_OK)
        compare(t, &expected, &found, &again);
    free(expected.number);
    free(found.number);
    free(again.number);
    total->kernels += found.kernels;
    total->own += found.own;
    return t->err->status;
}

static pons_status check_cases(const device *d, outcome *total, pons_error *err)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
            for (int half = 0; half <= cases[i].half; half++) {
                pons_error cause = PONS_ERROR_INIT;
                device_trial t = { &cases[i], shapes[k],
                                   half ? PRECISION_BF16 : PRECISION_FP32, &cause };
                if (check_case(&t, d, total) != PONS_OK)
                    return pons_fail(err, cause.status, "%s of [%lld, %lld, %lld, %lld, %lld] in "
                                     "%s: %s", cases[i].name, (long long)t.shape.extent[0],
                                     (long long)t.shape.extent[1], (long long)t.shape.extent[2],
                                     (long long)t.shape.extent[3], (long long)t.shape.extent[4],
                                     half ? "bf16" : "fp32", cause.text);
            }
    return PONS_OK;
}

/* ---- the device itself ----------------------------------------------------------------------- */

static pons_status check_missing(const pons_device_operations *o, pons_error *err)
{
    const struct { const char *name; bool there; } needed[] = {
        { "open", o->open != NULL }, { "close", o->close != NULL }, { "facts", o->facts != NULL },
        { "allocate", o->allocate != NULL }, { "release", o->release != NULL },
        { "attach", o->attach != NULL }, { "prepare", o->prepare != NULL }
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].there)
            return pons_fail(err, PONS_PLUGIN, "operation '%s' is missing", needed[i].name);
    return PONS_OK;
}

static pons_status check_memory(const device *d, pons_error *err)
{
    enum { SIZE = 3 * 4096 };
    unsigned char *memory = d->operations->allocate(d->handle, SIZE, err);

    if (memory == NULL)
        return err->status != PONS_OK ? err->status
               : pons_fail(err, PONS_PLUGIN, "'allocate' fails and does not say why");
    if ((uintptr_t)memory % 64 != 0)
        pons_fail(err, PONS_PLUGIN, "'allocate' gives %p, expected a multiple of 64",
                  (void *)memory);
    for (int i = 0; i < SIZE && d->facts.host_memory && err->status == PONS_OK; i++)
        if (memory[i] != 0)
            pons_fail(err, PONS_PLUGIN, "'allocate' gives memory that is not zeroed");
    d->operations->release(d->handle, memory, SIZE);
    return err->status;
}

pons_status plugin_check_device(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_device_settings settings = { .index = 0, .count = 1, .deterministic = true };
    device d = { .plugin = p, .operations = p->operations };
    outcome total = { .count = 0 };

    if (check_missing(d.operations, err) != PONS_OK
        || d.operations->open(&settings, &d.handle, err) != PONS_OK)
        return err->status;
    d.operations->facts(d.handle, &d.facts);
    if (d.facts.name[0] == '\0' || d.facts.threads < 1)
        pons_fail(err, PONS_PLUGIN, "its facts are the name '%s' and %d threads, expected a name "
                  "and at least 1", d.facts.name, d.facts.threads);
    else if (device_attach(&d, err) == PONS_OK && check_memory(&d, err) == PONS_OK)
        check_cases(&d, &total, err);
    if (err->status == PONS_OK)
        printf("device %s: %s; %d of %d kernels are its own\n", p->descriptor->name, d.facts.name,
               total.own, total.kernels);
    device_close(&d);
    return err->status;
}
