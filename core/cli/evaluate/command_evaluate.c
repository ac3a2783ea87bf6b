/*
 * command_evaluate.c - pons evaluate: pairs of files, a run's validation cases, or two predictions
 * of the same labels.
 */
#include "cli/command.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/progress.h"
#include "base/text/text.h"
#include "cli/arguments.h"
#include "cli/evaluate/evaluate_slides.h"
#include "data/reader/volume_read.h"
#include "data/volume/volume_files.h"
#include "evaluate/comparison/comparison.h"
#include "evaluate/decisions.h"
#include "evaluate/evaluation.h"
#include "evaluate/evaluation_run.h"
#include "report/picture/overlay.h"

typedef struct evaluate_flags {
    const char *prediction, *label, *run, *previous, *csv, *overlay, *image;
    pons_texts labels, metrics;
    double tolerance, range;
    pons_reals spacing;
    bool all, json, any, normal;
    double nms_threshold, grow_distance, itc_diameter;
    int64_t nms_box;
} evaluate_flags;

static const pons_option flags[] = {
    PONS_TEXT(evaluate_flags, prediction, "", "A predicted file, or a folder of them."),
    PONS_TEXT(evaluate_flags, label, "", "The label file, or the true image; or a folder with "
              "the same file stems."),
    PONS_TEXT(evaluate_flags, run, "", "Predict and evaluate the validation cases of this run; of "
              "a cross-validation each case by the fold that holds it out."),
    PONS_TEXT(evaluate_flags, previous, "", "With --run of a cascade's second stage: the labels "
              "that the first predicted, a folder or one file."),
    PONS_TEXTS(evaluate_flags, labels, "", "Classes, as in spleen:1 or kidney:1,3; else every id."),
    PONS_TEXTS(evaluate_flags, metrics, "", "Metrics of docs/metrics.md. Defaults: dice iou hd "
               "hd95 asd nsd; synthesis: psnr ssim mae; classification: accuracy top5 "
               "balanced_accuracy auc. With psnr, ssim or mae the files are images, with froc "
               "alone maps of slides and masks of their lesions. The table begins with the worst "
               "case by the first metric."),
    PONS_REAL(evaluate_flags, range, "0", 0, FLT_MAX, "Span of the images' values for psnr and "
              "ssim; 0: the largest value of the label's image less its smallest."),
    PONS_REAL(evaluate_flags, tolerance, "1", 0, FLT_MAX, "Tolerance of nsd in millimetres."),
    PONS_REALS(evaluate_flags, spacing, "", FLT_MIN, FLT_MAX, "Spacing in millimetres, in place of "
               "the label file's."),
    PONS_FLAG(evaluate_flags, any, "no", "With --run: where the run's best checkpoint is damaged, "
              "take another and warn."),
    PONS_FLAG(evaluate_flags, all, "no", "A row for each case and class, also of more than 12 "
              "classes, of which the table else has the worst and best."),
    PONS_FLAG(evaluate_flags, json, "no", "One JSON object on the standard output."),
    PONS_TEXT(evaluate_flags, csv, "", "Write cases by classes to this file as well."),
    PONS_TEXT(evaluate_flags, overlay, "", "Write a picture, a PNG: the label's largest sections "
              "in three planes, label as outline and prediction as area in the colours of the "
              "classes, below them the errors, and a legend."),
    PONS_TEXT(evaluate_flags, image, "", "Image under --overlay."),
    PONS_REAL(evaluate_flags, nms_threshold, "0.5", 0, 1, "With froc: a detection has a larger "
              "probability."),
    PONS_INTEGER(evaluate_flags, nms_box, "48", 1, 1 << 20, "With froc: points of the map along a "
                 "side of the box around a detection, in which there is no other."),
    PONS_REAL(evaluate_flags, grow_distance, "75", 0, FLT_MAX, "With froc: lesions nearer than "
              "so many micrometres are one."),
    PONS_REAL(evaluate_flags, itc_diameter, "200", 0, FLT_MAX, "With froc: lesions shorter than "
              "so many micrometres, isolated tumour cells, do not count."),
    PONS_FLAG(evaluate_flags, normal, "no", "With froc: a slide without a mask has no lesions."),
    PONS_OPTIONS_END
};

/* A prediction and its label. */
typedef struct pair {
    const char *name, *prediction, *label;
} pair;

typedef struct pair_list {
    arena *memory;
    int count;
    pair *item;
} pair_list;

