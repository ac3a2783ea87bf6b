/*
 * check_window_blend.c - window starts and importance maps against MONAI's (golden); properties of
 * blended windows.
 */
#include <config.h>

#include "base/file/json.h"
#include "checkpoint/safetensors.h"
#include "graph/program/program.h"
#include "window/window_blend.h"

#include "graph/reference/reference.h"
#include "support/data/golden_file.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool window_starts_of(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int number_at(const json_t *list, int index)
{
    return (int)json_integer_value(json_array_get(list, (size_t)index));
}

START_TEST(window_starts_equal_monais)
{
    json_t *d = golden_json("windows.json");
    const json_t *c, *start;
    size_t number;
    int cases = 0;

    json_array_foreach(d, number, c) {
        window_settings s = { .batch = 1 };
        const int *extent = s.extent;
        window_axis axis[3];
        if (!window_starts_of(json_string_value(json_object_get(c, "name")), "starts"))
            continue;
        cases++;
        for (int a = 0; a < 3; a++) {
            s.extent[a] = number_at(json_object_get(c, "extent"), a);
            s.overlap[a] = json_number_value(json_object_get(c, "overlap"));
            axis[a] = window_axis_make(&s, number_at(json_object_get(c, "size"), a), a);
        }
        const json_t *starts = json_object_get(c, "starts");
        ck_assert_int_eq(axis[0].count * axis[1].count * axis[2].count,
                         (int)json_array_size(starts));
        size_t place;
        json_array_foreach(starts, place, start) {
            int n = (int)place;
            int index[3] = { n / axis[2].count / axis[1].count, n / axis[2].count % axis[1].count,
                             n % axis[2].count };
            for (int a = 0; a < 3; a++)
                ck_assert_int_eq((int)window_axis_start(&axis[a], extent[a], index[a]),
                                 number_at(start, a));
        }
    }
    ck_assert_int_ge(cases, 6);
    json_decref(d);
}
END_TEST

START_TEST(importance_maps_equal_monais)
{
    json_t *d = golden_json("windows.json");
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;
    const json_t *c;
    size_t number;
    int cases = 0;

    ck_assert_int_eq(safetensors_open(golden_path("windows.safetensors"), &file, &err), PONS_OK);
    json_array_foreach(d, number, c) {
        const char *name = json_string_value(json_object_get(c, "name"));
        if (!window_starts_of(name, "importance_"))
            continue;
        cases++;
        window_settings s = { .blend = WINDOW_GAUSSIAN, .batch = 1 };
        s.sigma_scale = json_number_value(json_object_get(c, "sigma"));
        for (int a = 0; a < 3; a++)
            s.extent[a] = number_at(json_object_get(c, "extent"), a);
        const safetensor *t = safetensors_find(file, name);
        ck_assert_ptr_nonnull(t);
        ck_assert_int_eq((int)t->count, s.extent[0] * s.extent[1] * s.extent[2]);
        double *expected = malloc((size_t)t->count * sizeof *expected);
        float *found = malloc((size_t)t->count * sizeof *found);
        safetensor_doubles(t, expected);
        window_importance(&s, found);
        for (int64_t i = 0; i < t->count; i++)
            ck_assert_double_eq_tol((double)found[i], expected[i], IMPORTANCE_ABSOLUTE);
        free(expected);
        free(found);
    }
    ck_assert_int_ge(cases, 3);
    safetensors_close(file);
    json_decref(d);
}
END_TEST

static void check_nnunet_starts(const json_t *c)
{
    window_settings s = { .batch = 1, .blend = WINDOW_NNUNET };

    for (int a = 0; a < 3; a++) {
        const json_t *starts = json_array_get(json_object_get(c, "starts"), (size_t)a);
        s.extent[a] = number_at(json_object_get(c, "tile"), a);
        s.overlap[a] = 1 - json_number_value(json_object_get(c, "tile_step_size"));
        window_axis axis = window_axis_make(&s, number_at(json_object_get(c, "size"), a), a);
        ck_assert_int_eq(axis.count, (int)json_array_size(starts));
        for (int n = 0; n < axis.count; n++) {
            int64_t start = window_axis_start(&axis, s.extent[a], n);
            ck_assert_int_eq((int)start, number_at(starts, n));
            ck_assert(n == 0 || start - window_axis_start(&axis, s.extent[a], n - 1)
                                <= axis.interval);
        }
    }
}

