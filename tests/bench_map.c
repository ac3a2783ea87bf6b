/*
 * bench_map.c - map kernels against copies of the same bytes. Prints; run by hand:
 *
 *     make tests/bench_map && tests/bench_map [threads [log2 of the elements]]
 */
#include "../plugins/devices/cpu/cpu.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 7

static void *memory(size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    void *m = cpu_operations.allocate(NULL, size, &err);

    if (m == NULL)
        exit(1);
    memset(m, 0, size);
    return m;
}

typedef struct bench {
    const char *name;
    pons_map map;
    pons_operand load[4];
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

/* 'kept' are the axes along which the operand changes. */
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

static void run(bench *b, void *const *input, void *const *output, int threads, double bytes,
                double copy)
{
    static const pons_moment moment = { 1, 2, 3 };
    pons_device_settings settings = { .count = 1, .threads = threads };
    pons_error err = PONS_ERROR_INIT;
    pons_request request = { .kind = PONS_KERNEL_MAP, .name = b->name, .attributes = &b->map };
    pons_kernel kernel = { 0 };
    pons_call call = { input, output, NULL, &moment };
    bool supported;
    double best = 1e9;
    void *device;

    b->map.load = b->load;
    b->map.value = b->value;
    b->map.store = b->store;
    b->map.reduction = b->reduction;
    cpu_operations.open(&settings, &device, &err);
    cpu_operations.prepare(device, &request, &kernel, &supported, &err);
    call.scratch = memory(kernel.scratch_size);
    for (int i = 0; i < ROUNDS; i++) {
        double begin = seconds_now();
        kernel.run(&kernel, &call, &err);
        best = seconds_now() - begin < best ? seconds_now() - begin : best;
    }
    printf("%-44s %9.3f ms %6.2f GB/s %5.2f of a copy\n", b->name, 1e3 * best, 1e-9 * bytes / best,
           best / (copy * bytes));
}

typedef struct copying {
    char *to;
    const char *from;
    size_t piece;
} copying;

static void copy_piece(void *context, int64_t i, int thread)
{
    const copying *c = context;

    memcpy(c->to + (size_t)i * c->piece, c->from + (size_t)i * c->piece, c->piece);
}

/* Seconds for each byte read or written. */
static double copy_rate(void *to, const void *from, size_t size, int threads)
{
    copying c = { to, from, 1 << 20 };
    double best = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        double begin = seconds_now();
        cpu_parallel(threads, (int64_t)(size >> 20), copy_piece, &c);
        best = seconds_now() - begin < best ? seconds_now() - begin : best;
    }
    printf("%-44s %9.3f ms %6.2f GB/s\n", "copy", 1e3 * best, 2e-9 * (double)size / best);
    return best / (2 * (double)size);
}

/* x s + t, times slope where it is not positive. */
static int norm_prelu(bench *b, int x, pons_type type, unsigned channel)
{
    int s = load(b, 1, PONS_F32, channel), t = load(b, 2, PONS_F32, channel);
    int slope = load(b, 3, PONS_F32, 0), zero = number(b, 0), y;

    y = add(b, PONS_MAP_ADD, 2, add(b, PONS_MAP_MUL, 2, x, s, 0), t, 0);
    return add(b, PONS_MAP_SELECT, 3, add(b, PONS_MAP_GREATER, 2, y, zero, 0), y,
               add(b, PONS_MAP_MUL, 2, y, slope, 0));
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    size_t count = (size_t)1 << (argc > 2 ? atoi(argv[2]) : 26), size = count * 4;
    void *input[4] = { memory(size), memory(4096), memory(4096), memory(4096) };
    void *output[4] = { memory(size), memory(4096), memory(4096), memory(4096) };
    double copy = copy_rate(output[0], input[0], size, threads);
    int channels[] = { 16, 2, 3, 1, 32, 70 };

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
        for (int low = 0; low < 2; low++) {
            pons_type type = low ? PONS_BF16 : PONS_F32;
            double bytes = (double)(count / (size_t)(2 * channels[i]) * (size_t)(2 * channels[i]))
                         * (low ? 2 : 4);
            char name[80];
            pons_map map = { .axis_count = 3, .extent = { 2,
                             (int64_t)count / 2 / channels[i], channels[i] } };
            bench b = { .name = name, .map = map }, c = b, d = b;
            int x, y, g;

            x = load(&b, 0, type, 7);
            b.reduction[b.map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_MOMENTS,
                .value = x, .to = { operand(&b, 1, PONS_F32, 5), operand(&b, 2, PONS_F32, 5) } };
            snprintf(name, sizeof name, "moments, %s, %d channels", low ? "bf16" : "f32",
                     channels[i]);
            run(&b, input, output, threads, bytes, copy);

            x = load(&c, 0, type, 7);
            x = norm_prelu(&c, x, type, 5);
            c.store[c.map.store_count++] = (pons_store){ x, operand(&c, 0, type, 7) };
            snprintf(name, sizeof name, "norm and prelu, %s, %d channels", low ? "bf16" : "f32",
                     channels[i]);
            run(&c, input, output, threads, 2 * bytes, copy);

            x = load(&d, 0, type, 7);
            y = norm_prelu(&d, x, type, 5);
            g = add(&d, PONS_MAP_MUL, 2, x, y, 0);
            d.reduction[d.map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_SUM,
                .value = g, .to = { operand(&d, 1, PONS_F32, 5) } };
            d.reduction[d.map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_SUM,
                .value = y, .to = { operand(&d, 2, PONS_F32, 5) } };
            d.store[d.map.store_count++] = (pons_store){ y, operand(&d, 0, type, 7) };
            snprintf(name, sizeof name, "norm, prelu, two sums, %s, %d channels",
                     low ? "bf16" : "f32", channels[i]);
            run(&d, input, output, threads, 2 * bytes, copy);
        }
    for (int i = 1; i < 5; i++) {
        int c = channels[i];
        char name[80];
        bench b = { .name = name, .map = { .axis_count = 2, .extent = { (int64_t)count / c, c },
                                           .channels = c } };
        int x = load(&b, 0, PONS_F32, 3), most, sum;
        most = add(&b, PONS_VALUE_CHANNEL_MAX, 1, x, 0, 0);
        b.value[most].narrow = 1;
        x = add(&b, PONS_MAP_EXP, 1, add(&b, PONS_MAP_SUB, 2, x, most, 0), 0, 0);
        sum = add(&b, PONS_VALUE_CHANNEL_SUM, 1, x, 0, 0);
        b.value[sum].narrow = 1;
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
