/*
 * check_patch_nodes.c - patches that a device extracts from resident cases equal the loader's bit
 * for bit, on the reference device and on every instruction set of the CPU kernels.
 */
#include "cpu/cpu_testing.h"
#include "data/loader/batch_layout.h"
#include "data/loader/device_case_layout.h"
#include "data/loader/loader.h"
#include "graph/program/program.h"
#include "graph/storage/staging.h"
#include "replica/patch_nodes.h"

#include "graph/ir/build.h"
#include "graph/reference/reference.h"
#include "support/dataset_maker.h"
#include "support/suite.h"

#include <string.h>

/* The values of the cases take 1, 2 and 4 bytes; the last case is smaller than the patches. */
enum { CASES = 4, CHANNELS = 2, BATCHES = 8 };
static const int extents[CASES][3] = { { 12, 11, 9 }, { 12, 10, 8 }, { 42, 42, 40 }, { 5, 4, 3 } };

static double few_values(int64_t i, int64_t j, int64_t k)
{
    return (double)((i + 3 * j + 5 * k) % 200);
}

static double many_values(int64_t i, int64_t j, int64_t k)
{
    return (double)(i * 10000 + j * 100 + k) - 3000;
}

static double doubled_values(int64_t i, int64_t j, int64_t k)
{
    return 2 * many_values(i, j, k) + 1;
}

static double organ_ids(int64_t i, int64_t j, int64_t k)
{
    return i >= 2 && i < 5 && j >= 1 && j < 4 && k >= 1 && k < 3;
}

typedef struct bench {
    config *ini;
    pipeline *chain;
    dataset *data;
    cache *held;
    device_case_layout layout;
} bench;

static const char steps[] =
    "[augment]\nsteps = scale_intensity flip gaussian_noise rotate90 shift_intensity brightness "
    "channel_dropout\n"
    "[augment.flip]\naxes = 0 1 2\nprobability = 0.5\n"
    "[augment.rotate90]\naxes = 0 2\nprobability = 0.5\n"
    "[augment.scale_intensity]\nfactors = 0.2\nprobability = 0.5\n"
    "[augment.shift_intensity]\noffsets = 0.2\nprobability = 0.5\nchannel_wise = yes\n"
    "[augment.gaussian_noise]\nstd = 0.3\nmean = 0.1\nprobability = 0.5\nchannels = 1\n"
    "[augment.brightness]\nsigma = 0.3\nprobability = 0.5\nchannel_probability = 0.5\n"
    "[augment.channel_dropout]\nfill_value = -3\nprobability = 0.5\n";

static void write_cases(void)
{
    for (int c = 0; c < CASES; c++) {
        const int *e = extents[c];
        char name[64];

        snprintf(name, sizeof name, "x/case%d_0.nii", c);
        maker_volume(name, e[0], e[1], e[2], c == 0 ? few_values : many_values, 0, 16);
        snprintf(name, sizeof name, "x/case%d_1.nii", c);
        maker_volume(name, e[0], e[1], e[2], c == 0 ? few_values : doubled_values, 0, 16);
        snprintf(name, sizeof name, "y/case%d.nii", c);
        maker_volume(name, e[0], e[1], e[2], organ_ids, 0, 2);
    }
}

static void bench_open(bench *b, const char *augment)
{
    static const char *const labels[] = { "background:0", "organ:1" };
    cache_settings s = { .mode = CACHE_DEVICE, .threads = 1, .sampling = SAMPLING_BALANCED };
    pons_error err = PONS_ERROR_INIT;

    write_cases();
    const char *image[] = { maker_path("x/*_0.nii"), maker_path("x/*_1.nii") };
    dataset_settings where = { .image = { CHANNELS, image }, .label = maker_path("y/*.nii"),
                               .labels = { 2, labels }, .validation = "none" };
    *b = (bench){ NULL };
    b->data = maker_open(&where);
    maker_text("a.ini", augment);
    ck_assert_msg(config_open(maker_path("a.ini"), 0, NULL, &b->ini, &err) == PONS_OK, "%s",
                  err.text);
    ck_assert_msg(pipeline_open(b->ini, "augment", true, CHANNELS, &b->chain, &err) == PONS_OK,
                  "%s", err.text);
    ck_assert_msg(cache_open(b->data, NULL, CASES, b->data->training, &s, NULL, &b->held, &err)
                  == PONS_OK, "%s", err.text);
    ck_assert_msg(device_case_layout_make(b->held, CASES, b->data->training, &b->layout,
                                          &err) == PONS_OK,
                  "%s", err.text);
}

