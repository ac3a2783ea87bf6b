/*
 * check_embed.c - pons/predict.h and pons/train.h: bits of the command line, errors, cancelling,
 * and predictors on several threads.
 */
#include <config.h>

#include <pons/pons.h>

#include "base/file/file.h"
#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"
#include "data/volume/volume.h"

#include "support/process/decimal_comma.h"
#include "support/run/tiny_run.h"
#include "support/suite.h"

#include <math.h>
#include <pthread.h>

/* ---- a run ----------------------------------------------------------------------------------- */

/* Counts and values that the callbacks of a training received. */
typedef struct seen {
    int steps, validations, lines, stop_after;
    double loss, dice;
} seen;

static double metric_of(const pons_record *record, const char *name)
{
    for (int i = 0; i < record->count; i++)
        if (strcmp(record->metric[i].name, name) == 0)
            return record->metric[i].value;
    ck_abort_msg("a %s has no '%s'", record->kind, name);
    return NAN;
}

static void note_record(void *context, const pons_record *record)
{
    seen *s = context;
    bool step = strcmp(record->kind, "step") == 0;

    s->steps += step;
    s->validations += !step;
    if (step)
        s->loss = metric_of(record, "loss");
    else
        s->dice = metric_of(record, "dice.mean");
}

static bool enough_steps(void *context)
{
    const seen *s = context;

    return s->stop_after > 0 && s->steps >= s->stop_after;
}

static void note_line(void *context, const char *line)
{
    seen *s = context;

    s->lines++;
    ck_assert_ptr_null(strchr(line, '\n'));
}

/* Train e.ini with [experiment] name and the values of 'set'. */
static pons_status train(const char *name, seen *s, int count, const char *const *set,
                         pons_error *err)
{
    char named[64], output[128];
    const char *all[8] = { named, output };
    pons_training t = { .size = sizeof t, .file = in_root("e.ini"), .set_count = 2 + count,
                        .set = all, .record = note_record, .stop = enough_steps,
                        .line = note_line, .context = s };

    snprintf(named, sizeof named, "experiment.name=%s", name);
    snprintf(output, sizeof output, "experiment.output=%s", in_root("runs"));
    for (int i = 0; i < count; i++)
        all[2 + i] = set[i];
    return pons_train(&t, err);
}

#define FEW "train.steps=7"

/* A dataset, and a run of a few steps by the command, for all tests. */
static void make_run(void)
{
    make_tiny_run();
    EXPECT(0, NULL, "train", "e.ini", "--set", "experiment.name=few", "--set", FEW);
}

static const char *image_path(void)
{
    return in_root("data/imagesTr/phantom_000.nii.gz");
}

static volume read_image(const char *path, volume_facts *facts)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;

    memset(&v, 0, sizeof v);
    ck_assert_msg(nifti_read_image(path, &v, facts, &err) == PONS_OK, "%s", err.text);
    return v;
}

static pons_predictor *open_named(const char *run)
{
    pons_error err = PONS_ERROR_INIT;
    pons_predictor_settings s = { .size = sizeof s, .run = in_root(run) };
    pons_predictor *p = NULL;

    ck_assert_msg(pons_predictor_open(&s, &p, &err) == PONS_OK, "%s", err.text);
    return p;
}

static pons_predictor *open_run(void)
{
    return open_named("runs/few");
}

static pons_prediction *predict_image(pons_predictor *p, const pons_image *image, const char *file)
{
    pons_error err = PONS_ERROR_INIT;
    pons_predict_request q = { .size = sizeof q, .image = image, .file_count = 1, .file = &file,
                               .probabilities = true };
    pons_prediction *r = NULL;

    ck_assert_msg(pons_predictor_run(p, &q, &r, &err) == PONS_OK, "%s", err.text);
    return r;
}

static pons_prediction *predict(pons_predictor *p, const pons_image *image)
{
    return predict_image(p, image, image_path());
}

