/*
 * check_predict.c - weights of other programs, stitched logits, the way back, scores, forecasts:
 * all through the program itself.
 */
#include <config.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "data/volume/volume.h"
#include "report/png_write.h"
#include "metric/connected_components.h"
#include "metric/id_areas.h"
#include "checkpoint/safetensors.h"

#include "data/volume/geometry.h"
#include "run_json.h"
#include "run_pons.h"
#include "spoil.h"
#include "suite.h"
#include "tolerance.h"

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

/* 'state/NAME' of the golden file as a weights file, changed by 'change' before it is written. */
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

static void begin(void)
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
    ck_assert_msg(volume_read_image(in_root(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    return v;
}

START_TEST(stitched_logits_are_those_of_monai)
{
    static const char *const blends[] = { "constant", "gaussian" };
    static const char *const overlaps[] = { "0.25", "0.5" };

    begin();
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

START_TEST(classes_are_written_as_their_ids_on_the_grid_of_the_file)
{
    begin();
    write_weights("w.safetensors", NULL);
    PREDICT(0, NULL, "w.safetensors", "--probabilities", "--logits");
    volume_facts in, out;
    pons_error err = PONS_ERROR_INIT;
    volume label, p = read_image("o_probabilities.nii.gz"), logits = read_image("o_logits.nii.gz");
    memset(&label, 0, sizeof label);
    ck_assert_int_eq(volume_read_facts(golden_path("windows_image.nii.gz"), &in, &err), PONS_OK);
    ck_assert_int_eq(volume_read_label(in_root("o.nii.gz"), &label, &out, &err), PONS_OK);
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

/* One region alone has a label file, as classes have, and not a channel that must be told. */
START_TEST(one_region_is_written_as_its_first_id)
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
    ck_assert_int_eq(volume_read_label(in_root("o.nii.gz"), &label, NULL, &err), PONS_OK);
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
    begin();
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
    PREDICT_TO(0, "a,b -> two/a,b.nii.gz", "scans", "-o", "two", "--logits");
    EXISTS("two/a_logits.nii.gz");
    copy_image("scans/a.nii");
    PREDICT_TO(4, "are both named 'a', expected one", "scans", "-o", "two");
    PREDICT_TO(4, "'new' holds no .nii or .nii.gz file", "new", "-o", "two");
    remove_root();
}
END_TEST

START_TEST(preprocessing_is_undone_on_the_way_back)
{
    begin();
    write_weights("w.safetensors", NULL);
    volume_facts in, out;
    pons_error err = PONS_ERROR_INIT;
    for (int n = 0; n < 2; n++) {
        PREDICT(0, NULL, "w.safetensors", "--set",
                "preprocess.steps=orient spacing crop_foreground", "--set",
                "preprocess.orient.axes=LPS", "--set", "preprocess.spacing.mm=2 1 1",
                "--set", n == 0 ? "predict.resample=probabilities" : "predict.resample=labels");
        const char *image = golden_path("windows_image.nii.gz");
        ck_assert_int_eq(volume_read_facts(image, &in, &err), PONS_OK);
        ck_assert_int_eq(volume_read_facts(in_root("o.nii.gz"), &out, &err), PONS_OK);
        ck_assert_msg(volume_grid_compare(&in.grid, "in", &out.grid, "out", &err) == PONS_OK, "%s",
                      err.text);
    }
    remove_root();
}
END_TEST

START_TEST(ensemble_of_a_network_with_itself_is_the_network)
{
    begin();
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

static void add_unknown(safetensor *item, int *count)
{
    item[*count] = item[0];
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

static void enlarge(safetensor *item, int *count)
{
    ck_assert_int_gt(*count, 0);
    for (int64_t n = 0; n < item[0].count; n++)
        ((float *)item[0].data)[n] *= 1e4f;
}

/* A case of finite numbers whose logits are not: the others are written. */
START_TEST(logits_that_are_not_finite_are_no_segmentation)
{
    begin();
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
    write_weights("w.safetensors", enlarge);
    PREDICT_TO(4, "1 of 2 cases could not be predicted, the first is 'a'", "scans", "-o", "new");
    EXISTS("new/b.nii.gz");
    ck_assert(access(in_root("new/a.nii.gz"), F_OK) != 0);
    remove_root();
}
END_TEST

/* Each voxel's probabilities from its logits, by the formulas of [loss] activation. */
START_TEST(probabilities_follow_the_activation_of_the_loss)
{
    static const char *const words[] = { "softmax", "sigmoid", "none", "auto" };

    begin();
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

/* The last weight once more, as of a module that the network holds twice. */
static void repeat_last(safetensor *item, int *count)
{
    static char name[256];

    item[*count] = item[*count - 1];
    snprintf(name, sizeof name, "again.%s", item[*count].name);
    item[(*count)++].name = name;
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

START_TEST(tensors_under_a_second_name_are_no_others)
{
    begin();
    write_weights("w.safetensors", repeat_last);
    PREDICT(0, NULL, "w.safetensors", "-q");
    write_weights("w.safetensors", repeat_changed);
    PREDICT(3, "tensor 'again.", "w.safetensors", "-q");
    remove_root();
}
END_TEST

START_TEST(weights_that_do_not_fit_are_refused_and_named)
{
    begin();
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

START_TEST(images_that_are_read_are_never_replaced)
{
    pons_error err = PONS_ERROR_INIT;
    char *before = NULL, *after = NULL;
    size_t size, now;

    begin();
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

START_TEST(largest_part_of_a_class_is_kept)
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

    ck_assert_int_eq(keep_largest_component(labels, 1, extent, 1, 0, &err), PONS_OK);
    ck_assert_mem_eq(labels, expected, sizeof labels);
}
END_TEST

/* Numbers spread from neighbour to neighbour until none changes: 1 + the first voxel of a part. */
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

START_TEST(largest_part_is_that_of_a_plain_search)
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
    ck_assert_int_eq(keep_largest_component(labels, 2, extent, 1, 9, &err), PONS_OK);
    for (int v = 0; v < voxels; v++) {
        ck_assert_int_eq(labels[2 * v], part[v] == 0 ? 2 : part[v] == best ? 1 : 9);
        ck_assert_int_eq(labels[2 * v + 1], before[2 * v + 1]);
    }
}
END_TEST

/* ---- evaluate -------------------------------------------------------------------------------- */

START_TEST(golden_pairs_are_scored_as_monai_does)
{
    make_root();
    pons_error err = PONS_ERROR_INIT;
    json_document golden = { NULL, NULL };
    char *text = NULL, prediction[8192], label[8192];
    size_t size = 0;
    ck_assert_int_eq(file_read(golden_path("metrics.json"), 1 << 20, &text, &size, PONS_DATA, &err),
                     PONS_OK);
    ck_assert_int_eq(json_parse(text, size, "metrics", PONS_DATA, &golden, &err), PONS_OK);
    for (const json_value *c = golden.root->child; c != NULL; c = c->next) {
        char name[64];
        snprintf(name, sizeof name, "metrics/%s_prediction.nii.gz", json_member(c, "name")->text);
        snprintf(prediction, sizeof prediction, "%s", golden_path(name));
        snprintf(name, sizeof name, "metrics/%s_label.nii.gz", json_member(c, "name")->text);
        snprintf(label, sizeof label, "%s", golden_path(name));
        EXPECT(0, NULL, "evaluate", "--prediction", prediction, "--label", label, "--labels",
               "one:1 two:2", "--json");
        json_document d = parse("out");
        static const char *const classes[] = { "one", "two" }, *const kinds[] = { "dice", "iou" };
        for (int n = 0; n < 4; n++) {
            char path[64];
            snprintf(path, sizeof path, "cases/0/classes/%s/%s", classes[n / 2], kinds[n % 2]);
            const json_value *found = at(d.root, path);
            const json_value *expected = json_item(json_member(c, kinds[n % 2]), n / 2);
            ck_assert_int_eq(found->type, expected->type);
            if (found->type == JSON_NUMBER)
                ck_assert_double_eq_tol(found->number, expected->number, METRIC_ABSOLUTE);
        }
        ck_assert_int_eq(at(d.root, "definition/background")->type, JSON_FALSE);
        ck_assert_str_eq(at(d.root, "definition/grid")->text, "file");
        json_free(&d);
    }
    json_free(&golden);
    free(text);
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
    ck_assert_msg(volume_write(in_root(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    pons_volume_clear(&v);
}

/* Ids 0 .. 3 along k; channel 0 is {1, 2}, exactly right; channel 1 says 1 where the ids are 2. */
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
    ck_assert_int_eq(volume_write(in_root("l.nii"), &label, NULL, &err), PONS_OK);
    ck_assert_int_eq(volume_write(in_root("p.nii"), &regions, NULL, &err), PONS_OK);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--labels",
           "x:1,2 y:2,3", "--json");
    ck_assert_ptr_nonnull(strstr(text_of("out"), "\"x\":{\"dice\":1,"));
    ck_assert_ptr_nonnull(strstr(text_of("out"), "\"y\":{\"dice\":0.666666667,\"iou\":0.5,"));
    if (png_available()) {
        EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--labels",
               "x:1,2 y:2,3", "--overlay", "o.png");
        ck_assert_int_eq(access(in_root("o.png"), R_OK), 0);
    }
    EXPECT(4, "'p.nii' has 2 channels, expected 1", "evaluate", "--prediction", "p.nii", "--label",
           "l.nii", "--labels", "x:1,2");
    /* Ids of the label are no regions, even where there are as many. */
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

/* 10 voxels of 'a' from 0 on, 10 of 'b' from 20 on. */
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
    ck_assert_msg(volume_write(in_root(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    pons_volume_clear(&v);
}

START_TEST(what_only_the_prediction_has_is_counted_or_listed)
{
    make_root();
    write_two("p.nii", 1, 7);
    write_two("l.nii", 1, 0);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--json");
    json_document d = parse("out");
    ck_assert_int_eq((int)at(d.root, "summary/7/dice/false_alarms")->number, 1);
    ck_assert_int_eq((int)at(d.root, "cases/0/classes/7/voxels/prediction")->number, 10);
    ck_assert_int_eq((int)at(d.root, "cases/0/classes/7/voxels/label")->number, 0);
    ck_assert_int_eq(at(d.root, "cases/0/unlisted")->count, 0);
    json_free(&d);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--labels",
           "a:1 b:300", "--json");
    d = parse("out");
    ck_assert_int_eq((int)at(d.root, "cases/0/unlisted/7")->number, 10);
    json_free(&d);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--labels",
           "background:0,7 a:1", "--json");
    d = parse("out");
    ck_assert_int_eq(at(d.root, "cases/0/unlisted")->count, 0);
    json_free(&d);
    remove_root();
}
END_TEST

/* x and y share id 2: an id may lie in several areas of classes. */
START_TEST(classes_that_share_ids_are_counted_each_by_itself)
{
    make_root();
    write_two("p.nii", 1, 2);
    write_two("l.nii", 2, 3);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--json", "--labels",
           "x:1,2 y:2,3");
    json_document d = parse("out");
    ck_assert_double_eq_tol(at(d.root, "cases/0/classes/x/dice")->number, 2.0 / 3, 1e-9);
    ck_assert_double_eq_tol(at(d.root, "cases/0/classes/y/dice")->number, 2.0 / 3, 1e-9);
    json_free(&d);
    EXPECT(0, NULL, "evaluate", "--prediction", "p.nii", "--label", "l.nii", "--json", "--labels",
           "x:1,2 y:3");
    d = parse("out");
    ck_assert_double_eq_tol(at(d.root, "cases/0/classes/x/dice")->number, 2.0 / 3, 1e-9);
    ck_assert_double_eq_tol(at(d.root, "cases/0/classes/y/dice")->number, 0, 1e-9);
    json_free(&d);
    remove_root();
}
END_TEST

/* Ids of the same classes are one area, others differ, and what no class has is 0. */
START_TEST(areas_are_what_classes_tell_apart)
{
    static const int x[] = { 1, 2, 3 }, y[] = { 2, 3, 9 }, z[] = { 3 };
    const data_class classes[] = { { "x", 3, x }, { "y", 3, y }, { "z", 1, z } };
    arena *memory = arena_new();
    id_areas a;

    id_areas_make(memory, classes, 3, &a);
    ck_assert(!a.disjoint);
    ck_assert_int_eq(a.of[0], 0);
    ck_assert_int_eq(a.of[4], 0);
    for (int i = 1; i <= 9; i++)
        for (int j = 1; j < i; j++)
            ck_assert_int_eq(a.of[i] == a.of[j], class_list_find(classes, 3, i) < 0
                                                 && class_list_find(classes, 3, j) < 0);
    id_areas_make(memory, classes, 1, &a);
    ck_assert(a.disjoint);
    for (int i = 1; i <= 9; i++)
        ck_assert_int_eq(a.of[i], i <= 3);
    arena_free(memory);
}
END_TEST

START_TEST(folders_are_paired_by_stem_and_every_absence_is_counted)
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
    json_document d = parse("out");
    ck_assert_int_eq(at(d.root, "cases")->count, 3);
    ck_assert_double_eq_tol(at(d.root, "cases/0/classes/x/dice")->number, 0.5, 1e-9);
    ck_assert_int_eq(at(d.root, "cases/1/classes/x/dice")->type, JSON_NULL);
    ck_assert_int_eq((int)at(d.root, "summary/x/dice/defined")->number, 2);
    ck_assert_int_eq((int)at(d.root, "summary/x/dice/missed")->number, 1);
    ck_assert_int_eq((int)at(d.root, "summary/x/dice/false_alarms")->number, 1);
    ck_assert_int_eq((int)at(d.root, "summary/z/iou/empty")->number, 3);
    ck_assert_int_eq(at(d.root, "summary/z/iou/mean")->type, JSON_NULL);
    ck_assert_double_eq_tol(at(d.root, "summary/x/dice/mean")->number, 0.25, 1e-9);
    json_free(&d);
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
    const char *text = text_of("runs/small/metrics.jsonl");
    const char *memory = NULL;

    for (const char *at_ = text; (at_ = strstr(at_, "\"memory\":")) != NULL; at_++)
        memory = at_;
    ck_assert_ptr_nonnull(memory);
    return strtod(memory + 9, NULL);
}

START_TEST(explain_predicts_the_peak_and_names_every_kernel)
{
    static const char *const precisions[] = { "train.precision=fp32", "train.precision=bf16" };

    make_root();
    write_text("small.ini", small_ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "phantom", "--cases", "2", "--extent", "64,64,64");
    for (int n = 0; n < 2; n++) {
        EXPECT(0, NULL, "explain", "small.ini", "--json", "--set", precisions[n]);
        json_document d = parse("out");
        static const char *const parts[] = { "arena", "parameters", "scratch", "libraries", "cache",
                                             "loader" };
        double sum = 0, peak = at(d.root, "peak")->number;
        for (int i = 0; i < 6; i++)
            sum += at(d.root, parts[i])->number;
        ck_assert_double_eq_tol(sum, peak, 10);
        ck_assert_double_gt(at(d.root, "sum_of_tensors")->number, 0);
        for (const json_value *k = at(d.root, "kernels")->child; k != NULL; k = k->next) {
            const char *by = json_member(k, "implementation")->text;
            ck_assert_msg(strcmp(by, "own") == 0 || strcmp(by, "winograd") == 0
                          || strcmp(by, "onednn") == 0 || strcmp(by, "reference") == 0, "'%s'", by);
            ck_assert_ptr_nonnull(json_member(k, "section"));
            ck_assert_ptr_nonnull(json_member(k, "flop"));
        }
        ck_assert_int_gt(at(d.root, "kernels")->count, 20);
        json_free(&d);
        EXPECT(0, NULL, "train", "small.ini", "--fresh", "--set", precisions[n]);
        double found = peak_of_last_step();
        ck_assert_msg(fabs(found - peak) <= PEAK_RELATIVE * found, "peak %.0f, predicted %.0f",
                      found, peak);
    }
    remove_root();
}
END_TEST

/* ---- the DOT language, as far as graphs need it ---------------------------------------------- */

enum { DOT_NODES = 4096 };

/* What has been read of a digraph. */
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

/* A word, or a text in quotes with its escapes taken out. */
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

/* [ name = value, ... ] */
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

/* A node, an edge, or the attributes of all nodes. */
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

/* A graph whose edges lead from earlier nodes to later ones, with all that the network has. */
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
    /* two and the shortcut's in each of three units on the way down, one in each of two up */
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
    EXPECT(2, "--json, --dot and --schedule exclude each other", "explain", "small.ini",
           "--schedule", "--json");
    EXPECT(0, NULL, "explain", "small.ini", "--schedule");
    /* warm-up 0, 1/2, then cosine over 3 steps: 1, 3/4, 1/4 */
    static const double expected[] = { 0, 0.0005, 0.001, 0.00075, 0.00025 };
    char *line = strchr(text_of("out"), '\n');
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
    dot_check(text_of("out"));
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
    json_document d = parse("out");
    ck_assert_int_eq(at(d.root, "step_seconds/all")->count, 2);
    ck_assert_double_gt(at(d.root, "step_seconds/median")->number, 0);
    ck_assert_double_gt(at(d.root, "phases/micro")->number, 0);
    ck_assert_double_gt(at(d.root, "with_data_seconds")->number, 0);
    ck_assert_str_eq(at(d.root, "mode")->text, "single");
    json_free(&d);
    ck_assert_int_ne(access(in_root("runs"), F_OK), 0);
    remove_root();
}
END_TEST

int main(void)
{
    TCase *c = suite_new("predict");

    tcase_add_test(c, stitched_logits_are_those_of_monai);
    tcase_add_test(c, classes_are_written_as_their_ids_on_the_grid_of_the_file);
    tcase_add_test(c, one_region_is_written_as_its_first_id);
    tcase_add_test(c, one_image_goes_to_a_file_several_to_a_folder);
    tcase_add_test(c, preprocessing_is_undone_on_the_way_back);
    tcase_add_test(c, ensemble_of_a_network_with_itself_is_the_network);
    tcase_add_test(c, logits_that_are_not_finite_are_no_segmentation);
    tcase_add_test(c, probabilities_follow_the_activation_of_the_loss);
    tcase_add_test(c, tensors_under_a_second_name_are_no_others);
    tcase_add_test(c, weights_that_do_not_fit_are_refused_and_named);
    tcase_add_test(c, images_that_are_read_are_never_replaced);
    tcase_add_test(c, largest_part_of_a_class_is_kept);
    tcase_add_loop_test(c, largest_part_is_that_of_a_plain_search, 0, 200);
    tcase_add_test(c, golden_pairs_are_scored_as_monai_does);
    tcase_add_test(c, channels_of_regions_are_scored_against_their_ids);
    tcase_add_test(c, folders_are_paired_by_stem_and_every_absence_is_counted);
    tcase_add_test(c, what_only_the_prediction_has_is_counted_or_listed);
    tcase_add_test(c, classes_that_share_ids_are_counted_each_by_itself);
    tcase_add_test(c, areas_are_what_classes_tell_apart);
    tcase_add_test(c, explain_predicts_the_peak_and_names_every_kernel);
    tcase_add_test(c, explain_prints_schedule_and_graph);
    tcase_add_test(c, bench_measures_and_leaves_no_run_folder);
    return suite_run();
}
