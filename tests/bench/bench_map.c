/*
 * bench_map.c - map kernels against copies of the same bytes, the measure of the device's peak in
 * 'pons bench --kernels'. Prints; run by hand:
 *
 *     make tests/bench/bench_map
 *     tests/bench/bench_map [threads [log2 of the elements [runs [lanes [channels...]]]]]
 *
 * lanes: 0 the plainest, -1 the processor's own. With channels the program runs only the four
 * passes of norm and prelu, in bf16. It prints the share of the copy's bandwidth that they reach
 * together.
 */
#include "base/clock.h"
#include "bench/bench_arguments.h"
#include "cpu/cpu_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of runs, of which the fastest counts; and the row of lanes. */
static int runs = 7, lanes = -1;

static void *memory(size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    void *m = cpu_operations.memory.allocate(NULL, size, &err);

    if (m == NULL)
        exit(1);
    memset(m, 0, size);
    return m;
}

typedef struct bench {
    const char *name;
    pons_map map;
    pons_operand load[8];
    pons_value value[32];
    pons_store store[2];
    pons_reduction reduction[2];
} bench;

static int add(bench *b, int operation, int n, int x, int y, int z)
{
    b->value[b->map.value_count] = (pons_value){ .operation = (uint16_t)operation,
        .argument_count = (uint8_t)n, .argument = { x, y, z } };
    return b->map.value_count++;
}

static int number(bench *b, double x)
{
    b->value[b->map.value_count] = (pons_value){ .operation = PONS_VALUE_CONSTANT, .number = x };
    return b->map.value_count++;
}

/* An operand; 'kept' has the axes along which it changes. */
static pons_operand operand(const bench *b, int tensor, pons_type type, unsigned kept)
{
    pons_operand o = { .tensor = tensor, .type = type };
    int64_t stride = 1;

    for (int a = b->map.axis_count - 1; a >= 0; a--)
        if (kept >> a & 1) {
            o.stride[a] = stride;
            stride *= b->map.extent[a];
        }
    return o;
}

static int load(bench *b, int tensor, pons_type type, unsigned kept)
{
    b->load[b->map.load_count] = operand(b, tensor, type, kept);
    b->value[b->map.value_count] = (pons_value){ .operation = PONS_VALUE_LOAD,
                                                 .operand = b->map.load_count++ };
    return b->map.value_count++;
}

/* Seconds of the fastest run. */
static double run(bench *b, void *const *input, void *const *output, int threads, double bytes,
                  double copy)
{
    static const pons_step_key step_key = { 1, 2, 3 };
    pons_device_settings settings = { .count = 1, .threads = threads };
    pons_error err = PONS_ERROR_INIT;
    pons_request request = { .kind = PONS_KERNEL_MAP, .name = b->name, .attributes = &b->map };
    pons_kernel kernel = { 0 };
    pons_call call = { input, output, NULL, &step_key };
    bool supported;
    double best = 1e9;
    void *device;

    b->map.load = b->load;
    b->map.value = b->value;
    b->map.store = b->store;
    b->map.reduction = b->reduction;
    cpu_operations.open(&settings, &device, &err);
    if (lanes >= 0)
        cpu_device_choose_row(device, lanes);
    cpu_operations.prepare(device, &request, &kernel, &supported, &err);
    call.scratch = memory(kernel.scratch_size);
    for (int i = 0; i < runs; i++) {
        double begin = seconds_now();
        kernel.run(&kernel, &call, &err);
        best = seconds_now() - begin < best ? seconds_now() - begin : best;
    }
    printf("%-44s %9.3f ms %6.2f GB/s %5.2f of a copy\n", b->name, 1e3 * best, 1e-9 * bytes / best,
           best / (copy * bytes));
    cpu_operations.memory.release(device, call.scratch, kernel.scratch_size);
    return best;
}

