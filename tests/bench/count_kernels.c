/*
 * count_kernels.c - run a kernel of each family once, inside of the function 'counted'. A profiler
 * that counts instructions there measures the cost of a kernel independent of other work on the
 * machine.
 *
 *     count_kernels          prints "NAME ELEMENTS" for each, in the order of the counts, after the
 *                            properties on which counts depend
 *     count_kernels --steps  counts the kernels made for this processor by itself, in single steps,
 *                            and prints "NAME INSTRUCTIONS ELEMENTS"
 *
 * One thread; tests/bench/check_counts.sh and tests/bench/check_steps.sh run it.
 */
#include <config.h>

#include "cpu/conv/conv_testing.h"
#include "cpu/conv/direct/direct.h"
#include "cpu/cpu.h"

#include <pons/loss.h>

#include "base/thread/parallel.h"
#include "bench/step_counter.h"
#include "config/config.h"
#include "data/loader/patch_batch.h"
#include "data/nifti/nifti_internal.h"
#include "data/nifti/nifti_read.h"
#include "device/device_open.h"
#include "graph/ir/build.h"
#include "graph/ir/leaf.h"
#include "graph/ir/node.h"
#include "plugin/plugin_load.h"
#include "window/window_blend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUTS = 8, OUTPUTS = 4, VALUES = 40 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const char build[] = "sanitized";
#elif defined(__OPTIMIZE__)
static const char build[] = "optimised";
#else
static const char build[] = "plain";
#endif

static void fail(const pons_error *err)
{
    fprintf(stderr, "count_kernels: %s\n", err->text);
    exit(1);
}

/* The counted function; the profiler finds it by its name. */
void counted(void (*run)(void *), void *context);

__attribute__((noinline, noclone)) void counted(void (*run)(void *), void *context)
{
    run(context);
    __asm__ volatile("" ::: "memory");
}

static bool stepping;

static void count(const char *name, int64_t elements, void (*run)(void *), void *context)
{
    run(context); /* a first run touches memory and makes tables */
    if (stepping) {
        step_counter_begin(name, elements);
        counted(run, context);
        step_counter_end();
        return;
    }
    counted(run, context);
    printf("%s %lld\n", name, (long long)elements);
}

/* ---- kernels of the device ------------------------------------------------------------------- */

typedef struct trial {
    void *device;
    pons_kernel kernel;
    pons_call call;
    void *input[INPUTS], *output[OUTPUTS];
} trial;

static void run_kernel(void *context)
{
    trial *t = context;
    pons_error err = PONS_ERROR_INIT;

    if (t->kernel.run(&t->kernel, &t->call, &err) != PONS_OK)
        fail(&err);
}

static size_t size_of(const pons_tensor *t)
{
    static const size_t size[] = { [PONS_F32] = 4, [PONS_BF16] = 2, [PONS_U8] = 1, [PONS_I32] = 4 };
    size_t count = size[t->type];

    for (int i = 0; i < t->shape.rank; i++)
        count *= (size_t)t->shape.extent[i];
    return count;
}

/* Values between -1 and 1 in every type: each half of a float is a bf16. */
static void *numbers(void *device, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    uint16_t *memory = cpu_operations.memory.allocate(device, size + 4096, &err);
    uint32_t state = 1;

    if (memory == NULL)
        fail(&err);
    for (size_t i = 0; i < size / 2; i++) {
        state = state * 1664525u + 1013904223u;
        memory[i] = (uint16_t)(0x3e00 | (state >> 16 & 0x80ff));
    }
    return memory;
}

/* Count the kernel that 'prepare' makes. */
static void count_made(void *device, cpu_prepare prepare, const pons_request *request,
                       int64_t elements)
{
    static const pons_step_key step_key = { 1, 2, 3 };
    trial t = { .device = device };
    pons_error err = PONS_ERROR_INIT;
    char name[64];
    bool supported;

    if (prepare(device, request, &t.kernel, &supported, &err) != PONS_OK)
        fail(&err);
    if (!supported) {
        fprintf(stderr, "count_kernels: no kernel for '%s'\n", request->name);
        exit(1);
    }
    for (int i = 0; i < request->input_count; i++)
        t.input[i] = numbers(device, size_of(&request->input[i]));
    for (int i = 0; i < request->output_count; i++)
        t.output[i] = numbers(device, size_of(&request->output[i]));
    t.call = (pons_call){ t.input, t.output, numbers(device, t.kernel.scratch_size), &step_key };
    if (stepping) /* the implementation is part of the name */
        snprintf(name, sizeof name, "%s_%s", t.kernel.implementation, request->name);
    count(stepping ? name : request->name, elements, run_kernel, &t);
    if (t.kernel.free != NULL)
        t.kernel.free(&t.kernel);
}

static pons_status by_device(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return cpu_operations.prepare(device, request, kernel, supported, err);
}

static void count_request(void *device, const pons_request *request, int64_t elements)
{
    count_made(device, by_device, request, elements);
}

static pons_tensor tensor(pons_type type, int rank, const int64_t *extent)
{
    pons_tensor t = { type, { .rank = rank } };

    memcpy(t.shape.extent, extent, (size_t)rank * sizeof *extent);
    return t;
}

static pons_tensor image(pons_type type, int64_t side, int64_t channels)
{
    return tensor(type, 5, (int64_t[]){ 1, side, side, side, channels });
}

/* ---- maps ------------------------------------------------------------------------------------ */

