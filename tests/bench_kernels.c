/*
 * bench_kernels.c - kernels that are not maps, beside the library where it is built and beside a copy
 * of the same bytes. Prints; run by hand:
 *
 *     make tests/bench_kernels && tests/bench_kernels [threads [part of a name]]
 */
#include "../plugins/devices/cpu/cpu.h"
#include "../plugins/devices/cpu/direct.h"
#include "../plugins/devices/cpu/onednn.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 5

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t tensor_size(const pons_tensor *x)
{
    size_t n = map_type_size(x->type);

    for (int i = 0; i < x->shape.rank; i++)
        n *= (size_t)x->shape.extent[i];
    return n;
}

static void *memory(size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    void *m = cpu_operations.allocate(NULL, size, &err);

    if (m == NULL)
        exit(1);
    memset(m, 0, size);
    return m;
}

/* Seconds of the fastest of some runs; 0: not supported. */
static double seconds(cpu_device *device, cpu_prepare prepare, const pons_request *r)
{
    pons_error err = PONS_ERROR_INIT;
    pons_kernel k = { 0 };
    void *input[4], *output = memory(tensor_size(r->output)), *packed = NULL, *scratch;
    bool supported;
    double best = 1e9;
    pons_call call = { input, &output, NULL, NULL };

    if (prepare(device, r, &k, &supported, &err) != PONS_OK || !supported)
        return 0;
    for (int i = 0; i < r->input_count; i++)
        input[i] = memory(tensor_size(&r->input[i]));
    call.scratch = scratch = memory(k.scratch_size);
    if (k.pack_size[1] > 0) {
        packed = memory(k.pack_size[1]);
        k.pack(&k, 1, input[1], packed, &err);
    }
    for (int i = 0; i < ROUNDS; i++) {
        void *plain = input[1];
        double begin;
        input[1] = packed != NULL ? packed : plain;
        begin = now();
        k.run(&k, &call, &err);
        best = now() - begin < best ? now() - begin : best;
        input[1] = plain;
    }
    for (int i = 0; i < r->input_count; i++)
        cpu_operations.release(NULL, input[i], tensor_size(&r->input[i]));
    cpu_operations.release(NULL, output, tensor_size(r->output));
    cpu_operations.release(NULL, scratch, k.scratch_size);
    if (packed != NULL)
        cpu_operations.release(NULL, packed, k.pack_size[1]);
    k.free(&k);
    return best;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

static pons_status by_direct(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return direct_prepare(device->direct, device->threads, request, kernel, supported, err);
}

static pons_status by_library(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                              bool *supported, pons_error *err)
{
    return onednn_prepare_convolution(device->library, request, kernel, supported, err);
}

static const struct {
    int64_t extent, in, out, kernel;
    int stride, groups;
} layers[] = {
    { 96, 16, 16, 3, 1, 1 }, { 48, 32, 32, 3, 1, 1 }, { 48, 32, 64, 3, 2, 1 },
    { 24, 64, 64, 3, 1, 1 }, { 12, 128, 128, 3, 1, 1 }, { 6, 256, 256, 3, 1, 1 },
    { 48, 64, 32, 1, 1, 1 }, { 48, 32, 32, 3, 1, 4 }, { 48, 32, 32, 3, 1, 32 },
};

static void bench_convolutions(cpu_device *device)
{
    static const char *const names[] = { "forward", "input", "weight" };

    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
        for (int type = PONS_F32; type <= PONS_BF16; type++) {
            int64_t n = layers[l].extent, s = layers[l].stride, m = (n - 1) / s + 1;
            int64_t k = layers[l].kernel;
            pons_convolution c = PONS_CONVOLUTION_INIT;
            pons_tensor x = { (pons_type)type, { 5, { 2, n, n, n, layers[l].in } } };
            pons_tensor w = { (pons_type)type, { 5, { layers[l].out, k, k, k,
                                                      layers[l].in / layers[l].groups } } };
            pons_tensor y = { (pons_type)type, { 5, { 2, m, m, m, layers[l].out } } };
            double flop = 2.0 * 2 * (double)(m * m * m * k * k * k * layers[l].in * layers[l].out) /
                          layers[l].groups;
            for (int i = 0; i < 3; i++) {
                c.stride[i] = (int)s;
                c.pad_low[i] = c.pad_high[i] = (int)k / 2;
            }
            c.groups = layers[l].groups;
            for (int way = 0; way < 3; way++) {
                pons_tensor f = w, in[3][2] = { { x, w }, { y, w }, { x, y } }, out[3] = { y, x };
                pons_request r = { .kind = (pons_kernel_kind)(PONS_KERNEL_CONVOLUTION + way),
                                   .name = "", .input_count = 2, .output_count = 1,
                                   .input = in[way], .output = &out[way], .attributes = &c,
                                   .packable = way < 2 ? 2u : 0 };
                double own, library;
                f.type = PONS_F32;
                out[2] = f;
                own = seconds(device, by_direct, &r);
                library = seconds(device, by_library, &r);
                printf("%lld^3 %lld->%lld k%lld s%lld g%d %s %-8s own %8.3f ms %6.1f GFLOP/s  "
                       "oneDNN %8.3f ms  own / oneDNN %.2f\n",
                       (long long)n, (long long)layers[l].in, (long long)layers[l].out,
                       (long long)k, (long long)s, layers[l].groups,
                       type == PONS_F32 ? "f32 " : "bf16", names[way], 1e3 * own,
                       1e-9 * flop / own, 1e3 * library, library > 0 ? own / library : 0);
            }
        }
}

int main(int argc, char **argv)
{
    pons_device_settings settings = { .count = 1, .threads = argc > 1 ? atoi(argv[1]) : 2 };
    pons_error err = PONS_ERROR_INIT;
    void *device;

    if (cpu_operations.open(&settings, &device, &err) != PONS_OK)
        return 1;
    omp_set_num_threads(settings.threads);
    bench_convolutions(device);
    cpu_operations.close(device);
    return 0;
}