static void bench_close(bench *b)
{
    device_case_layout_clear(&b->layout);
    cache_close(b->held);
    dataset_close(b->data);
    pipeline_close(b->chain);
    config_close(b->ini);
}

/* ---- a program that only extracts patches ---------------------------------------------------- */

typedef struct cutter {
    device device;
    storage *storage;
    program *program;
    char *held;
    size_t size;
} cutter;

static pons_status put_input(void *context, size_t offset, const void *from, size_t size,
                             pons_error *err)
{
    const cutter *c = context;

    return staging_write(&c->device, c->held + offset, from, size, err);
}

static void cutter_open(cutter *c, const bench *b, const device *d, const loader_settings *s)
{
    bool counts = (s->pad & LOADER_PAD_UNCOUNTED) == 0;
    experiment e = { .augment = b->chain, .class_count = 2,
                     .task = { .channels = CHANNELS, .classes = 2 },
                     .sections.patch.count_padding = counts,
                     .patch = { s->extent[0], s->extent[1], s->extent[2] } };
    int64_t n = (int64_t)s->batch * s->per_case;
    pons_shape shape = { 5, { n, s->extent[0], s->extent[1], s->extent[2], CHANNELS } };
    const program_settings settings = { .precision = PRECISION_FP32 };
    pons_graph *g = graph_new(false);
    pons_error err = PONS_ERROR_INIT;
    pons_node *out[2];

    *c = (cutter){ .device = *d, .size = (b->layout.size + 4095) / 4096 * 4096 };
    out[0] = patch_nodes_image(&e, g, shape, &err);
    shape.extent[4] = 1;
    out[1] = patch_nodes_target(&e, g, shape, &err);
    ck_assert_msg(storage_new(d, &c->storage, &err) == PONS_OK, "%s", err.text);
    ck_assert_msg(program_new(c->storage, d, g, NULL, 2, out, &settings, &c->program, &err)
                  == PONS_OK, "%s", err.text);
    c->held = d->operations->memory.allocate(d->handle, c->size, &err);
    ck_assert_ptr_nonnull(c->held);
    ck_assert_msg(device_case_layout_copy(&b->layout, b->held, !counts, put_input, c, &err)
                  == PONS_OK, "%s", err.text);
    program_bind_resident(c->program, PATCH_CASES, c->held);
}

static void cutter_close(cutter *c)
{
    program_free(c->program);
    storage_free(c->storage);
    c->device.operations->memory.release(c->device.handle, c->held, c->size);
}

static const loader_batch *next_loaded_patches(loader *l)
{
    pons_error err = PONS_ERROR_INIT;
    const loader_batch *batch = NULL;

    ck_assert_msg(loader_next(l, &batch, &err) == PONS_OK, "%s", err.text);
    return batch;
}

static loader *open_loader(const bench *b, const loader_settings *s)
{
    pons_error err = PONS_ERROR_INIT;
    loader *l = NULL;

    ck_assert_msg(loader_open(b->held, CASES, b->data->training, b->chain, s, &l, &err) == PONS_OK,
                  "%s", err.text);
    return l;
}

static void cut_patches(cutter *c, const loader_batch *told)
{
    pons_error err = PONS_ERROR_INIT;

    ck_assert_ptr_null(told->image);
    for (int i = 0; i < told->part_count; i++) {
        void *input = program_input(c->program, told->part[i].name, NULL);
        ck_assert_msg(input != NULL, "the program has no input '%s'", told->part[i].name);
        memcpy(input, told->part[i].data, told->part[i].size);
    }
    ck_assert_msg(program_evaluate(c->program, &err) == PONS_OK, "%s", err.text);
}

