/*
 * count_kernels.c - a kernel of each family, once, inside of the function 'counted': a profiler
 * that counts instructions there tells what a kernel costs whatever else the machine does.
 *
 *     count_kernels          prints "NAME ELEMENTS" for each, in the order in which they are
 *                            counted, after what they depend on
 *
 * One thread; tests/check_counts.sh runs it.
 */
#include <config.h>

#include "../plugins/devices/cpu/cpu.h"

#include "data/nifti.h"
#include "data/patch_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUTS = 4, VALUES = 40 };

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

/* What is counted; the profiler knows it by its name. */
void counted(void (*run)(void *), void *context);

__attribute__((noinline, noclone)) void counted(void (*run)(void *), void *context)
{
    run(context);
    __asm__ volatile("" ::: "memory");
}

static void count(const char *name, int64_t elements, void (*run)(void *), void *context)
{
    run(context); /* the first time, memory is touched and tables are made */
    counted(run, context);
    printf("%s %lld\n", name, (long long)elements);
}

/* ---- kernels of the device ------------------------------------------------------------------- */

typedef struct trial {
    void *device;
    pons_kernel kernel;
    pons_call call;
    void *input[INPUTS], *output[INPUTS];
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

/* Numbers between -1 and 1 in every type: each half of a float is one of bf16. */
static void *numbers(void *device, size_t size)
{
    pons_error err = PONS_ERROR_INIT;
    uint16_t *memory = cpu_operations.allocate(device, size + 4096, &err);
    uint32_t state = 1;

    if (memory == NULL)
        fail(&err);
    for (size_t i = 0; i < size / 2; i++) {
        state = state * 1664525u + 1013904223u;
        memory[i] = (uint16_t)(0x3e00 | (state >> 16 & 0x80ff));
    }
    return memory;
}

static void count_request(void *device, const pons_request *request, int64_t elements)
{
    static const pons_moment moment = { 1, 2, 3 };
    trial t = { .device = device };
    pons_error err = PONS_ERROR_INIT;
    bool supported;

    if (cpu_operations.prepare(device, request, &t.kernel, &supported, &err) != PONS_OK)
        fail(&err);
    if (!supported) {
        fprintf(stderr, "count_kernels: no kernel for '%s'\n", request->name);
        exit(1);
    }
    for (int i = 0; i < request->input_count; i++)
        t.input[i] = numbers(device, size_of(&request->input[i]));
    for (int i = 0; i < request->output_count; i++)
        t.output[i] = numbers(device, size_of(&request->output[i]));
    t.call = (pons_call){ t.input, t.output, numbers(device, t.kernel.scratch_size), &moment };
    count(request->name, elements, run_kernel, &t);
    if (t.kernel.free != NULL)
        t.kernel.free(&t.kernel);
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
    pons_tensor input[INPUTS], output[INPUTS];
    pons_operand load[INPUTS];
    pons_value value[VALUES];
    pons_store store[2];
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

/* 'kept' are the axes along which the operand changes. */
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

static void count_moments(void *device, const char *name, int64_t channels)
{
    sketch s = { .map = { .axis_count = 2, .extent = { (1 << 17) / channels, channels } } };
    int x = load(&s, PONS_F32, 3);

    s.reduction[s.map.reduction_count++] = (pons_reduction){ .kind = PONS_REDUCE_MOMENTS,
        .value = x, .to = { operand(&s, 0, PONS_F32, 2), operand(&s, 1, PONS_F32, 2) } };
    s.output[s.outputs++] = tensor_of(&s, PONS_F32, 2);
    s.output[s.outputs++] = tensor_of(&s, PONS_F32, 2);
    count_map(device, name, &s);
}

/* The backward reduce pass of a norm with its activation: the volume again, and two sums. */
static void count_norm_prelu(void *device, const char *name, pons_type type, int64_t channels)
{
    sketch s = { .map = { .axis_count = 2, .extent = { (1 << 17) / channels, channels } } };
    int x = load(&s, type, 3), scale = load(&s, PONS_F32, 2), shift = load(&s, PONS_F32, 2), y;
    int slope = number(&s, 0.25), zero = number(&s, 0);

    y = add(&s, PONS_MAP_ADD, 2, add(&s, PONS_MAP_MUL, 2, x, scale, 0), shift, 0);
    y = add(&s, PONS_MAP_SELECT, 3, add(&s, PONS_MAP_GREATER, 2, y, zero, 0), y,
            add(&s, PONS_MAP_MUL, 2, y, slope, 0));
    store(&s, y, type, 3);
    sum(&s, y, 2);
    sum(&s, add(&s, PONS_MAP_MUL, 2, x, y, 0), 2);
    count_map(device, name, &s);
}

static void count_softmax(void *device)
{
    sketch s = { .map = { .axis_count = 2, .extent = { 1 << 15, 2 }, .channels = 2 } };
    int x = load(&s, PONS_F32, 3), most = add(&s, PONS_VALUE_CHANNEL_MAX, 1, x, 0, 0), all;

    s.value[most].narrow = 1;
    x = add(&s, PONS_MAP_EXP, 1, add(&s, PONS_MAP_SUB, 2, x, most, 0), 0, 0);
    all = add(&s, PONS_VALUE_CHANNEL_SUM, 1, x, 0, 0);
    s.value[all].narrow = 1;
    store(&s, add(&s, PONS_MAP_DIV, 2, x, all, 0), PONS_F32, 3);
    count_map(device, "map_softmax", &s);
}

static void count_maps(void *device)
{
    count_chain(device);
    count_exponential(device);
    count_moments(device, "moments_16", 16);
    count_moments(device, "moments_2", 2);
    count_norm_prelu(device, "norm_prelu_f32_16", PONS_F32, 16);
    count_norm_prelu(device, "norm_prelu_bf16_32", PONS_BF16, 32);
    count_norm_prelu(device, "norm_prelu_f32_2", PONS_F32, 2);
    count_softmax(device);
}

/* ---- convolutions with few channels ---------------------------------------------------------- */

static void count_convolution(void *device, const char *name, pons_kernel_kind kind, int64_t in,
                              int64_t out)
{
    enum { SIDE = 20 };
    pons_convolution c = PONS_CONVOLUTION_INIT;
    pons_tensor x = image(PONS_F32, SIDE, in), y = image(PONS_F32, SIDE, out);
    pons_tensor w = tensor(PONS_F32, 5, (int64_t[]){ out, 3, 3, 3, in });
    pons_tensor from[2] = { x, w }, to = y;

    for (int i = 0; i < 3; i++)
        c.pad_low[i] = c.pad_high[i] = 1;
    if (kind == PONS_KERNEL_CONVOLUTION_INPUT_GRADIENT)
        from[0] = y, to = x;
    if (kind == PONS_KERNEL_CONVOLUTION_WEIGHT_GRADIENT)
        from[1] = y, to = w;
    count_request(device, &(pons_request){ .kind = kind, .name = name, .input_count = 2,
                      .output_count = 1, .input = from, .output = &to, .attributes = &c },
                  (int64_t)SIDE * SIDE * SIDE * 27 * in * out);
}

static void count_convolutions(void *device)
{
    static const char *const names[3][2] = {
        { "narrow_1_16", "narrow_2_2" }, { "narrow_data_1_16", "narrow_data_2_2" },
        { "narrow_weight_1_16", "narrow_weight_2_2" }
    };

    for (int k = 0; k < 3; k++) {
        count_convolution(device, names[k][0], PONS_KERNEL_CONVOLUTION + k, 1, 16);
        count_convolution(device, names[k][1], PONS_KERNEL_CONVOLUTION + k, 2, 2);
    }
}

/* ---- pool, resize, movement ------------------------------------------------------------------ */

static void count_one(void *device, const char *name, pons_kernel_kind kind, pons_tensor from,
                      pons_tensor to, const void *attributes)
{
    size_t a = size_of(&from), b = size_of(&to);

    count_request(device, &(pons_request){ .kind = kind, .name = name, .input_count = 1,
                      .output_count = 1, .input = &from, .output = &to, .attributes = attributes },
                  (int64_t)((a > b ? a : b) / size_of(&(pons_tensor){ from.type, { 0 } })));
}

static void count_moves(void *device)
{
    enum { SIDE = 24, CHANNELS = 16 };
    const pons_pool pool = { PONS_POOL_MAX, { 2, 2, 2 }, { 2, 2, 2 }, { 0 }, { 0 }, false };
    const pons_resize_attributes linear = { PONS_RESIZE_LINEAR };
    const pons_transpose_attributes last = { { 0, 4, 1, 2, 3 } };
    const pons_crop_attributes crop = { { 0, 1, 1, 1, 0 }, { 1, 2, 2, 2, 1 } };
    pons_tensor whole = image(PONS_F32, SIDE, CHANNELS), half = image(PONS_F32, SIDE / 2, CHANNELS);
    pons_tensor low = image(PONS_BF16, SIDE, CHANNELS);
    pons_tensor turned = tensor(PONS_F32, 5, (int64_t[]){ 1, CHANNELS, SIDE, SIDE, SIDE });

    count_one(device, "pool_max", PONS_KERNEL_POOL, whole, half, &pool);
    count_one(device, "resize_linear", PONS_KERNEL_RESIZE, half, whole, &linear);
    count_one(device, "resize_gradient", PONS_KERNEL_RESIZE_GRADIENT, whole, half, &linear);
    count_one(device, "transpose", PONS_KERNEL_TRANSPOSE, whole, turned, &last);
    count_one(device, "crop_strided", PONS_KERNEL_CROP, whole, half, &crop);
    count_one(device, "copy_to_bf16", PONS_KERNEL_COPY, whole, low, NULL);
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
    size_t size = nifti_header_make(&grid, 1, nifti_kind_find(label ? NIFTI_KIND_UINT8 : 4),
                                    header);
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

    if (volume_read_image(context, &v, NULL, &err) != PONS_OK)
        fail(&err);
    pons_volume_clear(&v);
}

typedef struct cutting {
    patch_maker maker;
    patch_bench bench;
    loader_part part[2];
} cutting;

static void make_patches(void *context)
{
    cutting *c = context;
    pons_error err = PONS_ERROR_INIT;

    if (patch_make(&c->maker, &c->bench, 0, 0, c->part, 0, &err) != PONS_OK)
        fail(&err);
}

static const char *const augmenting[] = {
    "augment.steps=flip rotate90 scale_intensity shift_intensity",
    "augment.flip.axes=0 1 2", "augment.flip.probability=0.5",
    "augment.rotate90.axes=0 1", "augment.rotate90.probability=0.5",
    "augment.scale_intensity.factors=0.1", "augment.scale_intensity.probability=1",
    "augment.shift_intensity.offsets=0.1", "augment.shift_intensity.probability=1",
};

static void count_patches(const char *name, volume_chain *chain, cache *held)
{
    enum { PATCHES = 4, VOXELS = PATCH_SIDE * PATCH_SIDE * PATCH_SIDE };
    cutting c = { .maker = { .held = held, .channels = 1, .label_channels = 1,
        .settings = { .seed = 7, .extent = { PATCH_SIDE, PATCH_SIDE, PATCH_SIDE }, .batch = 1,
                      .per_case = PATCHES, .micro_batches = 1, .count = 1, .positive = 1,
                      .negative = 1 } } };
    pons_error err = PONS_ERROR_INIT;

    if (patch_parts_make(false, NULL, c.maker.settings.extent, 1, 1, &c.maker.parts, &err)
        != PONS_OK)
        fail(&err);
    for (int i = 0; i < 2; i++) {
        c.part[i].data = calloc(PATCHES, c.maker.parts.item[i].size);
        if (c.part[i].data == NULL)
            fail(&err);
    }
    if ((chain != NULL && augment_init(&c.maker.augment, chain, &err) != PONS_OK)
        || patch_bench_init(&c.maker, &c.bench, &err) != PONS_OK)
        fail(&err);
    count(name, PATCHES * VOXELS, make_patches, &c);
    patch_bench_clear(&c.bench);
    if (chain != NULL)
        augment_clear(&c.maker.augment);
    for (int i = 0; i < 2; i++)
        free(c.part[i].data);
    patch_parts_clear(&c.maker.parts);
}

static void count_data(void)
{
    static const char *const labels[] = { "background:0", "organ:1" };
    const char *image[1];
    cache_settings held = { .mode = CACHE_MEMORY, .threads = 1, .sampling = SAMPLING_UNIFORM };
    pons_error err = PONS_ERROR_INIT;
    volume_chain *chain;
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
        || volume_chain_open(ini, "augment", true, 1, &chain, &err) != PONS_OK
        || cache_open(data, NULL, data->training_count, data->training, &held, NULL, &cases, &err)
           != PONS_OK)
        fail(&err);
    count_patches("patch_crop", NULL, cases);
    count_patches("patch_augmented", chain, cases);
    cache_close(cases);
    volume_chain_close(chain);
    config_close(ini);
    dataset_close(data);
    unlink(in_folder("image.nii"));
    unlink(in_folder("label.nii"));
    rmdir(folder);
}

int main(void)
{
    pons_device_settings settings = { .count = 1, .threads = 1 };
    pons_error err = PONS_ERROR_INIT;
    void *device;

    if (cpu_operations.open(&settings, &device, &err) != PONS_OK)
        fail(&err);
    printf("build %s\n", build);
    printf("lanes %s\n", map_lanes_row(map_lanes_count() - 1)->name);
#ifdef __clang__
    printf("compiler clang %d\n", __clang_major__);
#else
    printf("compiler gcc %d\n", __GNUC__);
#endif
    count_maps(device);
    count_convolutions(device);
    count_moves(device);
    count_data();
    cpu_operations.close(device);
    return 0;
}