static pons_image image_of(const volume *v)
{
    pons_image image = { .size = sizeof image, .type = PONS_VOXEL_F32, .channels = v->channels,
                         .voxels = v->voxels };

    memcpy(image.extent, v->extent, sizeof image.extent);
    memcpy(image.affine, v->affine, sizeof image.affine);
    return image;
}

static void expect_same(const pons_volume *a, const pons_volume *b)
{
    ck_assert_ptr_nonnull(a);
    ck_assert_ptr_nonnull(b);
    ck_assert_int_eq((int)pons_volume_size(a), (int)pons_volume_size(b));
    ck_assert_mem_eq(a->voxels, b->voxels, pons_volume_size(a));
    ck_assert_mem_eq(a->affine, b->affine, sizeof a->affine);
    ck_assert_mem_eq(a->extent, b->extent, sizeof a->extent);
}

static void expect_same_results(const pons_prediction *a, const pons_prediction *b)
{
    expect_same(pons_prediction_volume(a, PONS_RESULT_CLASSES),
                pons_prediction_volume(b, PONS_RESULT_CLASSES));
    expect_same(pons_prediction_volume(a, PONS_RESULT_PROBABILITIES),
                pons_prediction_volume(b, PONS_RESULT_PROBABILITIES));
}

/* ---- train ----------------------------------------------------------------------------------- */

START_TEST(a_training_in_a_program_has_the_bits_of_the_command)
{
    pons_error err = PONS_ERROR_INIT;
    seen s = { .steps = 0 };

    ck_assert_msg(train("program", &s, 1, (const char *const[]){ FEW }, &err) == PONS_OK, "%s",
                  err.text);
    ck_assert_int_eq(s.steps, 7);
    ck_assert_int_eq(s.validations, 1);
    ck_assert_int_gt(s.lines, 3);
    ck_assert(isfinite(s.loss) && s.dice >= 0);
    ck_assert(same_runs("few", "program", TENSOR_FILES));
}
END_TEST

START_TEST(a_stopped_training_goes_on_to_the_same_bits)
{
    pons_error err = PONS_ERROR_INIT;
    seen s = { .stop_after = 3 };

    ck_assert_int_eq(train("parts", &s, 1, (const char *const[]){ FEW }, &err), PONS_INTERRUPTED);
    ck_assert_int_eq(s.steps, 3);
    ck_assert_int_eq((int)run_newest_checkpoint("parts"), 3);
    s.stop_after = 0;
    ck_assert_msg(train("parts", &s, 1, (const char *const[]){ FEW }, &err) == PONS_OK, "%s",
                  err.text);
    ck_assert_int_eq(s.steps, 7);
    ck_assert(same_runs("few", "parts", TENSOR_FILES));
}
END_TEST

/*
 * Expect a file of both runs to be the same and to have a decimal point, but for their names and
 * for all that a clock or a meter says.
 */
static void expect_same_file(const char *file)
{
    char command[512];

    snprintf(command, sizeof command, "cd %s/runs && for run in comma point; do sed \""
             "s/\\<$run\\>/RUN/g; /^; run \\|^; sha256 /d; "
             "s/\\\"[a-z_]*\\(seconds\\|memory\\)\\\":[0-9.e+-]*//g\" $run/%s >$run.steady; done "
             "&& diff comma.steady point.steady && grep -q '[0-9][.][0-9]' point.steady",
             root, file);
    ck_assert_msg(system(command) == 0, "%s", file);
}

