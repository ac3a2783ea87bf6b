/*
 * bench_cpu_kernels.c - the time of kernels other than maps, beside oneDNN's if the build has it,
 * and beside a copy of the same bytes. Prints; run by hand:
 *
 *     make tests/bench/bench_cpu_kernels
 *     tests/bench/bench_cpu_kernels [threads [part of a name]]
 *     tests/bench/bench_cpu_kernels threads convolution [part of a name, as in "bf16 weight"]
 */
#include "bench/bench_arguments.h"
#include "bench/bench_clock.h"
#include "cpu/conv/conv_testing.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 5

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
    void *m = cpu_operations.memory.allocate(NULL, size, &err);

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
        double begin, taken;
        input[1] = packed != NULL ? packed : plain;
        begin = bench_seconds(device->threads);
        k.run(&k, &call, &err);
        taken = bench_seconds(device->threads) - begin;
        best = taken < best ? taken : best;
        input[1] = plain;
    }
    for (int i = 0; i < r->input_count; i++)
        cpu_operations.memory.release(NULL, input[i], tensor_size(&r->input[i]));
    cpu_operations.memory.release(NULL, output, tensor_size(r->output));
    cpu_operations.memory.release(NULL, scratch, k.scratch_size);
    if (packed != NULL)
        cpu_operations.memory.release(NULL, packed, k.pack_size[1]);
    k.free(&k);
    return best;
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* The solvers that the processor supports, whatever select.c prefers. */
#define BY(name)                                                                                  \
    static pons_status by_##name(cpu_device *device, const pons_request *request,                 \
                                 pons_kernel *kernel, bool *supported, pons_error *err)           \
    {                                                                                             \
        return conv_prepare_by(#name, device, request, kernel, supported, err);                   \
    }

BY(direct)
BY(onednn)
BY(bf16_gemm)
BY(winograd)

static const struct {
    int64_t extent, in, out, kernel;
    int stride, groups;
} layers[] = {
    { 96, 16, 16, 3, 1, 1 }, { 48, 32, 32, 3, 1, 1 }, { 48, 32, 64, 3, 2, 1 },
    { 24, 64, 64, 3, 1, 1 }, { 12, 128, 128, 3, 1, 1 }, { 6, 256, 256, 3, 1, 1 },
    { 48, 16, 16, 3, 1, 1 }, { 48, 16, 64, 3, 2, 1 }, { 24, 32, 32, 3, 1, 1 },
    { 24, 32, 64, 3, 2, 1 }, { 12, 64, 64, 3, 1, 1 }, { 12, 64, 384, 3, 2, 1 },
    { 6, 128, 128, 3, 1, 1 }, { 6, 128, 256, 3, 1, 1 }, { 4, 256, 256, 3, 1, 1 },
    { 12, 64, 128, 3, 2, 1 }, { 48, 64, 128, 3, 2, 1 }, { 24, 32, 128, 3, 2, 1 },
    { 24, 64, 256, 3, 2, 1 }, { 8, 64, 64, 3, 2, 1 }, { 16, 64, 64, 3, 2, 1 },
    { 20, 64, 64, 3, 2, 1 }, { 28, 128, 128, 3, 2, 1 }, { 96, 32, 32, 3, 2, 1 },
    { 48, 16, 32, 3, 2, 1 }, { 24, 128, 128, 3, 1, 1 },
    { 48, 32, 128, 3, 2, 1 }, { 24, 64, 128, 3, 2, 1 }, { 12, 128, 256, 3, 2, 1 },
    { 12, 128, 512, 3, 2, 1 },
    { 6, 256, 512, 3, 1, 1 }, { 6, 512, 512, 3, 1, 1 },
    { 48, 8, 8, 3, 1, 1 }, { 48, 24, 24, 3, 1, 1 }, { 48, 8, 16, 3, 1, 1 }, { 48, 16, 8, 3, 1, 1 },
    { 48, 17, 16, 3, 1, 1 }, { 48, 16, 17, 3, 1, 1 }, { 48, 32, 5, 3, 1, 1 },
    { 48, 40, 40, 3, 1, 1 }, { 48, 64, 32, 1, 1, 1 }, { 48, 32, 32, 3, 1, 4 },
    { 48, 32, 32, 3, 1, 32 },
};

/* Time the convolutions whose names contain 'part'; returns their number. */
static int bench_convolutions(cpu_device *device, const char *part)
{
    static const char *const names[] = { "forward", "input", "weight" };
    int count = 0;

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
                double direct, library, gemm, winograd;
                char name[96];
                f.type = PONS_F32;
                out[2] = f;
                snprintf(name, sizeof name, "%lld^3 %lld->%lld k%lld s%lld g%d %s %s",
                         (long long)n, (long long)layers[l].in, (long long)layers[l].out,
                         (long long)k, (long long)s, layers[l].groups,
                         type == PONS_F32 ? "f32" : "bf16", names[way]);
                if (strstr(name, part) == NULL)
                    continue;
                count++;
                direct = seconds(device, by_direct, &r);
                library = seconds(device, by_onednn, &r);
                gemm = seconds(device, by_bf16_gemm, &r);
                winograd = seconds(device, by_winograd, &r);
                printf("%-36s direct %8.3f ms %6.1f GFLOP/s  oneDNN %8.3f ms  direct / oneDNN "
                       "%.2f", name, 1e3 * direct, 1e-9 * flop / direct, 1e3 * library,
                       library > 0 ? direct / library : 0);
                if (gemm > 0)
                    printf("  bf16_gemm %8.3f ms, bf16_gemm / oneDNN %.2f", 1e3 * gemm,
                           library > 0 ? gemm / library : 0);
                if (winograd > 0)
                    printf("  winograd %8.3f ms, winograd / oneDNN %.2f", 1e3 * winograd,
                           library > 0 ? winograd / library : 0);
                printf("\n");
            }
        }
    return count;
}

