/*
 * check_golden_transforms.c - single transforms with given parameters against the values of MONAI
 * and nnU-Net: what [preprocess] makes of a whole case.
 */
#include "data/case/case_read.h"
#include "support/data/golden_arrays.h"
#include "support/run/run_pons.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include "base/file/file.h"
#include "base/file/json.h"
#include "data/loader/patch_crop.h"
#include "data/nifti/nifti_read.h"
#include "data/transform/pipeline.h"
#include "data/volume/volume.h"

#include <stdlib.h>
#include <string.h>

#include "../../../plugins/transforms/nnunet_resample.h"

static void volume_from(const safetensor *t, pons_type type, volume *v)
{
    float *x = channels_last(t);

    MUST(pons_volume_init(v, type, (int)t->extent[0], t->extent + 1, &error));
    for (int64_t n = 0; n < t->count; n++)
        if (type == PONS_U8)
            ((uint8_t *)v->voxels)[n] = (uint8_t)x[n];
        else
            ((float *)v->voxels)[n] = x[n];
    free(x);
}

/* The share of voxels with another label may be at most 'share'. */
static void assert_image_labels(const float *found, const safetensor *expected, double share,
                                const char *name)
{
    float *e = channels_last(expected);
    int64_t other = 0;

    for (int64_t n = 0; n < expected->count; n++)
        other += found[n] != e[n];
    ck_assert_msg((double)other <= share * (double)expected->count, "%s: %d of %d labels differ",
                  name, (int)other, (int)expected->count);
    free(e);
}

static void assert_extent(const volume *v, const safetensor *expected, const char *name)
{
    for (int a = 0; a < 3; a++)
        ck_assert_msg(v->extent[a] == expected->extent[a + 1], "%s: extent %d along axis %d, "
                      "expected %d", name, (int)v->extent[a], a, (int)expected->extent[a + 1]);
}

static void preprocess(const char *ini, pons_case *c, const char *name)
{
    config *file = open_ini(ini);
    pipeline *steps;

    MUST(pipeline_open(file, "preprocess", false, c->image.channels, &steps, &error));
    ck_assert_msg(!pipeline_apply(steps, PIPELINE_ALL, c, NULL, &error), "%s: %s", name,
                  error.text);
    pipeline_close(steps);
    config_close(file);
}

/* ---- [preprocess], MONAI --------------------------------------------------------------------- */

/* Cases of transforms_more: name of the result, its source, and the steps with their options. */
static const struct whole {
    const char *name, *source, *ini;
} wholes[] = {
    { "resize_20x10x11_trilinear", "image", "resize\n[preprocess.resize]\nextent = 20 10 11\n"
      "mode = trilinear\n" },
    { "resize_7x24x16_trilinear", "image", "resize\n[preprocess.resize]\nextent = 7 24 16\n"
      "mode = trilinear\n" },
    { "resize_9x11x8_area", "image", "resize\n[preprocess.resize]\nextent = 9 11 8\n"
      "mode = area\n" },
    { "resize_20x24x15_area", "image", "resize\n[preprocess.resize]\nextent = 20 24 15\n"
      "mode = area\n" },
    { "resize_20x10x7_nearest", "label", "resize\n[preprocess.resize]\nextent = 20 10 7\n"
      "label_mode = nearest\n" },
    { "resize_20x10x7_nearest-exact", "label", "resize\n[preprocess.resize]\nextent = 20 10 7\n"
      "label_mode = nearest-exact\n" },
    { "resize_longest", "image", "resize\n[preprocess.resize]\nextent = 20\n"
      "size_mode = longest\nmode = trilinear\n" },
    { "percentiles_positive", "pair", "scale_percentiles\n[preprocess.scale_percentiles]\n"
      "from = 1 99\nto = -1 1\nclip = yes\nchannel_wise = yes\nabove = 0\n" },
};

