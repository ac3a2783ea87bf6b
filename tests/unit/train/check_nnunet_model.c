/*
 * check_nnunet_model.c - trained folders of nnU-Net in the program: labels and logits equal its own
 * predictor's (golden), and plans, files and checkpoints that are not as expected are refused.
 */
#include <config.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "checkpoint/safetensors.h"
#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"
#include "data/volume/volume.h"

#include "support/data/torch_maker.h"
#include "support/run/run_json.h"
#include "support/run/run_pons.h"
#include "support/suite.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

/* The share of voxels whose label may differ for other reasons than sums in half precision. */
static const double LABELS_SHARE = 1e-3;
/* Rounding of float32 sums, as a share of the largest logit. */
static const double LOGITS_SHARE = 1e-4;

static volume read_volume(const char *path)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;

    memset(&v, 0, sizeof v);
    ck_assert_msg(nifti_read_image(path, &v, NULL, &err) == PONS_OK, "%s", err.text);
    return v;
}

/* ---- golden predictions ---------------------------------------------------------------------- */

static int count_different(const volume *a, const volume *b)
{
    int64_t count = pons_volume_count(a);
    const float *x = a->voxels, *y = b->voxels;
    int different = 0;

    ck_assert_int_eq(memcmp(a->extent, b->extent, sizeof a->extent), 0);
    for (int64_t n = 0; n < count; n++)
        different += x[n] != y[n];
    return different;
}

/* Predict a case of models.json into o.nii.gz, with logits. */
static void predict_golden(const json_t *c)
{
    const char *model = json_string_value(json_object_get(c, "model"));
    const json_t *images = json_object_get(c, "images");
    const char *word[16] = { "predict" };
    char folder[1024], file[2][1024], name[256];
    int count = 1;

    snprintf(name, sizeof name, "nnunet/models/%s", model);
    snprintf(folder, sizeof folder, "%s", golden_path(name));
    word[count++] = folder;
    for (size_t i = 0; i < json_array_size(images); i++) {
        snprintf(name, sizeof name, "nnunet/%s", json_string_value(json_array_get(images, i)));
        snprintf(file[i], sizeof file[i], "%s", golden_path(name));
        word[count++] = file[i];
    }
    if (json_array_size(json_object_get(c, "folds")) == 1) {
        word[count++] = "--folds";
        word[count++] = "0";
    }
    if (!json_is_true(json_object_get(c, "mirror")))
        word[count++] = "--no-mirror";
    word[count++] = "--logits";
    word[count++] = "-o";
    word[count++] = "o.nii.gz";
    int found = process_finish(process_start(word));
    ck_assert_msg(found == 0, "code %d: %s", found, root_text("said"));
}

static void check_labels(const json_t *c)
{
    char name[256];
    int allowed;

    snprintf(name, sizeof name, "nnunet/%s",
             json_string_value(json_object_get(c, "segmentation")));
    volume expected = read_volume(golden_path(name)), found = read_volume(in_root("o.nii.gz"));
    allowed = (int)json_integer_value(json_object_get(c, "labels_that_differ_without_half"));
    allowed += (int)(LABELS_SHARE * (double)pons_volume_count(&expected));
    int different = count_different(&expected, &found);
    ck_assert_msg(different <= allowed, "%s: %d labels differ, at most %d may",
                  json_string_value(json_object_get(c, "name")), different, allowed);
    pons_volume_clear(&expected);
    pons_volume_clear(&found);
}

/* [C, z, y, x] in plan axes, of a case without crop and resampling, against [x, y, z, C]. */
static void check_logits(const char *name, const safetensor *t, const volume *v,
                         const int order[3])
{
    double *expected = malloc((size_t)t->count * sizeof *expected), largest = 0, worst = 0;
    const float *x = v->voxels;

    safetensor_doubles(t, expected);
    for (int64_t n = 0; n < t->count; n++)
        largest = fmax(largest, fabs(expected[n]));
    for (int64_t n = 0; n < pons_volume_count(v); n++) {
        int64_t file[3] = { n / v->extent[2] / v->extent[1], n / v->extent[2] % v->extent[1],
                            n % v->extent[2] }, plan[3];
        for (int a = 0; a < 3; a++)
            plan[order[a]] = file[a];
        for (int k = 0; k < v->channels; k++) {
            int64_t at = ((k * t->extent[1] + plan[0]) * t->extent[2] + plan[1]) * t->extent[3]
                         + plan[2];
            worst = fmax(worst, fabs(expected[at] - x[n * v->channels + k]));
        }
    }
    free(expected);
    ck_assert_msg(worst <= LOGITS_SHARE * largest, "%s: logits differ by %g of %g", name, worst,
                  largest);
}

/* The inner part of a volume whose border was cropped away. */
static void crop_to(volume *v, const safetensor *t, const int order[3])
{
    pons_error err = PONS_ERROR_INIT;
    int64_t start[3], extent[3];

    for (int a = 0; a < 3; a++) {
        extent[a] = t->extent[1 + order[a]];
        start[a] = (v->extent[a] - extent[a]) / 2;
    }
    ck_assert_int_eq(pons_volume_crop(v, start, extent, 0, &err), PONS_OK);
}

START_TEST(predictions_equal_nnunets)
{
    static const int order[3] = { 2, 0, 1 }; /* of the residual model: transpose_forward 1 0 2 */
    size_t number;
    pons_error err = PONS_ERROR_INIT;
    json_t *list = golden_json("nnunet/models.json"), *c;
    safetensors *file = NULL;
    int cases = 0, logits = 0;

    make_root();
    ck_assert_int_eq(safetensors_open(golden_path("nnunet/models.safetensors"), &file, &err),
                     PONS_OK);
    json_array_foreach(list, number, c) {
        char name[256];
        if (json_object_get(c, "labels_that_differ_without_half") == NULL)
            continue;
        cases++;
        predict_golden(c);
        check_labels(c);
        snprintf(name, sizeof name, "%s/logits_exact",
                 json_string_value(json_object_get(c, "name")));
        const safetensor *t = safetensors_find(file, name);
        ck_assert_ptr_nonnull(t);
        if (strstr(name, "residual_1") == NULL) /* the others are resampled */
            continue;
        logits++;
        volume v = read_volume(in_root("o_logits.nii.gz"));
        crop_to(&v, t, order);
        check_logits(name, t, &v, order);
        pons_volume_clear(&v);
    }
    ck_assert_int_eq(cases, 8);
    ck_assert_int_eq(logits, 2);
    safetensors_close(file);
    json_decref(list);
    remove_root();
}
END_TEST

/*
 * A 2D network with transposed axes; slices that are resampled apart, with two normalisations and a
 * label 'ignore'.
 */