static bool given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static pons_status pair_folders(pair_list *p, const char *predictions, const char *labels,
                                pons_error *err)
{
    volume_file *a = NULL, *b = NULL;
    int m = 0, n = 0;

    if (volume_files_list(p->memory, predictions, &a, &m, err) != PONS_OK
        || volume_files_list(p->memory, labels, &b, &n, err) != PONS_OK)
        return err->status;
    p->item = arena_alloc(p->memory, (size_t)m * sizeof *p->item);
    for (int i = 0; i < m || i < n; i++) {
        int order = i >= m ? 1 : i >= n ? -1 : strcmp(a[i].stem, b[i].stem);
        if (order != 0)
            return pons_fail(err, PONS_DATA, "'%s' has no %s of that name in '%s'",
                             order < 0 ? a[i].path : b[i].path, order < 0 ? "label" : "prediction",
                             order < 0 ? labels : predictions);
        p->item[p->count++] = (pair){ a[i].stem, a[i].path, b[i].path };
    }
    return PONS_OK;
}

/* Find the pairs of a prediction and a label; 'words' names them in messages. */
static pons_status find_pairs(pair_list *p, const char *words, const char *prediction,
                              const char *label, pons_error *err)
{
    if (folder_is_there(prediction) != folder_is_there(label))
        return pons_fail(err, PONS_USAGE, "%s: expected two files or two folders", words);
    if (folder_is_there(label))
        return pair_folders(p, prediction, label, err);
    p->item = arena_alloc(p->memory, sizeof *p->item);
    p->item[p->count++] = (pair){ volume_file_stem(p->memory, label), prediction, label };
    return PONS_OK;
}

static pons_status draw(const evaluation *e, const evaluate_flags *f, const pair *p,
                        pons_error *err)
{
    volume prediction, label, image;
    bool shown = given(f->image);

    memset(&prediction, 0, sizeof prediction);
    memset(&label, 0, sizeof label);
    memset(&image, 0, sizeof image);
    if (evaluation_read_marks(e, p->prediction, p->label, &prediction, &label, err) == PONS_OK
        && (!shown || volume_read_image(f->image, &image, NULL, err) == PONS_OK))
        overlay_write(f->overlay, &(overlay_case){ .label = &label, .prediction = &prediction,
                      .image = shown ? &image : NULL, .class_count = e->class_count,
                      .classes = e->classes }, err);
    pons_volume_clear(&prediction);
    pons_volume_clear(&label);
    pons_volume_clear(&image);
    return err->status;
}

/* ---- evaluate -------------------------------------------------------------------------------- */

/* Set the classes: those of --labels, or every id of the pairs' files; 'more' may be NULL. */
static pons_status set_classes(evaluation *e, const evaluate_flags *f, const pair_list *p,
                               const pair_list *more, pons_error *err)
{
    const char **file = arena_alloc(p->memory, 3 * (size_t)p->count * sizeof *file + 1);
    int count = 0;

    if (e->images)
        return evaluation_find_channels(e, p->item[0].label, err);
    if (f->labels.count > 0)
        return evaluation_name_classes(e, &f->labels, err);
    for (int i = 0; i < p->count; i++) {
        file[count++] = p->item[i].prediction;
        file[count++] = p->item[i].label;
        if (more != NULL)
            file[count++] = more->item[i].prediction;
    }
    return evaluation_find_classes(e, count, file, err);
}

static pons_status add_pairs(const invocation *call, evaluation *e, const pair_list *p,
                             pons_error *err)
{
    pons_status (*const add)(evaluation *e, const char *name, const char *prediction,
                             const char *label, pons_error *err)
        = e->images ? evaluation_add_images : evaluation_add_files;
    case_progress progress = { .verb = "evaluating", .count = p->count };

    for (int i = 0; i < p->count && err->status == PONS_OK; i++) {
        case_progress_show(&progress, call->log, i, 0);
        add(e, p->item[i].name, p->item[i].prediction, p->item[i].label, err);
    }
    case_progress_end(call->log);
    return err->status;
}