/* Weights are float; the exponent of the largest, 4^2 / 2 an axis, is exact to 1e-15. */
static const double IMPORTANCE_RELATIVE = 2e-7;

/* A 2D map is that of a window with one voxel along i. */
static void check_nnunet_map(const json_t *c, const safetensors *file)
{
    const json_t *tile = json_object_get(c, "tile");
    int axes = (int)json_array_size(tile);
    window_settings s = { .batch = 1, .blend = WINDOW_NNUNET, .extent = { 1, 1, 1 } };
    char name[128];

    s.sigma_scale = json_number_value(json_object_get(c, "sigma_scale"));
    for (int a = 0; a < axes; a++)
        s.extent[3 - axes + a] = number_at(tile, a);
    snprintf(name, sizeof name, "%s/double", json_string_value(json_object_get(c, "name")));
    const safetensor *t = safetensors_find(file, name);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq((int)t->count, s.extent[0] * s.extent[1] * s.extent[2]);
    double *expected = malloc((size_t)t->count * sizeof *expected);
    float *found = malloc((size_t)t->count * sizeof *found);
    safetensor_doubles(t, expected);
    window_importance(&s, found);
    for (int64_t i = 0; i < t->count; i++)
        ck_assert_double_eq_tol((double)found[i], expected[i], IMPORTANCE_RELATIVE * expected[i]);
    free(expected);
    free(found);
}

START_TEST(windows_of_mode_nnunet_equal_nnunets)
{
    json_t *d = golden_json("nnunet/windows.json");
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;
    const json_t *c;
    size_t number;
    int starts = 0, maps = 0;

    ck_assert_int_eq(safetensors_open(golden_path("nnunet/windows.safetensors"), &file, &err),
                     PONS_OK);
    json_array_foreach(d, number, c) {
        if (json_object_get(c, "starts") != NULL) {
            check_nnunet_starts(c);
            starts++;
        } else {
            check_nnunet_map(c, file);
            maps++;
        }
    }
    ck_assert_int_ge(starts, 5);
    ck_assert_int_ge(maps, 4);
    safetensors_close(file);
    json_decref(d);
}
END_TEST

/* A network whose logits are a function of each voxel, or of the voxel's position in the window. */
typedef struct toy {
    window_settings settings;
    float *input, *output;
    bool place;
    int runs;
    float *held;              /* device accumulator; NULL: logits come to the host                */
    int32_t *told, *flip, *whole; /* rows of the sums, of the flips, to read flips    */
    float *importance, *share;
    char *mirrored;           /* sums over flips                                                  */
    int64_t held_size, read;  /* elements of 'held' and elements read from it                     */
} toy;

static void toy_kernel(pons_kernel_kind kind, const pons_tensor *in, int inputs,
                       const pons_tensor *out, void **input, void *output)
{
    const pons_request r = { .kind = kind, .name = "sums", .input_count = inputs,
                             .output_count = 1, .input = in, .output = out };
    const pons_call call = { .input = input, .output = &output };
    pons_error err = PONS_ERROR_INIT;
    pons_kernel kernel = { .run = NULL };
    bool supported;
    device d;

    device_reference(&d, false);
    ck_assert_int_eq(d.operations->prepare(d.handle, &r, &kernel, &supported, &err), PONS_OK);
    ck_assert(supported);
    ck_assert_int_eq(kernel.run(&kernel, &call, &err), PONS_OK);
    kernel.free(&kernel);
}

/*
 * Accumulate like a device whose program ends in PATCH_ACCUMULATE; flips read the sums of those
 * before.
 */