typedef struct sketch {
    pons_map map;
    pons_tensor input[INPUTS], output[OUTPUTS];
    pons_operand load[INPUTS];
    pons_value value[VALUES];
    pons_store store[3];
    pons_reduction reduction[2];
    int inputs, outputs;
} sketch;

static int add(sketch *s, int operation, int n, int x, int y, int z)
{
    s->value[s->map.value_count] = (pons_value){ .operation = (uint16_t)operation,
        .argument_count = (uint8_t)n, .argument = { x, y, z } };
    return s->map.value_count++;
}

static int number(sketch *s, double x)
{
    s->value[s->map.value_count] = (pons_value){ .operation = PONS_VALUE_CONSTANT, .number = x };
    return s->map.value_count++;
}

/* An operand; 'kept' has the axes along which it changes. */
static pons_operand operand(const sketch *s, int number_of, pons_type type, unsigned kept)
{
    pons_operand o = { .tensor = number_of, .type = type };
    int64_t stride = 1;

    for (int a = s->map.axis_count - 1; a >= 0; a--)
        if (kept >> a & 1) {
            o.stride[a] = stride;
            stride *= s->map.extent[a];
        }
    return o;
}

static pons_tensor tensor_of(const sketch *s, pons_type type, unsigned kept)
{
    int64_t extent[PONS_MAP_AXES];

    for (int a = 0; a < s->map.axis_count; a++)
        extent[a] = kept >> a & 1 ? s->map.extent[a] : 1;
    return tensor(type, s->map.axis_count, extent);
}

static int load(sketch *s, pons_type type, unsigned kept)
{
    s->load[s->map.load_count] = operand(s, s->inputs, type, kept);
    s->input[s->inputs++] = tensor_of(s, type, kept);
    s->value[s->map.value_count] = (pons_value){ .operation = PONS_VALUE_LOAD,
                                                 .operand = s->map.load_count++ };
    return s->map.value_count++;
}

static void store(sketch *s, int value, pons_type type, unsigned kept)
{
    s->store[s->map.store_count++] = (pons_store){ value, operand(s, s->outputs, type, kept) };
    s->output[s->outputs++] = tensor_of(s, type, kept);
}

static void sum(sketch *s, int value, unsigned kept)
{
    s->reduction[s->map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_SUM,
        .value = value, .to = { operand(s, s->outputs, PONS_F32, kept) } };
    s->output[s->outputs++] = tensor_of(s, PONS_F32, kept);
}

static void count_map(void *device, const char *name, sketch *s)
{
    int64_t elements = 1;
    pons_request r = { .kind = PONS_KERNEL_MAP, .name = name, .input_count = s->inputs,
                       .output_count = s->outputs, .input = s->input, .output = s->output,
                       .attributes = &s->map };

    s->map.load = s->load;
    s->map.value = s->value;
    s->map.store = s->store;
    s->map.reduction = s->reduction;
    for (int a = 0; a < s->map.axis_count; a++)
        elements *= s->map.extent[a];
    count_request(device, &r, elements);
}

/* Elements of a map; single steps are slow. */
static int64_t map_elements(void)
{
    return stepping ? 1 << 15 : 1 << 17;
}

static void count_chain(void *device)
{
    sketch s = { .map = { .axis_count = 1, .extent = { 1 << 17 } } };
    int x = load(&s, PONS_F32, 1);

    for (int i = 0; i < 5; i++)
        x = add(&s, PONS_MAP_ADD, 2, add(&s, PONS_MAP_MUL, 2, x, number(&s, 1.5), 0), x, 0);
    store(&s, x, PONS_F32, 1);
    count_map(device, "map_chain", &s);
}

static void count_exponential(void *device)
{
    sketch s = { .map = { .axis_count = 1, .extent = { 1 << 16 } } };
    int x = load(&s, PONS_F32, 1);

    store(&s, add(&s, PONS_MAP_EXP, 1, x, 0, 0), PONS_F32, 1);
    count_map(device, "map_exp", &s);
}

static void count_moments(void *device, const char *name, pons_type type, int64_t channels)
{
    sketch s = { .map = { .axis_count = 2, .extent = { map_elements() / channels, channels } } };
    int x = load(&s, type, 3);

    s.reduction[s.map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_MOMENTS,
        .value = x, .to = { operand(&s, 0, PONS_F32, 2), operand(&s, 1, PONS_F32, 2) } };
    s.output[s.outputs++] = tensor_of(&s, PONS_F32, 2);
    s.output[s.outputs++] = tensor_of(&s, PONS_F32, 2);
    count_map(device, name, &s);
}

/* Leaky ReLU of y. */
static int prelu(sketch *s, int y)
{
    int slope = number(s, 0.25), zero = number(s, 0);

    return add(s, PONS_MAP_SELECT, 3, add(s, PONS_MAP_GREATER, 2, y, zero, 0), y,
               add(s, PONS_MAP_MUL, 2, y, slope, 0));
}

/* Square root of |x|: values here have signs, variances have none. */
static int root(sketch *s, int x)
{
    return add(s, PONS_MAP_SQRT, 1, add(s, PONS_MAP_ABS, 1, x, 0, 0), 0, 0);
}