static void train_with_sinks(const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    seen s = { .steps = 0 };

    ck_assert_msg(train(name, &s, 2, (const char *const[]){ FEW, "log.sinks=csv sink_prints" },
                        &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(s.steps, 7);
}

START_TEST(a_decimal_comma_changes_no_file)
{
    static const char *const files[] = { "resolved.ini", "metrics.jsonl", "validation/cases.csv" };

    add_plugin("sink", "sink_prints");
    search_first(in_root("plugins"));
    if (!decimal_comma_begin("a_decimal_comma_changes_no_file"))
        return;
    train_with_sinks("comma");
    decimal_comma_end();
    train_with_sinks("point");
    ck_assert(same_runs("comma", "point", TENSOR_FILES));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        expect_same_file(files[i]);
    ck_assert_ptr_nonnull(strstr(root_text("runs/comma/printed.txt"), "close 0.5"));
    ck_assert_ptr_null(strchr(root_text("runs/comma/printed.txt"), ','));
}
END_TEST

START_TEST(values_from_memory_train_without_a_file)
{
    char source[128], output[128];
    const char *set[] = {
        "experiment.name=memory", source, output, "data.validation=last:1", "patch.extent=8 8 8",
        "model.plugin=unet", "model.channels=4 8", "model.strides=2", "loss.plugin=dice_ce",
        "optimizer.plugin=adam", "optimizer.lr=1e-2", "train.steps=2", "train.precision=fp32"
    };
    pons_error err = PONS_ERROR_INIT;
    pons_training t = { .size = sizeof t, .set_count = sizeof set / sizeof *set, .set = set };

    snprintf(source, sizeof source, "data.source=%s", in_root("data"));
    snprintf(output, sizeof output, "experiment.output=%s", in_root("runs"));
    ck_assert_msg(pons_train(&t, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq((int)run_newest_checkpoint("memory"), 2);
}
END_TEST

START_TEST(errors_of_a_training_name_the_value)
{
    pons_error err = PONS_ERROR_INIT;
    seen s = { .steps = 0 };
    pons_training empty = { .file = "none" };

    ck_assert_int_eq(train("bad", &s, 1, (const char *const[]){ "model.channel=4 8" }, &err),
                     PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "channel") != NULL, "%s", err.text);
    ck_assert_int_eq(train("bad", &s, 1, (const char *const[]){ "distribute.mode=ddp" }, &err),
                     PONS_CONFIG);
    ck_assert_msg(strstr(err.text, "mode = ddp") != NULL, "%s", err.text);
    ck_assert_int_eq(pons_train(&empty, &err), PONS_USAGE);
    ck_assert_int_eq(s.steps, 0);
}
END_TEST

/* ---- predict --------------------------------------------------------------------------------- */

START_TEST(memory_equals_file_equals_command)
{
    volume_facts facts;
    pons_error err = PONS_ERROR_INIT;
    volume label, probabilities, v = read_image(image_path(), &facts);
    pons_image image = image_of(&v);
    pons_predictor *p = open_run();
    pons_prediction *file = predict(p, NULL), *memory = predict(p, &image);
    expect_same_results(file, memory);

    EXPECT(0, NULL, "predict", "runs/few", image_path(), "-o", "o.nii.gz", "--probabilities");
    memset(&label, 0, sizeof label);
    memset(&probabilities, 0, sizeof probabilities);
    ck_assert_int_eq(nifti_read_label(in_root("o.nii.gz"), &label, &facts, &err), PONS_OK);
    ck_assert_int_eq(nifti_read_image(in_root("o_probabilities.nii.gz"), &probabilities, NULL,
                                      &err), PONS_OK);
    const pons_volume *found = pons_prediction_volume(memory, PONS_RESULT_PROBABILITIES);
    ck_assert_mem_eq(found->voxels, probabilities.voxels, pons_volume_size(found));
    found = pons_prediction_volume(memory, PONS_RESULT_CLASSES);
    for (int64_t i = 0; i < pons_volume_count(found); i++) {
        int id;
        ck_assert_ptr_nonnull(pons_predictor_class(p, ((const uint8_t *)found->voxels)[i], &id));
        ck_assert_int_eq(id, ((const int32_t *)label.voxels)[i]);
    }
    ck_assert_ptr_null(pons_prediction_volume(memory, PONS_RESULT_LOGITS));
    ck_assert_int_eq(pons_predictor_classes(p), 2);
    ck_assert_int_eq(pons_predictor_channels(p), 1);
    ck_assert(!pons_predictor_has_regions(p));
    ck_assert_ptr_null(pons_predictor_class(p, 2, NULL));
    pons_prediction_free(file);
    pons_prediction_free(memory);
    pons_predictor_close(p);
    pons_volume_clear(&v);
    pons_volume_clear(&label);
    pons_volume_clear(&probabilities);
}
END_TEST

/* Two folds, whose plans resample and whose probabilities are averaged. */
START_TEST(a_folder_of_nnunet_predicts_from_memory)
{
    char *file = strdup(golden_path("nnunet/models/images/plain_0_0000.nii.gz"));
    const char *set[] = { "window.mirror=" };
    pons_predictor_settings s = { .size = sizeof s, .run = golden_path("nnunet/models/plain"),
                                  .set_count = 1, .set = set };
    pons_error err = PONS_ERROR_INIT;
    pons_predictor *p = NULL;
    volume v = read_image(file, NULL);
    pons_image image = image_of(&v);

    ck_assert_msg(pons_predictor_open(&s, &p, &err) == PONS_OK, "%s", err.text);
    pons_prediction *from_file = predict_image(p, NULL, file);
    pons_prediction *from_memory = predict_image(p, &image, NULL);
    expect_same_results(from_file, from_memory);
    ck_assert_int_eq(pons_predictor_classes(p), 3);
    ck_assert_str_eq(pons_predictor_class(p, 2, NULL), "lesion");
    pons_prediction_free(from_file);
    pons_prediction_free(from_memory);
    for (int n = 0; n < 9; n++)
        image.affine[n / 3][n % 3] *= 1e-9;
    pons_predict_request tiny = { .size = sizeof tiny, .image = &image };
    ck_assert_int_eq(pons_predictor_run(p, &tiny, &from_file, &err), PONS_DATA);
    ck_assert_msg(strstr(err.text, "gives 0 voxels") != NULL, "%s", err.text);
    pons_predictor_close(p);
    pons_volume_clear(&v);
    free(file);
}
END_TEST

/* The plans have a spacing of 1.2 mm. */
START_TEST(a_decimal_comma_opens_a_folder_of_nnunet)
{
    pons_predictor_settings s = { .size = sizeof s, .run = golden_path("nnunet/models/residual") };
    pons_error err = PONS_ERROR_INIT;
    pons_predictor *p = NULL;

    if (!decimal_comma_begin("a_decimal_comma_opens_a_folder_of_nnunet"))
        return;
    ck_assert_msg(pons_predictor_open(&s, &p, &err) == PONS_OK, "%s", err.text);
    decimal_comma_end();
    pons_predictor_close(p);
}
END_TEST

/* Train with values alone: those of 'set' and the folder of runs. */
static void train_values(int count, const char *const *set)
{
    pons_error err = PONS_ERROR_INIT;
    char output[128];
    const char *all[24] = { output };
    pons_training t = { .size = sizeof t, .set_count = 1 + count, .set = all };

    snprintf(output, sizeof output, "experiment.output=%s", in_root("runs"));
    for (int i = 0; i < count; i++)
        all[1 + i] = set[i];
    ck_assert_msg(pons_train(&t, &err) == PONS_OK, "%s", err.text);
}

#define TRAIN(...) do {                                                                           \
        const char *const set_[] = { __VA_ARGS__ };                                               \
        train_values((int)(sizeof set_ / sizeof *set_), set_);                                    \
    } while (0)

START_TEST(a_synthesis_makes_the_image_of_the_command)
{
    char source[128];
    volume_facts facts;
    pons_error err = PONS_ERROR_INIT;
    pons_prediction *r = NULL;

    EXPECT(0, NULL, "data", "phantom", "-o", "heads", "--cases", "2", "--extent", "9,8,10",
           "--channels", "3");
    snprintf(source, sizeof source, "data.source=%s", in_root("heads"));
    TRAIN("experiment.name=made", "experiment.task=synthesis", source, "data.validation=none",
          "preprocess.steps=", "patch.extent=8", "model.plugin=fast_ddpm", "model.ch=4",
          "model.ch_mult=1 2", "model.num_res_blocks=1", "loss.plugin=mse", "optimizer.plugin=adam",
          "optimizer.lr=1e-3", "train.steps=1", "train.precision=fp32");
    const char *file = in_root("heads/imagesTr/phantom_001.nii.gz");
    volume v = read_image(file, &facts), made;
    pons_image image = image_of(&v);
    pons_predictor *p = open_named("runs/made");
    pons_predict_request q = { .size = sizeof q, .image = &image, .target = 1,
                               .name = "phantom_001" };
    ck_assert_msg(pons_predictor_run(p, &q, &r, &err) == PONS_OK, "%s", err.text);
    EXPECT(0, NULL, "predict", "runs/made", file, "-o", "made.nii.gz", "--target", "contrast1");
    memset(&made, 0, sizeof made);
    ck_assert_int_eq(nifti_read_image(in_root("made.nii.gz"), &made, &facts, &err), PONS_OK);
    const pons_volume *found = pons_prediction_volume(r, PONS_RESULT_IMAGE);
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq((int)pons_volume_size(found), (int)pons_volume_size(&made));
    ck_assert_mem_eq(found->voxels, made.voxels, pons_volume_size(found));
    ck_assert_ptr_null(pons_prediction_volume(r, PONS_RESULT_CLASSES));
    ck_assert_int_eq(pons_predictor_channels(p), 3);
    pons_prediction_free(r);
    r = NULL;
    q.target = 3;
    ck_assert_int_eq(pons_predictor_run(p, &q, &r, &err), PONS_CONFIG);
    ck_assert_ptr_null(r);
    pons_predictor_close(p);
    pons_volume_clear(&v);
    pons_volume_clear(&made);
}
END_TEST

static void note_share(void *context, double share)
{
    double *last = context;

    ck_assert_double_ge(share, *last);
    *last = share;
}

/* The file of the image is one of NIfTI; memory holds the bytes of its voxels. */
START_TEST(a_classification_gives_a_voxel_of_probabilities)
{
    enum { ROWS = 6, COLUMNS = 5, CLASSES = 4 };
    uint8_t bytes[ROWS * COLUMNS] = { 0 };
    char source[128], command[512];
    volume v, pixels = { .type = PONS_U8, .channels = 1, .extent = { 1, ROWS, COLUMNS },
                         .affine = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } },
                         .voxels = bytes };
    pons_error err = PONS_ERROR_INIT;
    double sum = 0, share = 0;

    snprintf(command, sizeof command, "mkdir -p %s && . %s/tests/support/idx.sh && "
             "idx_stack %s/train 8 1 %d %d %d", in_root("rows"),
             getenv("srcdir") != NULL ? getenv("srcdir") : ".", in_root("rows"), CLASSES, ROWS,
             COLUMNS);
    ck_assert_int_eq(system(command), 0);
    snprintf(source, sizeof source, "data.source=%s", in_root("rows"));
    TRAIN("experiment.name=rows", "experiment.task=classification", source, "data.validation=none",
          "preprocess.steps=", "patch.extent=1 6 5", "model.plugin=mlp", "model.hidden=8",
          "loss.plugin=cross_entropy", "optimizer.plugin=adam", "optimizer.lr=1e-3",
          "train.steps=2", "train.precision=fp32");
    for (int column = 0; column < COLUMNS; column++)
        bytes[2 * COLUMNS + column] = (uint8_t)(100 + column);
    const char *file = in_root("row.nii.gz");
    ck_assert_int_eq(nifti_write_as(file, &pixels, NULL, 2, &err), PONS_OK);
    v = read_image(file, NULL);
    pons_image image = image_of(&v);
    image.type = PONS_VOXEL_U8;
    image.voxels = bytes;
    pons_predictor *p = open_named("runs/rows");
    pons_prediction *from_file = predict_image(p, NULL, file);
    pons_predict_request q = { .size = sizeof q, .image = &image, .probabilities = true,
                               .progress = note_share, .context = &share };
    pons_prediction *from_memory = NULL;
    ck_assert_msg(pons_predictor_run(p, &q, &from_memory, &err) == PONS_OK, "%s", err.text);
    ck_assert_double_eq(share, 1);
    const pons_volume *found = pons_prediction_volume(from_memory, PONS_RESULT_PROBABILITIES);
    expect_same(pons_prediction_volume(from_file, PONS_RESULT_PROBABILITIES), found);
    ck_assert_int_eq((int)pons_volume_count(found), 1);
    ck_assert_int_eq(found->channels, CLASSES);
    for (int c = 0; c < CLASSES; c++)
        sum += ((const float *)found->voxels)[c];
    ck_assert_double_eq_tol(sum, 1, 1e-6);
    ck_assert_str_eq(pons_predictor_class(p, 3, NULL), "3");
    pons_prediction_free(from_file);
    pons_prediction_free(from_memory);
    pons_predictor_close(p);
    pons_volume_clear(&v);
}
END_TEST