static void toy_add(toy *t)
{
    const int *e = t->settings.extent;
    const int64_t batch = t->settings.batch, along = e[0] + e[1] + e[2];
    const pons_tensor bytes = { PONS_U8, { 1, { 1 } } };
    const pons_tensor patches = { PONS_F32, { 5, { batch, e[0], e[1], e[2], 2 } } };
    const pons_tensor places = { PONS_I32, { 2, { batch, PONS_PATCH_COORDINATES + along } } };
    const pons_tensor in[] = { bytes, { PONS_I32, { 2, { batch,
                                                          PONS_PATCH_COORDINATES + 2 * along } } },
                               { PONS_F32, { 3, { e[0], e[1], e[2] } } }, patches };

    if (t->mirrored != NULL) {
        toy_kernel(PONS_KERNEL_PATCH_ACCUMULATE, in, 4, &bytes,
                   (void *[]){ t->mirrored, t->flip, t->share, t->output }, t->mirrored);
        toy_kernel(PONS_KERNEL_PATCH, (pons_tensor[]){ bytes, places }, 2, &patches,
                   (void *[]){ t->mirrored, t->whole }, t->output);
    }
    toy_kernel(PONS_KERNEL_PATCH_ACCUMULATE, in, 4, &bytes,
               (void *[]){ t->held, t->told, t->importance, t->output }, t->held);
}

static pons_status toy_read(void *context, int64_t first, int64_t count, float *to, pons_error *err)
{
    toy *t = context;

    ck_assert_int_ge(first, 0);
    ck_assert_int_le(first + count, t->held_size);
    memcpy(to, t->held + first, (size_t)count * sizeof *to);
    for (int64_t n = first; n < first + count; n++)
        t->held[n] = NAN; /* each element is read once */
    t->read += count;
    return PONS_OK;
}

static pons_status toy_run(void *context, const float **logits, pons_error *err)
{
    toy *t = context;
    const int *e = t->settings.extent;
    int64_t voxels = (int64_t)e[0] * e[1] * e[2];

    for (int64_t i = 0; i < voxels * t->settings.batch; i++) {
        int64_t at = i % voxels;
        t->output[2 * i] = t->place ? (float)(at % e[2]) : 2 * t->input[i] + 1;
        t->output[2 * i + 1] = t->place ? (float)(at / e[2] / e[1]) : -t->input[i];
    }
    t->runs++;
    ck_assert_int_eq(logits == NULL, t->held != NULL);
    if (t->held != NULL)
        toy_add(t);
    else
        *logits = t->output;
    return PONS_OK;
}

/* The memory of the device does not start as zeros. */
static void toy_hold(toy *t, const int64_t size[3], blender *s)
{
    const int *e = t->settings.extent;
    size_t columns = (size_t)(PONS_PATCH_COORDINATES + 2 * (e[0] + e[1] + e[2]));

    t->held_size = (int64_t)(window_blend_device_bytes(&t->settings, size, 2) / sizeof(float));
    t->held = malloc((size_t)t->held_size * sizeof *t->held);
    t->told = malloc(columns * (size_t)t->settings.batch * sizeof *t->told);
    t->importance = malloc((size_t)(e[0] * e[1] * e[2]) * sizeof *t->importance);
    for (int64_t n = 0; n < t->held_size; n++)
        t->held[n] = NAN;
    window_importance(&t->settings, t->importance);
    window_blend_use_device(s);
    if (t->settings.mirror == 0)
        return;
    size_t flips = (size_t)window_blend_flip_bytes(&t->settings, 2) * (size_t)t->settings.batch;
    t->mirrored = malloc(flips);
    t->flip = malloc(columns * (size_t)t->settings.batch * sizeof *t->flip);
    t->whole = malloc(columns * (size_t)t->settings.batch * sizeof *t->whole);
    t->share = malloc((size_t)(e[0] * e[1] * e[2]) * sizeof *t->share);
    memset(t->mirrored, -1, flips); /* NaN */
    for (int n = 0; n < e[0] * e[1] * e[2]; n++)
        t->share[n] = 1 / (float)(1 << __builtin_popcount(t->settings.mirror));
}