/* ---- movement and reduction ------------------------------------------------------------------ */

static const pons_transpose_attributes channels_first = { { 0, 4, 1, 2, 3 } };
static const pons_transpose_attributes channels_last = { { 0, 2, 3, 4, 1 } };
static const pons_flip_attributes flip_w = { 1u << 3 };
static const pons_crop_attributes crop_box = { { 0, 8, 8, 8, 0 }, { 1, 1, 1, 1, 1 } };
static const pons_crop_attributes crop_channels = { { 0 }, { 1, 1, 1, 1, 1 } };
static const pons_pad_attributes pad_zero = { PONS_PAD_ZERO, { 0, 8, 8, 8, 0 }, { 0, 8, 8, 8, 0 },
                                              { 1, 1, 1, 1, 1 } };
static const pons_pad_attributes pad_edge = { PONS_PAD_EDGE, { 0, 8, 8, 8, 0 }, { 0, 8, 8, 8, 0 },
                                              { 1, 1, 1, 1, 1 } };
static const pons_axis_attributes along_channels = { 4 }, along_d = { 1 };
static const pons_minmax_attributes largest_of_image = { 14u, false };
static const pons_pool pool_largest = { PONS_POOL_MAX, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 0 },
                                        false };
static const pons_pool pool_mean = { PONS_POOL_MEAN, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 0 },
                                     false };
static const pons_pool pool_overlap = { PONS_POOL_MAX, { 3, 3, 3 }, { 2, 2, 2 }, { 1, 1, 1 },
                                        { 1, 1, 1 }, false };
static const pons_resize_attributes linear = { PONS_RESIZE_LINEAR };
static const pons_resize_attributes nearest = { PONS_RESIZE_NEAREST };

#define IMAGE(n, c) { 5, { 2, n, n, n, c } }
#define FIRST(n, c) { 5, { 2, c, n, n, n } }