/* The same whole numbers in every type and order have the same bits. */
START_TEST(types_and_strides_do_not_change_the_bits)
{
    enum { D = 9, H = 8, W = 10, COUNT = D * H * W };
    static float real[COUNT];
    static int16_t turned[COUNT];
    static uint8_t bytes[COUNT];
    static double wide[COUNT];
    pons_image image = { .size = sizeof image, .type = PONS_VOXEL_F32, .channels = 1,
                         .extent = { D, H, W },
                         .affine = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } },
                         .voxels = real };

    for (int n = 0; n < COUNT; n++) {
        int i = n / W / H, j = n / W % H, k = n % W;
        int value = (n * 37 + i * j * k) % 251;
        real[n] = (float)value;
        bytes[n] = (uint8_t)value;
        wide[COUNT - 1 - n] = value;
        turned[(k * H + j) * D + i] = (int16_t)value;
    }
    pons_predictor *p = open_run();
    pons_prediction *expected = predict(p, &image), *found;

    image.type = PONS_VOXEL_U8;
    image.voxels = bytes;
    found = predict(p, &image);
    expect_same_results(expected, found);
    pons_prediction_free(found);

    image.type = PONS_VOXEL_I16; /* i fastest, as a file of NIfTI is */
    image.voxels = turned;
    memcpy(image.stride, (int64_t[]){ 2, 2 * D, 2 * D * H, 2 }, sizeof image.stride);
    found = predict(p, &image);
    expect_same_results(expected, found);
    pons_prediction_free(found);

    image.type = PONS_VOXEL_F64; /* backwards */
    image.voxels = wide + COUNT - 1;
    memcpy(image.stride, (int64_t[]){ -8 * H * W, -8 * W, -8, 8 }, sizeof image.stride);
    found = predict(p, &image);
    expect_same_results(expected, found);
    pons_prediction_free(found);
    pons_prediction_free(expected);
    pons_predictor_close(p);
}
END_TEST