static void toy_drop(toy *t)
{
    free(t->held);
    free(t->told);
    free(t->importance);
    free(t->mirrored);
    free(t->flip);
    free(t->whole);
    free(t->share);
    *t = (toy){ .settings = t->settings, .place = t->place, .runs = t->runs, .read = t->read };
}

static void toy_blend(toy *t, blender *s, int64_t batch, const float *logits, int64_t taken,
                      bool *done)
{
    const window_blend_sums sums = { toy_read, t };
    pons_error err = PONS_ERROR_INIT;

    if (t->held != NULL)
        ck_assert_int_eq(window_blend_collect(s, batch, taken, &sums, done, &err), PONS_OK);
    else
        *done = window_blend_add(s, batch, logits, taken);
}

/*
 * Run all batches in order, as on one device. 'slab' planes are taken at a time, and only when the
 * capacity is exhausted.
 */
static void toy_batches(toy *t, const int64_t size[3], const float *image, int64_t slab, bool holds,
                        float *out)
{
    window_predictor p = { t->input, .channels = 1, .classes = 2, .run = toy_run, .context = t };
    pons_error err = PONS_ERROR_INIT;
    int64_t taken = 0, plane = size[1] * size[2];
    const float *logits;
    blender *s = NULL;

    ck_assert_int_eq(window_blend_open(&t->settings, size, image, 1, 2, &s, &err), PONS_OK);
    float *sum = malloc((size_t)window_blend_flip_size(s) * sizeof *sum + 1);
    if (holds)
        toy_hold(t, size, s);
    p.place = t->told;
    p.flip = t->flip;
    p.whole = t->whole;
    for (int64_t batch = 0; batch < window_blend_batches(s); batch++) {
        bool done;
        ck_assert_int_eq(window_blend_predict(s, batch, &p, sum, &logits, &err), PONS_OK);
        while (toy_blend(t, s, batch, logits, taken, &done), !done) {
            int64_t end = taken + slab < window_blend_ready(s) ? taken + slab
                : window_blend_ready(s);
            ck_assert_int_gt(end, taken);
            window_blend_take(s, taken * plane, (end - taken) * plane, out + 2 * taken * plane);
            taken = end;
        }
    }
    ck_assert_int_eq(window_blend_ready(s), size[0]);
    window_blend_take(s, taken * plane, (size[0] - taken) * plane, out + 2 * taken * plane);
    window_blend_close(s);
    free(sum);
}

static void toy_stitch_held(toy *t, const int64_t size[3], const float *image, bool holds,
                            float *out)
{
    const int *e = t->settings.extent;
    size_t voxels = (size_t)e[0] * e[1] * e[2] * t->settings.batch;

    t->input = malloc(voxels * sizeof(float));
    t->output = malloc(2 * voxels * sizeof(float));
    toy_batches(t, size, image, 3, holds, out);
    free(t->input);
    free(t->output);
    toy_drop(t);
}

static void toy_stitch(toy *t, const int64_t size[3], const float *image, float *out)
{
    toy_stitch_held(t, size, image, false, out);
}

static float *counting_image(const int64_t size[3])
{
    int64_t voxels = size[0] * size[1] * size[2];
    float *image = malloc((size_t)voxels * sizeof *image);

    for (int64_t i = 0; i < voxels; i++)
        image[i] = (float)((i * 37) % 101) / 101;
    return image;
}

