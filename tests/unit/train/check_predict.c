/*
 * check_predict.c - weights of other programs, blended logits, inverse transforms, scores and
 * memory estimates, all through the program itself.
 */
#include <config.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "checkpoint/safetensors.h"
#include "data/volume/volume.h"
#include "metric/connected_components.h"
#include "metric/id_partition.h"
#include "report/picture/png_write.h"

#include "data/volume/geometry.h"
#include "support/run/run_json.h"
#include "support/run/run_pons.h"
#include "support/spoil.h"
#include "support/suite.h"
#include "support/tolerance.h"

#include <ctype.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>

static const char window_ini[] =
    "[data]\nlabels = background:0 thing:7\nimage = a.nii.gz\n"
    "[patch]\nextent = 16 16 16\n"
    "[model]\nplugin = unet\nchannels = 4 8 16\nstrides = 2 2\nnum_res_units = 2\nnorm = batch\n"
    "[train]\nprecision = fp32\n";

/* ---- weights --------------------------------------------------------------------------------- */

static safetensors *golden_windows(void)
{
    pons_error err = PONS_ERROR_INIT;
    safetensors *file = NULL;

    ck_assert_msg(safetensors_open(golden_path("windows.safetensors"), &file, &err) == PONS_OK,
                  "%s", err.text);
    return file;
}

/* Write 'state/NAME' of the golden file as a weights file, after 'change' has changed it. */
static void write_weights(const char *name, void (*change)(safetensor *item, int *count))
{
    safetensors *file = golden_windows();
    pons_error err = PONS_ERROR_INIT;
    safetensor item[256];
    int count = 0;

    for (int i = 0; i < safetensors_count(file); i++) {
        item[count] = *safetensors_item(file, i);
        if (strncmp(item[count].name, "state/", 6) != 0)
            continue;
        item[count++].name += 6;
    }
    if (change != NULL)
        change(item, &count);
    const safetensors_content content = { .count = count, .item = item };
    ck_assert_int_eq(safetensors_write(in_root(name), &content, &err), PONS_OK);
    safetensors_close(file);
}

static void begin_prediction(void)
{
    make_root();
    write_text("w.ini", window_ini);
}

#define PREDICT(CODE, PHRASE, WEIGHTS, ...)                                                       \
    EXPECT(CODE, PHRASE, "predict", WEIGHTS, golden_path("windows_image.nii.gz"), "--config",     \
           "w.ini", "-o", "o.nii.gz", __VA_ARGS__)