/* Set the metrics in the order of --metrics, the spacing, the tolerance and the range. */
static pons_status choose_metrics(const invocation *call, const evaluate_flags *f, evaluation *e,
                                  pons_error *err)
{
    e->metrics = 0;
    for (int n = 0; n < f->metrics.count; n++) {
        metric_kind kind = metric_kind_find(f->metrics.item[n]);
        if (kind == METRIC_KIND_COUNT)
            return pons_fail(err, PONS_USAGE, "--metrics: unknown metric '%s', expected dice, iou, "
                             "hd, hd95, asd, nsd, or another of docs/metrics.md",
                             f->metrics.item[n]);
        e->order = n == 0 ? kind : e->order;
        evaluation_add_metric(e, kind);
    }
    if (f->spacing.count != 0 && f->spacing.count != 3)
        return pons_fail(err, PONS_USAGE, "--spacing has %d numbers, expected 3", f->spacing.count);
    for (int axis = 0; axis < f->spacing.count; axis++)
        e->spacing[axis] = f->spacing.item[axis];
    e->tolerance = f->tolerance;
    e->asks_surfaces = f->spacing.count > 0 ? "spacing"
                       : arguments_given(call, "tolerance") ? "tolerance" : NULL;
    e->range = f->range;
    return PONS_OK;
}

/*
 * Decide by --metrics whether files are labels or images. An empty list stands for the usual
 * metrics of labels.
 */
static pons_status choose_file_metrics(const evaluate_flags *f, evaluation *e, pons_error *err)
{
    metric_set of_images = metric_set_from(e->metrics, METRIC_OF_IMAGE);
    metric_set of_decisions = e->metrics & METRICS_OF_DECISIONS;

    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        if (metric_set_has(of_decisions, (metric_kind)kind))
            return pons_fail(err, PONS_USAGE, "--metrics: '%s' is measured with --run of a network "
                             "of task = classification, found files", metric_facts[kind].name);
    if (e->metrics == 0)
        e->metrics = METRICS_USUAL;
    e->images = of_images != 0;
    if (e->images && of_images != e->metrics)
        return pons_fail(err, PONS_USAGE, "--metrics has metrics of images, such as psnr, and "
                         "metrics of labels, expected one kind");
    if (e->images && (f->labels.count > 0 || given(f->overlay)))
        return pons_fail(err, PONS_USAGE, "--%s is for files of labels, but --metrics has metrics "
                         "of images",
                         f->labels.count > 0 ? "labels" : "overlay");
    if (e->images && e->asks_surfaces != NULL)
        return pons_fail(err, PONS_USAGE, "--%s is for surfaces of labels, but --metrics has "
                         "metrics of images", e->asks_surfaces);
    if (f->range > 0 && !metric_set_has(e->metrics, METRIC_PSNR)
        && !metric_set_has(e->metrics, METRIC_SSIM))
        return pons_fail(err, PONS_USAGE, "--range is for psnr and ssim, which --metrics does not "
                         "list");
    return PONS_OK;
}

static pons_status evaluate(const invocation *call, const evaluate_flags *f, evaluation *e,
                            pons_error *err)
{
    pair_list pairs = { .memory = e->memory };

    if (given(f->image) && !given(f->overlay))
        return pons_fail(err, PONS_USAGE, "--image is drawn under --overlay, which is not given");
    if (given(f->overlay) && !text_ends_with(f->overlay, ".png"))
        return pons_fail(err, PONS_USAGE, "--overlay '%s': expected a file .png", f->overlay);
    if (f->all && f->json)
        return pons_fail(err, PONS_USAGE, "--all is for the table, --json has every class");
    if (given(f->run)) {
        if (given(f->prediction) || given(f->label) || given(f->overlay) || f->range > 0)
            return pons_fail(err, PONS_USAGE, "--run takes neither --prediction, --label, "
                             "--overlay nor --range");
        if (f->labels.count > 0)
            return pons_fail(err, PONS_USAGE, "--labels is for files, a run has its own classes");
        e->previous = given(f->previous) ? f->previous : NULL;
        return evaluation_run(e, &(predict_source){ .run = f->run, .set_count = call->set_count,
                            .set = call->set, .any = f->any }, call->log, err);
    }
    if (given(f->previous))
        return pons_fail(err, PONS_USAGE, "--previous is for --run, which is not given");
    if (f->any)
        return pons_fail(err, PONS_USAGE, "--any chooses a checkpoint of --run, which is not "
                         "given");
    if (call->set_count > 0)
        return pons_fail(err, PONS_USAGE, "--set %s: only --run reads an INI file", call->set[0]);
    if (!given(f->prediction) || !given(f->label))
        return pons_fail(err, PONS_USAGE, "evaluate needs --prediction and --label, or --run");
    if (find_pairs(&pairs, "--prediction and --label", f->prediction, f->label, err) != PONS_OK)
        return err->status;
    if (given(f->overlay) && pairs.count != 1)
        return pons_fail(err, PONS_USAGE, "--overlay shows one pair of files, found %d",
                         pairs.count);
    if (choose_file_metrics(f, e, err) != PONS_OK
        || set_classes(e, f, &pairs, NULL, err) != PONS_OK
        || add_pairs(call, e, &pairs, err) != PONS_OK
        || !given(f->overlay))
        return err->status;
    return draw(e, f, &pairs.item[0], err);
}

