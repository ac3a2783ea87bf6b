/*
 * command_evaluate.c - pons evaluate: pairs of files, or a run's validation cases.
 */
#include "cli/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/text/text.h"
#include "data/nifti/nifti_read.h"
#include "data/volume/volume_files.h"
#include "evaluate/evaluate.h"
#include "evaluate/evaluate_run.h"
#include "report/overlay.h"

typedef struct evaluate_flags {
    const char *prediction, *label, *run, *overlay, *image;
    pons_texts labels;
    bool json, any;
} evaluate_flags;

static const pons_option flags[] = {
    PONS_TEXT(evaluate_flags, prediction, "", "A predicted label file, or a folder of them."),
    PONS_TEXT(evaluate_flags, label, "", "The label file, or a folder with the same file stems."),
    PONS_TEXT(evaluate_flags, run, "", "Predict and evaluate the validation cases of this run."),
    PONS_TEXTS(evaluate_flags, labels, "", "Classes, as in spleen:1 or kidney:1,3; else every id."),
    PONS_FLAG(evaluate_flags, any, no, "With --run: where the run's best checkpoint is damaged, "
              "take another and warn."),
    PONS_FLAG(evaluate_flags, json, no, "One JSON object on the standard output."),
    PONS_TEXT(evaluate_flags, overlay, "", "Write the outlines of both in middle slices, a PNG: "
              "label green, prediction red, where they agree yellow."),
    PONS_TEXT(evaluate_flags, image, "", "Image under the outlines of --overlay."),
    PONS_OPTIONS_END
};

/* Two files that belong together. */
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

static pons_status find_pairs(pair_list *p, const evaluate_flags *f, pons_error *err)
{
    if (folder_is_there(f->prediction) != folder_is_there(f->label))
        return pons_fail(err, PONS_USAGE, "--prediction and --label: expected two files or two "
                         "folders");
    if (folder_is_there(f->label))
        return pair_folders(p, f->prediction, f->label, err);
    p->item = arena_alloc(p->memory, sizeof *p->item);
    p->item[p->count++] = (pair){ volume_file_stem(p->memory, f->label), f->prediction, f->label };
    return PONS_OK;
}

/* Both as areas of the classes, or as regions where the prediction has several channels. */
static pons_status read_pair(const evaluation *e, const pair *p, volume *prediction, volume *label,
                             pons_error *err)
{
    volume_facts facts;

    if (volume_read_facts(p->prediction, &facts, err) != PONS_OK)
        return err->status;
    if (facts.channels > 1)
        return evaluation_read_regions(e, p->prediction, p->label, prediction, label, err);
    if (volume_read_label(p->prediction, prediction, NULL, err) != PONS_OK
        || id_areas_check(p->prediction, prediction, err) != PONS_OK
        || volume_read_label(p->label, label, NULL, err) != PONS_OK
        || id_areas_check(p->label, label, err) != PONS_OK)
        return err->status;
    id_areas_apply(&e->areas, prediction);
    id_areas_apply(&e->areas, label);
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
    if (read_pair(e, p, &prediction, &label, err) == PONS_OK
        && (!shown || volume_read_image(f->image, &image, NULL, err) == PONS_OK))
        overlay_write(f->overlay, &label, &prediction, shown ? &image : NULL, err);
    pons_volume_clear(&prediction);
    pons_volume_clear(&label);
    pons_volume_clear(&image);
    return err->status;
}

/* ---- evaluate -------------------------------------------------------------------------------- */

static pons_status add_pairs(evaluation *e, const pair_list *p, const evaluate_flags *f,
                             pons_error *err)
{
    const char **file = arena_alloc(p->memory, 2 * (size_t)p->count * sizeof *file + 1);

    for (int i = 0; i < p->count; i++) {
        file[2 * i] = p->item[i].prediction;
        file[2 * i + 1] = p->item[i].label;
    }
    if (f->labels.count > 0)
        evaluation_name_classes(e, &f->labels, err);
    else
        evaluation_find_classes(e, 2 * p->count, file, err);
    for (int i = 0; i < p->count && err->status == PONS_OK; i++)
        evaluation_add_files(e, p->item[i].name, p->item[i].prediction, p->item[i].label, err);
    return err->status;
}

static pons_status evaluate(const invocation *call, const evaluate_flags *f, evaluation *e,
                            pons_error *err)
{
    pair_list pairs = { .memory = e->memory };

    if (given(f->image) && !given(f->overlay))
        return pons_fail(err, PONS_USAGE, "--image is drawn under --overlay, which is not given");
    if (given(f->overlay) && !text_ends_with(f->overlay, ".png"))
        return pons_fail(err, PONS_USAGE, "--overlay '%s': expected a file .png", f->overlay);
    if (given(f->run)) {
        if (given(f->prediction) || given(f->label) || given(f->overlay))
            return pons_fail(err, PONS_USAGE, "--run takes neither --prediction, --label nor "
                             "--overlay");
        return evaluate_run(e, &(predict_source){ .run = f->run, .set_count = call->set_count,
                            .set = call->set, .any = f->any }, call->log, err);
    }
    if (f->any)
        return pons_fail(err, PONS_USAGE, "--any chooses a checkpoint of --run, which is not "
                         "given");
    if (call->set_count > 0)
        return pons_fail(err, PONS_USAGE, "--set %s: only --run reads an INI file", call->set[0]);
    if (!given(f->prediction) || !given(f->label))
        return pons_fail(err, PONS_USAGE, "evaluate needs --prediction and --label, or --run");
    if (find_pairs(&pairs, f, err) != PONS_OK)
        return err->status;
    if (given(f->overlay) && pairs.count != 1)
        return pons_fail(err, PONS_USAGE, "--overlay shows one pair of files, found %d",
                         pairs.count);
    if (add_pairs(e, &pairs, f, err) != PONS_OK || !given(f->overlay))
        return err->status;
    return draw(e, f, &pairs.item[0], err);
}

static pons_status run(const invocation *call, const void *flags_given, pons_error *err)
{
    const evaluate_flags *f = flags_given;
    evaluation e;

    if (evaluation_open(&e, err) != PONS_OK)
        return err->status;
    if (evaluate(call, f, &e, err) == PONS_OK && !e.told) {
        if (f->json)
            evaluation_print_json(&e, stdout);
        else
            evaluation_print_table(&e, stdout);
    }
    evaluation_close(&e);
    return err->status;
}

const command command_evaluate = {
    "evaluate", "Dice and IoU of predictions", "--prediction P --label L | --run RUN", flags,
    sizeof(evaluate_flags), "", 0, 0, run
};