START_TEST(slices_and_mixed_channels_equal_nnunets)
{
    static const char *const models[] = { "two", "sep" }, *const flips[] = { "plain", "mirrored" };

    make_root();
    for (int n = 0; n < 4; n++) {
        char model[1024], images[1024], name[256];
        snprintf(name, sizeof name, "nnunet/models_more/%s/model", models[n / 2]);
        snprintf(model, sizeof model, "%s", golden_path(name));
        snprintf(name, sizeof name, "nnunet/models_more/%s/images", models[n / 2]);
        snprintf(images, sizeof images, "%s", golden_path(name));
        EXPECT(0, "case -> ", "predict", model, images, "-o", "seg/",
               n % 2 == 0 ? "--no-mirror" : NULL);
        snprintf(name, sizeof name, "nnunet/models_more/%s/%s.nii.gz", models[n / 2], flips[n % 2]);
        volume expected = read_volume(golden_path(name));
        volume found = read_volume(in_root("seg/case.nii.gz"));
        int allowed = (int)(LABELS_SHARE * (double)pons_volume_count(&expected));
        int different = count_different(&expected, &found);
        ck_assert_msg(different <= allowed, "%s: %d labels differ, at most %d may", name, different,
                      allowed);
        pons_volume_clear(&expected);
        pons_volume_clear(&found);
    }
    remove_root();
}
END_TEST

/* ---- files ----------------------------------------------------------------------------------- */

static void write_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(in_root(name), "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void copy_file(const char *from, const char *to)
{
    pons_error err = PONS_ERROR_INIT;
    char *data;
    size_t size;

    ck_assert_int_eq(file_read(from, 1 << 24, &data, &size, PONS_DATA, &err), PONS_OK);
    write_file(to, data, size);
    free(data);
}

/* A model's folder 'm' that may be changed, and its images as CASE_0000 and CASE_0001. */
static void begin_model(void)
{
    pons_error err = PONS_ERROR_INIT;

    make_root();
    ck_assert_int_eq(folder_make(in_root("m/fold_0"), &err), PONS_OK);
    ck_assert_int_eq(folder_make(in_root("in"), &err), PONS_OK);
    copy_file(golden_path("nnunet/models/residual/plans.json"), "m/plans.json");
    copy_file(golden_path("nnunet/models/residual/dataset.json"), "m/dataset.json");
    copy_file(golden_path("nnunet/models/residual/fold_0/checkpoint_final.pth"),
              "m/fold_0/checkpoint_final.pth");
    copy_file(golden_path("nnunet/models/images/residual_1_0000.nii.gz"), "in/a_0000.nii.gz");
    copy_file(golden_path("nnunet/models/images/residual_1_0001.nii.gz"), "in/a_0001.nii.gz");
}

static bool is_in_root(const char *name)
{
    return access(in_root(name), F_OK) == 0;
}

START_TEST(channels_come_as_files_lists_and_folders)
{
    volume one, other;

    begin_model();
    EXPECT(0, "a -> ", "predict", "m", "in", "-o", "seg");
    EXPECT(0, "a -> ", "predict", "m/fold_0", "in/a_0000.nii.gz,in/a_0001.nii.gz", "-o", "list/");
    EXPECT(0, "a -> ", "predict", "m", "in/a_0000.nii.gz", "in/a_0001.nii.gz", "--folds", "0", "-o",
           "two/");
    one = read_volume(in_root("seg/a.nii.gz"));
    ck_assert(is_in_root("list/a.nii.gz"));
    other = read_volume(in_root("two/a.nii.gz"));
    ck_assert_int_eq(count_different(&one, &other), 0);
    pons_volume_clear(&one);
    pons_volume_clear(&other);
    remove_root();
}
END_TEST

START_TEST(names_tell_the_order_of_channels)
{
    volume one, other;

    begin_model();
    EXPECT(0, "a -> ", "predict", "m", "in/a_0000.nii.gz", "in/a_0001.nii.gz", "-o", "o.nii.gz");
    EXPECT(0, "a -> ", "predict", "m", "in/a_0001.nii.gz", "in/a_0000.nii.gz", "-o", "r.nii.gz");
    one = read_volume(in_root("o.nii.gz"));
    other = read_volume(in_root("r.nii.gz"));
    ck_assert_int_eq(count_different(&one, &other), 0);
    pons_volume_clear(&one);
    pons_volume_clear(&other);
    remove_root();
}
END_TEST

START_TEST(a_fold_that_is_alone_needs_no_name)
{
    pons_error err = PONS_ERROR_INIT;

    begin_model();
    EXPECT(0, "wrote 'n'", "export", "m", "--nnunet", "n");
    ck_assert(is_in_root("n/fold_0/checkpoint_final.pth"));
    ck_assert_int_eq(folder_make(in_root("m/fold_1"), &err), PONS_OK);
    copy_file(in_root("m/fold_0/checkpoint_final.pth"), "m/fold_1/checkpoint_final.pth");
    EXPECT(3, "'m' holds folds, expected one of them, as 'm/fold_0'", "export", "m", "--nnunet",
           "o");
    ck_assert(!is_in_root("o"));
    remove_root();
}
END_TEST

START_TEST(missing_channels_and_folds_are_named)
{
    begin_model();
    EXPECT(4, "case 'a' has no file of channel 1, expected 'a_0001'", "predict", "m",
           "in/a_0000.nii.gz", "-o", "o.nii.gz");
    EXPECT(4, "case 'a' has no file of channel 0, expected 'a_0000'", "predict", "m",
           "in/a_0001.nii.gz", "-o", "o.nii.gz");
    EXPECT(3, "m/fold_3' holds no checkpoint_final.pth", "predict", "m", "in", "--folds", "0,3",
           "-o", "seg");
    EXPECT(2, "--folds ',' names no fold", "predict", "m", "in", "--folds", ",", "-o", "seg");
    EXPECT(2, "expected one of them", "predict", "m", "in", "--folds", "0", "--fold", "0", "-o",
           "seg");
    EXPECT(2, "--folds is for a folder of nnU-Net", "predict", "in", "in", "--folds", "0", "-o",
           "seg");
    ck_assert(!is_in_root("seg"));
    ck_assert(!is_in_root("o.nii.gz"));
    remove_root();
}
END_TEST

START_TEST(networks_of_other_labels_or_spacings_are_no_ensemble)
{
    static const char *const same[] = { "plans.json", "fold_0/checkpoint_final.pth" };
    pons_error err = PONS_ERROR_INIT;
    char from[64], to[64];

    begin_model();
    ck_assert_int_eq(folder_make(in_root("n/fold_0"), &err), PONS_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "m/%s", same[i]);
        snprintf(to, sizeof to, "n/%s", same[i]);
        copy_file(in_root(from), to);
    }
    json_t *facts = json_load_file(in_root("m/dataset.json"), 0, NULL);
    json_object_set_new(json_object_get(facts, "labels"), "whole", json_pack("[ii]", 1, 2));
    ck_assert_int_eq(json_dump_file(facts, in_root("n/dataset.json"), 0), 0);
    json_decref(facts);
    EXPECT(3, "'n/fold_0' has labels or regions of other ids", "predict", "m,n", "in", "-o", "seg");
    ck_assert(!is_in_root("seg"));
    copy_file(in_root("m/dataset.json"), "n/dataset.json");
    json_t *plans = json_load_file(in_root("n/plans.json"), 0, NULL);
    json_t *full = json_object_get(json_object_get(plans, "configurations"), "3d_fullres");
    json_object_set_new(full, "spacing", json_pack("[fff]", 2.0, 2.0, 2.0));
    ck_assert_int_eq(json_dump_file(plans, in_root("n/plans.json"), 0), 0);
    json_decref(plans);
    EXPECT(3, "case 'a': network 2 of the ensemble predicts", "predict", "m,n", "in", "-o", "seg");
    ck_assert(!is_in_root("seg/a.nii.gz"));
    remove_root();
}
END_TEST