/* ---- slides ---------------------------------------------------------------------------------- */

/* The flags of froc alone, and those that it does not take. */
static const char *const froc_flags[] = { "nms_threshold", "nms_box", "grow_distance",
                                          "itc_diameter", "normal", NULL };
static const char *const other_flags[] = { "run", "range", "tolerance", "overlay", "image", "any",
                                           "all", NULL };

/* The first flag of a list that was given; NULL: none. */
static const char *first_given(const invocation *call, const char *const *name)
{
    while (*name != NULL && !arguments_given(call, *name))
        name++;
    return *name;
}

static bool asks_froc(const evaluate_flags *f)
{
    for (int n = 0; n < f->metrics.count; n++)
        if (strcmp(f->metrics.item[n], "froc") == 0)
            return true;
    return false;
}

static pons_status check_slides(const invocation *call, const evaluate_flags *f, pons_error *err)
{
    const char *other = first_given(call, other_flags);

    if (f->metrics.count > 1)
        return pons_fail(err, PONS_USAGE, "--metrics: froc is of maps of slides, expected no other "
                         "metric");
    if (other != NULL || call->set_count > 0 || call->argument_count > 0)
        return pons_fail(err, PONS_USAGE, "--metrics froc takes --prediction, --label, --labels, "
                         "--spacing, --csv, --json, --nms-threshold, --nms-box, --grow-distance, "
                         "--itc-diameter and --normal, and no other flag or word");
    if (!given(f->prediction) || !given(f->label))
        return pons_fail(err, PONS_USAGE, "--metrics froc needs --prediction and --label");
    if (f->spacing.count != 0 && f->spacing.count != 3)
        return pons_fail(err, PONS_USAGE, "--spacing has %d numbers, expected 3", f->spacing.count);
    return PONS_OK;
}

static pons_status run_slides(const invocation *call, const evaluate_flags *f, pons_error *err)
{
    static const double micrometres_of_millimetre = 1000;
    evaluate_slides s = {
        .prediction = f->prediction, .label = f->label, .csv = given(f->csv) ? f->csv : NULL,
        .normal = f->normal, .json = f->json,
        .rule = { .threshold = f->nms_threshold, .box = (int)f->nms_box, .grow = f->grow_distance,
                  .isolated = f->itc_diameter }
    };
    evaluation e;

    if (check_slides(call, f, err) != PONS_OK || evaluation_open(&e, err) != PONS_OK)
        return err->status;
    for (int a = 0; a < 2 && f->spacing.count == 3; a++)
        s.rule.micrometres[a] = f->spacing.item[a + 1] * micrometres_of_millimetre;
    if (f->labels.count > 0 && evaluation_name_classes(&e, &f->labels, err) == PONS_OK) {
        s.rule.class = &e.classes[0];
        if (e.class_count > 1)
            pons_fail(err, PONS_USAGE, "--labels has %d classes, expected that of the lesions",
                      e.class_count);
    }
    if (err->status == PONS_OK)
        evaluate_slides_run(&s, e.memory, err);
    evaluation_close(&e);
    return err->status;
}

/* ---- two predictions ------------------------------------------------------------------------- */

static pons_status check_compared(const invocation *call, const evaluate_flags *f,
                                  pons_error *err)
{
    const char *quoted = call->list_hint;
    bool others = given(f->prediction) || given(f->run) || given(f->csv) || given(f->overlay)
                  || given(f->image) || f->any || f->all || call->set_count > 0;

    if (quoted[0] != '\0' && (others || call->argument_count == 1))
        return pons_fail(err, PONS_USAGE, "evaluate compares two predictions, found '%s'\n"
                         "hint: a list needs quotes: %.500s", call->argument[0], quoted);
    if (call->argument_count == 1)
        return pons_fail(err, PONS_USAGE, "evaluate compares two predictions, found only '%s'\n"
                         "hint: --prediction %s evaluates one", call->argument[0],
                         call->argument[0]);
    if (others)
        return pons_fail(err, PONS_USAGE, "evaluate of two predictions takes --label, --labels, "
                         "--metrics, --range, --tolerance, --spacing and --json, and no other "
                         "flag");
    if (!given(f->label))
        return pons_fail(err, PONS_USAGE, "evaluate of two predictions needs --label");
    return PONS_OK;
}