START_TEST(blending_a_pointwise_network_reproduces_its_values)
{
    static const int64_t sizes[][3] = { { 13, 22, 9 }, { 5, 8, 8 }, { 3, 2, 30 }, { 8, 8, 8 } };

    for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
        for (unsigned variant = 0; variant < 16; variant++) {
            int64_t voxels = sizes[n][0] * sizes[n][1] * sizes[n][2];
            float *image = counting_image(sizes[n]), *out = malloc((size_t)voxels * 8);
            toy t = { .settings = { { 8, 6, 7 }, { 0.25, 0.5, 0 }, variant & 1, 0.125,
                                    variant / 2 % 4, 3, variant & 8 ? 7 : 0 } };
            toy_stitch(&t, sizes[n], image, out);
            for (int64_t i = 0; i < voxels; i++) {
                ck_assert_double_eq_tol((double)out[2 * i], 2 * (double)image[i] + 1,
                                        STITCH_ABSOLUTE);
                ck_assert_double_eq_tol((double)out[2 * i + 1], -(double)image[i],
                                        STITCH_ABSOLUTE);
            }
            free(image);
            free(out);
        }
    }
}
END_TEST

START_TEST(mirroring_averages_a_position_and_its_mirror_image)
{
    const int64_t size[3] = { 8, 6, 7 };
    float *image = counting_image(size), *out = malloc(8 * 6 * 7 * 8);
    toy t = { .settings = { { 8, 6, 7 }, { 0 }, WINDOW_CONSTANT, 0.125, 0, 1, 4 }, .place = true };

    toy_stitch(&t, size, image, out);
    ck_assert_int_eq(t.runs, 2);
    for (int i = 0; i < 8 * 6 * 7; i++) {
        ck_assert_double_eq_tol((double)out[2 * i], 3, STITCH_ABSOLUTE);
        ck_assert_double_eq_tol((double)out[2 * i + 1], i / 42, STITCH_ABSOLUTE);
    }
    free(image);
    free(out);
}
END_TEST

START_TEST(windows_are_blended_by_their_weights)
{
    /* Two windows of 4 along k start at 0 and 2: the voxels get 0 1 (2 0)/2 (3 1)/2 2 3. */
    static const double expected[6] = { 0, 1, 1, 2, 2, 3 };
    const int64_t size[3] = { 1, 1, 6 };
    float image[6] = { 0 }, out[12];
    toy t = { .settings = { { 1, 1, 4 }, { 0, 0, 0.5 }, WINDOW_CONSTANT, 0.125, 0, 4, 0 },
              .place = true };

    toy_stitch(&t, size, image, out);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol((double)out[2 * i], expected[i], STITCH_ABSOLUTE);

    float w[4];
    t.settings.blend = WINDOW_GAUSSIAN;
    window_importance(&t.settings, w);
    toy_stitch(&t, size, image, out);
    double third = (2 * (double)w[2] + 0 * (double)w[0]) / ((double)w[2] + (double)w[0]);
    ck_assert_double_eq_tol((double)out[4], third, STITCH_ABSOLUTE);
}
END_TEST

/* The network's view of a volume smaller than its window. */
START_TEST(small_volume_is_padded_as_asked)
{
    static const double expected[4][5] = {
        { 0, 1, 2, 0, 0 }, { 2, 1, 2, 1, 2 }, { 1, 1, 2, 2, 2 }, { 2, 1, 2, 1, 2 }
    };
    const int64_t size[3] = { 1, 1, 2 };

    for (int mode = 0; mode < 4; mode++) {
        float image[2] = { 1, 2 }, out[4];
        toy t = { .settings = { { 1, 1, 5 }, { 0 }, WINDOW_CONSTANT, 0.125, mode, 1, 0 } };
        float input[5], output[10];
        t.input = input;
        t.output = output;
        toy_batches(&t, size, image, 1, false, out);
        for (int k = 0; k < 5; k++)
            ck_assert_double_eq((double)input[k], expected[mode][k]);
    }
}
END_TEST