/* Seconds per byte read or written. */
static double copy_rate(int threads)
{
    const pons_device_settings settings = { .count = 1, .threads = threads };
    pons_device_peak limits = { 0 };
    pons_error err = PONS_ERROR_INIT;
    void *device;

    if (cpu_operations.open(&settings, &device, &err) != PONS_OK
        || cpu_operations.profiling.peak(device, &limits, &err) != PONS_OK || limits.copy <= 0)
        exit(1);
    cpu_operations.close(device);
    printf("%-44s %12s %6.2f GB/s\n", "copy", "", 1e-9 * limits.copy);
    return 1 / limits.copy;
}

/* x s + t */
static int norm(bench *b, int x, unsigned channel)
{
    int s = load(b, 1, PONS_F32, channel), t = load(b, 2, PONS_F32, channel);

    return add(b, PONS_MAP_ADD, 2, add(b, PONS_MAP_MUL, 2, x, s, 0), t, 0);
}

/* 'value', times slope where y is not positive: prelu of y, or its gradient. */
static int prelu(bench *b, int y, int value)
{
    int slope = load(b, 3, PONS_F32, 0), zero = number(b, 0);

    return add(b, PONS_MAP_SELECT, 3, add(b, PONS_MAP_GREATER, 2, y, zero, 0), value,
               add(b, PONS_MAP_MUL, 2, value, slope, 0));
}

/*
 * Time the four passes of norm and prelu over 'count' elements of a type; returns the ratio of a
 * copy's seconds to theirs.
 */
static double run_passes(void *const *input, void *const *output, size_t count, int channels,
                       pons_type type, int threads, double copy)
{
    const char *word = type == PONS_F32 ? "f32" : "bf16";
    size_t rows = (count + (size_t)(2 * channels) - 1) / (size_t)(2 * channels);
    double bytes = (double)(rows * (size_t)(2 * channels)) * (type == PONS_F32 ? 4 : 2);
    char name[80];
    pons_map map = { .axis_count = 3, .extent = { 2, (int64_t)rows, channels } };
    bench moments = { .name = name, .map = map }, forward = moments, sums = moments,
          backward = moments, *b;
    double time = 0;
    int x, y, g;

    b = &moments;
    x = load(b, 0, type, 7);
    b->reduction[b->map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_MOMENTS,
        .value = x, .to = { operand(b, 1, PONS_F32, 5), operand(b, 2, PONS_F32, 5) } };
    snprintf(name, sizeof name, "moments, %s, %d channels", word, channels);
    time += run(b, input, output, threads, bytes, copy);

    b = &forward;
    y = norm(b, load(b, 0, type, 7), 5);
    b->store[b->map.store_count++] = (pons_store){ prelu(b, y, y), operand(b, 0, type, 7) };
    snprintf(name, sizeof name, "norm and prelu, %s, %d channels", word, channels);
    time += run(b, input, output, threads, 2 * bytes, copy);

    b = &sums;
    y = norm(b, load(b, 0, type, 7), 5);
    g = prelu(b, y, load(b, 4, type, 7));
    b->reduction[b->map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_SUM,
        .value = add(b, PONS_MAP_MUL, 2, g, y, 0), .to = { operand(b, 1, PONS_F32, 5) } };
    b->reduction[b->map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_SUM,
        .value = g, .to = { operand(b, 2, PONS_F32, 5) } };
    snprintf(name, sizeof name, "gradient, its two sums, %s, %d channels", word, channels);
    time += run(b, input, output, threads, 2 * bytes, copy);

    b = &backward;
    y = norm(b, load(b, 0, type, 7), 5);
    g = prelu(b, y, load(b, 4, type, 7));
    b->store[b->map.store_count++]
        = (pons_store){ norm(b, add(b, PONS_MAP_ADD, 2, g, y, 0), 5), operand(b, 0, type, 7) };
    snprintf(name, sizeof name, "gradient, %s, %d channels", word, channels);
    time += run(b, input, output, threads, 3 * bytes, copy);
    return 8 * bytes * copy / time;
}