static bool stop_at_once(void *context)
{
    ++*(int *)context;
    return true;
}

START_TEST(a_stopped_prediction_leaves_a_usable_predictor)
{
    const char *file;
    pons_error err = PONS_ERROR_INIT;
    pons_prediction *r = NULL;
    double share = 0;
    int asked = 0;

    file = image_path();
    pons_predictor *p = open_run();
    pons_predict_request q = { .size = sizeof q, .file_count = 1, .file = &file,
                               .stop = stop_at_once, .context = &asked };
    ck_assert_int_eq(pons_predictor_run(p, &q, &r, &err), PONS_INTERRUPTED);
    ck_assert_int_eq(asked, 1);
    ck_assert_ptr_null(r);
    q.stop = NULL;
    q.progress = note_share;
    q.context = &share;
    ck_assert_msg(pons_predictor_run(p, &q, &r, &err) == PONS_OK, "%s", err.text);
    ck_assert_int_eq(err.status, PONS_OK);
    ck_assert_str_eq(err.text, "");
    ck_assert_double_eq(share, 1);
    pons_prediction_free(r);
    pons_predictor_close(p);
}
END_TEST

#define REFUSED(STATUS, PHRASE, CALL) do {                                                        \
        pons_error refused_ = PONS_ERROR_INIT;                                                    \
        pons_error *err = &refused_;                                                              \
        ck_assert_int_eq(CALL, STATUS);                                                           \
        ck_assert_msg(strstr(refused_.text, PHRASE) != NULL, "'%s' is not in: %s", PHRASE,        \
                      refused_.text);                                                             \
    } while (0)