/* Count the forward pass of a norm with its activation, from the moments. */
static void count_norm_forward(void *device, const char *name, pons_type type, int64_t channels)
{
    sketch s = { .map = { .axis_count = 2, .extent = { map_elements() / channels, channels } } };
    int x = load(&s, type, 3), mean = load(&s, PONS_F32, 2), variance = load(&s, PONS_F32, 2);
    int scale = load(&s, PONS_F32, 2), shift = load(&s, PONS_F32, 2), k, y;

    k = root(&s, add(&s, PONS_MAP_ADD, 2, variance, number(&s, 1e-5), 0));
    k = add(&s, PONS_MAP_DIV, 2, scale, k, 0);
    y = add(&s, PONS_MAP_MUL, 2, add(&s, PONS_MAP_SUB, 2, x, mean, 0), k, 0);
    store(&s, prelu(&s, add(&s, PONS_MAP_ADD, 2, y, shift, 0)), type, 3);
    count_map(device, name, &s);
}

/* Count the backward reduction of a norm with its activation: the volume again, and two sums. */
static void count_norm_prelu(void *device, const char *name, pons_type type, int64_t channels)
{
    sketch s = { .map = { .axis_count = 2, .extent = { map_elements() / channels, channels } } };
    int x = load(&s, type, 3), scale = load(&s, PONS_F32, 2), shift = load(&s, PONS_F32, 2), y;

    y = prelu(&s, add(&s, PONS_MAP_ADD, 2, add(&s, PONS_MAP_MUL, 2, x, scale, 0), shift, 0));
    store(&s, y, type, 3);
    sum(&s, y, 2);
    sum(&s, add(&s, PONS_MAP_MUL, 2, x, y, 0), 2);
    count_map(device, name, &s);
}

/* Count the last backward pass of a norm with its activation, from the moments and the two sums. */
static void count_norm_back(void *device, const char *name, pons_type type, int64_t channels)
{
    sketch s = { .map = { .axis_count = 2, .extent = { map_elements() / channels, channels } } };
    int x = load(&s, type, 3), g = load(&s, type, 3), mean = load(&s, PONS_F32, 2);
    int scale = load(&s, PONS_F32, 2), shift = load(&s, PONS_F32, 2), of_g = load(&s, PONS_F32, 2);
    int of_product = load(&s, PONS_F32, 2), zero = number(&s, 0), y;

    x = add(&s, PONS_MAP_SUB, 2, x, mean, 0);
    y = add(&s, PONS_MAP_ADD, 2, add(&s, PONS_MAP_MUL, 2, x, scale, 0), shift, 0);
    g = add(&s, PONS_MAP_SELECT, 3, add(&s, PONS_MAP_GREATER, 2, y, zero, 0), g,
            add(&s, PONS_MAP_MUL, 2, g, number(&s, 0.25), 0));
    g = add(&s, PONS_MAP_SUB, 2, g, of_g, 0);
    g = add(&s, PONS_MAP_SUB, 2, g, add(&s, PONS_MAP_MUL, 2, x, of_product, 0), 0);
    store(&s, add(&s, PONS_MAP_MUL, 2, g, scale, 0), type, 3);
    count_map(device, name, &s);
}

static void count_softmax(void *device)
{
    sketch s = { .map = { .axis_count = 2, .extent = { 1 << 15, 2 }, .channels = 2 } };
    int x = load(&s, PONS_F32, 3), most = add(&s, PONS_VALUE_CHANNEL_MAX, 1, x, 0, 0), all;

    s.value[most].per_point = 1;
    x = add(&s, PONS_MAP_EXP, 1, add(&s, PONS_MAP_SUB, 2, x, most, 0), 0, 0);
    all = add(&s, PONS_VALUE_CHANNEL_SUM, 1, x, 0, 0);
    s.value[all].per_point = 1;
    store(&s, add(&s, PONS_MAP_DIV, 2, x, all, 0), PONS_F32, 3);
    count_map(device, "map_softmax", &s);
}

static int lerp(sketch *s, int a, int b, double t)
{
    return add(s, PONS_MAP_ADD, 2, add(s, PONS_MAP_MUL, 2, a, number(s, 1 - t), 0),
               add(s, PONS_MAP_MUL, 2, b, number(s, t), 0), 0);
}

/* Count the update of adam, with p, m, v, the gradient and a rate. */
static void count_update(void *device)
{
    sketch s = { .map = { .axis_count = 1, .extent = { map_elements() / 2 } } };
    int p = load(&s, PONS_F32, 1), g = load(&s, PONS_F32, 1), m = load(&s, PONS_F32, 1);
    int v = load(&s, PONS_F32, 1), rate = load(&s, PONS_F32, 0), step;

    m = lerp(&s, g, m, 0.9);
    v = lerp(&s, add(&s, PONS_MAP_MUL, 2, g, g, 0), v, 0.999);
    step = add(&s, PONS_MAP_ADD, 2, root(&s, v), number(&s, 1e-8), 0);
    step = add(&s, PONS_MAP_MUL, 2, rate, add(&s, PONS_MAP_DIV, 2, m, step, 0), 0);
    p = add(&s, PONS_MAP_SUB, 2, p, step, 0);
    store(&s, m, PONS_F32, 1);
    store(&s, v, PONS_F32, 1);
    store(&s, p, PONS_F32, 1);
    count_map(device, "map_update", &s);
}

static void count_random(void *device, const char *name, int operation)
{
    sketch s = { .map = { .axis_count = 1, .extent = { 1 << 14 } } };

    store(&s, add(&s, operation, 0, 0, 0, 0), PONS_F32, 1);
    count_map(device, name, &s);
}