static const struct {
    const char *name;
    pons_kernel_kind kind;
    int inputs;
    pons_shape in[2], out;
    const void *attributes;
} moves[] = {
    { "copy", PONS_KERNEL_COPY, 1, { IMAGE(96, 32) }, IMAGE(96, 32), NULL },
    { "transpose to channels first, 32", PONS_KERNEL_TRANSPOSE, 1, { IMAGE(96, 32) }, FIRST(96, 32),
      &channels_first },
    { "transpose to channels last, 32", PONS_KERNEL_TRANSPOSE, 1, { FIRST(96, 32) }, IMAGE(96, 32),
      &channels_last },
    { "transpose to channels first, 2", PONS_KERNEL_TRANSPOSE, 1, { IMAGE(160, 2) }, FIRST(160, 2),
      &channels_first },
    { "flip along W, 32 channels", PONS_KERNEL_FLIP, 1, { IMAGE(96, 32) }, IMAGE(96, 32), &flip_w },
    { "flip along W, 1 channel", PONS_KERNEL_FLIP, 1, { IMAGE(192, 1) }, IMAGE(192, 1), &flip_w },
    { "crop a box", PONS_KERNEL_CROP, 1, { IMAGE(112, 32) }, IMAGE(96, 32), &crop_box },
    { "crop 16 of 32 channels", PONS_KERNEL_CROP, 1, { IMAGE(96, 32) }, IMAGE(96, 16),
      &crop_channels },
    { "pad with zeros", PONS_KERNEL_PAD, 1, { IMAGE(80, 32) }, IMAGE(96, 32), &pad_zero },
    { "pad with the edge", PONS_KERNEL_PAD, 1, { IMAGE(80, 32) }, IMAGE(96, 32), &pad_edge },
    { "gradient of that", PONS_KERNEL_PAD_GRADIENT, 1, { IMAGE(96, 32) }, IMAGE(80, 32),
      &pad_edge },
    { "concatenate 16 + 16 channels", PONS_KERNEL_CONCATENATE, 2, { IMAGE(96, 16), IMAGE(96, 16) },
      IMAGE(96, 32), &along_channels },
    { "arg_max over 32 channels", PONS_KERNEL_ARG_MAX, 1, { IMAGE(96, 32) }, IMAGE(96, 1),
      &along_channels },
    { "arg_max over D", PONS_KERNEL_ARG_MAX, 1, { IMAGE(96, 32) }, { 5, { 2, 1, 96, 96, 32 } },
      &along_d },
    { "gradient of the largest of an image", PONS_KERNEL_REDUCE_MINMAX_GRADIENT, 2,
      { IMAGE(96, 32), IMAGE(1, 32) }, IMAGE(96, 32), &largest_of_image },
    { "max pool 2^3", PONS_KERNEL_POOL, 1, { IMAGE(96, 32) }, IMAGE(48, 32), &pool_largest },
    { "gradient of that", PONS_KERNEL_POOL_GRADIENT, 2, { IMAGE(96, 32), IMAGE(48, 32) },
      IMAGE(96, 32), &pool_largest },
    { "max pool 3^3 by 2", PONS_KERNEL_POOL, 1, { IMAGE(96, 32) }, IMAGE(48, 32), &pool_overlap },
    { "gradient of that", PONS_KERNEL_POOL_GRADIENT, 2, { IMAGE(96, 32), IMAGE(48, 32) },
      IMAGE(96, 32), &pool_overlap },
    { "mean pool 2^3", PONS_KERNEL_POOL, 1, { IMAGE(96, 32) }, IMAGE(48, 32), &pool_mean },
    { "gradient of that", PONS_KERNEL_POOL_GRADIENT, 2, { IMAGE(96, 32), IMAGE(48, 32) },
      IMAGE(96, 32), &pool_mean },
    { "resize 48^3 to 96^3, linear", PONS_KERNEL_RESIZE, 1, { IMAGE(48, 32) }, IMAGE(96, 32),
      &linear },
    { "gradient of that", PONS_KERNEL_RESIZE_GRADIENT, 1, { IMAGE(96, 32) }, IMAGE(48, 32),
      &linear },
    { "resize 48^3 to 96^3, nearest", PONS_KERNEL_RESIZE, 1, { IMAGE(48, 32) }, IMAGE(96, 32),
      &nearest },
    { "gradient of that", PONS_KERNEL_RESIZE_GRADIENT, 1, { IMAGE(96, 32) }, IMAGE(48, 32),
      &nearest },
};

static pons_status by_device(cpu_device *device, const pons_request *request, pons_kernel *kernel,
                             bool *supported, pons_error *err)
{
    return cpu_operations.prepare(device, request, kernel, supported, err);
}

static bool is_move(const char *part)
{
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (strstr(moves[i].name, part) != NULL)
            return true;
    return false;
}

static void bench_moves(cpu_device *device, const char *part)
{
    double rate = 0;

    for (int type = PONS_F32; type <= PONS_BF16; type++)
        for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
            pons_tensor in[2] = { { (pons_type)type, moves[i].in[0] },
                                  { (pons_type)type, moves[i].in[1] } };
            pons_tensor out = { moves[i].kind == PONS_KERNEL_ARG_MAX ? PONS_I32 : (pons_type)type,
                                moves[i].out };
            pons_request r = { .kind = moves[i].kind, .name = moves[i].name,
                               .input_count = moves[i].inputs, .output_count = 1, .input = in,
                               .output = &out, .attributes = moves[i].attributes };
            double bytes = (double)tensor_size(&out) + (double)tensor_size(&in[0]), time;
            if (moves[i].kind == PONS_KERNEL_CROP)
                bytes = 2 * (double)tensor_size(&out);
            if (moves[i].inputs > 1)
                bytes += (double)tensor_size(&in[1]);
            if (i > 0 && strstr(moves[i].name, part) == NULL)
                continue;
            time = seconds(device, by_device, &r);
            rate = i == 0 ? bytes / time : rate;
            printf("%-40s %s %8.3f ms %6.2f GB/s %5.2f of a copy\n", moves[i].name,
                   type == PONS_F32 ? "f32 " : "bf16", 1e3 * time, 1e-9 * bytes / time,
                   bytes / time / rate);
        }
}

int main(int argc, char **argv)
{
    int threads = bench_number(argc, argv, 1, "threads", 1, BENCH_THREADS_MOST, 2);
    pons_device_settings settings = { .count = 1, .threads = threads };
    const char *what = argc > 2 ? argv[2] : "";
    bool convolutions = strcmp(what, "convolution") == 0;
    pons_error err = PONS_ERROR_INIT;
    void *device;

    bench_no_more(argc, argv, convolutions ? 3 : 2);
    if (!convolutions && !is_move(what))
        bench_refuse_name(argv, "kernel like", what);
    if (cpu_operations.open(&settings, &device, &err) != PONS_OK)
        return 1;
    omp_set_num_threads(threads);
    if (!convolutions)
        bench_moves(device, what);
    else if (bench_convolutions(device, argc > 3 ? argv[3] : "") == 0)
        bench_refuse_name(argv, "convolution like", argv[3]);
    cpu_operations.close(device);
    return 0;
}