static volume read_image(const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;

    memset(&v, 0, sizeof v);
    ck_assert_msg(nifti_read_image(in_root(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    return v;
}

START_TEST(blended_logits_equal_monais)
{
    static const char *const blends[] = { "constant", "gaussian" };
    static const char *const overlaps[] = { "0.25", "0.5" };

    begin_prediction();
    write_weights("w.safetensors", NULL);
    safetensors *file = golden_windows();
    for (int n = 0; n < 8; n++) {
        char mode[64], overlap[64], name[64];
        snprintf(mode, sizeof mode, "window.mode=%s", blends[n / 4]);
        snprintf(overlap, sizeof overlap, "window.overlap=%s", overlaps[n / 2 % 2]);
        snprintf(name, sizeof name, "logits_%s_%s%s", blends[n / 4], overlaps[n / 2 % 2],
                 n % 2 ? "_mirror" : "");
        PREDICT(0, NULL, "w.safetensors", "--logits", "--set", mode, "--set", overlap, "--set",
                n % 2 ? "window.mirror=0 1 2" : "window.mirror=");
        const safetensor *t = safetensors_find(file, name); /* [1, C, D, H, W] */
        ck_assert_msg(t != NULL, "no %s", name);
        volume v = read_image("o_logits.nii.gz");
        int64_t voxels = pons_volume_count(&v);
        ck_assert_int_eq((int)(voxels * v.channels), (int)t->count);
        double largest = 0, difference = 0;
        for (int64_t i = 0; i < t->count; i++) {
            double expected = (double)((const float *)t->data)[i];
            double found = (double)((const float *)v.voxels)[i % voxels * v.channels + i / voxels];
            largest = fmax(largest, fabs(expected));
            difference = fmax(difference, fabs(expected - found));
        }
        ck_assert_msg(difference <= NETWORK_OF_LARGEST * largest, "%s: %g of %g", name, difference,
                      largest);
        pons_volume_clear(&v);
    }
    safetensors_close(file);
    remove_root();
}
END_TEST

START_TEST(predicted_classes_are_written_as_ids_on_the_file_grid)
{
    begin_prediction();
    write_weights("w.safetensors", NULL);
    PREDICT(0, NULL, "w.safetensors", "--probabilities", "--logits");
    volume_facts in, out;
    pons_error err = PONS_ERROR_INIT;
    volume label, p = read_image("o_probabilities.nii.gz"), logits = read_image("o_logits.nii.gz");
    memset(&label, 0, sizeof label);
    ck_assert_int_eq(nifti_read_facts(golden_path("windows_image.nii.gz"), &in, &err), PONS_OK);
    ck_assert_int_eq(nifti_read_label(in_root("o.nii.gz"), &label, &out, &err), PONS_OK);
    ck_assert_int_eq(volume_grid_compare(&in.grid, "in", &out.grid, "out", &err), PONS_OK);
    int64_t things = 0;
    for (int64_t i = 0; i < pons_volume_count(&label); i++) {
        const float *x = (const float *)p.voxels + 2 * i, *y = (const float *)logits.voxels + 2 * i;
        int32_t id = ((const int32_t *)label.voxels)[i];
        ck_assert_double_eq_tol((double)x[0] + (double)x[1], 1, PROBABILITY_SUM);
        ck_assert_int_eq(id, x[1] > x[0] ? 7 : 0);
        ck_assert_double_eq_tol((double)x[1], 1 / (1 + exp((double)y[0] - (double)y[1])),
                                PROBABILITY_SUM);
        things += id == 7;
    }
    ck_assert_int_gt(things, 0);
    pons_volume_clear(&label);
    pons_volume_clear(&p);
    pons_volume_clear(&logits);
    remove_root();
}
END_TEST

/* A single region has a label file, as classes have; no channel has to be chosen. */
START_TEST(a_single_region_is_written_as_its_first_id)
{
    static const char ini[] =
        "[experiment]\nname = run\n[data]\nsource = phantom\nvalidation = none\n"
        "regions = ball:2,1\n[patch]\nextent = 16 16 16\n"
        "[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\n[loss]\nplugin = dice\n"
        "[optimizer]\nplugin = sgd\nlr = 1e-3\n[train]\nsteps = 1\n";
    pons_error err = PONS_ERROR_INIT;
    volume label;
    int64_t inside = 0;

    make_root();
    write_text("e.ini", ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "1", "--extent", "24,24,24",
           "--classes", "3");
    EXPECT(0, NULL, "train", "e.ini", "-q");
    EXPECT(0, NULL, "predict", "runs/run", "phantom/imagesTr/phantom_000.nii.gz", "-o", "o.nii.gz");
    memset(&label, 0, sizeof label);
    ck_assert_int_eq(nifti_read_label(in_root("o.nii.gz"), &label, NULL, &err), PONS_OK);
    for (int64_t i = 0; i < pons_volume_count(&label); i++) {
        int32_t id = ((const int32_t *)label.voxels)[i];
        ck_assert_msg(id == 0 || id == 2, "id %d", id);
        inside += id == 2;
    }
    ck_assert_int_gt(inside, 0);
    pons_volume_clear(&label);
    remove_root();
}
END_TEST

static void copy_image(const char *name)
{
    char command[16384];

    snprintf(command, sizeof command, "cp '%s' '%s'", golden_path("windows_image.nii.gz"),
             in_root(name));
    ck_assert_int_eq(system(command), 0);
}

#define PREDICT_TO(CODE, PHRASE, ...)                                                             \
    EXPECT(CODE, PHRASE, "predict", "w.safetensors", "--config", "w.ini", __VA_ARGS__)
#define EXISTS(NAME) ck_assert_msg(access(in_root(NAME), F_OK) == 0, "no %s", NAME)

START_TEST(one_image_goes_to_a_file_several_to_a_folder)
{
    begin_prediction();
    write_weights("w.safetensors", NULL);
    ck_assert_int_eq(mkdir(in_root("scans"), 0777), 0);
    copy_image("scans/a.nii.gz");
    PREDICT_TO(2, "-o 'plain': expected a file .nii or .nii.gz for one image", "scans/a.nii.gz",
               "-o", "plain");
    PREDICT_TO(0, "a -> new/one/a.nii.gz", "scans/a.nii.gz", "-o", "new/one/");
    EXISTS("new/one/a.nii.gz");
    PREDICT_TO(0, "a -> file.nii.gz", "scans", "-o", "file.nii.gz");
    ck_assert(!folder_is_there(in_root("file.nii.gz")));
    PREDICT_TO(0, "a -> folder/a.nii.gz", "scans", "-o", "folder");
    copy_image("scans/a,b.nii.gz");
    PREDICT_TO(0, "a,b -> ab.nii", "scans/a,b.nii.gz", "-o", "ab.nii");
    PREDICT_TO(2, "-o 'two.nii.gz': expected a folder for 2 images", "scans", "-o", "two.nii.gz");
    PREDICT_TO(2, "-o 'two.txt': expected a folder for 2 images", "scans", "-o", "two.txt");
    PREDICT_TO(0, "a,b -> two/a,b.nii.gz", "scans", "-o", "two", "--logits");
    EXISTS("two/a_logits.nii.gz");
    copy_image("scans/a.nii");
    PREDICT_TO(4, "are both named 'a', expected one", "scans", "-o", "two");
    PREDICT_TO(4, "folder 'new' has no volume, no dataset.json", "new", "-o", "two");
    PREDICT_TO(4, "hint: a pattern such as 'new/*/t1.nii.gz' names volumes", "new", "-o", "two");
    remove_root();
}
END_TEST

/* Every name of nnU-Net's folder ends in the channel, which is no part of the case. */
START_TEST(a_folder_of_first_channels_has_the_names_of_its_cases)
{
    begin_prediction();
    write_weights("w.safetensors", NULL);
    ck_assert_int_eq(mkdir(in_root("imagesTs"), 0777), 0);
    copy_image("imagesTs/a_0000.nii.gz");
    copy_image("imagesTs/b_0000.nii.gz");
    PREDICT_TO(0, "a -> named/a.nii.gz", "imagesTs", "-o", "named");
    EXISTS("named/b.nii.gz");
    copy_image("imagesTs/c.nii.gz");
    PREDICT_TO(0, "a_0000 -> mixed/a_0000.nii.gz", "imagesTs", "-o", "mixed");
    EXISTS("mixed/c.nii.gz");
    remove_root();
}
END_TEST

START_TEST(predictions_are_mapped_back_to_the_file_grid)
{
    begin_prediction();
    write_weights("w.safetensors", NULL);
    volume_facts in, out;
    pons_error err = PONS_ERROR_INIT;
    for (int n = 0; n < 2; n++) {
        PREDICT(0, NULL, "w.safetensors", "--set",
                "preprocess.steps=orient spacing crop_foreground", "--set",
                "preprocess.orient.axes=LPS", "--set", "preprocess.spacing.mm=2 1 1",
                "--set", n == 0 ? "predict.resample=probabilities" : "predict.resample=labels");
        const char *image = golden_path("windows_image.nii.gz");
        ck_assert_int_eq(nifti_read_facts(image, &in, &err), PONS_OK);
        ck_assert_int_eq(nifti_read_facts(in_root("o.nii.gz"), &out, &err), PONS_OK);
        ck_assert_msg(volume_grid_compare(&in.grid, "in", &out.grid, "out", &err) == PONS_OK, "%s",
                      err.text);
    }
    remove_root();
}
END_TEST

START_TEST(an_ensemble_of_equal_networks_equals_the_network)
{
    begin_prediction();
    write_weights("w.safetensors", NULL);
    PREDICT(0, NULL, "w.safetensors", "--probabilities");
    volume one = read_image("o_probabilities.nii.gz");
    PREDICT(0, NULL, "w.safetensors,w.safetensors", "--probabilities");
    volume two = read_image("o_probabilities.nii.gz");
    for (int64_t i = 0; i < 2 * pons_volume_count(&one); i++)
        ck_assert_double_eq_tol((double)((float *)one.voxels)[i], (double)((float *)two.voxels)[i],
                                PROBABILITY_SUM);
    pons_volume_clear(&one);
    pons_volume_clear(&two);
    remove_root();
}
END_TEST

static int64_t tracked = 3;

static void add_tracked(safetensor *item, int *count)
{
    item[(*count)++] = (safetensor){ .name = "model.0.conv.unit0.adn.N.num_batches_tracked",
                                     .type = SAFETENSORS_I64, .data = &tracked };
}

static void add_wide_counter(safetensor *item, int *count)
{
    add_tracked(item, count);
    item[*count - 1].rank = 1;
    item[*count - 1].extent[0] = 1;
    item[*count - 1].count = 1;
}

static void add_lone_counter(safetensor *item, int *count)
{
    add_tracked(item, count);
    item[*count - 1].name = "model.9.num_batches_tracked";
}

static void drop_first(safetensor *item, int *count)
{
    item[0] = item[--*count];
}

/* A tensor whose elements none of the network has. */
static void add_unknown(safetensor *item, int *count)
{
    static float other[1 << 16];

    ck_assert_uint_le(item[0].size, sizeof other);
    item[*count] = item[0];
    item[*count].data = other;
    item[(*count)++].name = "model.9.weight";
}

static void turn_shape(safetensor *item, int *count)
{
    for (int i = 0; i < *count; i++) {
        if (item[i].rank < 2 || item[i].extent[0] == item[i].extent[1])
            continue;
        int64_t first = item[i].extent[0];
        item[i].extent[0] = item[i].extent[1];
        item[i].extent[1] = first;
        return;
    }
    ck_abort_msg("no weight to turn");
}

static void spoil_number(safetensor *item, int *count)
{
    ((float *)item[*count - 1].data)[0] = INFINITY;
}

static void turn_variance(safetensor *item, int *count)
{
    for (int i = 0; i < *count; i++)
        if (strstr(item[i].name, "running_var") != NULL) {
            ((float *)item[i].data)[0] = -1;
            return;
        }
    ck_abort_msg("no variance to turn");
}

static void enlarge_tensor(safetensor *item, int *count)
{
    ck_assert_int_gt(*count, 0);
    for (int64_t n = 0; n < item[0].count; n++)
        ((float *)item[0].data)[n] *= 1e4f;
}

/* A case of finite values has non-finite logits; the other cases are written. */
START_TEST(non_finite_logits_give_no_segmentation)
{
    begin_prediction();
    write_weights("w.safetensors", NULL);
    write_weights("v.safetensors", turn_variance);
    PREDICT(4, "case 'windows_image': the network's logits are not finite", "v.safetensors",
            "--logits");
    ck_assert(access(in_root("o.nii.gz"), F_OK) != 0);
    PREDICT(4, "case 'windows_image': the network's logits are not finite",
            "v.safetensors,w.safetensors", "--logits");
    ck_assert(access(in_root("o.nii.gz"), F_OK) != 0);
    ck_assert_int_eq(mkdir(in_root("scans"), 0777), 0);
    copy_image("scans/a.nii.gz");
    copy_image("scans/b.nii.gz");
    spoil_voxel("scans/a.nii.gz", 0, 3e38f);
    write_weights("w.safetensors", enlarge_tensor);
    PREDICT_TO(4, "1 of 2 cases could not be predicted, the first is 'a'", "scans", "-o", "new");
    EXISTS("new/b.nii.gz");
    ck_assert(access(in_root("new/a.nii.gz"), F_OK) != 0);
    remove_root();
}
END_TEST

/* The expected probabilities come from the logits by the formulas of [loss] activation. */
START_TEST(probabilities_follow_the_activation_of_the_loss)
{
    static const char *const words[] = { "softmax", "sigmoid", "none", "auto" };

    begin_prediction();
    write_weights("w.safetensors", NULL);
    for (int n = 0; n < 4; n++) {
        char set[64];
        double difference = 0;
        snprintf(set, sizeof set, "loss.activation=%s", words[n]);
        PREDICT(0, NULL, "w.safetensors", "--logits", "--probabilities", "--set", set);
        volume logits = read_image("o_logits.nii.gz"), p = read_image("o_probabilities.nii.gz");
        ck_assert_int_eq(logits.channels, 2);
        for (int64_t i = 0; i < pons_volume_count(&p); i++) {
            const float *x = (const float *)logits.voxels + 2 * i;
            const float *found = (const float *)p.voxels + 2 * i;
            for (int c = 0; c < 2; c++) {
                double expected = n == 1 ? 1 / (1 + exp(-(double)x[c])) : n == 2 ? (double)x[c]
                                : 1 / (1 + exp((double)x[1 - c] - (double)x[c]));
                difference = fmax(difference, fabs(expected - (double)found[c]));
            }
        }
        ck_assert_msg(difference <= 1e-6, "%s: %g", words[n], difference);
        pons_volume_clear(&logits);
        pons_volume_clear(&p);
    }
    remove_root();
}
END_TEST

/* Add the last weight under a second name, as for a module that the network holds twice. */
static void repeat_last(safetensor *item, int *count)
{
    static char name[256];

    item[*count] = item[*count - 1];
    snprintf(name, sizeof name, "again.%s", item[*count].name);
    item[(*count)++].name = name;
}

/* Its copy in a module of another name, as MONAI's 'conv_final.1.weight' of 'act_mod.weight'. */
static void repeat_elsewhere(safetensor *item, int *count)
{
    static char name[256];

    repeat_last(item, count);
    snprintf(name, sizeof name, "again.other%s", strrchr(item[*count - 1].name, '.'));
    item[*count - 1].name = name;
}

/* Another kind of tensor with its elements. */
static void repeat_as_another(safetensor *item, int *count)
{
    repeat_last(item, count);
    item[*count - 1].name = "again.other.unknown";
}

static void repeat_changed(safetensor *item, int *count)
{
    static float other[1 << 16];

    repeat_last(item, count);
    safetensor *last = &item[*count - 1];
    ck_assert_uint_le(last->size, sizeof other);
    memcpy(other, last->data, last->size);
    other[0] += 1;
    last->data = other;
}

START_TEST(equal_tensors_under_a_second_name_are_accepted)
{
    begin_prediction();
    write_weights("w.safetensors", repeat_last);
    PREDICT(0, NULL, "w.safetensors", "-q");
    write_weights("w.safetensors", repeat_elsewhere);
    PREDICT(0, NULL, "w.safetensors", "-q");
    write_weights("w.safetensors", repeat_as_another);
    PREDICT(3, "tensor 'again.other.unknown", "w.safetensors", "-q");
    write_weights("w.safetensors", repeat_changed);
    PREDICT(3, "tensor 'again.", "w.safetensors", "-q");
    remove_root();
}
END_TEST

START_TEST(weights_that_do_not_fit_are_refused_and_named)
{
    begin_prediction();
    write_weights("w.safetensors", add_tracked);
    PREDICT(0, NULL, "w.safetensors", "-q");
    write_weights("w.safetensors", drop_first);
    PREDICT(3, "is missing, expected shape [", "w.safetensors", "-q");
    write_weights("w.safetensors", add_unknown);
    PREDICT(3, "tensor 'model.9.weight' [", "w.safetensors", "-q");
    write_weights("w.safetensors", turn_shape);
    PREDICT(3, "has shape [", "w.safetensors", "-q");
    write_weights("w.safetensors", add_wide_counter);
    PREDICT(3, "unit0.adn.N.num_batches_tracked' has shape [1], expected []", "w.safetensors",
            "-q");
    write_weights("w.safetensors", add_lone_counter);
    PREDICT(3, "tensor 'model.9.num_batches_tracked' [] is not part of", "w.safetensors", "-q");
    write_weights("w.safetensors", spoil_number);
    PREDICT(4, "expected a finite number", "w.safetensors", "-q");
    write_text("w.safetensors", "nothing of the kind");
    PREDICT(4, "'w.safetensors'", "w.safetensors", "-q");
    EXPECT(2, "--config", "predict", "w.safetensors", golden_path("windows_image.nii.gz"), "-o",
           "o.nii.gz");
    EXPECT(3, "no run, checkpoint or weights file 'none'", "predict", "none",
           golden_path("windows_image.nii.gz"), "-o", "o.nii.gz");
    remove_root();
}
END_TEST

/* ---- a constant that MONAI keeps beside a table ---------------------------------------------- */

static const char attention_ini[] =
    "[experiment]\nname = swin\n[data]\nsource = heads\nvalidation = none\n"
    "labels = background:0 one:1\n"
    "[patch]\nextent = 64 32 32\n[model]\nplugin = swin_unetr\nfeature_size = 12\n"
    "depths = 1 1 1 1\nwindow_size = 3\n[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = sgd\nlr = 0.01\n[train]\nsteps = 1\nprecision = fp32\n";

/* The weights of the run with a further I64 tensor of 'rank' axes of extent 2. */
static void write_with_index(const char *name, int rank)
{
    static const int64_t index[8] = { 0 };
    pons_error err = PONS_ERROR_INIT;
    safetensors *file;
    safetensor item[256];
    int count;

    ck_assert_int_eq(safetensors_open(in_root("runs/swin/checkpoints/step-00000001/"
                                              "model.safetensors"), &file, &err), PONS_OK);
    count = safetensors_count(file);
    for (int i = 0; i < count; i++)
        item[i] = *safetensors_item(file, i);
    item[count++] = (safetensor){ .name = name, .type = SAFETENSORS_I64, .rank = rank,
                                  .extent = { 2, 2 }, .count = 1 << rank, .data = index };
    const safetensors_content content = { .count = count, .item = item };
    ck_assert_int_eq(safetensors_write(in_root("w.safetensors"), &content, &err), PONS_OK);
    safetensors_close(file);
}

#define WITH_INDEX(code, text, stem, rank)                                                       \
    write_with_index(stem ".relative_position_index", rank);                                     \
    EXPECT(code, text, "predict", "w.safetensors", "heads/imagesTr/phantom_000.nii.gz",          \
           "--config", "w.ini", "-o", "o.nii.gz", "-q")

START_TEST(the_index_of_attention_windows_may_be_in_a_file)
{
    make_root();
    write_text("w.ini", attention_ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "heads", "--cases", "1", "--extent", "64,32,32");
    EXPECT(0, NULL, "train", "w.ini", "-q");
    WITH_INDEX(0, NULL, "swinViT.layers1.0.blocks.0.attn", 2);
    WITH_INDEX(3, "has shape [2], expected two axes", "swinViT.layers1.0.blocks.0.attn", 1);
    WITH_INDEX(3, "[2, 2] is not part of the network", "swinViT.layers9.0.blocks.0.attn", 2);
    remove_root();
}
END_TEST

START_TEST(images_that_are_read_are_never_replaced)
{
    pons_error err = PONS_ERROR_INIT;
    char *before = NULL, *after = NULL;
    size_t size, now;

    begin_prediction();
    write_weights("w.safetensors", NULL);
    EXPECT(0, NULL, "data", "crop", golden_path("windows_image.nii.gz"), "-o", "in/a.nii.gz");
    EXPECT(0, NULL, "data", "crop", "in/a.nii.gz", "-o", "in/b_logits.nii.gz");
    ck_assert_int_eq(file_read(in_root("in/a.nii.gz"), SIZE_MAX, &before, &size, PONS_DATA, &err),
                     PONS_OK);
    EXPECT(2, "would replace an image that is read", "predict", "w.safetensors", "in/a.nii.gz",
           "--config", "w.ini", "-o", "in/../in/a.nii.gz");
    EXPECT(2, "would replace an image that is read", "predict", "w.safetensors", "in", "--config",
           "w.ini", "-o", "in");
    EXPECT(2, "would replace an image that is read", "predict", "w.safetensors",
           "in/b_logits.nii.gz", "--config", "w.ini", "-o", "in/b.nii.gz", "--logits");
    ck_assert_int_eq(file_read(in_root("in/a.nii.gz"), SIZE_MAX, &after, &now, PONS_DATA, &err),
                     PONS_OK);
    ck_assert_uint_eq(now, size);
    ck_assert_mem_eq(after, before, size);
    ck_assert_int_ne(access(in_root("in/b.nii.gz"), F_OK), 0);
    EXPECT(0, NULL, "predict", "w.safetensors", "in/a.nii.gz", "--config", "w.ini", "-o",
           "in/c.nii.gz", "-q");
    free(before);
    free(after);
    remove_root();
}
END_TEST

START_TEST(the_largest_component_of_a_class_is_kept)
{
    const int64_t extent[3] = { 1, 4, 6 };
    uint8_t labels[24] = { 1, 1, 0, 0, 2, 2,
                           0, 0, 1, 0, 0, 0,
                           0, 0, 0, 0, 1, 1,
                           2, 0, 0, 0, 0, 0 };
    const uint8_t expected[24] = { 1, 1, 0, 0, 2, 2,
                                   0, 0, 1, 0, 0, 0,
                                   0, 0, 0, 0, 0, 0,
                                   2, 0, 0, 0, 0, 0 };
    pons_error err = PONS_ERROR_INIT;

    ck_assert_int_eq(connected_components_keep_largest(labels, 1, extent, 1, 0, &err), PONS_OK);
    ck_assert_mem_eq(labels, expected, sizeof labels);
}
END_TEST

/*
 * Label the parts: 1 + the index of a part's first voxel spreads between neighbours until none
 * changes.
 */
static void number_parts(const uint8_t *labels, const int e[3], int *part)
{
    bool changed = true;

    for (int v = 0; v < e[0] * e[1] * e[2]; v++)
        part[v] = labels[2 * v] == 1 ? v + 1 : 0;
    while (changed) {
        changed = false;
        for (int v = 0; v < e[0] * e[1] * e[2]; v++)
            for (int n = 0; n < 27 && part[v] != 0; n++) {
                int i = v / e[2] / e[1] + n / 9 - 1, j = v / e[2] % e[1] + n / 3 % 3 - 1;
                int k = v % e[2] + n % 3 - 1, to = (i * e[1] + j) * e[2] + k;
                if (i < 0 || i >= e[0] || j < 0 || j >= e[1] || k < 0 || k >= e[2]
                    || part[to] == 0 || part[to] >= part[v])
                    continue;
                part[v] = part[to];
                changed = true;
            }
    }
}

START_TEST(the_largest_component_equals_a_plain_search)
{
    enum { MOST = 7 * 8 * 9 };
    const int e[3] = { 1 + _i % 7, 1 + _i % 8, 1 + _i * 7 % 9 };
    const int64_t extent[3] = { e[0], e[1], e[2] };
    int voxels = e[0] * e[1] * e[2], part[MOST], size[MOST + 1] = { 0 }, best = 0;
    uint8_t labels[2 * MOST], before[2 * MOST];
    pons_error err = PONS_ERROR_INIT;

    srand((unsigned)_i);
    for (int v = 0; v < 2 * voxels; v++)
        labels[v] = rand() % (2 + _i % 5) == 0 ? 1 : 2;
    memcpy(before, labels, sizeof before);
    number_parts(before, e, part);
    for (int v = 0; v < voxels; v++)
        size[part[v]]++;
    for (int n = 1; n <= voxels; n++)
        best = size[n] > (best > 0 ? size[best] : 0) ? n : best;
    ck_assert_int_eq(connected_components_keep_largest(labels, 2, extent, 1, 9, &err), PONS_OK);
    for (int v = 0; v < voxels; v++) {
        ck_assert_int_eq(labels[2 * v], part[v] == 0 ? 2 : part[v] == best ? 1 : 9);
        ck_assert_int_eq(labels[2 * v + 1], before[2 * v + 1]);
    }
}
END_TEST

/* ---- evaluate -------------------------------------------------------------------------------- */

/* The names of a metric in the golden values, and of its value of a class in the output. */
typedef struct golden_metric {
    const char *golden, *name;
} golden_metric;

static void compare_golden_number(const json_t *found, const json_t *expected, const char *what)
{
    ck_assert_msg(json_is_number(found) == json_is_number(expected), "%s", what);
    if (json_is_number(found))
        ck_assert_msg(fabs(json_number_value(found) - json_number_value(expected)) <= SURFACE_MM,
                      "%s: found %.9g, expected %.9g", what, json_number_value(found),
                      json_number_value(expected));
}

/* Evaluate the pairs of a golden set, and compare the metrics of both classes. */
static void compare_golden_set(const char *set, const golden_metric *metrics, int count)
{
    json_t *golden;
    const json_t *c;
    size_t i;
    char prediction[8192], label[8192], name[128], path[128];

    snprintf(name, sizeof name, "%s.json", set);
    golden = golden_json(name);
    json_array_foreach(golden, i, c) {
        const char *number = json_string_value(json_object_get(c, "name"));

        snprintf(name, sizeof name, "%s/%s_prediction.nii.gz", set, number);
        snprintf(prediction, sizeof prediction, "%s", golden_path(name));
        snprintf(name, sizeof name, "%s/%s_label.nii.gz", set, number);
        snprintf(label, sizeof label, "%s", golden_path(name));
        EXPECT(0, NULL, "evaluate", "--prediction", prediction, "--label", label, "--labels",
               "one:1 two:2", "--json", "--metrics", "dice iou hd hd95 asd nsd sensitivity "
               "specificity precision generalized_dice");
        json_t *d = root_json("out");
        for (int n = 0; n < 2 * count; n++) {
            snprintf(path, sizeof path, "cases/0/classes/%s/%s", n % 2 == 0 ? "one" : "two",
                     metrics[n / 2].name);
            compare_golden_number(json_at(d, path),
                                  json_array_get(json_object_get(c, metrics[n / 2].golden),
                                                 (size_t)n % 2), path);
        }
        if (json_object_get(c, "generalized_dice") != NULL)
            compare_golden_number(json_at(d, "cases/0/mean/generalized_dice"),
                                  json_at(c, "generalized_dice/square"), "generalized_dice");
        ck_assert(json_is_false(json_at(d, "definition/background")));
        ck_assert_str_eq(json_string_value(json_at(d, "definition/grid")), "file");
        ck_assert_double_eq(json_number_value(json_at(d, "definition/nsd_mm")), 1);
        json_decref(d);
    }
    json_decref(golden);
}

START_TEST(golden_pairs_are_scored_as_monai_does)
{
    static const golden_metric metrics[] = {
        { "dice", "dice" }, { "iou", "iou" }, { "hausdorff", "hd" }, { "hausdorff95", "hd95" },
        { "average_surface_distance", "asd" }, { "surface_dice_1mm", "nsd" }
    };

    make_root();
    compare_golden_set("metrics", metrics, 6);
    remove_root();
}
END_TEST

START_TEST(golden_shapes_are_scored_as_monai_does)
{
    static const golden_metric metrics[] = {
        { "dice", "dice" }, { "iou", "iou" }, { "hausdorff", "hd" }, { "hausdorff95", "hd95" },
        { "average_surface_distance", "asd" }, { "surface_dice_1.0mm", "nsd" },
        { "sensitivity", "sensitivity" }, { "specificity", "specificity" },
        { "precision", "precision" }
    };

    make_root();
    compare_golden_set("metrics_more", metrics, 9);
    remove_root();
}
END_TEST

static void write_label(const char *name, int i, int64_t first)
{
    const int64_t extent[3] = { 4, 5, 6 };
    pons_error err = PONS_ERROR_INIT;
    volume v;

    memset(&v, 0, sizeof v);
    ck_assert_int_eq(pons_volume_init(&v, PONS_I32, 1, extent, &err), PONS_OK);
    for (int64_t n = first; n < first + 10; n++)
        ((int32_t *)v.voxels)[n] = i;
    ck_assert_msg(nifti_write(in_root(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    pons_volume_clear(&v);
}

/*
 * The ids are 0 .. 3 along k. Channel 0 is {1, 2} and exactly right; channel 1 is 1 where the id
 * is 2.
 */
START_TEST(channels_of_regions_are_scored_against_their_ids)
{
    pons_error err = PONS_ERROR_INIT;
    volume label, regions;

    make_root();
    memset(&label, 0, sizeof label);
    memset(&regions, 0, sizeof regions);
    ck_assert_int_eq(pons_volume_init(&label, PONS_I32, 1, (int64_t[]){ 2, 2, 4 }, &err), PONS_OK);
    ck_assert_int_eq(pons_volume_init(&regions, PONS_U8, 2, (int64_t[]){ 2, 2, 4 }, &err), PONS_OK);
    for (int i = 0; i < 16; i++) {
        ((int32_t *)label.voxels)[i] = i % 4;
        ((uint8_t *)regions.voxels)[2 * i] = i % 4 == 1 || i % 4 == 2;
        ((uint8_t *)regions.voxels)[2 * i + 1] = i % 4 == 2;
    }
    ck_assert_int_eq(nifti_write(in_root("l.nii"), &label, NULL, &err), PONS_OK);
    ck_assert_int_eq(nifti_write(in_root("p.nii"), &regions, NULL, &err), PONS_OK);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--labels",
           "x:1,2 y:2,3", "--json");
    ck_assert_ptr_nonnull(strstr(root_text("out"), "\"x\":{\"dice\":1,"));
    ck_assert_ptr_nonnull(strstr(root_text("out"), "\"y\":{\"dice\":0.666666667,\"iou\":0.5,"));
    if (png_available()) {
        EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--labels",
               "x:1,2 y:2,3", "--overlay", "o.png");
        ck_assert_int_eq(access(in_root("o.png"), R_OK), 0);
    }
    EXPECT(4, "'p.nii' has 2 channels, expected 1", "evaluate", "--prediction", "p.nii", "--label",
           "l.nii", "--labels", "x:1,2");
    /* Ids of the label are no regions, even if their number matches. */
    EXPECT(2, "'p.nii' has 2 channels, expected --labels", "evaluate", "--prediction", "p.nii",
           "--label", "l.nii");
    EXPECT(2, "'--labels' holds '1', expected NAME:ID", "evaluate", "--prediction", "p.nii",
           "--label", "l.nii", "--labels", "1");
    EXPECT(2, "--image is drawn under --overlay", "evaluate", "--prediction", "p.nii", "--label",
           "l.nii", "--labels", "x:1,2 y:2,3", "--image", "l.nii");
    EXPECT(2, "--overlay 'o.jpg': expected a file .png", "evaluate", "--prediction", "p.nii",
           "--label", "l.nii", "--labels", "x:1,2 y:2,3", "--overlay", "o.jpg");
    pons_volume_clear(&label);
    pons_volume_clear(&regions);
    remove_root();
}
END_TEST

/* Write 10 voxels of 'a' from voxel 0 and 10 voxels of 'b' from voxel 20. */
static void write_two(const char *name, int a, int b)
{
    const int64_t extent[3] = { 4, 5, 6 };
    pons_error err = PONS_ERROR_INIT;
    volume v;

    memset(&v, 0, sizeof v);
    ck_assert_int_eq(pons_volume_init(&v, PONS_I32, 1, extent, &err), PONS_OK);
    for (int n = 0; n < 10; n++) {
        ((int32_t *)v.voxels)[n] = a;
        ((int32_t *)v.voxels)[20 + n] = b;
    }
    ck_assert_msg(nifti_write(in_root(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    pons_volume_clear(&v);
}

START_TEST(ids_of_the_prediction_alone_are_counted_or_listed)
{
    make_root();
    write_two("p.nii", 1, 7);
    write_two("l.nii", 1, 0);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--json");
    json_t *d = root_json("out");
    ck_assert_int_eq((int)json_number_value(json_at(d, "summary/7/dice/false_alarms")), 1);
    ck_assert_int_eq((int)json_number_value(json_at(d, "cases/0/classes/7/voxels/prediction")), 10);
    ck_assert_int_eq((int)json_number_value(json_at(d, "cases/0/classes/7/voxels/label")), 0);
    ck_assert(json_is_object(json_at(d, "cases/0/unlisted")));
    ck_assert_int_eq((int)json_object_size(json_at(d, "cases/0/unlisted")), 0);
    json_decref(d);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--labels",
           "a:1 b:300", "--json");
    d = root_json("out");
    ck_assert_int_eq((int)json_number_value(json_at(d, "cases/0/unlisted/7")), 10);
    json_decref(d);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--labels",
           "background:0,7 a:1", "--json");
    d = root_json("out");
    ck_assert(json_is_object(json_at(d, "cases/0/unlisted")));
    ck_assert_int_eq((int)json_object_size(json_at(d, "cases/0/unlisted")), 0);
    json_decref(d);
    remove_root();
}
END_TEST

/* x and y share id 2: an id may lie in several classes. */
START_TEST(classes_with_shared_ids_are_counted_separately)
{
    make_root();
    write_two("p.nii", 1, 2);
    write_two("l.nii", 2, 3);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--json", "--labels",
           "x:1,2 y:2,3");
    json_t *d = root_json("out");
    ck_assert_double_eq_tol(json_number_value(json_at(d, "cases/0/classes/x/dice")), 2.0 / 3, 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_at(d, "cases/0/classes/y/dice")), 2.0 / 3, 1e-9);
    json_decref(d);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--json", "--labels",
           "x:1,2 y:3");
    d = root_json("out");
    ck_assert_double_eq_tol(json_number_value(json_at(d, "cases/0/classes/x/dice")), 2.0 / 3, 1e-9);
    ck_assert_double_eq_tol(json_number_value(json_at(d, "cases/0/classes/y/dice")), 0, 1e-9);
    json_decref(d);
    remove_root();
}
END_TEST

/* Ids with the same classes form one area; ids without a class have area 0. */
START_TEST(an_area_is_the_ids_of_the_same_classes)
{
    static const int x[] = { 1, 2, 3 }, y[] = { 2, 3, 9 }, z[] = { 3 };
    const data_class classes[] = { { "x", 3, x }, { "y", 3, y }, { "z", 1, z } };
    arena *memory = arena_new();
    id_partition a;

    id_partition_make(memory, classes, 3, &a);
    ck_assert(!a.disjoint);
    ck_assert_int_eq(a.of[0], 0);
    ck_assert_int_eq(a.of[4], 0);
    for (int i = 1; i <= 9; i++)
        for (int j = 1; j < i; j++)
            ck_assert_int_eq(a.of[i] == a.of[j], class_index_of_id(classes, 3, i) < 0
                                                 && class_index_of_id(classes, 3, j) < 0);
    id_partition_make(memory, classes, 1, &a);
    ck_assert(a.disjoint);
    for (int i = 1; i <= 9; i++)
        ck_assert_int_eq(a.of[i], i <= 3);
    arena_free(memory);
}
END_TEST

START_TEST(folders_are_paired_by_stem_and_missing_files_counted)
{
    make_root();
    write_label("p/a.nii.gz", 1, 0);
    write_label("l/a.nii", 1, 5);
    write_label("p/b.nii.gz", 1, 0);
    write_label("l/b.nii.gz", 2, 0);
    write_label("p/c.nii.gz", 2, 0);
    write_label("l/c.nii.gz", 1, 0);
    EXPECT(0, NULL, "evaluate", "--prediction", "p", "--label", "l", "--json", "--labels",
           "background:0 x:1 y:2 z:3");
    json_t *d = root_json("out");
    ck_assert_int_eq((int)json_array_size(json_at(d, "cases")), 3);
    ck_assert_double_eq_tol(json_number_value(json_at(d, "cases/0/classes/x/dice")), 0.5, 1e-9);
    ck_assert(json_is_null(json_at(d, "cases/1/classes/x/dice")));
    ck_assert_int_eq((int)json_number_value(json_at(d, "summary/x/dice/defined")), 2);
    ck_assert_int_eq((int)json_number_value(json_at(d, "summary/x/dice/missed")), 1);
    ck_assert_int_eq((int)json_number_value(json_at(d, "summary/x/dice/false_alarms")), 1);
    ck_assert_int_eq((int)json_number_value(json_at(d, "summary/z/iou/empty")), 3);
    ck_assert(json_is_null(json_at(d, "summary/z/iou/mean")));
    ck_assert_double_eq_tol(json_number_value(json_at(d, "summary/x/dice/mean")), 0.25, 1e-9);
    json_decref(d);
    EXPECT(0, NULL, "evaluate", "--prediction", "p", "--label", "l", "--labels", "x:1 z:9",
           "--metrics", "dice", "--csv", "out.csv");
    ck_assert_str_eq(root_text("out.csv"), "case,class,dice,prediction_voxels,label_voxels\n"
                     "a,x,0.5,10,10\na,z,,0,0\na,(mean),0.5,,\n"
                     "b,x,,10,0\nb,z,,0,0\nb,(mean),,,\n"
                     "c,x,0,0,10\nc,z,,0,0\nc,(mean),0,,\n");
    EXPECT(1, "cannot write", "evaluate", "--prediction", "p", "--label", "l", "--csv", "p");
    write_label("l/d.nii.gz", 1, 0);
    EXPECT(4, "has no prediction of that name", "evaluate", "--prediction", "p", "--label", "l");
    EXPECT(2, "two files or two folders", "evaluate", "--prediction", "p", "--label", "l/a.nii");
    EXPECT(2, "needs --prediction", "evaluate", "--label", "l");
    EXPECT(4, "extent", "evaluate", "--prediction", "p/a.nii.gz", "--label",
           golden_path("metrics/0_label.nii.gz"));
    remove_root();
}
END_TEST

/* ---- explain and bench ----------------------------------------------------------------------- */

static const char small_ini[] =
    "[experiment]\nname = small\n"
    "[data]\nsource = phantom\nvalidation = none\n"
    "[patch]\nextent = 48 48 48\nper_case = 2\n"
    "[model]\nplugin = unet\nchannels = 16 32 64\nstrides = 2 2\nnum_res_units = 2\nnorm = batch\n"
    "[loss]\nplugin = dice_ce\n"
    "[optimizer]\nplugin = adam\nlr = 1e-3\n"
    "[schedule]\nplugin = cosine\nwarmup_steps = 2\n"
    "[train]\nsteps = 5\n";

static double peak_of_last_step(void)
{
    const char *text = root_text("runs/small/metrics.jsonl");
    const char *memory = NULL;

    for (const char *at_ = text; (at_ = strstr(at_, "\"memory\":")) != NULL; at_++)
        memory = at_;
    ck_assert_ptr_nonnull(memory);
    return strtod(memory + 9, NULL);
}

static bool is_implementation(const char *name)
{
    static const char *const names[] = {
        "jit", "interpreter", "gather_copy", "separable", "pool_gradient", "argmax", "patch",
        "few_channels", "few_channels_amx", "winograd", "bf16_gemm", "direct", "onednn",
        "reference",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

START_TEST(explain_predicts_the_peak_and_names_every_kernel)
{
    static const char *const precisions[] = { "train.precision=fp32", "train.precision=bf16" };

    make_root();
    write_text("small.ini", small_ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "2", "--extent", "64,64,64");
    for (int n = 0; n < 2; n++) {
        EXPECT(0, NULL, "explain", "small.ini", "--json", "--set", precisions[n]);
        json_t *d = root_json("out");
        static const char *const parts[] = { "arena", "parameters", "scratch", "libraries", "cache",
                                             "loader" };
        const json_t *kernels = json_at(d, "kernels"), *k;
        double sum = 0, peak = json_number_value(json_at(d, "peak"));
        size_t number;
        for (int i = 0; i < 6; i++)
            sum += json_number_value(json_at(d, parts[i]));
        ck_assert_double_eq_tol(sum, peak, 10);
        ck_assert_double_gt(json_number_value(json_at(d, "sum_of_tensors")), 0);
        json_array_foreach(kernels, number, k) {
            const char *by = json_string_value(json_object_get(k, "implementation"));
            ck_assert_msg(is_implementation(by), "'%s'", by);
            ck_assert_ptr_nonnull(json_object_get(k, "section"));
            ck_assert_ptr_nonnull(json_object_get(k, "flop"));
        }
        ck_assert_int_gt((int)json_array_size(kernels), 20);
        json_decref(d);
        EXPECT(0, NULL, "train", "small.ini", "--fresh", "--set", precisions[n]);
        double found = peak_of_last_step();
        ck_assert_msg(fabs(found - peak) <= PEAK_RELATIVE * found, "peak %.0f, predicted %.0f",
                      found, peak);
    }
    remove_root();
}
END_TEST

/* ---- a parser for the part of the DOT language that graphs use ------------------------------- */

enum { DOT_NODES = 4096 };

/* State of the parser of a digraph. */
typedef struct dot_graph {
    const char *at;
    int nodes, edges, into[DOT_NODES], from[DOT_NODES];
    char label[DOT_NODES][96];
} dot_graph;

static void dot_blank(dot_graph *d)
{
    d->at += strspn(d->at, " \t\n");
}

static bool dot_take(dot_graph *d, const char *token)
{
    dot_blank(d);
    if (strncmp(d->at, token, strlen(token)) != 0)
        return false;
    d->at += strlen(token);
    return true;
}

static void dot_expect(dot_graph *d, const char *token)
{
    ck_assert_msg(dot_take(d, token), "found '%.40s', expected '%s'", d->at, token);
}

/* Read a word, or a quoted text without its escapes. */
static void dot_id(dot_graph *d, char *out, size_t room)
{
    size_t size = 0;

    dot_blank(d);
    bool quoted = *d->at == '"';
    for (d->at += quoted; quoted ? *d->at != '"' : isalnum((unsigned char)*d->at) || *d->at == '_';
         d->at++) {
        ck_assert_int_ne(*d->at, '\0');
        bool escaped = quoted && *d->at == '\\';
        d->at += escaped;
        if (size + 1 < room)
            out[size++] = escaped && *d->at == 'n' ? '\n' : *d->at;
    }
    out[size] = '\0';
    d->at += quoted;
    ck_assert_msg(quoted || size > 0, "found '%.40s', expected a name", d->at);
}

/* Read attributes: [ name = value, ... ]. */
static void dot_attributes(dot_graph *d, char *label, size_t room)
{
    char name[32], value[96];

    do {
        dot_id(d, name, sizeof name);
        dot_expect(d, "=");
        dot_id(d, value, sizeof value);
        if (strcmp(name, "label") == 0)
            snprintf(label, room, "%s", value);
    } while (dot_take(d, ","));
    dot_expect(d, "]");
}

static int dot_number(const dot_graph *d, const char *name)
{
    char *end;
    long number = strtol(name + 1, &end, 10);

    ck_assert_msg(name[0] == 'n' && *end == '\0' && number >= 0 && number < d->nodes,
                  "node '%s' stands before its declaration", name);
    return (int)number;
}

/* Read a node, an edge, or the attributes of all nodes. */
static void dot_statement(dot_graph *d)
{
    char name[32], other[32], unused[96];

    dot_id(d, name, sizeof name);
    if (dot_take(d, "->")) {
        dot_id(d, other, sizeof other);
        int from = dot_number(d, name), into = dot_number(d, other);
        ck_assert_int_lt(from, into);
        d->from[from]++;
        d->into[into]++;
        d->edges++;
    } else if (strcmp(name, "node") == 0) {
        dot_expect(d, "[");
        dot_attributes(d, unused, sizeof unused);
    } else {
        ck_assert_int_eq(atoi(name + 1), d->nodes);
        ck_assert_int_lt(d->nodes, DOT_NODES);
        dot_expect(d, "[");
        dot_attributes(d, d->label[d->nodes], sizeof d->label[0]);
        d->nodes++;
    }
    dot_expect(d, ";");
}

static bool dot_is(const dot_graph *d, int node, const char *kind)
{
    size_t size = strcspn(d->label[node], " \n");

    return size == strlen(kind) && strncmp(d->label[node], kind, size) == 0;
}

static int dot_count(const dot_graph *d, const char *kind)
{
    int count = 0;

    for (int i = 0; i < d->nodes; i++)
        count += dot_is(d, i, kind);
    return count;
}

/*
 * Check that edges lead from earlier nodes to later ones, and that the graph has the whole
 * network.
 */
static void dot_check(const char *text)
{
    static dot_graph d;
    int ends = 0;

    memset(&d, 0, sizeof d);
    d.at = text;
    dot_expect(&d, "digraph");
    dot_id(&d, d.label[0], sizeof d.label[0]);
    dot_expect(&d, "{");
    while (!dot_take(&d, "}"))
        dot_statement(&d);
    dot_blank(&d);
    ck_assert_str_eq(d.at, "");
    /*
     * Three units on the way down have two convolutions and a shortcut each, two units on the way
     * up have one.
     */
    ck_assert_int_eq(dot_count(&d, "convolution"), 11);
    ck_assert_int_eq(dot_count(&d, "convolution_input_gradient"), 2);
    ck_assert_int_eq(dot_count(&d, "input"), 2);
    for (int i = 0; i < d.nodes; i++) {
        if (dot_is(&d, i, "convolution"))
            ck_assert_int_eq(d.into[i], 2);
        ends += d.into[i] > 0 && d.from[i] == 0;
    }
    ck_assert_int_ge(ends, 1);
}

START_TEST(explain_prints_schedule_and_graph)
{
    make_root();
    write_text("small.ini", small_ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "2", "--extent", "48,48,48");
    static const char *const others[] = { "--json", "--dot", "--kernels" };
    for (int i = 0; i < 3; i++)
        EXPECT(2, "--json, --dot, --schedule and --kernels exclude each other", "explain",
               "small.ini", "--schedule", others[i]);
    EXPECT(2, "exclude each other", "explain", "small.ini", "--kernels", "--json");
    EXPECT(0, NULL, "explain", "small.ini", "--schedule");
    /* The factors are 0 and 1/2 in the warm-up, then 1, 3/4 and 1/4 of a cosine over 3 steps. */
    static const double expected[] = { 0, 0.0005, 0.001, 0.00075, 0.00025 };
    char *line = strchr(root_text("out"), '\n');
    for (int i = 0; i < 5; i++) {
        long step;
        double rate;
        ck_assert_ptr_nonnull(line);
        ck_assert_int_eq(sscanf(line, "%ld %lf", &step, &rate), 2);
        ck_assert_int_eq((int)step, i);
        ck_assert_double_eq_tol(rate, expected[i], 1e-11);
        line = strchr(line + 1, '\n');
    }
    EXPECT(0, NULL, "explain", "small.ini", "--dot");
    dot_check(root_text("out"));
    EXPECT(3, "the strides along i have a product beyond 2147483647", "explain", "small.ini",
           "--set", "model.channels=2 2 2 2 2 2 2", "--set", "model.strides=64 64 64 64 64 64");
    EXPECT(3, "patch 50 is not divisible by 4 along j", "explain", "small.ini", "--set",
           "patch.extent=48 50 48");
    remove_root();
}
END_TEST

START_TEST(bench_measures_and_leaves_no_run_folder)
{
    make_root();
    write_text("small.ini", small_ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "2", "--extent", "48,48,48");
    EXPECT(0, NULL, "bench", "small.ini", "--json", "--steps", "2", "--warm-up", "1",
           "--reference", "--set", "patch.extent=16 16 16");
    json_t *d = root_json("out");
    ck_assert_int_eq((int)json_array_size(json_at(d, "step_seconds/all")), 2);
    ck_assert_double_gt(json_number_value(json_at(d, "step_seconds/median")), 0);
    ck_assert_double_gt(json_number_value(json_at(d, "processor_seconds")), 0);
    ck_assert_double_gt(json_number_value(json_at(d, "phases/micro")), 0);
    ck_assert_double_gt(json_number_value(json_at(d, "with_data_seconds")), 0);
    ck_assert_str_eq(json_string_value(json_at(d, "mode")), "single");
    json_decref(d);
    ck_assert_int_ne(access(in_root("runs"), F_OK), 0);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("predict");

    tcase_add_test(c, blended_logits_equal_monais);
    tcase_add_test(c, predicted_classes_are_written_as_ids_on_the_file_grid);
    tcase_add_test(c, a_single_region_is_written_as_its_first_id);
    tcase_add_test(c, one_image_goes_to_a_file_several_to_a_folder);
    tcase_add_test(c, a_folder_of_first_channels_has_the_names_of_its_cases);
    tcase_add_test(c, predictions_are_mapped_back_to_the_file_grid);
    tcase_add_test(c, an_ensemble_of_equal_networks_equals_the_network);
    tcase_add_test(c, non_finite_logits_give_no_segmentation);
    tcase_add_test(c, probabilities_follow_the_activation_of_the_loss);
    tcase_add_test(c, equal_tensors_under_a_second_name_are_accepted);
    tcase_add_test(c, weights_that_do_not_fit_are_refused_and_named);
    tcase_add_test(c, the_index_of_attention_windows_may_be_in_a_file);
    tcase_add_test(c, images_that_are_read_are_never_replaced);
    tcase_add_test(c, the_largest_component_of_a_class_is_kept);
    tcase_add_loop_test(c, the_largest_component_equals_a_plain_search, 0, 200);
    tcase_add_test(c, golden_pairs_are_scored_as_monai_does);
    tcase_add_test(c, golden_shapes_are_scored_as_monai_does);
    tcase_add_test(c, channels_of_regions_are_scored_against_their_ids);
    tcase_add_test(c, folders_are_paired_by_stem_and_missing_files_counted);
    tcase_add_test(c, ids_of_the_prediction_alone_are_counted_or_listed);
    tcase_add_test(c, classes_with_shared_ids_are_counted_separately);
    tcase_add_test(c, an_area_is_the_ids_of_the_same_classes);
    tcase_add_test(c, explain_predicts_the_peak_and_names_every_kernel);
    tcase_add_test(c, explain_prints_schedule_and_graph);
    tcase_add_test(c, bench_measures_and_leaves_no_run_folder);
    return suite_run();
}