START_TEST(a_fold_is_found_under_any_path)
{
    begin_model();
    ck_assert_int_eq(symlink("m/fold_0", in_root("link")), 0);
    EXPECT(0, "a -> ", "predict", "m/fold_0/.", "in", "-o", "seg");
    EXPECT(0, "a -> ", "predict", "link", "in", "-o", "linked");
    ck_assert(is_in_root("seg/a.nii.gz") && is_in_root("linked/a.nii.gz"));
    EXPECT(2, "--config 'nothing.ini': the configuration of 'm/fold_0' is that of its plans.json",
           "predict", "m/fold_0", "in", "-o", "o", "--config", "nothing.ini");
    EXPECT(2, "--config 'nothing.ini'", "predict", "m", "in", "-o", "o", "--config", "nothing.ini");
    ck_assert(!is_in_root("o"));
    remove_root();
}
END_TEST

static void move(const char *from, const char *to)
{
    char source[1024];

    snprintf(source, sizeof source, "%s", in_root(from));
    ck_assert_int_eq(rename(source, in_root(to)), 0);
}

START_TEST(a_folder_that_is_no_whole_model_is_named)
{
    begin_model();
    EXPECT(2, "hint: a fold of nnU-Net is named by its folder, m/fold_0", "predict",
           "m/fold_0/checkpoint_final.pth", "in", "-o", "seg");
    EXPECT(3, "'.' holds 1 model folder of nnU-Net, expected the path of one: m", "predict", ".",
           "in", "-o", "seg");
    EXPECT(3, "'.' holds 1 model folder of nnU-Net", "evaluate", "--run", ".");
    EXPECT(3, "'.' holds 1 model folder of nnU-Net", "explain", ".");
    move("m/dataset.json", "dataset.json");
    EXPECT(3, "'m' has no dataset.json", "predict", "m", "in", "-o", "seg");
    EXPECT(3, "'m/fold_0/..' has no dataset.json", "predict", "m/fold_0", "in", "-o", "seg");
    EXPECT(3, "'m' has no dataset.json", "evaluate", "--run", "m");
    move("dataset.json", "m/dataset.json");
    move("m/plans.json", "plans.json");
    EXPECT(3, "'m' has no plans.json", "predict", "m", "in", "-o", "seg");
    move("plans.json", "m/plans.json");
    move("m/fold_0/checkpoint_final.pth", "m/fold_0/checkpoint_latest.pth");
    EXPECT(3, "'m/fold_0' holds no checkpoint_final.pth", "predict", "m/fold_0", "in", "-o", "seg");
    ck_assert(!is_in_root("seg"));
    remove_root();
}
END_TEST

/* ---- plans ----------------------------------------------------------------------------------- */

static json_t *read_json(const char *name)
{
    json_error_t problem;
    json_t *root = json_load_file(in_root(name), 0, &problem);

    ck_assert_ptr_nonnull(root);
    return root;
}

/* The object at a path of keys. */
static json_t *object_at(json_t *root, const char *path)
{
    char *copy = strdup(path), *rest = NULL;

    for (char *key = strtok_r(copy, "/", &rest); key != NULL; key = strtok_r(NULL, "/", &rest))
        root = json_object_get(root, key);
    free(copy);
    ck_assert(json_is_object(root));
    return root;
}

/* Predict with a changed file: code 3, and a line that names the key. */
static void expect_refused(const char *name, json_t *root, const char *key)
{
    ck_assert_int_eq(json_dump_file(root, in_root(name), 0), 0);
    EXPECT(3, key, "predict", "m", "in", "-o", "seg");
    ck_assert(!is_in_root("seg"));
}

/* Keys of an object that a prediction does not read. */
static bool is_unread(const char *key)
{
    static const char *const unread[] = {
        "dataset_name", "plans_name", "original_median_spacing_after_transp",
        "original_median_shape_after_transp", "experiment_planner_used", "label_manager",
        "foreground_intensity_properties_per_channel", "data_identifier", "batch_size",
        "median_image_size_in_voxels", "resampling_fn_seg", "resampling_fn_seg_kwargs",
        "batch_dice", "_kw_requires_import", "dropout_op", "dropout_op_kwargs", "nonlin_kwargs",
        "numTraining"
    };

    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++)
        if (strcmp(key, unread[i]) == 0)
            return true;
    return false;
}

static void check_object(const char *name, const char *path)
{
    json_t *whole = read_json(name), *root, *o;
    const char *key;
    json_t *value;

    json_object_foreach(object_at(whole, path), key, value) {
        if (is_unread(key))
            continue;
        root = json_deep_copy(whole);
        json_object_del(object_at(root, path), key);
        expect_refused(name, root, key);
        json_decref(root);
    }
    root = json_deep_copy(whole);
    o = object_at(root, path);
    json_object_set_new(o, "surprise", json_integer(1));
    expect_refused(name, root, "surprise'");
    json_decref(root);
    ck_assert_int_eq(json_dump_file(whole, in_root(name), 0), 0);
    json_decref(whole);
}

/* A value of another kind, wherever a prediction reads one. */
static void check_kinds(const char *name, const char *path)
{
    json_t *whole = read_json(name), *root;
    const char *key;
    json_t *value;

    json_object_foreach(object_at(whole, path), key, value) {
        if (is_unread(key) && strcmp(key, "label_manager") != 0 && strcmp(key, "dropout_op") != 0)
            continue;
        root = json_deep_copy(whole);
        json_object_set_new(object_at(root, path), key, json_pack("{s:[s]}", "surprise", "of"));
        expect_refused(name, root, strcmp(key, "configurations") == 0 ? "3d_fullres" : key);
        json_decref(root);
    }
    ck_assert_int_eq(json_dump_file(whole, in_root(name), 0), 0);
    json_decref(whole);
}

#define CONFIGURATION "configurations/3d_fullres"
#define ARGUMENTS CONFIGURATION "/architecture/arch_kwargs"

START_TEST(values_of_another_kind_are_named)
{
    begin_model();
    check_kinds("m/plans.json", "");
    check_kinds("m/plans.json", CONFIGURATION);
    check_kinds("m/plans.json", CONFIGURATION "/resampling_fn_data_kwargs");
    check_kinds("m/plans.json", CONFIGURATION "/resampling_fn_probabilities_kwargs");
    check_kinds("m/plans.json", CONFIGURATION "/architecture");
    check_kinds("m/plans.json", ARGUMENTS);
    check_kinds("m/plans.json", ARGUMENTS "/norm_op_kwargs");
    check_kinds("m/dataset.json", "");
    check_kinds("m/dataset.json", "labels");
    EXPECT(0, NULL, "predict", "m", "in", "-o", "seg");
    remove_root();
}
END_TEST

/* An unknown key in the arguments of every function; none is passed over. */
START_TEST(arguments_that_are_unknown_are_named)
{
    static const char *const path[] = { CONFIGURATION "/resampling_fn_data_kwargs",
                                        CONFIGURATION "/resampling_fn_probabilities_kwargs",
                                        ARGUMENTS "/norm_op_kwargs", ARGUMENTS "/nonlin_kwargs" };

    begin_model();
    json_t *whole = read_json("m/plans.json");

    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        json_t *root = json_deep_copy(whole);
        char expected[256];
        snprintf(expected, sizeof expected, "%s.surprise'", strrchr(path[i], '/') + 1);
        json_object_set_new(object_at(root, path[i]), "surprise", json_integer(1));
        expect_refused("m/plans.json", root, expected);
        json_decref(root);
    }
    json_decref(whole);
    remove_root();
}
END_TEST