/* The reference adds window by window over the whole volume. */
static void sum_all(const toy *t, const int64_t size[3], const float *image, float *out)
{
    const int *e = t->settings.extent;
    int64_t voxels = size[0] * size[1] * size[2], windows = 1;
    float *weight = calloc((size_t)voxels, sizeof *weight);
    float *importance = malloc((size_t)e[0] * e[1] * e[2] * sizeof *importance);
    window_axis axis[3];

    memset(out, 0, (size_t)voxels * 2 * sizeof *out);
    window_importance(&t->settings, importance);
    for (int a = 0; a < 3; a++) {
        axis[a] = window_axis_make(&t->settings, size[a], a);
        windows *= axis[a].count;
    }
    for (int64_t w = 0; w < windows; w++) {
        int64_t number = w, start[3];
        for (int a = 2; a >= 0; a--) {
            start[a] = window_axis_start(&axis[a], e[a], (int)(number % axis[a].count));
            start[a] -= axis[a].low;
            number /= axis[a].count;
        }
        for (int64_t n = 0; n < (int64_t)e[0] * e[1] * e[2]; n++) {
            int64_t i = start[0] + n / e[2] / e[1], j = start[1] + n / e[2] % e[1];
            int64_t k = start[2] + n % e[2];
            if (i < 0 || j < 0 || k < 0 || i >= size[0] || j >= size[1] || k >= size[2])
                continue;
            int64_t at = (i * size[1] + j) * size[2] + k;
            float first = 2 * image[at] + 1, second = -image[at];
            out[2 * at] += importance[n] * (t->place ? (float)(n % e[2]) : first);
            out[2 * at + 1] += importance[n] * (t->place ? (float)(n / e[2] / e[1]) : second);
            weight[at] += importance[n];
        }
    }
    for (int64_t n = 0; n < 2 * voxels; n++)
        out[n] /= weight[n / 2];
    free(weight);
    free(importance);
}

/*
 * Planes to the left of a window are released; 'spare' only changes how many wait. A device
 * accumulator gives the same bits, and each of its elements is read once.
 */
START_TEST(blending_by_planes_equals_whole_volume_sums_bit_for_bit)
{
    static const int64_t sizes[][3] = { { 61, 11, 9 }, { 8, 8, 30 }, { 3, 9, 8 }, { 23, 6, 7 } };
    static const double overlaps[] = { 0, 0.25, 0.6, 0.9 };

    for (int n = 0; n < 4 * 4 * 32; n++) {
        const int64_t *size = sizes[n % 4];
        int64_t voxels = size[0] * size[1] * size[2];
        double o = overlaps[n / 4 % 4];
        toy t = { .settings = { { 8, 6, 7 }, { o, 0.5, 0.25 }, n >> 4 & 1, 0.125, 0,
                                n >> 5 & 1 ? 1 : 5, 0, n >> 6 & 1 ? 0 : 1200, false },
                  .place = n >> 7 & 1 };
        float *image = counting_image(size);
        float *out = malloc((size_t)voxels * 8), *expected = malloc((size_t)voxels * 8);
        bool holds = n >> 8 & 1;
        toy_stitch_held(&t, size, image, holds, out);
        sum_all(&t, size, image, expected);
        ck_assert_msg(memcmp(out, expected, (size_t)voxels * 8) == 0, "case %d", n);
        ck_assert_int_eq(t.read, holds ? 2 * voxels : 0);
        free(image);
        free(out);
        free(expected);
    }
}
END_TEST

/* All sets of flipped axes, for a volume of several windows and a smaller one. */
START_TEST(flips_averaged_on_a_device_equal_the_hosts_bit_for_bit)
{
    static const int64_t sizes[][3] = { { 19, 9, 12 }, { 5, 8, 4 } };

    for (int n = 0; n < 2 * 8 * 4; n++) {
        const int64_t *size = sizes[n & 1];
        size_t bytes = (size_t)(size[0] * size[1] * size[2]) * 2 * sizeof(float);
        toy t = { .settings = { { 8, 6, 7 }, { 0.5, 0.5, 0.25 }, n >> 4 & 1, 0.125, 0, 3,
                                n >> 1 & 7, 1200 }, .place = n >> 5 & 1 };
        float *image = counting_image(size), *out = malloc(bytes), *expected = malloc(bytes);
        toy_stitch(&t, size, image, expected);
        toy_stitch_held(&t, size, image, true, out);
        ck_assert_msg(memcmp(out, expected, bytes) == 0, "case %d", n);
        free(image);
        free(out);
        free(expected);
    }
}
END_TEST