static void patches_agree(const bench *b, const device *d, loader_settings s)
{
    loader *plain = open_loader(b, &s), *placed;
    cutter c;

    s.layout = &b->layout;
    placed = open_loader(b, &s);
    cutter_open(&c, b, d, &s);
    for (int n = 0; n < BATCHES; n++) {
        const loader_batch *expected = next_loaded_patches(plain), *told
            = next_loaded_patches(placed);
        ck_assert_int_eq(told->part_count, 2 + 1 + 4 + 1 + 3 + 2);
        cut_patches(&c, told);
        ck_assert_msg(memcmp(program_output(c.program, 0, NULL), expected->part[0].data,
                             expected->part[0].size) == 0, "image %d on '%s' differs", n,
                      d->facts.name);
        ck_assert_msg(memcmp(program_output(c.program, 1, NULL), expected->part[1].data,
                             expected->part[1].size) == 0, "target %d on '%s' differs", n,
                      d->facts.name);
    }
    cutter_close(&c);
    loader_close(plain);
    loader_close(placed);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Patch extent, padding outside of the case, and the sampling of patches. */
static const struct { int extent[3]; loader_pad pad; sampling_mode sampling; } ways[] = {
    { { 6, 5, 4 }, LOADER_PAD_ZERO, SAMPLING_BALANCED },
    { { 14, 13, 11 }, LOADER_PAD_ZERO, SAMPLING_UNIFORM },
    { { 14, 13, 11 }, LOADER_PAD_EDGE, SAMPLING_UNIFORM },
    { { 14, 13, 11 }, LOADER_PAD_UNCOUNTED, SAMPLING_UNIFORM },
    { { 7, 1, 6 }, LOADER_PAD_EDGE, SAMPLING_BALANCED },
    { { 8, 6, 4 }, LOADER_PAD_EDGE | LOADER_PAD_UNCOUNTED, SAMPLING_BALANCED },
    { { 8, 8, 8 }, LOADER_PAD_ZERO, SAMPLING_WHOLE },
};

static loader_settings settings_of(int way)
{
    loader_settings s = { .seed = 11, .per_case = 2, .batch = 3, .micro_batches = 1, .count = 1,
                          .positive = 1, .negative = 1, .pad = ways[way].pad,
                          .sampling = ways[way].sampling };

    memcpy(s.extent, ways[way].extent, sizeof s.extent);
    return s;
}

START_TEST(patches_of_the_reference_device_equal_the_loaders)
{
    device reference;
    bench b;

    bench_open(&b, steps);
    device_reference(&reference, false);
    patches_agree(&b, &reference, settings_of(_i));
    bench_close(&b);
}
END_TEST

START_TEST(patches_of_the_cpu_device_equal_the_loaders)
{
    const pons_device_settings one = { .count = 1, .threads = 2 };
    device cpu = { .operations = &cpu_operations };
    pons_error err = PONS_ERROR_INIT;
    bench b;

    bench_open(&b, steps);
    ck_assert_int_eq(cpu_operations.open(&one, &cpu.handle, &err), PONS_OK);
    cpu_operations.facts(cpu.handle, &cpu.facts);
    ck_assert_int_eq(cpu_operations.attach(cpu.handle, &err), PONS_OK);
    for (int row = 0; row < isa_rows_count(); row++) {
        cpu_device_choose_row(cpu.handle, row);
        patches_agree(&b, &cpu, settings_of(_i));
    }
    cpu_operations.close(cpu.handle);
    bench_close(&b);
}
END_TEST

/* ---- accumulated patches --------------------------------------------------------------------- */

enum { ADDED = 3, EXTENT = 5, SUMS = 400, ADD_CLASSES = 3 };
enum { COLUMNS = PONS_PATCH_COORDINATES + 6 * EXTENT };

typedef struct adding {
    float sum[16 + SUMS * ADD_CLASSES], weight[EXTENT * EXTENT * EXTENT];
    int32_t row[ADDED][COLUMNS];
    float x[ADDED][EXTENT * EXTENT * EXTENT * ADD_CLASSES];
} adding;

/*
 * The windows are 5^3 in 7^3 voxels, and two of them lie partly outside; each has fresh voxels,
 * whose sums start at 0.
 */
static void fill_adding(adding *a)
{
    const size_t numbers = sizeof a->x / sizeof(float);
    float *x = &a->x[0][0];

    for (int i = 0; i < 16 + SUMS * ADD_CLASSES; i++)
        a->sum[i] = (float)(i % 17) / 7;
    for (int i = 0; i < EXTENT * EXTENT * EXTENT; i++)
        a->weight[i] = 1 / (float)(3 + i);
    for (size_t i = 0; i < numbers; i++)
        x[i] = (float)(i % 23) / 11 - 1;
    for (int n = 0; n < ADDED; n++) {
        memset(a->row[n], 0, PONS_PATCH_COORDINATES * sizeof(int32_t));
        a->row[n][PONS_PATCH_VALUES] = 1;
        for (int k = 0; k < 3 * EXTENT; k++) {
            int axis = k / EXTENT, at = k % EXTENT + n;
            int step = axis == 0 ? 49 : axis == 1 ? 7 : 1;
            a->row[n][PONS_PATCH_COORDINATES + k] = at < 7 ? at * step : -1;
            a->row[n][PONS_PATCH_COORDINATES + 3 * EXTENT + k] = at > 2;
        }
    }
    a->row[2][PONS_PATCH_COORDINATES] = a->row[2][PONS_PATCH_COORDINATES + 2 * EXTENT - 1] = -1;
}

static void accumulate_on_device(const device *d, adding *a)
{
    const pons_tensor bytes = { PONS_U8, { 1, { 1 } } };
    const pons_tensor in[] = {
        bytes, { PONS_I32, { 2, { ADDED, COLUMNS } } },
        { PONS_F32, { 3, { EXTENT, EXTENT, EXTENT } } },
        { PONS_F32, { 5, { ADDED, EXTENT, EXTENT, EXTENT, ADD_CLASSES } } }
    };
    const pons_request r = { .kind = PONS_KERNEL_PATCH_ACCUMULATE, .name = "sums", .input_count = 4,
                             .output_count = 1, .input = in, .output = &bytes };
    void *input[] = { a->sum, a->row, a->weight, a->x }, *output[] = { a->sum };
    const pons_call call = { .input = input, .output = output };
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { .run = NULL };
    bool supported = false;

    fill_adding(a);
    ck_assert_int_eq(d->operations->prepare(d->handle, &r, &kernel, &supported, &err), PONS_OK);
    ck_assert(supported);
    ck_assert_int_eq(kernel.run(&kernel, &call, &err), PONS_OK);
    kernel.free(&kernel);
}

/* The reference adds the patches voxel by voxel. */
static void accumulate_plainly(adding *a)
{
    fill_adding(a);
    for (int n = 0; n < ADDED; n++)
        for (int v = 0; v < EXTENT * EXTENT * EXTENT; v++) {
            const int k[3] = { v / EXTENT / EXTENT, EXTENT + v / EXTENT % EXTENT,
                               2 * EXTENT + v % EXTENT };
            const int32_t *place = a->row[n] + PONS_PATCH_COORDINATES, *age = place + 3 * EXTENT;
            if (place[k[0]] < 0 || place[k[1]] < 0 || place[k[2]] < 0)
                continue;
            float *sum = a->sum + 16 + (place[k[0]] + place[k[1]] + place[k[2]]) * ADD_CLASSES;
            for (int c = 0; c < ADD_CLASSES; c++) {
                volatile float product = a->weight[v] * a->x[n][v * ADD_CLASSES + c];
                bool fresh = age[k[0]] && age[k[1]] && age[k[2]];
                sum[c] = (fresh ? 0 : sum[c]) + product;
            }
        }
}

START_TEST(accumulated_patches_equal_plain_sums_bit_for_bit)
{
    static adding expected, found;
    device d;
    pons_error err = PONS_ERROR_INIT;

    accumulate_plainly(&expected);
    device_reference(&d, false);
    accumulate_on_device(&d, &found);
    ck_assert_mem_eq(found.sum, expected.sum, sizeof found.sum);
    for (int threads = 1; threads < 3; threads++) {
        const pons_device_settings s = { .count = 1, .threads = threads };
        device cpu = { .operations = &cpu_operations };
        ck_assert_int_eq(cpu_operations.open(&s, &cpu.handle, &err), PONS_OK);
        ck_assert_int_eq(cpu_operations.attach(cpu.handle, &err), PONS_OK);
        accumulate_on_device(&cpu, &found);
        ck_assert_mem_eq(found.sum, expected.sum, sizeof found.sum);
        cpu_operations.close(cpu.handle);
    }
}
END_TEST

START_TEST(resident_cases_of_all_code_sizes_are_disjoint_and_ordered)
{
    static const int32_t sizes[CASES] = { 1, 2, 4, 1 };
    int32_t before = -1;
    bench b;

    bench_open(&b, steps);
    for (int i = 0; i < CASES; i++) {
        device_case_offsets at = device_case_layout_find(&b.layout, b.data->training[i]);
        int64_t voxels = (int64_t)extents[i][0] * extents[i][1] * extents[i][2];

        ck_assert_int_eq(at.code_size, sizes[i]);
        ck_assert_int_gt(at.values, before);
        ck_assert_int_ge((int64_t)(at.table - at.values) * PONS_PATCH_UNIT,
                         voxels * CHANNELS * at.code_size);
        ck_assert_int_eq(at.table < at.target, at.code_size < 4);
        before = at.target;
        ck_assert_int_le((int64_t)at.target * PONS_PATCH_UNIT + voxels, (int64_t)b.layout.size);
    }
    bench_close(&b);
}
END_TEST

START_TEST(a_case_beyond_the_device_limit_is_named)
{
    cache_settings s = { .mode = CACHE_DEVICE, .threads = 1, .limit = 20000 };
    pons_error err = PONS_ERROR_INIT;
    device_case_layout layout;
    cache *held;
    bench b;

    bench_open(&b, steps);
    ck_assert_int_eq(cache_open(b.data, NULL, CASES, b.data->training, &s, NULL, &held, &err),
                     PONS_OK);
    ck_assert_int_eq(device_case_layout_make(held, CASES, b.data->training, &layout, &err),
                     PONS_DEVICE);
    ck_assert_msg(strstr(err.text, "cache_limit leaves no room for 'case") != NULL
                  && strstr(err.text, "hint: --set data.cache=memory") != NULL, "%s", err.text);
    cache_close(held);
    bench_close(&b);
}
END_TEST

static pons_node *same_image(const void *config, const pons_patch_nodes *nodes)
{
    return nodes->image;
}

static void no_numbers(const void *config, const pons_transform_scope *scope, const void *record,
                       pons_sample_params *out)
{
}

static pons_status same_patch(const void *config, const pons_transform_scope *scope,
                              const void *record, pons_patch *patch, pons_error *err)
{
    return PONS_OK;
}

/* A NULL message means that the transform is accepted; the others work on the host alone. */
static const struct { pons_transform_operations made; const char *said; } transforms[] = {
    { { .apply_patch = NULL }, NULL },
    { { .apply_patch = same_patch, .numbers = no_numbers, .build = same_image, .number_count = 1 },
      NULL },
    { { .apply_patch = same_patch, .numbers = no_numbers, .build = same_image,
        .voxel_normals = true }, NULL },
    { { .apply_patch = same_patch }, "transform 'made' works on the host only" },
    { { .resamples = true }, "works on the host only" },
    { { .apply_patch = same_patch, .numbers = no_numbers }, "works on the host only" },
    { { .apply_patch = same_patch, .build = same_image, .number_count = 1 },
      "works on the host only" },
    { { .build = same_image, .number_count = 1 }, "works on the host only" },
    { { .apply_patch = same_patch, .numbers = no_numbers, .build = same_image },
      "transform 'made' has 0 numbers, expected 1 to 8" },
    { { .apply_patch = same_patch, .numbers = no_numbers, .build = same_image, .number_count = 9 },
      "transform 'made' has 9 numbers" },
    { { .apply_patch = same_patch, .numbers = no_numbers, .build = same_image,
        .voxel_normals = true, .number_count = -1 }, "transform 'made' has -1 numbers" },
};

START_TEST(a_host_only_transform_is_refused_for_device_patches)
{
    pipeline_step step = { .name = "step", .plugin = "made", .operations = &transforms[_i].made };
    pipeline chain = { 1, &step };
    const experiment e = { .augment = &chain };
    pons_error err = PONS_ERROR_INIT;

    ck_assert_msg((pipeline_check_device(e.augment, &err) == PONS_OK)
                  == (transforms[_i].said == NULL), "%s",
                  err.text);
    if (transforms[_i].said != NULL)
        ck_assert_msg(strstr(err.text, transforms[_i].said) != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("patch_nodes");
    int count = (int)(sizeof ways / sizeof ways[0]);

    tcase_add_checked_fixture(c, make_root, remove_root);
    tcase_add_loop_test(c, patches_of_the_reference_device_equal_the_loaders, 0, count);
    tcase_add_loop_test(c, patches_of_the_cpu_device_equal_the_loaders, 0, count);
    tcase_add_test(c, accumulated_patches_equal_plain_sums_bit_for_bit);
    tcase_add_test(c, resident_cases_of_all_code_sizes_are_disjoint_and_ordered);
    tcase_add_test(c, a_case_beyond_the_device_limit_is_named);
    tcase_add_loop_test(c, a_host_only_transform_is_refused_for_device_patches, 0,
                        (int)(sizeof transforms / sizeof transforms[0]));
    return suite_run();
}