START_TEST(keys_that_are_missing_or_unknown_are_named)
{
    begin_model();
    check_object("m/plans.json", "");
    check_object("m/plans.json", "configurations/3d_fullres");
    check_object("m/plans.json", "configurations/3d_fullres/architecture");
    check_object("m/plans.json", "configurations/3d_fullres/architecture/arch_kwargs");
    check_object("m/dataset.json", "");
    EXPECT(0, NULL, "predict", "m", "in", "-o", "seg");
    remove_root();
}
END_TEST

typedef struct wrong_value {
    const char *path, *key, *value, *phrase;
} wrong_value;

static const wrong_value wrong_values[] = {
    { "", "image_reader_writer", "\"Tiff3DIO\"", "image_reader_writer: found \"Tiff3DIO\"" },
    { "", "transpose_forward", "[0, 0, 1]", "transpose_forward: found [0,0,1], expected each of" },
    { "", "label_manager", "\"Mine\"", "label_manager: found \"Mine\"" },
    { "C", "preprocessor_name", "\"Mine\"", "configurations.3d_fullres.preprocessor_name" },
    { "C", "previous_stage", "3", "previous_stage: found 3" },
    { "C", "spacing", "[1, 1, 1e9]", "spacing: found" },
    { "C", "spacing", "[1, 1, 0]", "spacing: found" },
    { "C", "spacing", "[1, 1]", "spacing: found [1,1], expected a list of 3 numbers" },
    { "C", "patch_size", "[16, 12, 1.5]", "patch_size: found" },
    { "C", "patch_size", "[16, 12, 13]", "is not divisible by" },
    { "C", "normalization_schemes", "[\"ZScoreNormalization\", \"Mine\"]",
      "normalization_schemes: found" },
    { "C", "use_mask_for_norm", "[true]", "use_mask_for_norm: found [true], expected one for" },
    { "C", "resampling_fn_data", "\"mine\"", "resampling_fn_data: found \"mine\"" },
    { "C/resampling_fn_probabilities_kwargs", "order", "3", "order: found 3, expected 1" },
    { "C/resampling_fn_data_kwargs", "order", "2", "order: found 2, expected 0, 1 or 3" },
    { "C/architecture", "network_class_name", "\"mine.Net\"", "network_class_name: found" },
    { "C/architecture/arch_kwargs", "block", "\"dynamic_network_architectures.building_blocks."
      "residual.BottleneckD\"", "residual.BottleneckD\", expected" },
    { "C/architecture/arch_kwargs", "n_stages", "4", "features_per_stage: found" },
    { "C/architecture/arch_kwargs", "conv_op", "\"torch.nn.modules.conv.Conv2d\"",
      "conv_op: found" },
    { "C/architecture/arch_kwargs", "features_per_stage", "[4, 8, 9]", "has shape" },
    { "C/architecture/arch_kwargs", "kernel_sizes", "[[3,3,3],[3,3,3],[3,3,2]]",
      "kernel_sizes: found 2" },
    { "C/architecture/arch_kwargs/norm_op_kwargs", "eps", "0", "eps: found 0, expected a number" },
    { "C/architecture/arch_kwargs/nonlin_kwargs", "negative_slope", "true",
      "negative_slope: found" },
};

START_TEST(values_that_are_not_understood_are_named)
{
    begin_model();
    json_t *whole = read_json("m/plans.json");

    for (size_t i = 0; i < sizeof wrong_values / sizeof *wrong_values; i++) {
        const wrong_value *w = &wrong_values[i];
        json_t *root = json_deep_copy(whole);
        char path[256];
        snprintf(path, sizeof path, "%s%s", w->path[0] == 'C' ? "configurations/3d_fullres" : "",
                 w->path[0] == 'C' ? w->path + 1 : w->path);
        json_object_set_new(object_at(root, path), w->key,
                            json_loads(w->value, JSON_DECODE_ANY, NULL));
        expect_refused("m/plans.json", root, w->phrase);
        json_decref(root);
    }
    json_decref(whole);
    remove_root();
}
END_TEST

/* Numbers of operations are options of the network, and act on the logits. */
START_TEST(slope_and_eps_of_plans_are_options)
{
    volume before, set, plan;

    begin_model();
    EXPECT(0, NULL, "predict", "m", "in", "-o", "a/", "--logits");
    EXPECT(0, NULL, "predict", "m", "in", "-o", "b/", "--logits", "--set",
           "model.negative_slope=0.3", "--set", "model.eps=0.001");
    json_t *root = read_json("m/plans.json");
    json_object_set_new(object_at(root, ARGUMENTS "/nonlin_kwargs"), "negative_slope",
                        json_real(0.3));
    json_object_set_new(object_at(root, ARGUMENTS "/norm_op_kwargs"), "eps", json_real(1e-3));
    ck_assert_int_eq(json_dump_file(root, in_root("m/plans.json"), 0), 0);
    EXPECT(0, NULL, "predict", "m", "in", "-o", "c/", "--logits");
    before = read_volume(in_root("a/a_logits.nii.gz"));
    set = read_volume(in_root("b/a_logits.nii.gz"));
    plan = read_volume(in_root("c/a_logits.nii.gz"));
    ck_assert_int_gt(count_different(&before, &set), 0);
    ck_assert_int_eq(count_different(&set, &plan), 0);
    pons_volume_clear(&before);
    pons_volume_clear(&set);
    pons_volume_clear(&plan);
    json_decref(root);
    remove_root();
}
END_TEST

START_TEST(a_label_with_a_colon_is_named)
{
    begin_model();
    json_t *root = read_json("m/dataset.json"), *labels = json_object_get(root, "labels");

    json_object_set_new(labels, "lobe:left", json_integer((json_int_t)json_object_size(labels)));
    expect_refused("m/dataset.json", root, "dataset.json': labels: found the name 'lobe:left'");
    json_decref(root);
    remove_root();
}
END_TEST

/* Classes are counted from 0, and there are at most 256. */
START_TEST(ids_that_leave_out_a_number_are_named)
{
    begin_model();
    json_t *root = read_json("m/dataset.json");
    json_t *labels = json_loads("{\"background\": 0, \"near\": 1, \"far\": 300}", 0, NULL);
    char name[16];

    json_object_set_new(root, "labels", labels);
    expect_refused("m/dataset.json", root, "labels.far: found 300, expected an id from 0 to 2 that "
                   "no other label has");
    json_object_set_new(labels, "far", json_integer(2));
    for (int count = 3; count < 300; count++) {
        snprintf(name, sizeof name, "l%d", count);
        json_object_set_new(labels, name, json_integer(count));
    }
    expect_refused("m/dataset.json", root, "labels: found 300, expected at most 256");
    json_decref(root);
    remove_root();
}
END_TEST

START_TEST(an_id_of_no_region_is_named)
{
    begin_model();
    json_t *root = read_json("m/dataset.json");

    json_object_set_new(root, "labels", json_loads("{\"background\": 0, \"a\": [1, 2], "
                                                   "\"b\": 2}", 0, NULL));
    json_object_set_new(root, "regions_class_order", json_loads("[1, 5]", 0, NULL));
    expect_refused("m/dataset.json", root, "dataset.json': regions_class_order[1]: found 5, which "
                   "no region of labels has");
    json_decref(root);
    remove_root();
}
END_TEST