int main(int argc, char **argv)
{
    enum { CHANNELS_MOST = 1024 };
    const size_t few = 2 * CHANNELS_MOST * sizeof(float); /* one value per channel of an image    */
    int threads = bench_number(argc, argv, 1, "threads", 1, BENCH_THREADS_MOST, 2);
    int bits = bench_number(argc, argv, 2, "the logarithm of the elements", 8, 30, 26);
    size_t count = (size_t)1 << bits, size = count * 4, room = size + (1 << 16);

    runs = bench_number(argc, argv, 3, "runs", 1, 1000000, runs);
    lanes = bench_number(argc, argv, 4, "lanes", -1, isa_rows_count() - 1, lanes);
    for (int i = 5; i < argc; i++)
        bench_number(argc, argv, i, "channels", 1, CHANNELS_MOST, 1);
    void *input[5] = { memory(room), memory(few), memory(few), memory(few), memory(room) };
    void *output[4] = { memory(room), memory(few), memory(few), memory(few) };
    double copy = copy_rate(threads);
    int channels[] = { 16, 2, 3, 1, 32, 70 };

    for (int i = 5; i < argc; i++)
        printf("%s channels: %.2f of the copy's bandwidth\n", argv[i],
               run_passes(input, output, count, atoi(argv[i]), PONS_BF16, threads, copy));
    if (argc > 5)
        return 0;

    {
        bench b = { .name = "10 operations in a chain",
                    .map = { .axis_count = 1, .extent = { (int64_t)count } } };
        int x = load(&b, 0, PONS_F32, 1);
        for (int i = 0; i < 5; i++)
            x = add(&b, PONS_MAP_ADD, 2, add(&b, PONS_MAP_MUL, 2, x, number(&b, 1.5), 0), x, 0);
        b.store[b.map.store_count++] = (pons_store){ x, operand(&b, 0, PONS_F32, 1) };
        run(&b, input, output, threads, 2 * (double)size, copy);
    }
    {
        bench b = { .name = "exp and log",
                    .map = { .axis_count = 1, .extent = { (int64_t)count } } };
        int x = load(&b, 0, PONS_F32, 1);
        x = add(&b, PONS_MAP_LOG, 1, add(&b, PONS_MAP_EXP, 1, x, 0, 0), 0, 0);
        b.store[b.map.store_count++] = (pons_store){ x, operand(&b, 0, PONS_F32, 1) };
        run(&b, input, output, threads, 2 * (double)size, copy);
    }
    for (int i = 0; i < 6; i++)
        for (int low = 0; low < 2; low++)
            run_passes(input, output, count, channels[i], low ? PONS_BF16 : PONS_F32, threads,
                       copy);
    for (int i = 1; i < 5; i++) {
        int c = channels[i];
        char name[80];
        bench b = { .name = name, .map = { .axis_count = 2, .extent = { (int64_t)count / c, c },
                                           .channels = c } };
        int x = load(&b, 0, PONS_F32, 3), most, sum;
        most = add(&b, PONS_VALUE_CHANNEL_MAX, 1, x, 0, 0);
        b.value[most].per_point = 1;
        x = add(&b, PONS_MAP_EXP, 1, add(&b, PONS_MAP_SUB, 2, x, most, 0), 0, 0);
        sum = add(&b, PONS_VALUE_CHANNEL_SUM, 1, x, 0, 0);
        b.value[sum].per_point = 1;
        x = add(&b, PONS_MAP_DIV, 2, x, sum, 0);
        b.store[b.map.store_count++] = (pons_store){ x, operand(&b, 0, PONS_F32, 3) };
        snprintf(name, sizeof name, "softmax, f32, %d channels", c);
        run(&b, input, output, threads, 2 * (double)(count / (size_t)c * (size_t)c * 4), copy);
    }
    {
        bench b = { .name = "uniform random numbers",
                    .map = { .axis_count = 1, .extent = { (int64_t)count } } };
        int x = add(&b, PONS_VALUE_UNIFORM, 0, 0, 0, 0);
        b.store[b.map.store_count++] = (pons_store){ x, operand(&b, 0, PONS_F32, 1) };
        run(&b, input, output, threads, (double)size, copy);
    }
    return 0;
}