static void count_maps(void *device)
{
    count_chain(device);
    count_exponential(device);
    count_moments(device, "moments_16", PONS_F32, 16);
    count_moments(device, "moments_2", PONS_F32, 2);
    count_moments(device, "moments_bf16_32", PONS_BF16, 32);
    count_norm_forward(device, "norm_forward_f32_16", PONS_F32, 16);
    count_norm_forward(device, "norm_forward_bf16_32", PONS_BF16, 32);
    count_norm_forward(device, "norm_forward_f32_2", PONS_F32, 2);
    count_norm_prelu(device, "norm_prelu_f32_16", PONS_F32, 16);
    count_norm_prelu(device, "norm_prelu_bf16_32", PONS_BF16, 32);
    count_norm_prelu(device, "norm_prelu_f32_2", PONS_F32, 2);
    count_norm_back(device, "norm_back_f32_16", PONS_F32, 16);
    count_norm_back(device, "norm_back_bf16_32", PONS_BF16, 32);
    count_norm_back(device, "norm_back_f32_2", PONS_F32, 2);
    count_softmax(device);
    count_update(device);
    count_random(device, "map_uniform", PONS_VALUE_UNIFORM);
    count_random(device, "map_normal", PONS_VALUE_NORMAL);
}

/* ---- convolutions and products --------------------------------------------------------------- */

static pons_status by_direct(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return conv_prepare_by("direct", device, request, kernel, supported, err);
}

static pons_status product_by_direct(cpu_device *device, const pons_request *request,
                                     pons_kernel *kernel, bool *supported, pons_error *err)
{
    return direct_prepare_matmul(device, request, kernel, supported, err);
}

/*
 * A convolution. The device selects the few-channel ones; the direct ones it selects only without
 * oneDNN.
 */
typedef struct layer {
    const char *name;
    cpu_prepare prepare;
    int way; /* 0: forward, 1: input gradient, 2: weight gradient */
    pons_type type;
    int64_t side, in, out;
    int stride;
} layer;

static const layer convolutions[] = {
    { "few_channels_1_16", by_device, 0, PONS_F32, 20, 1, 16, 1 },
    { "few_channels_2_2", by_device, 0, PONS_F32, 20, 2, 2, 1 },
    { "few_channels_data_1_16", by_device, 1, PONS_F32, 20, 1, 16, 1 },
    { "few_channels_data_2_2", by_device, 1, PONS_F32, 20, 2, 2, 1 },
    { "few_channels_weight_1_16", by_device, 2, PONS_F32, 20, 1, 16, 1 },
    { "few_channels_weight_2_2", by_device, 2, PONS_F32, 20, 2, 2, 1 },
    { "few_channels_bf16_1_16", by_device, 0, PONS_BF16, 12, 1, 16, 1 },
    { "few_channels_bf16_2_2", by_device, 0, PONS_BF16, 12, 2, 2, 1 },
    { "few_channels_data_bf16_1_16", by_device, 1, PONS_BF16, 12, 1, 16, 1 },
    { "few_channels_data_bf16_2_2", by_device, 1, PONS_BF16, 12, 2, 2, 1 },
    { "few_channels_weight_bf16_1_16", by_device, 2, PONS_BF16, 12, 1, 16, 1 },
    { "few_channels_weight_bf16_2_2", by_device, 2, PONS_BF16, 12, 2, 2, 1 },
    { "few_channels_2_32_by_2", by_device, 0, PONS_F32, 20, 2, 32, 2 },
    { "few_channels_data_2_32_by_2", by_device, 1, PONS_F32, 20, 2, 32, 2 },
    { "few_channels_weight_2_32_by_2", by_device, 2, PONS_F32, 20, 2, 32, 2 },
    { "few_channels_32_2", by_device, 0, PONS_F32, 20, 32, 2, 1 },
    { "few_channels_data_32_2", by_device, 1, PONS_F32, 20, 32, 2, 1 },
    { "few_channels_weight_32_2", by_device, 2, PONS_F32, 20, 32, 2, 1 },
    { "few_channels_4_32", by_device, 0, PONS_F32, 20, 4, 32, 1 },
    { "few_channels_data_4_32", by_device, 1, PONS_F32, 20, 4, 32, 1 },
    { "few_channels_weight_4_32", by_device, 2, PONS_F32, 20, 4, 32, 1 },
    { "few_channels_bf16_2_32_by_2", by_device, 0, PONS_BF16, 12, 2, 32, 2 },
    { "few_channels_data_bf16_2_32_by_2", by_device, 1, PONS_BF16, 12, 2, 32, 2 },
    { "few_channels_weight_bf16_2_32_by_2", by_device, 2, PONS_BF16, 12, 2, 32, 2 },
    { "few_channels_bf16_32_2", by_device, 0, PONS_BF16, 12, 32, 2, 1 },
    { "few_channels_data_bf16_32_2", by_device, 1, PONS_BF16, 12, 32, 2, 1 },
    { "few_channels_weight_bf16_32_2", by_device, 2, PONS_BF16, 12, 32, 2, 1 },
    { "few_channels_bf16_4_32", by_device, 0, PONS_BF16, 12, 4, 32, 1 },
    { "few_channels_data_bf16_4_32", by_device, 1, PONS_BF16, 12, 4, 32, 1 },
    { "few_channels_weight_bf16_4_32", by_device, 2, PONS_BF16, 12, 4, 32, 1 },
    { "direct_16_16", by_direct, 0, PONS_F32, 8, 16, 16, 1 },
    { "direct_data_16_16", by_direct, 1, PONS_F32, 8, 16, 16, 1 },
    { "direct_weight_16_16", by_direct, 2, PONS_F32, 8, 16, 16, 1 },
    { "direct_bf16_16_32", by_direct, 0, PONS_BF16, 8, 16, 32, 2 },
    { "direct_data_bf16_16_32", by_direct, 1, PONS_BF16, 8, 16, 32, 2 },
    { "direct_weight_bf16_16_32", by_direct, 2, PONS_BF16, 8, 16, 32, 2 },
};