/* Score both predictions; 'b' takes its classes from 'a'. */
static pons_status score_both(const invocation *call, const evaluate_flags *f, evaluation *a,
                              evaluation *b, pons_error *err)
{
    pair_list pairs[2] = { { .memory = a->memory }, { .memory = b->memory } };

    for (int n = 0; n < 2; n++)
        if (find_pairs(&pairs[n], n == 0 ? "A and --label" : "B and --label", call->argument[n],
                       f->label, err) != PONS_OK)
            return err->status;
    if (set_classes(a, f, &pairs[0], &pairs[1], err) != PONS_OK)
        return err->status;
    evaluation_share_classes(b, a);
    if (add_pairs(call, a, &pairs[0], err) == PONS_OK)
        add_pairs(call, b, &pairs[1], err);
    return err->status;
}

static pons_status compare(const invocation *call, const evaluate_flags *f, evaluation *a,
                           evaluation *b, pons_error *err)
{
    comparison c;

    if (score_both(call, f, a, b, err) != PONS_OK || comparison_make(a, b, &c, err) != PONS_OK)
        return err->status;
    if (f->json)
        comparison_print_json(&c, stdout);
    else
        comparison_print_table(&c, stdout);
    return PONS_OK;
}

static pons_status run_compared(const invocation *call, const evaluate_flags *f, pons_error *err)
{
    evaluation a, b;

    if (check_compared(call, f, err) != PONS_OK || evaluation_open(&a, err) != PONS_OK)
        return err->status;
    if (evaluation_open(&b, err) == PONS_OK) {
        if (choose_metrics(call, f, &a, err) == PONS_OK
            && choose_metrics(call, f, &b, err) == PONS_OK
            && choose_file_metrics(f, &a, err) == PONS_OK
            && choose_file_metrics(f, &b, err) == PONS_OK)
            compare(call, f, &a, &b, err);
        evaluation_close(&b);
    }
    evaluation_close(&a);
    return err->status;
}

/* ---- command --------------------------------------------------------------------------------- */

static pons_status print_decisions(const evaluate_flags *f, const evaluation *e, pons_error *err)
{
    if (given(f->csv) && decisions_write_csv(e, f->csv, err) != PONS_OK)
        return err->status;
    return f->json ? decisions_print_json(e, stdout, err)
                   : decisions_print_table(e, f->all, stdout, err);
}

static pons_status print(const evaluate_flags *f, const evaluation *e, pons_error *err)
{
    mean_interval *interval = NULL;

    if (e->decisions != NULL)
        return print_decisions(f, e, err);
    if (e->case_count > 1) {
        interval = arena_alloc(e->memory, ((size_t)e->class_count + 1) * METRIC_KIND_COUNT
                                          * sizeof *interval);
        if (evaluation_intervals(e, interval, err) != PONS_OK)
            return err->status;
    }
    if (given(f->csv) && evaluation_write_csv(e, f->csv, err) != PONS_OK)
        return err->status;
    if (f->json)
        evaluation_print_json(e, interval, stdout);
    else
        evaluation_print_table(e, interval, f->all, stdout);
    return PONS_OK;
}

static pons_status run(const invocation *call, const void *flags_given, pons_error *err)
{
    const evaluate_flags *f = flags_given;
    evaluation e;

    if (asks_froc(f))
        return run_slides(call, f, err);
    if (first_given(call, froc_flags) != NULL)
        return pons_fail(err, PONS_USAGE, "--nms-threshold, --nms-box, --grow-distance, "
                         "--itc-diameter and --normal are for --metrics froc");
    if (call->argument_count > 0)
        return run_compared(call, f, err);
    if (evaluation_open(&e, err) != PONS_OK)
        return err->status;
    if (choose_metrics(call, f, &e, err) == PONS_OK && evaluate(call, f, &e, err) == PONS_OK
        && !e.printed_elsewhere)
        print(f, &e, err);
    evaluation_close(&e);
    return err->status;
}

const command command_evaluate = {
    "evaluate", "metrics of predictions", "--prediction P --label L | --run RUN | A B --label L",
    flags, sizeof(evaluate_flags), "", 0, 2, run
};