START_TEST(blending_holds_the_planes_of_two_windows)
{
    window_settings s = { { 96, 96, 96 }, { 0.25, 0.25, 0.25 }, WINDOW_CONSTANT, 0.125, 0, 4, 0,
                          0, false };
    const int64_t size[3] = { 512, 512, 300 }, half[3] = { 256, 512, 300 };
    const int64_t few[3] = { 90, 512, 300 };
    const uint64_t plane = 512 * 300 * 100 * 4;

    ck_assert_uint_eq(window_blend_bytes(&s, size, 100), 96 * plane);
    ck_assert_uint_eq(window_blend_bytes(&s, half, 100), 96 * plane);
    ck_assert_uint_eq(window_blend_bytes(&s, few, 100), 90 * plane);
    s.extra_bytes = (int64_t)(5 * plane + plane / 2);
    ck_assert_uint_eq(window_blend_bytes(&s, size, 100), 101 * plane);
    s.extra_bytes = (int64_t)(1000 * plane);
    ck_assert_uint_eq(window_blend_bytes(&s, size, 100), (96 + 72) * plane);
}
END_TEST

/*
 * The planes are those of a window; several rows of windows in a batch add the steps between them.
 */
START_TEST(a_device_holds_the_planes_of_a_batch_of_windows)
{
    window_settings s = { { 96, 96, 96 }, { 0.25, 0.25, 0.25 }, WINDOW_CONSTANT, 0.125, 0, 4, 0,
                          0, false };
    const int64_t size[3] = { 512, 512, 300 }, few[3] = { 90, 512, 300 };
    const int64_t thin[3] = { 512, 96, 150 };
    const int64_t vast[3] = { 4096, 8192, 8192 };
    const uint64_t plane = 512 * 300 * 100 * 4;

    ck_assert_uint_eq(window_blend_device_bytes(&s, size, 100), 96 * plane + 72 * plane);
    s.batch = 1;
    ck_assert_uint_eq(window_blend_device_bytes(&s, size, 100), 96 * plane);
    ck_assert_uint_eq(window_blend_device_bytes(&s, few, 100), 90 * plane);
    s.batch = 5; /* two windows a row: a batch may span two more rows */
    ck_assert_uint_eq(window_blend_device_bytes(&s, thin, 100),
                      (96 + 2 * 72) * UINT64_C(96) * 150 * 400);
    ck_assert_uint_eq(window_blend_device_bytes(&s, vast, 1), 0);
    ck_assert_uint_eq(window_blend_flip_bytes(&s, 3), 0);
    s.mirror = 2;
    ck_assert_uint_eq(window_blend_flip_bytes(&s, 3), 96 * 96 * 96 * 3 * 4);
    s.extent[0] = s.extent[1] = 1; /* a multiple of 64 */
    s.extent[2] = 5;
    ck_assert_uint_eq(window_blend_flip_bytes(&s, 4), 128);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("window");

    tcase_add_test(c, window_starts_equal_monais);
    tcase_add_test(c, importance_maps_equal_monais);
    tcase_add_test(c, windows_of_mode_nnunet_equal_nnunets);
    tcase_add_test(c, blending_a_pointwise_network_reproduces_its_values);
    tcase_add_test(c, mirroring_averages_a_position_and_its_mirror_image);
    tcase_add_test(c, windows_are_blended_by_their_weights);
    tcase_add_test(c, small_volume_is_padded_as_asked);
    tcase_add_test(c, blending_by_planes_equals_whole_volume_sums_bit_for_bit);
    tcase_add_test(c, flips_averaged_on_a_device_equal_the_hosts_bit_for_bit);
    tcase_add_test(c, blending_holds_the_planes_of_two_windows);
    tcase_add_test(c, a_device_holds_the_planes_of_a_batch_of_windows);
    return suite_run();
}