/* Convolutions with kernels of their own on processors with AVX-512 and bf16 products. */
static const layer paired[] = {
    { "forward_1_16", by_device, 0, PONS_BF16, 12, 1, 16, 1 },
    { "data_2_2", by_device, 1, PONS_BF16, 12, 2, 2, 1 },
    { "weight_2_2", by_device, 2, PONS_BF16, 12, 2, 2, 1 },
    { "forward_2_32_by_2", by_device, 0, PONS_BF16, 12, 2, 32, 2 },
    { "forward_32_2", by_device, 0, PONS_BF16, 8, 32, 2, 1 },
    { "forward_32_32", by_device, 0, PONS_BF16, 8, 32, 32, 1 },
    { "data_32_32", by_device, 1, PONS_BF16, 8, 32, 32, 1 },
    { "weight_32_32", by_device, 2, PONS_BF16, 8, 32, 32, 1 },
    { "weight_32_64_by_2", by_device, 2, PONS_BF16, 8, 32, 64, 2 },
};

static void count_convolution(void *device, const layer *l)
{
    int64_t in = l->in, out = l->out, side = l->side, to_side = side / l->stride;
    pons_type type = l->type;
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_tensor x = image(type, side, in), y = image(type, to_side, out);
    pons_tensor w = tensor(type, 5, (int64_t[]){ out, 3, 3, 3, in }), sum = w;
    pons_tensor from[3][2] = { { x, w }, { y, w }, { x, y } }, *to[3] = { &y, &x, &sum };
    int way = l->way;

    sum.type = PONS_F32;
    for (int a = 0; a < 3; a++) {
        c.stride[a] = l->stride;
        c.pad_low[a] = c.pad_high[a] = 1;
    }
    count_made(device, l->prepare,
               &(pons_request){ .kind = PONS_KERNEL_CONVOLUTION + way,
                   .name = l->name, .input_count = 2, .output_count = 1,
                   .input = from[way], .output = to[way], .attributes = &c },
               to_side * to_side * to_side * 27 * in * out);
}

static void count_product(void *device)
{
    enum { SIDE = 64 };
    pons_tensor square = { PONS_F32, { 2, { SIDE, SIDE } } }, from[] = { square, square };
    pons_matmul_attributes plain = { false, false };

    count_made(device, product_by_direct,
               &(pons_request){ .kind = PONS_KERNEL_MATMUL, .name = "direct_product",
                   .input_count = 2, .output_count = 1, .input = from, .output = &square,
                   .attributes = &plain }, (int64_t)SIDE * SIDE * SIDE);
}

/* ---- pool, resize, movement ------------------------------------------------------------------ */

#define IMAGE(type, side, channels) { type, { 5, { 1, side, side, side, channels } } }
#define WHOLE IMAGE(PONS_F32, 24, 16)
#define HALF IMAGE(PONS_F32, 12, 16)

static const pons_pool largest = { PONS_POOL_MAX, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 0 }, false };
static const pons_pool overlapping = { PONS_POOL_MAX, { 3, 3, 3 }, { 2, 2, 2 }, { 1, 1, 1 },
                                       { 1, 1, 1 }, false };
static const pons_pool mean = { PONS_POOL_MEAN, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 0 }, false };
static const pons_resize_attributes linear = { PONS_RESIZE_LINEAR };
static const pons_resize_attributes nearest = { PONS_RESIZE_NEAREST };
static const pons_transpose_attributes first = { { 0, 4, 1, 2, 3 } };
static const pons_transpose_attributes last = { { 0, 2, 3, 4, 1 } };
static const pons_flip_attributes along_w = { 1u << 3 };
static const pons_crop_attributes strided = { { 0, 1, 1, 1, 0 }, { 1, 2, 2, 2, 1 } };
static const pons_crop_attributes box = { { 0, 6, 6, 6, 0 }, { 1, 1, 1, 1, 1 } };
static const pons_crop_attributes channels = { { 0 }, { 1, 1, 1, 1, 1 } };
static const pons_pad_attributes zeros = { PONS_PAD_ZERO, { 0, 6, 6, 6, 0 }, { 0, 6, 6, 6, 0 },
                                           { 1, 1, 1, 1, 1 } };
static const pons_pad_attributes edge = { PONS_PAD_EDGE, { 0, 6, 6, 6, 0 }, { 0, 6, 6, 6, 0 },
                                          { 1, 1, 1, 1, 1 } };
static const pons_axis_attributes over_channels = { 4 }, over_d = { 1 };
static const pons_minmax_attributes of_image = { 14u, false };