START_TEST(preprocess_steps_equal_those_of_monai)
{
    const struct whole *w = &wholes[_i];
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    const safetensor *expected = find_array(arrays, w->name);
    bool label = strcmp(w->source, "label") == 0;
    pons_case c = { .size = sizeof c, .name = w->name };
    char ini[512];

    snprintf(ini, sizeof ini, "[preprocess]\nsteps = %s", w->ini);
    volume_from(find_array(arrays, label ? "image" : w->source), PONS_F32, &c.image);
    if (label)
        volume_from(find_array(arrays, "label"), PONS_U8, &c.label);
    preprocess(ini, &c, w->name);
    assert_extent(&c.image, expected, w->name);
    if (label)
        assert_labels(c.label.voxels, expected, 0, w->name);
    else
        assert_near(c.image.voxels, expected, IMAGE_OF_RANGE, w->name);
    case_clear(&c);
    safetensors_close(arrays);
}
END_TEST

/* Pictures [C, H, W]: name of the result, and the steps with their options. */
static const struct { const char *name, *ini; } pictures[] = {
    { "resized_crop_0_plain", "resize\n[preprocess.resize]\nextent = 1 10 12\n" },
    { "resized_crop_0_antialias", "resize\n[preprocess.resize]\nextent = 1 10 12\n"
      "mode = antialias\n" },
    { "resized_crop_0_antialias", "resize center_crop\n[preprocess.resize]\nextent = 10\n"
      "size_mode = shortest\nmode = antialias\n[preprocess.center_crop]\nextent = 0 10 12\n" },
    { "normalize_imagenet", "normalize\n[preprocess.normalize]\nchannel_wise = yes\n"
      "subtrahend = 0.485 0.456 0.406\ndivisor = 0.229 0.224 0.225\n" },
};

START_TEST(pictures_are_resized_and_normalised_as_by_torchvision)
{
    const char *name = pictures[_i].name;
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    safetensor source = picture_of(arrays, "picture"), expected = picture_of(arrays, name);
    pons_case c = { .size = sizeof c, .name = name };
    char ini[512];

    snprintf(ini, sizeof ini, "[preprocess]\nsteps = %s", pictures[_i].ini);
    volume_from(&source, PONS_F32, &c.image);
    preprocess(ini, &c, name);
    assert_extent(&c.image, &expected, name);
    assert_near(c.image.voxels, &expected, IMAGE_OF_RANGE, name);
    case_clear(&c);
    safetensors_close(arrays);
}
END_TEST

/* ---- [augment], torchvision ------------------------------------------------------------------ */

/* Boxes of a picture: name of the result, first row and column, rows, columns, and antialias. */
static const struct { const char *name; int64_t box[4]; bool antialias; } crops[] = {
    { "resized_crop_3_plain", { 3, 5, 14, 20 }, false },
    { "resized_crop_3_antialias", { 3, 5, 14, 20 }, true },
    { "resized_crop_0_plain", { 0, 0, 24, 30 }, false },
    { "resized_crop_0_antialias", { 0, 0, 24, 30 }, true },
    { "resized_crop_6_plain", { 6, 2, 8, 9 }, false },
    { "resized_crop_6_antialias", { 6, 2, 8, 9 }, true },
};

START_TEST(boxes_are_cut_and_resized_as_by_torchvision)
{
    const char *name = crops[_i].name;
    const int64_t *box = crops[_i].box;
    const sampling_spec spec = { SAMPLING_SETS_NONE, 0, 0 };
    const pons_sample sample = { .size = sizeof sample, .crop_start = { 0, box[0], box[1] },
                                 .crop_extent = { 1, box[2], box[3] },
                                 .crop_antialias = crops[_i].antialias };
    safetensors *arrays = open_arrays("transforms_more.safetensors");
    safetensor source = picture_of(arrays, "picture"), expected = picture_of(arrays, name);
    pons_case c = { .size = sizeof c, .name = name };
    packed_case packed, cut;

    volume_from(&source, PONS_F32, &c.image);
    MUST(packed_case_init(&packed, &c, &spec, &error));
    MUST(patch_crop(&packed, &sample, expected.extent + 1, &cut, &error));
    assert_extent(&cut.image, &expected, name);
    assert_near(cut.codes, &expected, IMAGE_OF_RANGE, name);
    packed_case_clear(&cut);
    packed_case_clear(&packed);
    safetensors_close(arrays);
}
END_TEST

/* ---- [preprocess], nnU-Net ------------------------------------------------------------------- */

static double number_at(const json_t *c, const char *key, int n)
{
    return json_number_value(json_array_get(json_object_get(c, key), (size_t)n));
}