START_TEST(an_absurd_spacing_is_refused)
{
    begin_model();
    json_t *root = read_json("m/plans.json");

    json_object_set_new(object_at(root, "configurations/3d_fullres"), "spacing",
                        json_loads("[1e-4, 1e-4, 1e-4]", 0, NULL));
    ck_assert_int_eq(json_dump_file(root, in_root("m/plans.json"), 0), 0);
    EXPECT(4, "case 'a', step 'spacing': a spacing of 1 x 1.2 x 1 mm gives", "predict", "m", "in",
           "-o", "seg");
    json_object_set_new(object_at(root, "configurations/3d_fullres"), "spacing",
                        json_loads("[1000, 1000, 1000]", 0, NULL));
    ck_assert_int_eq(json_dump_file(root, in_root("m/plans.json"), 0), 0);
    EXPECT(4, "case 'a', step 'spacing': a spacing of 1 mm along axis 0 gives 0 voxels of 1000 "
           "mm, expected 1 to 2147483647", "predict", "m", "in", "-o", "seg");
    ck_assert(!is_in_root("seg/a.nii.gz"));
    json_decref(root);
    remove_root();
}
END_TEST

START_TEST(damaged_checkpoints_are_refused)
{
    pons_error err = PONS_ERROR_INIT;
    char *data;
    size_t size;

    begin_model();
    ck_assert_int_eq(file_read(in_root("m/fold_0/checkpoint_final.pth"), 1 << 24, &data, &size,
                               PONS_DATA, &err), PONS_OK);
    for (int part = 1; part < 8; part++) {
        write_file("m/fold_0/checkpoint_final.pth", data, size * (size_t)part / 8);
        EXPECT(4, "m/fold_0/checkpoint_final.pth'", "predict", "m", "in", "-o", "seg");
        ck_assert(!is_in_root("seg"));
    }
    free(data);
    remove_root();
}
END_TEST

typedef struct pickle_case {
    const char *pickle;
    size_t length;
    const char *phrase;
} pickle_case;

#define PICKLE(TEXT) TEXT, sizeof TEXT - 1
#define WEIGHTS "X\17\0\0\0network_weights"

static const pickle_case pickles[] = {
    { PICKLE("\x80\2}."), "has no 'network_weights'" },
    { PICKLE("\x80\2}" WEIGHTS "K\1s."), "has no 'network_weights'" },
    { PICKLE("\x80\2}" WEIGHTS "}s."), "has no 'init_args.configuration'" },
    { PICKLE("\x80\2}" WEIGHTS "}K\1K\1ss."), "a key of 'network_weights' is no text" },
    { PICKLE("\x80\2}" WEIGHTS "}X\1\0\0\0aK\1ss."), "expected a tensor of numbers" }
};

START_TEST(checkpoints_of_something_else_are_refused)
{
    begin_model();
    for (size_t i = 0; i < sizeof pickles / sizeof *pickles; i++) {
        size_t size;
        unsigned char *data = torch_maker_file(pickles[i].pickle, pickles[i].length, 4, &size);
        write_file("m/fold_0/checkpoint_final.pth", data, size);
        EXPECT(4, pickles[i].phrase, "predict", "m", "in", "-o", "seg");
        ck_assert(!is_in_root("seg"));
        free(data);
    }
    remove_root();
}
END_TEST

START_TEST(plans_before_version_2_4_are_equal)
{
    volume one, other;

    begin_model();
    EXPECT(0, NULL, "predict", "m", "in", "-o", "new");
    copy_file(golden_path("nnunet/models/residual/plans_old_format.json"), "m/plans.json");
    EXPECT(0, NULL, "predict", "m", "in", "-o", "old");
    one = read_volume(in_root("new/a.nii.gz"));
    other = read_volume(in_root("old/a.nii.gz"));
    ck_assert_int_eq(count_different(&one, &other), 0);
    pons_volume_clear(&one);
    pons_volume_clear(&other);
    remove_root();
}
END_TEST

/* ---- cascades -------------------------------------------------------------------------------- */

#define STAGE "nnUNetTrainer__nnUNetPlans__3d_"

static int count_different_files(const char *path, const char *name)
{
    volume expected = read_volume(path), found = read_volume(in_root(name));
    int different = count_different(&expected, &found);

    pons_volume_clear(&expected);
    pons_volume_clear(&found);
    return different;
}

/* A cascade's folders beside each other, and its images. */
static void begin_cascade(void)
{
    char command[4096];

    make_root();
    snprintf(command, sizeof command, "cp -r '%s' '%s'", golden_path("nnunet/cascade"),
             in_root("c"));
    ck_assert_int_eq(system(command), 0);
}

/*
 * The second stage equals nnU-Net's where it has the same labels of the first. Both stages in one
 * command are those in two.
 */
START_TEST(cascades_equal_nnunets)
{
    const int allowed = (int)(LABELS_SHARE * 26 * 30 * 28);
    int different;

    begin_cascade();
    EXPECT(0, "case -> given/case.nii.gz", "predict", "c/" STAGE "cascade_fullres", "c/images",
           "-o", "given/", "--previous", "c/lowres.nii.gz", "--no-postprocess");
    different = count_different_files(golden_path("nnunet/cascade/cascade.nii.gz"),
                                      "given/case.nii.gz");
    ck_assert_msg(different <= allowed, "%d labels differ, at most %d may", different, allowed);
    EXPECT(0, "case -> both/case_3d_lowres.nii.gz", "predict", "c/" STAGE "cascade_fullres/fold_0",
           "c/images", "-o", "both/");
    EXPECT(0, NULL, "predict", "c/" STAGE "lowres", "c/images", "-o", "first/");
    ck_assert_int_eq(count_different_files(in_root("first/case.nii.gz"),
                                           "both/case_3d_lowres.nii.gz"), 0);
    EXPECT(0, NULL, "predict", "c/" STAGE "cascade_fullres", "c/images", "-o", "second/",
           "--previous", "first");
    ck_assert_int_eq(count_different_files(in_root("second/case.nii.gz"), "both/case.nii.gz"), 0);
    remove_root();
}
END_TEST

/* Labels of the first stage are resampled by the plan's rules for labels, or not at all. */
START_TEST(a_resampling_of_labels_that_is_not_understood_is_named)
{
    static const struct { const char *key, *value, *phrase; } row[] = {
        { "order", "0", "resampling_fn_seg_kwargs.order: found 0, expected 1" },
        { "order_z", "1", "resampling_fn_seg_kwargs.order_z: found 1, expected 0" },
        { "is_seg", "false", "resampling_fn_seg_kwargs.is_seg: found false, expected true" },
        { "force_separate_z", "true", "resampling_fn_seg_kwargs.force_separate_z: found true" },
        { "surprise", "1", "resampling_fn_seg_kwargs.surprise" },
    };
    static const char plans[] = "c/" STAGE "cascade_fullres/plans.json";

    begin_cascade();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        json_t *root = json_load_file(golden_path("nnunet/cascade/" STAGE "cascade_fullres/"
                                                  "plans.json"), 0, NULL);
        json_object_set_new(object_at(root, "configurations/3d_fullres/resampling_fn_seg_kwargs"),
                            row[i].key, json_loads(row[i].value, JSON_DECODE_ANY, NULL));
        ck_assert_int_eq(json_dump_file(root, in_root(plans), 0), 0);
        json_decref(root);
        EXPECT(3, row[i].phrase, "predict", "c/" STAGE "cascade_fullres", "c/images", "-o", "o/");
    }
    ck_assert(!is_in_root("o"));
    remove_root();
}
END_TEST