START_TEST(errors_of_a_prediction_are_returned)
{
    float voxel[8] = { 0 };
    pons_image image = { .size = sizeof image, .type = PONS_VOXEL_F32, .channels = 1,
                         .extent = { 2, 2, 2 },
                         .affine = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } },
                         .voxels = voxel };
    const char *missing;
    pons_prediction *r = NULL;
    pons_predictor *none = NULL;

    missing = in_root("nothing.nii.gz");
    pons_predictor_settings s = { .size = sizeof s, .run = in_root("runs/absent") };
    REFUSED(PONS_CONFIG, "there is no run", pons_predictor_open(&s, &none, err));
    s.run = NULL;
    REFUSED(PONS_USAGE, "run is NULL", pons_predictor_open(&s, &none, err));
    s.size = 0;
    REFUSED(PONS_USAGE, "size is 0", pons_predictor_open(&s, &none, err));
    ck_assert_ptr_null(none);
    pons_predictor *p = open_run();
    pons_predict_request q = { .size = sizeof q, .name = "mine" };
    REFUSED(PONS_USAGE, "neither", pons_predictor_run(p, &q, &r, err));
    q.file_count = 1;
    q.file = &missing;
    REFUSED(PONS_DATA, "nothing.nii.gz", pons_predictor_run(p, &q, &r, err));
    q.image = &image;
    voxel[5] = NAN;
    REFUSED(PONS_DATA, "case 'mine': voxel 1 0 1 is nan", pons_predictor_run(p, &q, &r, err));
    voxel[5] = 0;
    image.affine[0][0] = 0;
    REFUSED(PONS_DATA, "no inverse", pons_predictor_run(p, &q, &r, err));
    image.affine[0][0] = 1;
    image.channels = 2;
    image.extent[0] = 1;
    REFUSED(PONS_DATA, "2 channels", pons_predictor_run(p, &q, &r, err));
    image.type = (pons_voxel_type)99;
    REFUSED(PONS_DATA, "type 99", pons_predictor_run(p, &q, &r, err));
    image.type = PONS_VOXEL_F32;
    image.channels = 1;
    q.uncertainty = true;
    REFUSED(PONS_CONFIG, "uncertainty", pons_predictor_run(p, &q, &r, err));
    image.size = 0;
    REFUSED(PONS_USAGE, "pons_image.size is 0", pons_predictor_run(p, &q, &r, err));
    ck_assert_ptr_null(r);
    pons_predictor_close(p);
    pons_predictor_close(NULL);
}
END_TEST

