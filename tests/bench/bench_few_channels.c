/*
 * bench_few_channels.c - the convolutions with few channels of two networks, in all directions.
 * Prints; run by hand:
 *
 *     make tests/bench/bench_few_channels
 *     tests/bench/bench_few_channels [threads [lanes [layer]]]
 *
 * lanes: 0 the plainest, or 'library'.
 */
#include "bench/bench_arguments.h"
#include "bench/bench_clock.h"
#include "cpu/conv/conv_testing.h"
#include "cpu/cpu_testing.h"
#include "graph/ir/node.h"
#include "graph/ir/shape.h"
#include "support/graph/convolutions.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 7

static const struct { const char *name; int extent, in, out, kernel, stride; } layers[] = {
    { "1 -> 16 / 2", 96, 1, 16, 3, 2 },  { "2 -> 2", 96, 2, 2, 3, 1 },
    { "2 -> 32 / 2", 96, 2, 32, 3, 2 },  { "1 -> 32", 96, 1, 32, 3, 1 },
    { "4 -> 32", 96, 4, 32, 3, 1 },      { "32 -> 3 (1)", 96, 32, 3, 1, 1 },
    { "32 -> 2", 96, 32, 2, 3, 1 },      { "3 -> 64 / 2", 96, 3, 64, 3, 2 },
};

static void *tensor_new(const pons_tensor *t)
{
    pons_error err = PONS_ERROR_INIT;
    void *m = cpu_operations.memory.allocate(NULL, (size_t)tensor_count(t) * type_size(t->type),
                                             &err);

    for (int64_t i = 0; m != NULL && i < tensor_count(t); i++)
        map_number_store(t->type, m, i, (float)(i * 37 % 101 - 50) / 64);
    return m;
}

typedef pons_status prepare(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                            bool *supported, pons_error *err);

static pons_status by_device(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return cpu_operations.prepare(device, request, kernel, supported, err);
}

static pons_status by_library(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                              bool *supported, pons_error *err)
{
    return conv_prepare_by("onednn", device, request, kernel, supported, err);
}

static double fastest(const pons_kernel *kernel, const pons_call *call, int threads)
{
    pons_error err = PONS_ERROR_INIT;
    double best = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_seconds(threads), took;
        if (kernel->run(kernel, call, &err) != PONS_OK)
            exit(1);
        took = bench_seconds(threads) - start;
        best = took < best ? took : best;
    }
    return best;
}

static void time_one(cpu_device *device, prepare *by, const sliding *s, const char *name,
                     const char *direction)
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { 0 };
    sliding_request r;
    bool supported = false;
    double best, flop = 2.0 * s->cases * s->in * s->out;
    void *packed = NULL;

    sliding_make(s, &r);
    if (by == by_library && s->kind != PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        r.request.packable = 2;
    for (int i = 0; i < 3; i++)
        flop *= (double)sliding_extent(s, i) * s->kernel[i];
    if (by(device, &r.request, &kernel, &supported, &err) != PONS_OK || !supported) {
        printf("%-12s %-8s another's\n", name, direction);
        return;
    }
    void *in[2] = { tensor_new(&r.input[0]), tensor_new(&r.input[1]) }, *plain = in[1];
    void *out[1] = { tensor_new(&r.output[0]) };
    pons_call call = { in, out,
                       cpu_operations.memory.allocate(NULL, kernel.scratch_size, &err), NULL };
    if (kernel.pack_size[1] > 0) {
        packed = cpu_operations.memory.allocate(NULL, kernel.pack_size[1], &err);
        if (packed == NULL || kernel.pack(&kernel, 1, in[1], packed, &err) != PONS_OK)
            exit(1);
        in[1] = packed;
    }
    best = fastest(&kernel, &call, device->threads);
    in[1] = plain;
    printf("%-12s %-8s %-16s %7.2f ms %6.0f GF/s, scratch %.1f MB\n", name, direction,
           kernel.implementation, 1e3 * best, 1e-9 * flop / best, 1e-6 * kernel.scratch_size);
    for (int i = 0; i < 2; i++)
        cpu_operations.memory.release(NULL, in[i],
                               (size_t)tensor_count(&r.input[i]) * type_size(r.input[i].type));
    cpu_operations.memory.release(NULL, out[0],
                           (size_t)tensor_count(r.output) * type_size(r.output->type));
    cpu_operations.memory.release(NULL, call.scratch, kernel.scratch_size);
    if (packed != NULL)
        cpu_operations.memory.release(NULL, packed, kernel.pack_size[1]);
    kernel.free(&kernel);
}

static bool is_layer(const char *name)
{
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(layers[i].name, name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    static const struct { pons_kernel_kind kind; const char *name; } directions[] = {
        { PONS_KERNEL_CONVOLUTION, "forward" },
        { PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT, "input" },
        { PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT, "weight" },
    };
    int threads = bench_number(argc, argv, 1, "threads", 1, BENCH_THREADS_MOST, 2);
    pons_device_settings settings = { .count = 1, .threads = threads };
    pons_error err = PONS_ERROR_INIT;
    prepare *by = argc > 2 && strcmp(argv[2], "library") == 0 ? by_library : by_device;
    int row = isa_rows_count() - 1;
    void *device;

    if (by == by_device)
        row = bench_number(argc, argv, 2, "lanes", 0, row, row);
    if (argc > 3 && !is_layer(argv[3]))
        bench_refuse_name(argv, "layer", argv[3]);
    bench_no_more(argc, argv, 3);
    if (cpu_operations.open(&settings, &device, &err) != PONS_OK)
        return 1;
    omp_set_num_threads(settings.threads);
    cpu_device_choose_row(device, row);
    for (int type = 0; type < 2; type++) {
        printf("%s, %d threads, 2 x 96^3\n", type == 0 ? "fp32" : "bf16", settings.threads);
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
            for (int d = 0; d < 3 && (argc < 4 || strcmp(argv[3], layers[i].name) == 0); d++) {
                int e = layers[i].extent, k = layers[i].kernel, t = layers[i].stride, p = k / 2;
                sliding s = { directions[d].kind, 2, { e, e, e }, layers[i].in, layers[i].out,
                              { k, k, k }, { t, t, t }, { 1, 1, 1 }, { p, p, p }, { p, p, p },
                              type == 0 ? PONS_F32 : PONS_BF16 };
                time_one(device, by, &s, layers[i].name, directions[d].name);
            }
    }
    cpu_operations.close(device);
    return 0;
}