START_TEST(a_first_stage_that_does_not_fit_is_refused)
{
    begin_cascade();
    EXPECT(2, "--previous 'c' is for the second stage of a cascade", "predict", "c/" STAGE "lowres",
           "c/images", "-o", "o/", "--previous", "c");
    EXPECT(4, "--previous: 'c/images' has no labels 'case.nii.gz' of the first stage", "predict",
           "c/" STAGE "cascade_fullres", "c/images", "-o", "o/", "--previous", "c/images");
    EXPECT(4, "voxels are no label", "predict", "c/" STAGE "cascade_fullres", "c/images", "-o",
           "o/", "--previous", "c/images/case_0000.nii.gz");
    EXPECT(2, "would replace an image that is read", "predict", "c/" STAGE "cascade_fullres",
           "c/images", "-o", "c/lowres.nii.gz", "--previous", "c/lowres.nii.gz");
    EXPECT(3, "is not the first stage of a cascade of 2 channels", "predict",
           "c/" STAGE "cascade_fullres", "c/images", "-o", "o/", "--previous",
           "c/" STAGE "cascade_fullres");
    EXPECT(3, "is the second stage of a cascade, and another network of the ensemble is not",
           "predict", "c/" STAGE "lowres,c/" STAGE "cascade_fullres", "c/images", "-o", "o/");
    ck_assert_int_eq(rename(in_root("c/" STAGE "lowres"), in_root("elsewhere")), 0);
    EXPECT(3, "is no model folder of its first, '3d_lowres'", "predict",
           "c/" STAGE "cascade_fullres", "c/images", "-o", "o/");
    EXPECT(0, "case -> o/case.nii.gz", "predict", "c/" STAGE "cascade_fullres", "c/images", "-o",
           "o/", "--previous", "elsewhere");
    remove_root();
}
END_TEST

/* ---- tables ---------------------------------------------------------------------------------- */

START_TEST(tables_name_the_labels)
{
    begin_model();
    EXPECT(0, NULL, "predict", "m", "in", "-o", "o/", "--set",
           "predict.tables=slicer itksnap bids");
    ck_assert_str_eq(root_text("o/labels.ctbl"), "# Color table file\n# 4 values\n"
                     "0 background 0 0 0 0\n1 whole 0 255 72 255\n2 core 144 0 255 255\n"
                     "3 enhancing 255 216 0 255\n");
    ck_assert_ptr_nonnull(strstr(root_text("o/labels.label"),
                                 "\n    1     0  255   72        1  1  1    \"whole\"\n"));
    ck_assert_str_eq(root_text("o/dseg.tsv"), "index\tname\tcolor\n0\tbackground\t#000000\n"
                     "1\twhole\t#00ff48\n2\tcore\t#9000ff\n3\tenhancing\t#ffd800\n");
    EXPECT(3, "[predict] tables: found 'mine', expected some of slicer, itksnap and bids",
           "predict", "m", "in", "-o", "p/", "--set", "predict.tables=mine");
    EXPECT(0, NULL, "predict", "m", "in", "-o", "one.nii.gz", "--set",
           "predict.tables=bids slicer");
    ck_assert(is_in_root("one.tsv") && is_in_root("one.ctbl") && !is_in_root("one.label"));
    EXPECT(0, "regions in channels have no ids", "predict", "m", "in", "-o", "four.nii.gz", "--set",
           "predict.tables=bids", "--set", "predict.region_ids=");
    ck_assert(!is_in_root("four.tsv"));
    remove_root();
}
END_TEST