/* Elements are counted in the larger of the first input and the output. */
static const struct {
    const char *name;
    pons_kernel_kind kind;
    int inputs;
    pons_tensor from[2], to;
    const void *attributes;
} moves[] = {
    { "pool_max", PONS_KERNEL_POOL, 1, { WHOLE }, HALF, &largest },
    { "pool_max_gradient", PONS_KERNEL_POOL_GRADIENT, 2, { WHOLE, HALF }, WHOLE, &largest },
    { "pool_overlap", PONS_KERNEL_POOL, 1, { WHOLE }, HALF, &overlapping },
    { "pool_overlap_gradient", PONS_KERNEL_POOL_GRADIENT, 2, { WHOLE, HALF }, WHOLE,
      &overlapping },
    { "pool_mean", PONS_KERNEL_POOL, 1, { WHOLE }, HALF, &mean },
    { "pool_mean_gradient", PONS_KERNEL_POOL_GRADIENT, 2, { WHOLE, HALF }, WHOLE, &mean },
    { "resize_linear", PONS_KERNEL_RESIZE, 1, { HALF }, WHOLE, &linear },
    { "resize_gradient", PONS_KERNEL_RESIZE_GRADIENT, 1, { WHOLE }, HALF, &linear },
    { "resize_nearest", PONS_KERNEL_RESIZE, 1, { HALF }, WHOLE, &nearest },
    { "resize_nearest_gradient", PONS_KERNEL_RESIZE_GRADIENT, 1, { WHOLE }, HALF, &nearest },
    { "transpose", PONS_KERNEL_TRANSPOSE, 1, { WHOLE },
      { PONS_F32, { 5, { 1, 16, 24, 24, 24 } } }, &first },
    { "transpose_to_last", PONS_KERNEL_TRANSPOSE, 1, { { PONS_F32, { 5, { 1, 16, 24, 24, 24 } } } },
      WHOLE, &last },
    { "transpose_two", PONS_KERNEL_TRANSPOSE, 1, { IMAGE(PONS_F32, 32, 2) },
      { PONS_F32, { 5, { 1, 2, 32, 32, 32 } } }, &first },
    { "flip", PONS_KERNEL_FLIP, 1, { WHOLE }, WHOLE, &along_w },
    { "flip_one", PONS_KERNEL_FLIP, 1, { IMAGE(PONS_F32, 48, 1) }, IMAGE(PONS_F32, 48, 1),
      &along_w },
    { "crop_strided", PONS_KERNEL_CROP, 1, { WHOLE }, HALF, &strided },
    { "crop_box", PONS_KERNEL_CROP, 1, { WHOLE }, HALF, &box },
    { "crop_channels", PONS_KERNEL_CROP, 1, { WHOLE }, IMAGE(PONS_F32, 24, 8), &channels },
    { "pad_zero", PONS_KERNEL_PAD, 1, { HALF }, WHOLE, &zeros },
    { "pad_edge", PONS_KERNEL_PAD, 1, { HALF }, WHOLE, &edge },
    { "pad_edge_gradient", PONS_KERNEL_PAD_GRADIENT, 1, { WHOLE }, HALF, &edge },
    { "concatenate", PONS_KERNEL_CONCATENATE, 2,
      { IMAGE(PONS_F32, 24, 8), IMAGE(PONS_F32, 24, 8) }, WHOLE, &over_channels },
    { "arg_max_channels", PONS_KERNEL_ARG_MAX, 1, { WHOLE }, IMAGE(PONS_I32, 24, 1),
      &over_channels },
    { "arg_max_d", PONS_KERNEL_ARG_MAX, 1, { WHOLE }, { PONS_I32, { 5, { 1, 1, 24, 24, 16 } } },
      &over_d },
    { "extreme_gradient", PONS_KERNEL_REDUCE_MINMAX_GRADIENT, 2, { WHOLE, IMAGE(PONS_F32, 1, 16) },
      WHOLE, &of_image },
    { "copy_to_bf16", PONS_KERNEL_COPY, 1, { WHOLE }, IMAGE(PONS_BF16, 24, 16), NULL },
};

static int64_t count_of(const pons_tensor *t)
{
    return (int64_t)(size_of(t) / size_of(&(pons_tensor){ t->type, { 0 } }));
}

static void count_move(void *device, size_t i)
{
    int64_t from = count_of(&moves[i].from[0]), to = count_of(&moves[i].to);

    count_request(device,
                  &(pons_request){ .kind = moves[i].kind, .name = moves[i].name,
                      .input_count = moves[i].inputs, .output_count = 1, .input = moves[i].from,
                      .output = &moves[i].to, .attributes = moves[i].attributes },
                  from > to ? from : to);
}

/* ---- a loss ---------------------------------------------------------------------------------- */

enum { LOSS_SIDE = 32 };

static void run_loss(void *context)
{
    pons_error err = PONS_ERROR_INIT;
    step_result result;

    if (program_step_begin(context, 0, &err) != PONS_OK
        || program_micro(context, 0, &err) != PONS_OK
        || program_step_finish(context, 0, &result, &err) != PONS_OK)
        fail(&err);
}