static void resample_case(const safetensors *arrays, const json_t *c, axis_mode across)
{
    static const axis_mode modes[] = { AXIS_NEAREST_EXACT, AXIS_LINEAR, AXIS_CUBIC, AXIS_CUBIC };
    const json_t *given = json_object_get(c, "options");
    const char *name = json_string_value(json_object_get(c, "name"));
    bool label = json_is_true(json_object_get(given, "is_seg"));
    nnunet_modes m = { modes[json_integer_value(json_object_get(given, "order"))],
                       across, -1 };
    pons_case one = { .size = sizeof one, .name = name };
    double old[3], wanted[3];
    int64_t extent[3];
    char array[64];

    for (int a = 0; a < 3; a++) {
        old[a] = number_at(c, "spacing", a);
        wanted[a] = number_at(c, "new_spacing", a);
        extent[a] = (int64_t)number_at(c, "new_shape", a);
    }
    m.separate_axis = pons_slice_axis(PONS_SLICES_AUTO, old, wanted);
    snprintf(array, sizeof array, "%s/in", name);
    volume_from(find_array(arrays, array), PONS_F32, &one.image);
    if (label) {
        const float *ids = one.image.voxels;

        MUST(pons_volume_init(&one.label, PONS_U8, 1, one.image.extent, &error));
        for (int64_t n = 0; n < pons_volume_count(&one.label); n++)
            ((uint8_t *)one.label.voxels)[n] = (uint8_t)(ids[n] + 1);
    }
    MUST(nnunet_resample(&one, extent, &m, &error));
    snprintf(array, sizeof array, "%s/out", name);
    if (label) {
        for (int64_t n = 0; n < pons_volume_count(&one.label); n++)
            ((float *)one.image.voxels)[n] = (float)((uint8_t *)one.label.voxels)[n] - 1;
        assert_image_labels(one.image.voxels, find_array(arrays, array), NNUNET_LABEL_SHARE, name);
    } else {
        assert_near(one.image.voxels, find_array(arrays, array), NNUNET_OF_RANGE, name);
    }
    case_clear(&one);
}

START_TEST(images_and_labels_are_resampled_as_by_nnunet)
{
    safetensors *arrays = open_arrays("nnunet/resample.safetensors");
    json_t *cases = golden_json("nnunet/resample.json");
    int count = 0;

    for (size_t n = 0; n < json_array_size(cases); n++) {
        const json_t *c = json_array_get(cases, n);
        const char *function = json_string_value(json_object_get(c, "function"));

        if (strcmp(function, "resample_data_or_seg_to_shape") != 0)
            continue;
        resample_case(arrays, c, AXIS_NEAREST_EXACT);
        if (json_is_true(json_object_get(json_object_get(c, "options"), "is_seg")))
            resample_case(arrays, c, AXIS_LINEAR); /* 'order_z' of the image changes no label */
        count++;
    }
    ck_assert_int_eq(count, 13);
    json_decref(cases);
    safetensors_close(arrays);
}
END_TEST

/* Cases of nnunet/preprocess.json and the steps that stand for their plans. */
static const struct planned {
    const char *name, *steps, *options;
    int channels;
} planned_cases[] = {
    { "isotropic_zscore", "normalize", "[preprocess.normalize]\nchannel_wise = yes\n", 1 },
    { "separate_z_ct", "clip normalize", "[preprocess.clip]\nlower = -61.5\nupper = 118\n"
      "[preprocess.normalize]\nsubtrahend = 24.18\ndivisor = 37.91\n", 1 },
    { "transposed_ct", "clip normalize", "[preprocess.clip]\nlower = -61.5\nupper = 118\n"
      "[preprocess.normalize]\nsubtrahend = 24.18\ndivisor = 37.91\n", 1 },
    { "isotropic_zscore", "normalize", "[preprocess.normalize]\nscheme = zscore\n", 1 },
    { "separate_z_ct", "normalize", "[preprocess.normalize]\nscheme = ct\nlower = -61.5\n"
      "upper = 118\nsubtrahend = 24.18\ndivisor = 37.91\n", 1 },
    { "nonzero_mask_zscore", "crop_foreground normalize", "[preprocess.crop_foreground]\n"
      "select = nonzero\n[preprocess.normalize]\nscheme = zscore\nuse_mask_for_norm = yes\n", 2 },
    { "no_resampling", "normalize", "[preprocess.normalize]\nscheme = rescale_to_0_1\n"
      "channels = 0\n", 2 },
    { "no_resampling", "scale_percentiles", "[preprocess.scale_percentiles]\nfrom = 0 100\n"
      "channels = 0\n", 2 },
};