/* Copy the image 'name' of the folder "in" to "in2/NAME.nii", with an intent. */
static void copy_with_intent(const char *name, int16_t intent)
{
    enum { INTENT = 68 };
    volume_facts facts;
    pons_error err = PONS_ERROR_INIT;
    char from[64], to[64];
    volume v;

    snprintf(from, sizeof from, "in/%s.nii.gz", name);
    snprintf(to, sizeof to, "in2/%s.nii", name);
    ck_assert_int_eq(nifti_read_image(in_root(from), &v, &facts, &err), PONS_OK);
    ck_assert_int_eq(nifti_write(in_root(to), &v, &facts.grid, &err), PONS_OK);
    pons_volume_clear(&v);
    FILE *f = fopen(in_root(to), "r+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, INTENT, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(&intent, sizeof intent, 1, f), 1);
    ck_assert_int_eq(fclose(f), 0);
}

/* The intent of a label file, like its forms and units, is that of the image. */
START_TEST(intent_is_that_of_the_image)
{
    volume_facts facts;
    pons_error err = PONS_ERROR_INIT;

    begin_model();
    copy_with_intent("a_0000", 1001);
    copy_with_intent("a_0001", 1001);
    EXPECT(0, NULL, "predict", "m", "in2", "-o", "o.nii");
    ck_assert_int_eq(nifti_read_facts(in_root("o.nii"), &facts, &err), PONS_OK);
    ck_assert_int_eq(facts.grid.intent, 1001);
    EXPECT(0, NULL, "predict", "m", "in", "-o", "p.nii");
    ck_assert_int_eq(nifti_read_facts(in_root("p.nii"), &facts, &err), PONS_OK);
    ck_assert_int_eq(facts.grid.intent, 0);
    remove_root();
}
END_TEST

START_TEST(probabilities_may_be_bytes)
{
    volume_facts facts;
    pons_error err = PONS_ERROR_INIT;

    begin_model();
    EXPECT(0, NULL, "predict", "m", "in", "-o", "a.nii.gz", "--probabilities");
    EXPECT(0, NULL, "predict", "m", "in", "-o", "b.nii.gz", "--probabilities", "--set",
           "predict.probability_type=uint8");
    ck_assert_int_eq(nifti_read_facts(in_root("b_probabilities.nii.gz"), &facts, &err), PONS_OK);
    ck_assert_int_eq(facts.datatype, 2);
    volume exact = read_volume(in_root("a_probabilities.nii.gz"));
    volume bytes = read_volume(in_root("b_probabilities.nii.gz"));
    const float *x = exact.voxels, *y = bytes.voxels;
    double worst = 0;
    for (int64_t n = 0; n < pons_volume_count(&exact) * exact.channels; n++) {
        worst = fmax(worst, fabs((double)x[n] - y[n]));
        ck_assert_double_le(y[n], 1);
    }
    ck_assert_int_eq(bytes.channels, exact.channels);
    ck_assert_double_gt(worst, 0);
    ck_assert_double_le(worst, 0.5 / 255 + 1e-6);
    pons_volume_clear(&exact);
    pons_volume_clear(&bytes);
    remove_root();
}
END_TEST

/* ---- BIDS ------------------------------------------------------------------------------------ */

/* Two subjects, of which one has visits. */
static void begin_bids(void)
{
    static const char *const stem[] = { "raw/sub-01/ses-a/anat/sub-01_ses-a_T1w.nii.gz",
                                        "raw/sub-01/ses-a/anat/sub-01_ses-a_T2w.nii.gz",
                                        "raw/sub-02/func/sub-02_acq-x_T1w.nii.gz",
                                        "raw/sub-02/func/sub-02_acq-x_T2w.nii.gz" };
    pons_error err = PONS_ERROR_INIT;

    begin_model();
    for (int n = 0; n < 4; n++) {
        ck_assert_int_eq(folder_make_for(in_root(stem[n]), &err), PONS_OK);
        copy_file(golden_path(n % 2 == 0 ? "nnunet/models/images/residual_1_0000.nii.gz"
                                         : "nnunet/models/images/residual_1_0001.nii.gz"), stem[n]);
    }
}

#define CHANNELS(STEM) "raw/" STEM "_T1w.nii.gz,raw/" STEM "_T2w.nii.gz"
#define FIRST CHANNELS("sub-01/ses-a/anat/sub-01_ses-a")
#define SECOND CHANNELS("sub-02/func/sub-02_acq-x")

START_TEST(a_derivative_of_bids_is_written)
{
    begin_bids();
    EXPECT(0, "sub-01_ses-a_T1w -> o/sub-01/ses-a/anat/sub-01_ses-a_dseg.nii.gz", "predict", "m",
           FIRST, SECOND, "-o", "o", "--bids", "--probabilities");
    EXPECT(0, NULL, "predict", "m", FIRST, "-o", "one.nii.gz");
    ck_assert_int_eq(count_different_files(in_root("one.nii.gz"),
                                           "o/sub-01/ses-a/anat/sub-01_ses-a_dseg.nii.gz"), 0);
    ck_assert(is_in_root("o/sub-02/func/sub-02_acq-x_probseg.nii.gz"));
    ck_assert_str_eq(root_text("o/sub-02/func/sub-02_acq-x_dseg.tsv"), "index\tname\tcolor\n"
                     "0\tbackground\t#000000\n1\twhole\t#00ff48\n2\tcore\t#9000ff\n"
                     "3\tenhancing\t#ffd800\n");
    json_t *root = read_json("o/sub-02/func/sub-02_acq-x_probseg.json");
    ck_assert_str_eq(json_string_value(json_array_get(json_object_get(root, "LabelMap"), 2)),
                     "enhancing");
    json_decref(root);
    root = read_json("o/dataset_description.json");
    ck_assert_str_eq(json_string_value(json_object_get(root, "DatasetType")), "derivative");
    json_decref(root);
    EXPECT(0, NULL, "predict", "m", SECOND, "-o", "o", "--bids");
    remove_root();
}
END_TEST

START_TEST(what_bids_has_no_name_for_is_refused)
{
    begin_bids();
    EXPECT(2, "--bids: 'in/a_0000.nii.gz' begins with no subject", "predict", "m", "in", "-o", "o",
           "--bids");
    EXPECT(2, "--logits or --uncertainty, for which BIDS has no name", "predict", "m", FIRST, "-o",
           "o", "--bids", "--logits");
    EXPECT(2, "--bids: regions are channels", "predict", "m", FIRST, "-o", "o", "--bids", "--set",
           "predict.region_ids=");
    write_file("raw/dataset_description.json", "{\"Name\": \"raw\"}", 15);
    EXPECT(2, "raw/dataset_description.json' is no derivative", "predict", "m", FIRST, "-o", "raw",
           "--bids");
    EXPECT(2, "the results of two images would overwrite each other", "predict", "m", FIRST, FIRST,
           "-o", "o", "--bids");
    ck_assert(!is_in_root("o"));
    remove_root();
}
END_TEST

/* A dataset of two cases whose label is nnU-Net's prediction of the second stage. */
static void begin_cascade_dataset(void)
{
    static const char *const id[] = { "case", "other" };
    pons_error err = PONS_ERROR_INIT;
    char from[1024], to[64];

    begin_cascade();
    for (int n = 0; n < 2; n++) {
        for (int c = 0; c < 2; c++) {
            snprintf(from, sizeof from, "%s", golden_path(c == 0
                     ? "nnunet/cascade/images/case_0000.nii.gz"
                     : "nnunet/cascade/images/case_0001.nii.gz"));
            snprintf(to, sizeof to, "d/imagesTr/%s_%04d.nii.gz", id[n], c);
            ck_assert_int_eq(folder_make_for(in_root(to), &err), PONS_OK);
            copy_file(from, to);
        }
        snprintf(to, sizeof to, "d/labelsTr/%s.nii.gz", id[n]);
        ck_assert_int_eq(folder_make_for(in_root(to), &err), PONS_OK);
        copy_file(golden_path("nnunet/cascade/cascade.nii.gz"), to);
    }
    copy_file(golden_path("nnunet/cascade/" STAGE "lowres/dataset.json"), "d/dataset.json");
    write_file("d/splits_final.json", "[{\"train\": [\"other\"], \"val\": [\"case\"]}]", 39);
}

START_TEST(a_second_stage_is_evaluated)
{
    begin_cascade_dataset();
    EXPECT(3, "and the labels of its first, '3d_lowres', are not given", "evaluate", "--run",
           "c/" STAGE "cascade_fullres", "--set", "data.source=d");
    EXPECT(2, "is for the second stage of a cascade", "evaluate", "--run", "c/" STAGE "lowres",
           "--set", "data.source=d", "--previous", "c/lowres.nii.gz");
    EXPECT(2, "--previous is for --run", "evaluate", "--prediction", "c/lowres.nii.gz", "--label",
           "c/lowres.nii.gz", "--previous", "c/lowres.nii.gz");
    EXPECT(0, NULL, "evaluate", "--run", "c/" STAGE "cascade_fullres", "--set", "data.source=d",
           "--previous", "c/lowres.nii.gz", "--json");
    json_t *found = root_json("out");
    ck_assert_double_gt(json_number_value(json_at(found, "mean/dice")), 0.99);
    json_decref(found);
    remove_root();
}
END_TEST

/* ---- post-processing ------------------------------------------------------------------------- */

#define FOLDER "c/" STAGE "cascade_fullres"
#define RULES FOLDER "/crossval_results_folds_0"

START_TEST(the_largest_parts_equal_nnunets)
{
    const int allowed = (int)(LABELS_SHARE * 26 * 30 * 28);
    int different;

    begin_cascade();
    EXPECT(0, "2 rules of '" RULES "/postprocessing.json' keep the largest part of labels",
           "predict", FOLDER, "c/images", "-o", "o/", "--previous", "c/lowres.nii.gz");
    different = count_different_files(golden_path("nnunet/cascade/processed.nii.gz"),
                                      "o/case.nii.gz");
    ck_assert_msg(different <= allowed, "%d labels differ, at most %d may", different, allowed);
    ck_assert_int_gt(count_different_files(golden_path("nnunet/cascade/cascade.nii.gz"),
                                           "o/case.nii.gz"), allowed);
    remove_root();
}
END_TEST

START_TEST(rules_that_are_not_understood_are_refused)
{
    static const char *const end[] = { "c/images", "-o", "p/", "--previous", "c/lowres.nii.gz" };
    pons_error err = PONS_ERROR_INIT;

    begin_cascade();
    json_t *root = read_json(RULES "/postprocessing.json");
    json_object_set_new(root, "postprocessing_fns", json_pack("[s, s]", "mine", "mine"));
    ck_assert_int_eq(json_dump_file(root, in_root(RULES "/postprocessing.json"), 0), 0);
    json_decref(root);
    EXPECT(3, "postprocessing_fns: found [\"mine\",\"mine\"]", "predict", FOLDER, end[0], end[1],
           end[2], end[3], end[4]);
    move(RULES "/postprocessing.json", RULES "/postprocessing.pkl");
    EXPECT(3, "postprocessing.pkl' has no postprocessing.json beside it", "predict", FOLDER, end[0],
           end[1], end[2], end[3], end[4]);
    move(RULES, FOLDER "/crossval_results_folds_0_1");
    ck_assert_int_eq(folder_make(in_root(FOLDER "/crossval_results_folds_2"), &err), PONS_OK);
    write_file(FOLDER "/crossval_results_folds_2/postprocessing.json", "{}", 2);
    EXPECT(3, "has 2 folders crossval_results_folds_* with rules of post-processing, and none is "
           "of the folds 0", "predict", FOLDER, end[0], end[1], end[2], end[3], end[4]);
    ck_assert(!is_in_root("p"));
    remove_root();
}
END_TEST

/* ---- other commands -------------------------------------------------------------------------- */

START_TEST(a_prediction_is_explained)
{
    begin_model();
    EXPECT(0, NULL, "explain", "m", "in/a_0000.nii.gz,in/a_0001.nii.gz", "--json");
    json_t *found = root_json("out");
    ck_assert_str_eq(json_string_value(json_at(found, "network")), "residual_unet");
    ck_assert_int_eq(json_integer_value(json_at(found, "parameter_count")), 19238);
    ck_assert_int_eq(json_integer_value(json_at(found, "channels")), 2);
    ck_assert_int_eq(json_integer_value(json_at(found, "passes")), 8);
    ck_assert_int_eq(json_integer_value(json_at(found, "window/0")), 12);
    /* windows of 12 x 16 x 12 in steps of at most half of them, on 20 x 26 x 18 voxels */
    ck_assert_int_eq(json_integer_value(json_at(found, "windows")), 3 * 3 * 2);
    ck_assert(json_number_value(json_at(found, "peak"))
              > json_number_value(json_at(found, "parameters")));
    json_decref(found);
    EXPECT(0, NULL, "explain", "m/fold_0");
    ck_assert_ptr_nonnull(strstr(root_text("out"), "8 passes each"));
    EXPECT(2, "--dot, --schedule and --kernels are for FILE.ini", "explain", "m", "--dot");
    remove_root();
}
END_TEST

/*
 * A dataset whose label of case 'a' is the model's own prediction, and whose fold 0 holds it out.
 */
static void begin_dataset(void)
{
    pons_error err = PONS_ERROR_INIT;
    FILE *file;

    begin_model();
    ck_assert_int_eq(folder_make(in_root("d/imagesTr"), &err), PONS_OK);
    ck_assert_int_eq(folder_make(in_root("d/labelsTr"), &err), PONS_OK);
    EXPECT(0, NULL, "predict", "m", "in", "-o", "d/labelsTr/");
    copy_file(in_root("d/labelsTr/a.nii.gz"), "d/labelsTr/b.nii.gz");
    copy_file(in_root("m/dataset.json"), "d/dataset.json");
    for (int n = 0; n < 4; n++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "in/a_000%d.nii.gz", n % 2);
        snprintf(to, sizeof to, "d/imagesTr/%c_000%d.nii.gz", "ab"[n / 2], n % 2);
        copy_file(in_root(from), to);
    }
    file = fopen(in_root("d/splits_final.json"), "w");
    fputs("[{\"train\": [\"b\"], \"val\": [\"a\"]}, {\"train\": [\"a\"], \"val\": [\"b\"]}]",
          file);
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(folds_are_evaluated_on_what_they_held_out)
{
    begin_dataset();
    EXPECT(0, NULL, "evaluate", "--run", "m", "--set", "data.source=d", "--metrics", "dice",
           "--json");
    json_t *found = root_json("out");
    ck_assert_int_eq((int)json_array_size(json_at(found, "cases")), 1);
    ck_assert_str_eq(json_string_value(json_at(found, "cases/0/case")), "a");
    ck_assert_double_eq(json_number_value(json_at(found, "mean/dice")), 1);
    json_decref(found);
    EXPECT(0, NULL, "evaluate", "--run", "m/fold_0", "--set", "data.source=d", "--set",
           "data.fold=1");
    ck_assert_ptr_nonnull(strstr(root_text("out"), "\nb "));
    EXPECT(2, "'m/fold_0' is a model of nnU-Net, which names no dataset", "evaluate", "--run", "m");
    ck_assert_int_eq(unlink(in_root("d/splits_final.json")), 0);
    EXPECT(3, "hint: splits_final.json of nnUNet_preprocessed, put beside it", "evaluate", "--run",
           "m", "--set", "data.source=d");
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("nnunet_model");

    tcase_add_test(c, predictions_equal_nnunets);
    tcase_add_test(c, slices_and_mixed_channels_equal_nnunets);
    tcase_add_test(c, channels_come_as_files_lists_and_folders);
    tcase_add_test(c, names_tell_the_order_of_channels);
    tcase_add_test(c, a_fold_that_is_alone_needs_no_name);
    tcase_add_test(c, missing_channels_and_folds_are_named);
    tcase_add_test(c, networks_of_other_labels_or_spacings_are_no_ensemble);
    tcase_add_test(c, a_fold_is_found_under_any_path);
    tcase_add_test(c, a_folder_that_is_no_whole_model_is_named);
    tcase_add_test(c, slope_and_eps_of_plans_are_options);
    tcase_add_test(c, a_label_with_a_colon_is_named);
    tcase_add_test(c, ids_that_leave_out_a_number_are_named);
    tcase_add_test(c, an_id_of_no_region_is_named);
    tcase_add_test(c, keys_that_are_missing_or_unknown_are_named);
    tcase_add_test(c, values_that_are_not_understood_are_named);
    tcase_add_test(c, values_of_another_kind_are_named);
    tcase_add_test(c, arguments_that_are_unknown_are_named);
    tcase_add_test(c, an_absurd_spacing_is_refused);
    tcase_add_test(c, damaged_checkpoints_are_refused);
    tcase_add_test(c, checkpoints_of_something_else_are_refused);
    tcase_add_test(c, plans_before_version_2_4_are_equal);
    tcase_add_test(c, cascades_equal_nnunets);
    tcase_add_test(c, a_first_stage_that_does_not_fit_is_refused);
    tcase_add_test(c, a_second_stage_is_evaluated);
    tcase_add_test(c, a_resampling_of_labels_that_is_not_understood_is_named);
    tcase_add_test(c, tables_name_the_labels);
    tcase_add_test(c, intent_is_that_of_the_image);
    tcase_add_test(c, probabilities_may_be_bytes);
    tcase_add_test(c, a_derivative_of_bids_is_written);
    tcase_add_test(c, what_bids_has_no_name_for_is_refused);
    tcase_add_test(c, the_largest_parts_equal_nnunets);
    tcase_add_test(c, rules_that_are_not_understood_are_refused);
    tcase_add_test(c, a_prediction_is_explained);
    tcase_add_test(c, folds_are_evaluated_on_what_they_held_out);
    return suite_run();
}