/* A struct of a later version works as long as the members that are new in it are zero. */
START_TEST(members_of_a_later_version_have_to_be_zero)
{
    struct { pons_predictor_settings known; int later; } s = {
        { .size = sizeof s, .run = in_root("runs/few") }, 0
    };
    pons_error err = PONS_ERROR_INIT;
    pons_predictor *p = NULL;

    ck_assert_msg(pons_predictor_open(&s.known, &p, &err) == PONS_OK, "%s", err.text);
    pons_predictor_close(p);
    p = NULL;
    s.later = 1;
    REFUSED(PONS_USAGE, "a later version", pons_predictor_open(&s.known, &p, err));
    ck_assert_ptr_null(p);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

static void *predict_on_thread(void *context)
{
    pons_predictor *p = open_run();
    pons_prediction **r = context;

    for (int n = 0; n < 3; n++)
        r[n] = predict(p, NULL);
    pons_predictor_close(p);
    return NULL;
}

START_TEST(predictors_on_threads_do_not_disturb_each_other)
{
    enum { THREADS = 2, TIMES = 3 };
    pthread_t thread[THREADS];
    pons_prediction *r[THREADS][TIMES];

    pons_predictor *p = open_run();
    pons_prediction *expected = predict(p, NULL);
    for (int t = 0; t < THREADS; t++)
        ck_assert_int_eq(pthread_create(&thread[t], NULL, predict_on_thread, r[t]), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    for (int t = 0; t < THREADS; t++)
        for (int n = 0; n < TIMES; n++) {
            expect_same_results(expected, r[t][n]);
            pons_prediction_free(r[t][n]);
        }
    pons_prediction_free(expected);
    pons_predictor_close(p);
}
END_TEST

/* A launcher's environment, which a command would join. */
START_TEST(the_environment_of_a_launcher_joins_nothing)
{
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "localhost", 1);
    setenv("MASTER_PORT", "1", 1);
    pons_predictor *p = open_run();
    pons_prediction_free(predict(p, NULL));
    pons_predictor_close(p);
    seen s = { .steps = 0 };
    pons_error err = PONS_ERROR_INIT;
    ck_assert_msg(train("launched", &s, 1, (const char *const[]){ "train.steps=1" }, &err)
                  == PONS_OK, "%s", err.text);
}
END_TEST

/* Signals, working folder and environment of the program stay as they were. */
START_TEST(the_process_stays_as_it_was)
{
    sigset_t before, after;
    struct sigaction pipe_before, pipe_after, term_before, term_after;
    char folder_before[4096], folder_after[4096];

    setenv("OMP_NUM_THREADS", "3", 1);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sigaction(SIGPIPE, NULL, &pipe_before);
    sigaction(SIGTERM, NULL, &term_before);
    ck_assert_ptr_nonnull(getcwd(folder_before, sizeof folder_before));
    pons_predictor *p = open_run();
    pons_prediction_free(predict(p, NULL));
    pons_predictor_close(p);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    sigaction(SIGPIPE, NULL, &pipe_after);
    sigaction(SIGTERM, NULL, &term_after);
    ck_assert_ptr_nonnull(getcwd(folder_after, sizeof folder_after));
    for (int number = 1; number < 32; number++)
        ck_assert_int_eq(sigismember(&before, number), sigismember(&after, number));
    ck_assert(pipe_before.sa_handler == pipe_after.sa_handler);
    ck_assert(term_before.sa_handler == term_after.sa_handler);
    ck_assert_str_eq(folder_before, folder_after);
    ck_assert_str_eq(getenv("OMP_NUM_THREADS"), "3");
}
END_TEST

int main(void)
{
    TCase *c = suite_new("embed");

    tcase_add_unchecked_fixture(c, make_run, remove_root);
    tcase_add_test(c, a_training_in_a_program_has_the_bits_of_the_command);
    tcase_add_test(c, a_stopped_training_goes_on_to_the_same_bits);
    tcase_add_test(c, a_decimal_comma_changes_no_file);
    tcase_add_test(c, values_from_memory_train_without_a_file);
    tcase_add_test(c, errors_of_a_training_name_the_value);
    tcase_add_test(c, memory_equals_file_equals_command);
    tcase_add_test(c, a_folder_of_nnunet_predicts_from_memory);
    tcase_add_test(c, a_decimal_comma_opens_a_folder_of_nnunet);
    tcase_add_test(c, a_synthesis_makes_the_image_of_the_command);
    tcase_add_test(c, a_classification_gives_a_voxel_of_probabilities);
    tcase_add_test(c, types_and_strides_do_not_change_the_bits);
    tcase_add_test(c, a_stopped_prediction_leaves_a_usable_predictor);
    tcase_add_test(c, errors_of_a_prediction_are_returned);
    tcase_add_test(c, members_of_a_later_version_have_to_be_zero);
    tcase_add_test(c, predictors_on_threads_do_not_disturb_each_other);
    tcase_add_test(c, the_environment_of_a_launcher_joins_nothing);
    tcase_add_test(c, the_process_stays_as_it_was);
    return suite_run();
}