/* Count a loss plugin of this build: the value, and the gradient by the logits of two classes. */
static void count_loss(const char *name)
{
    const program_settings settings = { .precision = PRECISION_FP32, .micro_batches = 1,
                                        .accumulate = 1 };
    const pons_device_settings one = { .count = 1, .threads = 1 };
    const pons_task task = { .size = sizeof task, .channels = 1, .classes = 2,
                             .target = PONS_TARGET_LABELS, .flat_axis = -1 };
    pons_shape shape = { 5, { 1, LOSS_SIDE, LOSS_SIDE, LOSS_SIDE, 2 } };
    pons_graph *g = graph_new(true);
    pons_node *logits = pons_parameter_leaf(g, "logits", PONS_ROLE_WEIGHT, shape,
                                            (pons_init){ PONS_INIT_UNIFORM, 1 });
    pons_target target = { .activation = PONS_ACTIVATION_SOFTMAX };
    pons_error err = PONS_ERROR_INIT;
    const plugin *found;
    device cpu;
    config *plain;
    storage *s;
    program *p;
    pons_node *value;
    uint8_t *label;
    void *options;

    shape.extent[4] = 1;
    target.node = node_input(g, "target", PONS_U8, shape);
    g->scope = SCOPE_LOSS;
    if (plugin_load(PONS_KIND_LOSS, name, sizeof(pons_loss_operations), NULL, &found, &err)
            != PONS_OK
        || config_open(NULL, 0, NULL, &plain, &err) != PONS_OK)
        fail(&err);
    options = calloc(1, found->descriptor->config_size + 1);
    if (options == NULL
        || config_fill(plain, "loss", found->descriptor->options, options, &err) != PONS_OK
        || device_open("cpu", &one, NULL, &cpu, &err) != PONS_OK
        || device_attach(&cpu, &err) != PONS_OK
        || storage_new(&cpu, &s, &err) != PONS_OK
        || ((const pons_loss_operations *)found->operations)
               ->build(g, options, &task, logits, &target, &value, &err) != PONS_OK
        || program_new(s, &cpu, g, value, 0, NULL, &settings, &p, &err) != PONS_OK
        || storage_initialise(s, 1, &err) != PONS_OK)
        fail(&err);
    label = program_input(p, "target", NULL);
    for (int i = 0; i < LOSS_SIDE * LOSS_SIDE * LOSS_SIDE; i++)
        label[i] = i % 3 == 0;
    count(name, LOSS_SIDE * LOSS_SIDE * LOSS_SIDE, run_loss, p);
    program_free(p);
    storage_free(s);
    device_close(&cpu);
    free(options);
    config_close(plain);
}

/* ---- windows --------------------------------------------------------------------------------- */

enum { WINDOW_SIDE = 32, WINDOW_CLASSES = 2 };

typedef struct blending {
    blender *s;
    int64_t batch;
    const float *logits;
} blending;

static void blend_next(void *context)
{
    blending *b = context;

    if (!window_blend_add(b->s, b->batch++, b->logits, 0))
        exit(1);
}

/* Count the blend of one of several windows, with logits like those of a network. */
static void count_blend(void *device)
{
    const window_settings settings = { .extent = { WINDOW_SIDE, WINDOW_SIDE, WINDOW_SIDE },
        .overlap = { 0.5, 0.5, 0.5 }, .blend = WINDOW_GAUSSIAN, .sigma_scale = 0.125, .batch = 1 };
    const int64_t size[3] = { WINDOW_SIDE, WINDOW_SIDE, 2 * WINDOW_SIDE };
    enum { NUMBERS = WINDOW_SIDE * WINDOW_SIDE * WINDOW_SIDE * WINDOW_CLASSES };
    const float *image = numbers(device, sizeof(float) * NUMBERS);
    blending b = { .logits = numbers(device, sizeof(float) * NUMBERS) };
    pons_error err = PONS_ERROR_INIT;

    if (window_blend_open(&settings, size, image, 1, WINDOW_CLASSES, &b.s, &err) != PONS_OK)
        fail(&err);
    count("window_blend", NUMBERS, blend_next, &b);
    window_blend_close(b.s);
}

/* ---- data ------------------------------------------------------------------------------------ */

enum { CASE_SIDE = 48, PATCH_SIDE = 32 };

static char folder[] = "/tmp/count-kernels-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static int next;
    char *to = path[next++ % 4];

    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

static void write_volume(const char *name, bool label)
{
    volume_grid grid = { .extent = { CASE_SIDE, CASE_SIDE, CASE_SIDE }, .spacing = { 1, 1, 1 },
                         .sform_code = 1 };
    unsigned char header[NIFTI_HEADER_LARGEST];
    FILE *file = fopen(in_folder(name), "wb");
    int16_t row[CASE_SIDE];
    uint8_t ids[CASE_SIDE];

    for (int a = 0; a < 3; a++)
        grid.affine[a][a] = grid.sform[a][a] = 1;
    const nifti_values values = { label ? NIFTI_KIND_UINT8 : 4, 1 };
    size_t size = nifti_header_make(&grid, 1, &values, header);
    fwrite(header, 1, size, file);
    for (int k = 0; k < CASE_SIDE * CASE_SIDE; k++) {
        for (int i = 0; i < CASE_SIDE; i++) {
            row[i] = (int16_t)(k * 31 % 997 + i);
            ids[i] = (i / 8 + k / 8 / CASE_SIDE) % 3 == 0;
        }
        fwrite(label ? (void *)ids : (void *)row, label ? 1 : 2, CASE_SIDE, file);
    }
    fclose(file);
}

static void read_volume(void *context)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;

    if (nifti_read_image(context, &v, NULL, &err) != PONS_OK)
        fail(&err);
    pons_volume_clear(&v);
}

typedef struct cutting {
    patch_batch patches;
    patch_scratch bench;
    loader_part part[2];
} cutting;

static void make_patches(void *context)
{
    cutting *c = context;
    pons_error err = PONS_ERROR_INIT;

    if (patch_batch_make(&c->patches, &c->bench, &(patch_job){ 0 }, c->part, &err) != PONS_OK)
        fail(&err);
}

