/*
 * check_fold_networks.c - predictions and scores by the networks of a cross-validation, through the
 * program itself.
 */
#include <config.h>

#include "base/file/json.h"
#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"
#include "data/volume/volume.h"
#include "support/run/run_json.h"
#include "support/run/run_pons.h"
#include "support/run/written_run.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

static const char folds_ini[] =
    "[experiment]\nname = a\n[data]\nsource = heads\n[preprocess]\nsteps = normalize\n"
    "[patch]\nextent = 16\n[model]\nplugin = unet\nchannels = 4 8\nstrides = 2\n"
    "[loss]\nplugin = dice_ce\n[optimizer]\nplugin = adam\nlr = 1e-2\n"
    "[train]\nsteps = 6\nprecision = fp32\n[window]\nmirror = 0 1\n"
    "[distribute]\ndevices = cpu\nthreads = 1\n";

#define IMAGE "heads/imagesTr/phantom_002.nii.gz"

/* Train two folds of four cases. */
static void train_folds(void)
{
    make_root();
    write_text("a.ini", folds_ini);
    EXPECT(0, NULL, "data", "phantom", "-o", "heads", "--cases", "4", "--extent", "20,18,16");
    EXPECT(0, NULL, "train", "a.ini", "--folds", "2");
}

static volume read_values(const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;

    memset(&v, 0, sizeof v);
    ck_assert_msg(nifti_read_image(in_root(name), &v, NULL, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(v.type, PONS_F32);
    return v;
}

/* ---- predict --------------------------------------------------------------------------------- */

/*
 * The program adds halves in float, so the tolerance is a rounding of numbers below 1. The phantom
 * has the network's grid, and nothing is interpolated.
 */
START_TEST(probabilities_of_folds_are_averaged)
{
    volume fold[2], all;

    EXPECT(0, NULL, "predict", "runs/a", IMAGE, "-o", "all.nii.gz", "--probabilities");
    EXPECT(0, NULL, "predict", "runs/a", IMAGE, "-o", "f0.nii.gz", "--probabilities", "--fold",
           "0");
    EXPECT(0, NULL, "predict", "runs/a/fold_1", IMAGE, "-o", "f1.nii.gz", "--probabilities");
    all = read_values("all_probabilities.nii.gz");
    fold[0] = read_values("f0_probabilities.nii.gz");
    fold[1] = read_values("f1_probabilities.nii.gz");
    const float *a = all.voxels, *x = fold[0].voxels, *y = fold[1].voxels;
    double apart = 0;

    for (int64_t i = 0; i < pons_volume_count(&all) * all.channels; i++) {
        ck_assert(fabs(a[i] - ((double)x[i] + y[i]) / 2) < 1e-6);
        apart = fmax(apart, fabs((double)x[i] - y[i]));
    }
    ck_assert_msg(apart > 1e-3, "the networks are the same");
    pons_volume_clear(&all);
    pons_volume_clear(&fold[0]);
    pons_volume_clear(&fold[1]);
}
END_TEST

/* Interrupt fold 2 of run b after its first checkpoint. */
static void interrupt_fold(void)
{
    pid_t child = START("train", "a.ini", "--folds", "3", "--fold", "2", "--set",
                        "experiment.name=b", "--set", "train.steps=100000");

    while (!root_has("runs/b/fold_2/checkpoints/last") && kill(child, 0) == 0)
        usleep(10000);
    kill(child, SIGTERM);
    ck_assert_int_eq(process_finish(child), 75);
}

START_TEST(missing_and_unfinished_folds_are_named)
{
    EXPECT(2, "--fold 0: 'runs/a/fold_1' holds no folds", "predict", "runs/a/fold_1", IMAGE, "-o",
           "o.nii.gz", "--fold", "0");
    EXPECT(3, "--fold 4: 'runs/a/fold_4' is not there", "predict", "runs/a", IMAGE, "-o",
           "o.nii.gz", "--fold", "4");
    EXPECT(0, NULL, "train", "a.ini", "--folds", "3", "--fold", "1", "--set", "experiment.name=b");
    EXPECT(0, "'runs/b' lacks fold 0 (not there), fold 2 (not there): 1 of 3 folds are used",
           "predict", "runs/b", IMAGE, "-o", "o.nii.gz");
    interrupt_fold();
    EXPECT(0, "'runs/b' lacks fold 0 (not there), fold 2 (not finished): 1 of 3 folds are used",
           "predict", "runs/b", IMAGE, "-o", "o.nii.gz");
    EXPECT(0, NULL, "predict", "runs/b", IMAGE, "-o", "o.nii.gz", "--fold", "2");
    ck_assert_int_eq(rename(in_root("runs/a/fold_0"), in_root("runs/b/fold_0")), 0);
    EXPECT(3, "'runs/b/fold_1' is of 3 folds, the folds before it are of 2", "predict", "runs/b",
           IMAGE, "-o", "o.nii.gz");
    ck_assert_int_eq(rename(in_root("runs/b/fold_2"), in_root("runs/b/other")), 0);
    ck_assert_int_eq(rename(in_root("runs/b/fold_0"), in_root("runs/b/fold_2")), 0);
    EXPECT(3, "'runs/b/fold_2' was trained with [data] validation = fold:0/2, fold = first, "
           "expected fold:2/N, or nnunet and fold 2", "predict", "runs/b", IMAGE, "-o", "o.nii.gz");
}
END_TEST

/* ---- uncertainty ----------------------------------------------------------------------------- */

/* True if the two files have the same bytes. */
static bool same_files(const char *a, const char *b)
{
    char command[512];

    snprintf(command, sizeof command, "cmp -s '%s' '%s'", in_root(a), in_root(b));
    return system(command) == 0;
}

static double plain_entropy(double p)
{
    return p > 0 ? -p * log(p) : 0;
}

/*
 * Compare NAME_entropy and NAME_variance with those of samples [count]. With 'regions' channels are
 * independent. Probabilities and their sums are floats, so numbers near 1 differ by their rounding.
 */
static void expect_uncertainty(const char *name, int count, const volume *sample, bool regions)
{
    char file[2][64];
    double largest = 0;
    volume entropy, variance;
    int channels = sample[0].channels;

    snprintf(file[0], sizeof file[0], "%s_entropy.nii.gz", name);
    snprintf(file[1], sizeof file[1], "%s_variance.nii.gz", name);
    entropy = read_values(file[0]);
    variance = read_values(file[1]);
    ck_assert_int_eq(entropy.channels, 1);
    ck_assert_int_eq(variance.channels, 1);
    ck_assert(pons_volume_count(&entropy) == pons_volume_count(&sample[0]));
    for (int64_t i = 0; i < pons_volume_count(&entropy); i++) {
        double expected = 0, spread = 0;

        for (int c = 0; c < channels; c++) {
            double mean = 0, squares = 0;

            for (int n = 0; n < count; n++)
                mean += (double)((const float *)sample[n].voxels)[i * channels + c] / count;
            for (int n = 0; n < count; n++) {
                double p = (double)((const float *)sample[n].voxels)[i * channels + c];
                squares += (p - mean) * (p - mean) / count;
            }
            expected += plain_entropy(mean);
            expected += regions ? plain_entropy(1 - mean) : 0;
            spread += squares / channels;
        }
        expected /= regions ? channels : 1;
        ck_assert_msg(fabs(((const float *)entropy.voxels)[i] - expected) < 1e-5,
                      "entropy %g, expected %g", (double)((const float *)entropy.voxels)[i],
                      expected);
        ck_assert_msg(fabs(((const float *)variance.voxels)[i] - spread) < 1e-6,
                      "variance %g, expected %g", (double)((const float *)variance.voxels)[i],
                      spread);
        largest = fmax(largest, spread);
    }
    ck_assert_msg(largest > 1e-5, "the samples are the same");
    pons_volume_clear(&entropy);
    pons_volume_clear(&variance);
}

static void expect_uncertainty_of_folds(const char *run, int folds, bool regions)
{
    volume sample[3];
    char number[16];

    EXPECT(0, NULL, "predict", run, IMAGE, "-o", "all.nii.gz");
    EXPECT(0, NULL, "predict", run, IMAGE, "-o", "u.nii.gz", "--uncertainty");
    ck_assert(same_files("all.nii.gz", "u.nii.gz"));
    for (int fold = 0; fold < folds; fold++) {
        snprintf(number, sizeof number, "%d", fold);
        EXPECT(0, NULL, "predict", run, IMAGE, "-o", "f.nii.gz", "--probabilities", "--fold",
               number);
        sample[fold] = read_values("f_probabilities.nii.gz");
    }
    expect_uncertainty("u", folds, sample, regions);
    for (int fold = 0; fold < folds; fold++)
        pons_volume_clear(&sample[fold]);
}

START_TEST(uncertainty_over_folds_is_that_of_their_probabilities)
{
    EXPECT(0, NULL, "train", "a.ini", "--folds", "3", "--set", "experiment.name=b");
    EXPECT(0, NULL, "train", "a.ini", "--folds", "2", "--set", "experiment.name=c", "--set",
           "data.regions=some:1 all:1", "--set", "loss.plugin=dice");
    expect_uncertainty_of_folds("runs/a", 2, false);
    expect_uncertainty_of_folds("runs/b", 3, false);
    expect_uncertainty_of_folds("runs/c", 2, true);
}
END_TEST

/* Flip a volume along the axes of 'flip' in place. */
static void flip_volume(volume *v, unsigned flip)
{
    pons_error err = PONS_ERROR_INIT;
    volume from;

    memset(&from, 0, sizeof from);
    ck_assert_int_eq(volume_copy(v, &from, &err), PONS_OK);
    for (int64_t i = 0; i < v->extent[0]; i++)
        for (int64_t j = 0; j < v->extent[1]; j++)
            for (int64_t k = 0; k < v->extent[2]; k++) {
                int64_t a = flip & 1 ? v->extent[0] - 1 - i : i;
                int64_t b = flip & 2 ? v->extent[1] - 1 - j : j;
                int64_t to = (i * v->extent[1] + j) * v->extent[2] + k;
                int64_t at = (a * v->extent[1] + b) * v->extent[2] + k;

                memcpy((float *)v->voxels + to * v->channels,
                       (const float *)from.voxels + at * v->channels,
                       (size_t)v->channels * sizeof(float));
            }
    pons_volume_clear(&from);
}

/* Windows lie symmetrically in the image, so flipped windows are those of a flipped image. */
START_TEST(uncertainty_of_one_network_is_that_of_flipped_images)
{
    pons_error err = PONS_ERROR_INIT;
    volume_facts facts;
    volume image, sample[4];

    EXPECT(0, NULL, "predict", "runs/a/fold_0", IMAGE, "-o", "all.nii.gz");
    EXPECT(0, NULL, "predict", "runs/a/fold_0", IMAGE, "-o", "u.nii.gz", "--uncertainty");
    ck_assert(same_files("all.nii.gz", "u.nii.gz"));
    for (unsigned flip = 0; flip < 4; flip++) {
        memset(&image, 0, sizeof image);
        ck_assert_int_eq(nifti_read_image(in_root(IMAGE), &image, &facts, &err), PONS_OK);
        flip_volume(&image, flip);
        ck_assert_int_eq(nifti_write(in_root("flipped.nii.gz"), &image, &facts.grid, &err),
                         PONS_OK);
        pons_volume_clear(&image);
        EXPECT(0, NULL, "predict", "runs/a/fold_0", "flipped.nii.gz", "-o", "f.nii.gz",
               "--probabilities", "--set", "window.mirror=");
        sample[flip] = read_values("f_probabilities.nii.gz");
        flip_volume(&sample[flip], flip);
    }
    expect_uncertainty("u", 4, sample, false);
    for (int n = 0; n < 4; n++)
        pons_volume_clear(&sample[n]);
    EXPECT(3, "--uncertainty compares networks, folds or flipped windows, found one network",
           "predict", "runs/a/fold_0", IMAGE, "-o", "u.nii.gz", "--uncertainty", "--set",
           "window.mirror=");
}
END_TEST

/* ---- evaluate -------------------------------------------------------------------------------- */

static double json_number(const json_t *v, const char *path)
{
    const json_t *found = json_at(v, path);

    ck_assert_msg(json_is_number(found), "no number '%s'", path);
    return json_number_value(found);
}

/* The summary of a fold's own run, whose cases are those that its training did not see. */
static double dice_of_fold(int fold, const json_t *all)
{
    char run[32], path[64];
    json_t *own;
    double mean;

    snprintf(run, sizeof run, "runs/a/fold_%d", fold);
    EXPECT(0, NULL, "evaluate", "--run", run, "--json");
    own = root_json("out");
    ck_assert_int_eq((int)json_array_size(json_at(own, "cases")), 2);
    for (int n = 0; n < 2; n++) {
        snprintf(path, sizeof path, "cases/%d", 2 * fold + n);
        const json_t *ours = json_at(all, path);
        snprintf(path, sizeof path, "cases/%d", n);
        ck_assert(json_equal(json_at(own, path), ours));
        snprintf(path, sizeof path, "folds/%d/cases/%d", fold, n);
        ck_assert_str_eq(json_string_value(json_at(all, path)),
                         json_string_value(json_at(ours, "case")));
    }
    mean = json_number(own, "summary/brain/dice/mean");
    snprintf(path, sizeof path, "folds/%d/mean/brain/dice", fold);
    ck_assert(json_number(all, path) == mean);
    json_decref(own);
    return mean;
}

/* The numbers have nine digits. */
START_TEST(each_case_is_scored_by_the_fold_that_holds_it_out)
{
    double a, b, sum;
    json_t *all;

    EXPECT(0, NULL, "evaluate", "--run", "runs/a", "--json", "--csv", "a.csv");
    all = root_json("out");
    ck_assert_int_eq((int)json_array_size(json_at(all, "cases")), 4);
    a = dice_of_fold(0, all);
    b = dice_of_fold(1, all);
    sum = a + b;
    ck_assert(a != b);
    ck_assert(fabs(json_number(all, "over_folds/brain/dice/mean") - sum / 2) < 1e-8);
    ck_assert(fabs(json_number(all, "over_folds/brain/dice/sd") - fabs(a - b) / sqrt(2)) < 1e-8);
    ck_assert(fabs(json_number(all, "summary/brain/dice/mean") - sum / 2) < 1e-8);
    json_decref(all);
    ck_assert(strstr(root_text("a.csv"), ",label_voxels,fold\n") != NULL);
    ck_assert(strstr(root_text("a.csv"), ",1\n") != NULL);
    EXPECT(0, NULL, "evaluate", "--run", "runs/a");
    ck_assert(strstr(root_text("out"), "\nfold 1 ") != NULL);
    ck_assert(strstr(root_text("out"), "\nfolds sd ") != NULL);
}
END_TEST

START_TEST(folds_that_share_a_case_are_refused)
{
    EXPECT(0, NULL, "train", "a.ini", "--folds", "2", "--fold", "1", "--fresh", "--set",
           "experiment.seed=3");
    EXPECT(3, "is held out by fold 0 and fold 1, expected one", "evaluate", "--run", "runs/a");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("fold_networks");

    tcase_add_checked_fixture(c, train_folds, remove_root);
    pons_program();
    tcase_add_test(c, probabilities_of_folds_are_averaged);
    tcase_add_test(c, missing_and_unfinished_folds_are_named);
    tcase_add_test(c, uncertainty_over_folds_is_that_of_their_probabilities);
    tcase_add_test(c, uncertainty_of_one_network_is_that_of_flipped_images);
    tcase_add_test(c, each_case_is_scored_by_the_fold_that_holds_it_out);
    tcase_add_test(c, folds_that_share_a_case_are_refused);
    return suite_run();
}