static const json_t *find_case(const json_t *cases, const char *name)
{
    for (size_t n = 0; n < json_array_size(cases); n++) {
        const json_t *c = json_array_get(cases, n);

        if (!strcmp(json_string_value(json_object_get(c, "name")), name))
            return c;
    }
    ck_abort_msg("no case '%s'", name);
    return NULL;
}

/* Read the label, as classes of its ids. */
static void read_planned_label(const struct planned *p, pons_case *c)
{
    char path[128];
    volume ids;

    snprintf(path, sizeof path, "nnunet/preprocess/%s.nii.gz", p->name);
    MUST(nifti_read_label(golden_path(path), &ids, NULL, &error));
    MUST(pons_volume_init(&c->label, PONS_U8, 1, ids.extent, &error));
    volume_copy_position(&c->label, &ids);
    for (int64_t i = 0; i < pons_volume_count(&ids); i++)
        ((uint8_t *)c->label.voxels)[i] = (uint8_t)((int32_t *)ids.voxels)[i];
    pons_volume_clear(&ids);
}

static void read_planned(const struct planned *p, pons_case *c)
{
    char path[128];

    *c = (pons_case){ .size = sizeof *c, .name = p->name };
    for (int n = 0; n < p->channels; n++) {
        volume v;

        snprintf(path, sizeof path, "nnunet/preprocess/%s_%04d.nii.gz", p->name, n);
        MUST(nifti_read_image(golden_path(path), &v, NULL, &error));
        if (n == 0) {
            MUST(pons_volume_init(&c->image, PONS_F32, p->channels, v.extent, &error));
            volume_copy_position(&c->image, &v);
        }
        for (int64_t i = 0; i < pons_volume_count(&v); i++)
            ((float *)c->image.voxels)[i * p->channels + n] = ((float *)v.voxels)[i];
        pons_volume_clear(&v);
    }
    read_planned_label(p, c);
}

/* Axis a of a plan is axis 2 - transpose_forward[a] of the file. */
START_TEST(cases_are_preprocessed_as_by_nnunet)
{
    const struct planned *p = &planned_cases[_i];
    safetensors *arrays = open_arrays("nnunet/preprocess.safetensors");
    json_t *cases = golden_json("nnunet/preprocess.json");
    const json_t *plan = find_case(cases, p->name);
    int order[3];
    bool flip[3] = { false, false, false };
    double mm[3];
    char ini[1024], name[64];
    pons_case c;

    for (int a = 0; a < 3; a++) {
        order[a] = 2 - (int)number_at(plan, "transpose_forward", a);
        mm[order[a]] = number_at(plan, "target_spacing", a);
    }
    snprintf(ini, sizeof ini, "[preprocess]\nsteps = %s spacing\n%s[preprocess.spacing]\n"
             "mm = %g %g %g\nmethod = nnunet\n", p->steps, p->options, mm[0], mm[1], mm[2]);
    read_planned(p, &c);
    preprocess(ini, &c, p->name);
    MUST(pons_volume_reorient(&c.image, order, flip, &error));
    snprintf(name, sizeof name, "%s/data", p->name);
    assert_extent(&c.image, find_array(arrays, name), p->name);
    assert_near(c.image.voxels, find_array(arrays, name), IMAGE_OF_RANGE, p->name);
    case_clear(&c);
    json_decref(cases);
    safetensors_close(arrays);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("golden transforms");

    tcase_add_loop_test(c, preprocess_steps_equal_those_of_monai, 0,
                        sizeof wholes / sizeof wholes[0]);
    tcase_add_test(c, images_and_labels_are_resampled_as_by_nnunet);
    tcase_add_loop_test(c, cases_are_preprocessed_as_by_nnunet, 0,
                        sizeof planned_cases / sizeof planned_cases[0]);
    tcase_add_loop_test(c, pictures_are_resized_and_normalised_as_by_torchvision, 0,
                        sizeof pictures / sizeof pictures[0]);
    tcase_add_loop_test(c, boxes_are_cut_and_resized_as_by_torchvision, 0,
                        sizeof crops / sizeof crops[0]);
    return suite_run();
}