static const char *const augmenting[] = {
    "augment.steps=flip rotate90 scale_intensity shift_intensity",
    "augment.flip.axes=0 1 2", "augment.flip.probability=0.5",
    "augment.rotate90.axes=0 1", "augment.rotate90.probability=0.5",
    "augment.scale_intensity.factors=0.1", "augment.scale_intensity.probability=1",
    "augment.shift_intensity.offsets=0.1", "augment.shift_intensity.probability=1",
};

static void count_patches(const char *name, pipeline *chain, cache *cases)
{
    enum { PATCHES = 4, VOXELS = PATCH_SIDE * PATCH_SIDE * PATCH_SIDE };
    cutting c = { .patches = { .cases = cases, .channels = 1, .label_channels = 1,
        .settings = { .seed = 7, .extent = { PATCH_SIDE, PATCH_SIDE, PATCH_SIDE }, .batch = 1,
                      .per_case = PATCHES, .micro_batches = 1, .count = 1, .positive = 1,
                      .negative = 1 } } };
    pons_error err = PONS_ERROR_INIT;

    if (batch_layout_make(false, NULL, c.patches.settings.extent, 1, 1, &c.patches.parts, &err)
        != PONS_OK)
        fail(&err);
    for (int i = 0; i < 2; i++) {
        c.part[i].data = calloc(PATCHES, c.patches.parts.item[i].size);
        if (c.part[i].data == NULL)
            fail(&err);
    }
    if ((chain != NULL && augment_init(&c.patches.augment, chain, &err) != PONS_OK)
        || patch_scratch_init(&c.patches, &c.bench, &err) != PONS_OK)
        fail(&err);
    count(name, PATCHES * VOXELS, make_patches, &c);
    patch_scratch_clear(&c.bench);
    if (chain != NULL)
        augment_clear(&c.patches.augment);
    for (int i = 0; i < 2; i++)
        free(c.part[i].data);
    batch_layout_clear(&c.patches.parts);
}

static void count_data(void)
{
    static const char *const labels[] = { "background:0", "organ:1" };
    const char *image[1];
    cache_settings settings = { .mode = CACHE_MEMORY, .threads = 1, .sampling = SAMPLING_UNIFORM };
    pons_error err = PONS_ERROR_INIT;
    pipeline *chain;
    dataset *data;
    cache *cases;
    config *ini;

    if (mkdtemp(folder) == NULL)
        exit(1);
    write_volume("image.nii", false);
    write_volume("label.nii", true);
    count("nifti_int16", CASE_SIDE * CASE_SIDE * CASE_SIDE, read_volume,
          (void *)in_folder("image.nii"));
    image[0] = in_folder("image.nii");
    dataset_settings where = { .image = { 1, image }, .label = in_folder("label.nii"),
                               .labels = { 2, labels }, .validation = "none" };
    if (dataset_open(&where, &data, &err) != PONS_OK
        || config_open(NULL, sizeof augmenting / sizeof *augmenting, (const char **)augmenting,
                       &ini, &err) != PONS_OK
        || pipeline_open(ini, "augment", true, 1, &chain, &err) != PONS_OK
        || cache_open(data, NULL, data->training_count, data->training, &settings, NULL, &cases,
                      &err) != PONS_OK)
        fail(&err);
    count_patches("patch_crop", NULL, cases);
    count_patches("patch_augmented", chain, cases);
    cache_close(cases);
    pipeline_close(chain);
    config_close(ini);
    dataset_close(data);
    unlink(in_folder("image.nii"));
    unlink(in_folder("label.nii"));
    rmdir(folder);
}

/* Count the kernels of this processor: generated for it, or selected by its matrix units. */
static void count_own(void *device)
{
    count_moments(device, "moments_f32_16", PONS_F32, 16);
    count_moments(device, "moments_bf16_32", PONS_BF16, 32);
    count_norm_forward(device, "norm_forward_f32_16", PONS_F32, 16);
    count_norm_forward(device, "norm_forward_bf16_32", PONS_BF16, 32);
    count_norm_prelu(device, "norm_prelu_bf16_32", PONS_BF16, 32);
    count_norm_back(device, "norm_back_bf16_32", PONS_BF16, 32);
    count_update(device);
    for (size_t i = 0; i < sizeof paired / sizeof *paired; i++)
        count_convolution(device, paired + i);
}

static void count_all(void *device)
{
    count_maps(device);
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        count_convolution(device, convolutions + i);
    count_product(device);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        count_move(device, i);
    count_loss("dice_ce");
    count_blend(device);
    count_data();
}

int main(int count, char **word)
{
    pons_device_settings settings = { .count = 1, .threads = 1 };
    thread_budget none = { 0 };
    pons_error err = PONS_ERROR_INIT;
    void *device;

    stepping = count == 2 && strcmp(word[1], "--steps") == 0;
    if (count > 1 && !stepping) {
        fprintf(stderr, "usage: count_kernels [--steps]\n");
        return 2;
    }
    if (stepping)
        step_counter_follow(); /* before threads exist */
    thread_budget_set(&none); /* work of other threads is not counted */
    if (cpu_operations.open(&settings, &device, &err) != PONS_OK)
        fail(&err);
    printf("build %s\n", build);
    printf("lanes %s%s\n", isa_map_lanes(isa_rows_count() - 1)->name,
           isa_runs(ISA_AMX) ? "_amx" : ""); /* AMX changes the choice of convolutions */
#ifdef __clang__
    printf("compiler clang %d\n", __clang_major__);
#else
    printf("compiler gcc %d\n", __GNUC__);
#endif
    fflush(stdout);
    (stepping ? count_own : count_all)(device);
    cpu_operations.close(device);
    return 0;
}
