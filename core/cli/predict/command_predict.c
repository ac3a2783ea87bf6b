/*
 * command_predict.c - pons predict: the files of each case, and the paths of its results.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/case_progress.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/file_kind.h"
#include "base/text/text.h"
#include "checkpoint/run_folds.h"
#include "cli/command.h"
#include "cli/predict/label_tables.h"
#include "cli/predict/predict_bids.h"
#include "cli/predict/predict_classes.h"
#include "cli/predict/predict_dataset.h"
#include "cli/predict/predict_modalities.h"
#include "cli/predict/predict_patches.h"
#include "config/sections.h"
#include "data/dataset/class_list.h"
#include "data/nifti/nifti_write.h"
#include "data/reader/volume_read.h"
#include "data/volume/volume_files.h"
#include "infer/predict.h"
#include "infer/predict_members.h"
#include "infer/predict_slide.h"
#include "nnunet/nnunet_model.h"
#include "nnunet/nnunet_postprocess.h"
#include "report/png_write.h"

enum { PASSES_MAX = 1000 };

typedef struct predict_flags {
    const char *output, *config, *target, *previous;
    int64_t fold;            /* OPTION_AUTO: all                                                  */
    const char *folds;       /* NULL: all                                                         */
    bool no_mirror;
    int64_t passes, stride;
    bool logits, probabilities, uncertainty, any, force, label_map, no_postprocess, bids;
    int split;
} predict_flags;

static const char *const all_words[] = { "all", NULL };
static const char *const splits[] = { "auto", "test", "all", NULL };

static const pons_option flags[] = {
    PONS_TEXT(predict_flags, output, NULL, "File for one image, else a folder. A "
              "classification writes a table .csv of all images, or of a slide a map .tiff, and "
              "maps of several slides to a folder."),
    PONS_TEXT(predict_flags, config, "", "INI file for a bare weights file. In a checkpoint's "
              "folder its manifest says what training saw."),
    PONS_TEXT(predict_flags, target, "", "Modality that a network of task = synthesis makes from "
              "the others; empty: the one that has no file."),
    PONS_INTEGER_OR(predict_flags, fold, "all", 0, RUN_FOLDS_MAX - 1, all_words,
                    "Fold of a cross-validation to use; all: the average of the probabilities of "
                    "all finished folds."),
    PONS_TEXT(predict_flags, folds, "", "Folds of a folder of nnU-Net, such as 0,1; empty: all "
              "that have a checkpoint."),
    PONS_TEXT(predict_flags, previous, "", "Of a cascade: the model folder of its first stage, or "
              "the labels that it predicted, a folder or one file; empty: the model folder that "
              "nnU-Net puts beside RUN."),
    PONS_FLAG(predict_flags, no_mirror, "no", "Predict no flipped windows."),
    PONS_FLAG(predict_flags, logits, "no", "Also write OUT_logits.nii.gz (4D, class last)."),
    PONS_FLAG(predict_flags, probabilities, "no", "Also write OUT_probabilities.nii.gz."),
    PONS_FLAG(predict_flags, uncertainty, "no",
              "Also write OUT_entropy.nii.gz and OUT_variance.nii.gz: of the probabilities over "
              "folds or networks, of a single network over the flips of [window] mirror or "
              "--passes."),
    PONS_INTEGER(predict_flags, passes, "0", 0, PASSES_MAX,
                 "With --uncertainty of a single network: passes with its dropout."),
    PONS_INTEGER(predict_flags, stride, "0", 0, 1 << 20, "Pixels between the patches of a slide, "
                 "and so from point to point of its map; 0: the patches' side."),
    PONS_FLAG(predict_flags, any, "no",
              "Where the run's best checkpoint is damaged, take another and warn."),
    PONS_CHOICE(predict_flags, split, "auto", splits, "Cases of a dataset; auto: those for tests "
                "if it has some, else all."),
    PONS_FLAG(predict_flags, label_map, "no", "Write regions as one label: each region in order "
              "writes its id that no later region has."),
    PONS_FLAG(predict_flags, no_postprocess, "no", "Leave labels as they are where a folder of "
              "nnU-Net has a postprocessing.json, which keeps the largest part of some."),
    PONS_FLAG(predict_flags, bids, "no", "Write OUT as a derivative of BIDS, with names such as "
              "OUT/sub-01/anat/sub-01_dseg.nii.gz after those of the images."),
    PONS_FLAG(predict_flags, force, "no", "Take an image as it is whose orientation training never "
              "saw."),
    PONS_OPTIONS_END
};

typedef struct job {
    const invocation *call;
    const predict_flags *flags;
    arena *memory;
    predictor *beside;       /* the first network opens on its devices; NULL: on its own          */
    int member_count;
    predictor *member[PREDICT_MEMBERS_MAX];
    predictor *dropped;      /* the network with its dropout, for --passes; or NULL               */
    int case_count, case_room;
    predict_input *cases;
    dataset **datasets;      /* sources of the cases, open until all are predicted                */
    int dataset_count;
    const char *nnunet_folds; /* of a folder of nnU-Net: "0_1_2"                                  */
    nnunet_postprocess postprocess; /* its rules for labels                                       */
    bool folder;             /* output is a folder                                                */
    const char **bids;       /* of each case, its path in a derivative of BIDS; NULL: it is none  */
    const char *stage;       /* this predicts the first stage of a cascade of that name; or NULL  */
    struct job *first;       /* the job of the first stage; NULL: none is predicted               */
    predict_classes table;   /* task = classification: the rows of all cases                      */
    int failed, first_failed; /* number of cases that could not be read; index of the first       */
    case_progress progress;
} job;

/* Rules of a task: the flags that it knows, the files of a case, and what is written. */
typedef struct predict_task {
    task_kind task;
    const char *output;      /* ending of -o with which the rules hold; "": any                   */
    pons_status (*check)(const job *j, pons_error *err);
    /* The length of a file's stem without the end that tells its channel. */
    size_t (*stem)(const job *j, const char *stem);
    bool masks_beside;       /* files of a folder that tell no channel are none, if any tells one */
    bool channels_optional;  /* a case of a dataset may lack files of channels                    */
    /* Complete a case; its files are as they were given. */
    pons_status (*arrange)(job *j, predict_input *c, pons_error *err);
    /* Check -o; 'of_folder': a folder or a dataset is among the images. Sets 'folder'. */
    pons_status (*check_output)(job *j, bool of_folder, pons_error *err);
    bool table;              /* all cases are rows of the file -o                                 */
    /* Write the result of a case. 'record' has room for the probabilities of the classes. */
    pons_status (*write)(const job *j, const char *path, const predict_result *r, float *record,
                         pons_error *err);
    /* Called after 'write' in all processes, in order of cases. */
    void (*tell)(job *j, int number, const float *record);
    const char *ending;      /* of the files in a folder -o                                       */
    pons_status (*predict)(job *j, pons_error *err); /* predicts and writes all cases             */
} predict_task;

static const predict_task *task_of(const job *j);
static pons_status note_failure(job *j, int number, const char *problem, pons_error *err);
static pons_status predict_volumes(job *j, pons_error *err);
static pons_status predict_slides(job *j, pons_error *err);

/* Whether maps of slides are written. */
static bool makes_maps(const job *j)
{
    return task_of(j)->predict == predict_slides;
}

static file_use kind_of_files(const job *j)
{
    return makes_maps(j) ? FILE_SLIDE : FILE_VOLUME;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The length of the stem without a channel's suffix like '_0000'. */
static size_t channel_stem(const job *j, const char *stem)
{
    size_t size = strlen(stem);

    if (size > 5 && stem[size - 5] == '_' && strspn(stem + size - 4, "0123456789") == 4)
        return size - 5;
    return size;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Add a case with space for its files. */
static const char **new_case(job *j, const char *name, int files)
{
    if (j->case_count == j->case_room) {
        int room = 2 * j->case_room + 16;
        predict_input *more = arena_alloc(j->memory, (size_t)room * sizeof *more);
        if (j->case_count > 0)
            memcpy(more, j->cases, (size_t)j->case_count * sizeof *more);
        j->cases = more;
        j->case_room = room;
    }
    const char **file = arena_alloc(j->memory, (size_t)files * sizeof *file);
    j->cases[j->case_count++] = (predict_input){ .name = name, .file_count = files, .file = file };
    return file;
}

/* The number of files in a list like "a.nii.gz,b.nii.gz"; 1 if a file has that very name. */
static int count_files(const char *list)
{
    int files = 1;

    for (const char *c = list; *c != '\0' && access(list, F_OK) != 0; c++)
        files += *c == ',';
    return files;
}

/* The case that a file "CASE_0001.nii.gz" of nnU-Net belongs to; "": the name tells no channel. */
static const char *nnunet_case(job *j, const char *file)
{
    const char *stem = volume_file_stem(j->memory, file);
    size_t size = channel_stem(j, stem);

    if (!predictor_is_nnunet(j->member[0]) || stem[size] == '\0')
        return "";
    return arena_format(j->memory, "%.*s", (int)size, stem);
}

/* Add a file to the case before it if both are channels of one case in one folder. */
static bool add_channel(job *j, const char *path)
{
    const char *name = nnunet_case(j, path), *slash = strrchr(path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - path) : 0;
    predict_input *c = j->case_count > 0 ? &j->cases[j->case_count - 1] : NULL;

    if (c == NULL || name[0] == '\0' || strcmp(name, c->name) != 0
        || strncmp(path, c->file[0], folder + strlen(name)) != 0)
        return false;
    const char **file = arena_alloc(j->memory, ((size_t)c->file_count + 1) * sizeof *file);
    memcpy(file, c->file, (size_t)c->file_count * sizeof *file);
    file[c->file_count++] = path;
    c->file = file;
    return true;
}

/* Add the case whose channels are listed as "a.nii.gz,b.nii.gz". */
static void add_list(job *j, const char *list)
{
    int files = count_files(list);
    char *copy = arena_string(j->memory, list);
    const char **file = new_case(j, "", files);
    predict_input *c = &j->cases[j->case_count - 1];

    c->file_count = 0;
    file[0] = list;
    if (files == 1)
        c->file_count = 1;
    for (char *word = strtok(copy, ","); files > 1 && word != NULL; word = strtok(NULL, ","))
        file[c->file_count++] = word;
    c->name = nnunet_case(j, file[0]);
    if (c->name[0] == '\0')
        c->name = volume_file_stem_of(j->memory, file[0], kind_of_files(j));
}

/* Leave out files that tell no channel beside some that do, as the mask of a case. */
static int drop_masks(const job *j, volume_file *file, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (task_of(j)->stem(j, file[i].stem) < strlen(file[i].stem))
            file[kept++] = file[i];
    return kept > 0 ? kept : count;
}

/*
 * Add all volumes of a folder. With 'channels', files that differ only in the end that tells the
 * channel, as '_0000', are one case.
 */
static pons_status add_folder(job *j, const char *path, bool channels, pons_error *err)
{
    volume_file *file = NULL;
    int count = 0, next;

    if (volume_files_list_of(j->memory, path, kind_of_files(j), &file, &count, err) != PONS_OK)
        return err->status;
    /* Rows of a table have the names of files; other results have that of the case. */
    if (!task_of(j)->table && volume_files_refuse_equal(file, count, err) != PONS_OK)
        return err->status;
    if (channels && task_of(j)->masks_beside)
        count = drop_masks(j, file, count);
    for (int first = 0; first < count; first = next) {
        const char *stem = file[first].stem;
        size_t size = channels ? task_of(j)->stem(j, stem) : strlen(stem);
        next = first + 1;
        while (next < count && size < strlen(stem) && task_of(j)->stem(j, file[next].stem) == size
               && strncmp(stem, file[next].stem, size) == 0)
            next++;
        const char **member = new_case(j, arena_format(j->memory, "%.*s", (int)size, stem),
                                       next - first);
        for (int i = first; i < next; i++)
            *member++ = file[i].path;
    }
    return PONS_OK;
}

/* Add the cases of a dataset or of patterns. */
static pons_status add_dataset(job *j, const char *argument, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);
    slide_settings patches;
    const predict_dataset_needs needs = {
        .target = e->task.whole ? TARGET_OF_CASE : TARGET_OF_VOXELS,
        .split = (predict_split)j->flags->split,
        .channels_optional = task_of(j)->channels_optional,
        .slides = predict_patches_known(e, &patches) ? &patches : NULL
    };
    dataset *d;

    if (predict_dataset_open(argument, &needs, &d, err) != PONS_OK)
        return err->status;
    j->datasets[j->dataset_count++] = d;
    log_line(j->call->log, "%.4000s, %d case%s", dataset_layout_text(d), d->case_count,
             text_plural(d->case_count));
    for (int i = 0; i < d->case_count; i++) {
        const data_case *c = &d->cases[i];
        const char **file = new_case(j, c->id, c->image_count);

        memcpy(file, c->image, (size_t)c->image_count * sizeof *file);
        j->cases[j->case_count - 1].stack = c->stack;
        j->cases[j->case_count - 1].slice = c->slice;
        j->cases[j->case_count - 1].patch = c->patch;
    }
    return PONS_OK;
}

static pons_status list_cases(job *j, pons_error *err)
{
    const invocation *call = j->call;
    bool by_channel = !makes_maps(j) && (predictor_experiment(j->member[0])->task.channels > 1
                                         || predictor_is_nnunet(j->member[0]));
    bool of_folder = false;

    j->datasets = arena_alloc(j->memory, (size_t)call->argument_count * sizeof *j->datasets);
    for (int i = 1; i < call->argument_count; i++) {
        bool folder = folder_is_there(call->argument[i]);
        bool listed = !(folder && makes_maps(j))
                      && predict_dataset_is(call->argument[i], kind_of_files(j));
        if (!listed && !folder) {
            if (!add_channel(j, call->argument[i]))
                add_list(j, call->argument[i]);
            continue;
        }
        of_folder = true;
        if (listed && add_dataset(j, call->argument[i], err) != PONS_OK)
            return err->status;
        if (!listed && add_folder(j, call->argument[i], by_channel, err) != PONS_OK)
            return err->status;
    }
    if (j->flags->split != PREDICT_SPLIT_AUTO && j->dataset_count == 0)
        return pons_fail(err, PONS_USAGE, "--split has no effect, found images and no dataset");
    for (int i = 0; i < j->case_count; i++)
        if (task_of(j)->arrange(j, &j->cases[i], err) != PONS_OK)
            return err->status;
    return task_of(j)->check_output(j, of_folder, err);
}

/* Name the cases of a derivative of BIDS. */
static pons_status name_by_bids(job *j, pons_error *err)
{
    if (predict_bids_check(j->memory, j->flags->output, err) != PONS_OK)
        return err->status;
    j->bids = arena_alloc(j->memory, (size_t)j->case_count * sizeof *j->bids + 1);
    for (int i = 0; i < j->case_count; i++)
        if (predict_bids_stem(j->memory, j->cases[i].file[0], &j->bids[i], err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* Whether a path ends as a file's name does: with a dot and at most 4 letters and digits. */
static bool has_ending(const char *path)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *dot = strrchr(path, '.');
    size_t size = dot != NULL ? strlen(dot + 1) : 0;

    return size > 0 && size <= 4 && strspn(dot + 1, letters) == size
        && strspn(dot + 1, "0123456789") < size;
}

/* Expect -o to be a file for one image, else a folder. */
static pons_status check_volumes(job *j, bool of_folder, pons_error *err)
{
    const char *output = j->flags->output;

    j->folder = j->flags->bids || j->case_count > 1 || folder_is_there(output)
                || text_ends_with(output, "/")
                || (of_folder && file_kind_ending(output, FILE_VOLUME) == 0);
    if (!j->folder && file_kind_ending(output, FILE_VOLUME) == 0)
        return pons_fail(err, PONS_USAGE, "-o '%s': expected a file .nii or .nii.gz for one image",
                         output);
    if (j->folder && has_ending(output) && !folder_is_there(output))
        return pons_fail(err, PONS_USAGE, "-o '%s': expected a folder for %d image%s\n"
                         "hint: with '/' at its end the name is that of a folder", output,
                         j->case_count, text_plural(j->case_count));
    return j->flags->bids ? name_by_bids(j, err) : PONS_OK;
}

/* The number of channels of the first image, for weights whose file does not state it. */
static int count_channels(const char *argument)
{
    pons_error ignored = PONS_ERROR_INIT;
    volume_facts facts;
    int files = count_files(argument);

    if (files > 1 || folder_is_there(argument)
        || volume_read_facts(argument, &facts, &ignored) != PONS_OK)
        return files;
    return facts.channels;
}

/* ---- results --------------------------------------------------------------------------------- */

/* The id of a voxel of a region in the file, for one region or a channel for each region. */
static int32_t id_of_region(const experiment *e)
{
    return e->task.classes == 1 && e->classes[0].id[0] > 0 ? e->classes[0].id[0] : 1;
}

/* The first id of a region that no later region has; 0: there is none. */
static int32_t own_id(const experiment *e, int region)
{
    const data_class *c = &e->classes[region];

    for (int i = 0; i < c->id_count; i++)
        if (class_index_of_id(c + 1, e->class_count - region - 1, c->id[i]) < 0)
            return c->id[i];
    return 0;
}

/* The id that a region writes into a label map; 0: none. */
static int32_t id_in_map(const experiment *e, int region)
{
    const pons_integers *ids = &e->sections.predict.region_ids;

    return ids->count > 0 ? (int32_t)ids->item[region] : own_id(e, region);
}

/* True if regions are written as one label. */
static bool writes_map(const job *j)
{
    return j->flags->label_map
        || predictor_experiment(j->member[0])->sections.predict.region_ids.count > 0;
}

/* True if each region is a channel of the written labels. */
static bool writes_channels(const job *j)
{
    const experiment *e = predictor_experiment(j->member[0]);

    return e->regions && e->class_count > 1 && !writes_map(j);
}

/* Refuse --target, and --label-map for regions of which one has no id of its own. */
static pons_status check_segmentation(const job *j, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);

    if (j->flags->target != NULL)
        return pons_fail(err, PONS_USAGE, "--target '%s' is for a network of task = synthesis, "
                         "found one of segmentation", j->flags->target);
    if (j->flags->bids && (j->flags->logits || j->flags->uncertainty))
        return pons_fail(err, PONS_USAGE, "--bids: found --logits or --uncertainty, for which BIDS "
                         "has no name, expected --probabilities at most");
    if (j->flags->bids && writes_channels(j))
        return pons_fail(err, PONS_USAGE, "--bids: regions are channels, expected one label a voxel"
                         "\nhint: --label-map writes them as one");
    if (!writes_map(j) || e->sections.predict.region_ids.count > 0)
        return PONS_OK;
    if (!e->regions)
        return pons_fail(err, PONS_USAGE, "--label-map: the network has classes, expected regions");
    for (int r = 0; r < e->class_count; r++)
        if (own_id(e, r) == 0)
            return pons_fail(err, PONS_CONFIG, "--label-map: region '%s' has no id above 0 that no "
                             "later region has", e->classes[r].name);
    return PONS_OK;
}

/* Merge channels of 0 and 1: each region in order writes its own id. */
static pons_status to_label_map(const experiment *e, const volume *regions, volume *out,
                                pons_error *err)
{
    const uint8_t *from = regions->voxels;
    int64_t voxels = pons_volume_count(regions);

    if (pons_volume_init(out, PONS_I32, 1, regions->extent, err) != PONS_OK)
        return err->status;
    volume_copy_position(out, regions);
    for (int r = 0; r < regions->channels; r++) {
        int32_t id = id_in_map(e, r), *to = out->voxels;

        for (int64_t i = 0; i < voxels; i++)
            to[i] = from[i * regions->channels + r] != 0 ? id : to[i];
    }
    return PONS_OK;
}

/* Map class indices to the first id of each name. Several regions keep channels of 0 and 1. */
static pons_status to_ids(const experiment *e, const volume *classes, volume *out, pons_error *err)
{
    int64_t voxels = pons_volume_count(classes) * classes->channels;
    const uint8_t *from = classes->voxels;
    bool indices = !e->regions && e->task.classes > 1;
    int32_t region = id_of_region(e);

    if (pons_volume_init(out, PONS_I32, classes->channels, classes->extent, err) != PONS_OK)
        return err->status;
    volume_copy_position(out, classes);
    int32_t *to = out->voxels;
    for (int64_t i = 0; i < voxels; i++)
        to[i] = indices ? e->classes[from[i]].id[0] : from[i] != 0 ? region : 0;
    return PONS_OK;
}

static const char *path_of_more(const job *j, const char *path, const char *what)
{
    int size = (int)strlen(path);

    size -= text_ends_with(path, ".nii.gz") ? 7 : text_ends_with(path, ".nii") ? 4 : 0;
    return arena_format(j->memory, "%.*s_%s.nii.gz", size, path, what);
}

/* Endings of labels and of probabilities in a derivative of BIDS. */
#define LABELS_END "_dseg.nii.gz"
#define PROBABILITIES_END "_probseg.nii.gz"

/* A file beside the labels of a derivative of BIDS. */
static const char *path_beside(const job *j, const char *labels, const char *ending)
{
    return arena_format(j->memory, "%.*s%s", (int)(strlen(labels) - strlen(LABELS_END)), labels,
                        ending);
}

static const char *path_of_probabilities(const job *j, const char *path)
{
    return j->bids != NULL ? path_beside(j, path, PROBABILITIES_END)
                           : path_of_more(j, path, "probabilities");
}

/* The picture beside a map. */
static const char *path_of_overlay(const job *j, const char *map)
{
    return arena_format(j->memory, "%.*s_overlay.png", (int)(strrchr(map, '.') - map), map);
}

/* The file of labels in a derivative of BIDS; an entity tells a cascade's first stage. */
static const char *path_in_bids(const job *j, int number)
{
    char *stage = arena_string(j->memory, j->stage != NULL ? j->stage : ""), *to = stage;

    for (const char *from = stage; *from != '\0'; from++)
        if (*from != '_')
            *to++ = *from;
    *to = '\0';
    return arena_format(j->memory, "%s/%s%s%s" LABELS_END, j->flags->output, j->bids[number],
                        stage[0] != '\0' ? "_seg-" : "", stage);
}

static const char *path_of(const job *j, int number)
{
    const char *path = j->flags->output;

    if (j->bids != NULL)
        return path_in_bids(j, number);
    if (j->folder && !task_of(j)->table)
        path = arena_format(j->memory, "%s%s%s%s", path, text_ends_with(path, "/") ? "" : "/",
                            j->cases[number].name, task_of(j)->ending);
    return j->stage != NULL ? path_of_more(j, path, j->stage) : path;
}

/*
 * Files of a case: classes, logits, probabilities, entropy, variance and the labels of a cascade's
 * first stage; or a map and its picture.
 */
enum { RESULTS_MAX = 6 };

static int results_of(const job *j, int number, const char *path[RESULTS_MAX])
{
    int count = 0;

    path[count++] = path_of(j, number);
    if (makes_maps(j) && png_available())
        path[count++] = path_of_overlay(j, path[0]);
    if (j->flags->logits)
        path[count++] = path_of_more(j, path[0], "logits");
    if (j->flags->probabilities)
        path[count++] = path_of_probabilities(j, path[0]);
    if (j->flags->uncertainty) {
        path[count++] = path_of_more(j, path[0], "entropy");
        path[count++] = path_of_more(j, path[0], "variance");
    }
    if (j->first != NULL)
        path[count++] = path_of(j->first, number);
    return count;
}

/* The identities of files, sorted for a binary search. */
typedef struct identities {
    size_t count;
    file_identity *item;
} identities;

static int compare_identities(const void *a, const void *b)
{
    const file_identity *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static void add_identity(identities *all, const char *path)
{
    all->count += path != NULL && file_identify(path, &all->item[all->count]);
}

/* The files that are read: images, and labels of a cascade's first stage. */
static identities identify_inputs(const job *j)
{
    identities all = { 0, NULL };

    for (int i = 0; i < j->case_count; i++)
        all.count += (size_t)j->cases[i].file_count + 1;
    all.item = arena_alloc(j->memory, all.count * sizeof *all.item + 1);
    all.count = 0;
    for (int i = 0; i < j->case_count; i++) {
        for (int k = 0; k < j->cases[i].file_count; k++)
            add_identity(&all, j->cases[i].file[k]);
        add_identity(&all, j->cases[i].previous);
    }
    qsort(all.item, all.count, sizeof *all.item, compare_identities);
    return all;
}

static pons_status check_path(const job *j, const identities *inputs, const char *path,
                              pons_error *err)
{
    file_identity there;

    if (file_identify(path, &there)
        && bsearch(&there, inputs->item, inputs->count, sizeof there, compare_identities) != NULL)
        return pons_fail(err, PONS_USAGE, "-o '%s': '%s' would replace an image that is read, "
                         "expected another file or folder", j->flags->output, path);
    return PONS_OK;
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/*
 * Refuse results that would replace an input image or another result. The check precedes the first
 * prediction.
 */
static pons_status check_paths(const job *j, pons_error *err)
{
    const char **path = arena_alloc(j->memory,
                                    (size_t)j->case_count * RESULTS_MAX * sizeof *path + 1);
    const identities inputs = identify_inputs(j);
    int count = 0;

    for (int i = 0; i < (task_of(j)->table ? 1 : j->case_count); i++)
        count += results_of(j, i, path + count);
    for (int i = 0; i < count; i++)
        if (check_path(j, &inputs, path[i], err) != PONS_OK)
            return err->status;
    qsort(path, (size_t)count, sizeof *path, compare_paths);
    for (int i = 1; i < count; i++)
        if (strcmp(path[i - 1], path[i]) == 0)
            return pons_fail(err, PONS_USAGE, "-o '%s': the results of two images would overwrite "
                             "each other, both are '%s'", j->flags->output, path[i]);
    return PONS_OK;
}

/* The ids that are written, with their names; 0: regions are channels, which have none. */
static int written_labels(const job *j, label_entry out[CLASS_COUNT_MAX + 1])
{
    const experiment *e = predictor_experiment(j->member[0]);
    bool classes = !e->regions && e->task.classes > 1;
    int count = 0;

    if (writes_channels(j))
        return 0;
    if (!classes)
        out[count++] = (label_entry){ 0, "background" };
    for (int c = 0; c < e->class_count; c++)
        out[count++] = (label_entry){ classes ? e->classes[c].id[0]
                                      : writes_map(j) ? id_in_map(e, c) : id_of_region(e),
                                      e->classes[c].name };
    return count;
}

/* Write the files of BIDS beside the labels of a case: ids, and the volumes of probabilities. */
static pons_status write_sidecars(const job *j, const char *labels, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);
    label_entry entry[CLASS_COUNT_MAX + 1];
    int count = written_labels(j, entry);

    if (label_table_write(j->memory, "bids", path_beside(j, labels, "_dseg"), count, entry, err)
        != PONS_OK || predict_bids_sidecar(path_beside(j, labels, "_dseg.json"), 0, NULL, err)
        != PONS_OK || !j->flags->probabilities)
        return err->status;
    for (int c = 0; c < e->class_count; c++)
        entry[c] = (label_entry){ c, e->classes[c].name };
    return predict_bids_sidecar(path_beside(j, labels, "_probseg.json"), e->class_count, entry,
                                err);
}

/* The largest uint8 stands for a probability of 1 - 6e-8, the next float32 below 1. */
static pons_status write_probabilities(const job *j, const char *path, const predict_result *r,
                                       pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);
    static const nifti_values values[] = {
        [PROBABILITY_FLOAT32] = { 16, 1 }, [PROBABILITY_UINT8] = { 2, 0x1.0101p-8 }
    };

    return nifti_write_values(path, &r->probabilities, &r->grid,
                              &values[e->sections.predict.probability_type], err);
}

static pons_status write_segmentation(const job *j, const char *path, const predict_result *r,
                                      float *record, pons_error *err)
{
    volume ids;

    memset(&ids, 0, sizeof ids);
    if (writes_map(j))
        to_label_map(predictor_experiment(j->member[0]), &r->classes, &ids, err);
    else
        to_ids(predictor_experiment(j->member[0]), &r->classes, &ids, err);
    if (err->status == PONS_OK && j->postprocess.count > 0)
        nnunet_postprocess_apply(&j->postprocess, &ids, err);
    if (err->status == PONS_OK)
        nifti_write(path, &ids, &r->grid, err);
    pons_volume_clear(&ids);
    if (err->status == PONS_OK && j->flags->logits)
        nifti_write(path_of_more(j, path, "logits"), &r->logits, &r->grid, err);
    if (err->status == PONS_OK && j->flags->probabilities)
        write_probabilities(j, path_of_probabilities(j, path), r, err);
    if (err->status == PONS_OK && j->bids != NULL)
        write_sidecars(j, path, err);
    if (err->status == PONS_OK && j->flags->uncertainty
        && nifti_write(path_of_more(j, path, "entropy"), &r->entropy, &r->grid, err) == PONS_OK)
        nifti_write(path_of_more(j, path, "variance"), &r->variance, &r->grid, err);
    return err->status;
}

/* Refuse a case of nnU-Net whose files, by the numbers in their names, are not all channels. */
static pons_status arrange_segmentation(job *j, predict_input *c, pons_error *err)
{
    int channels = predictor_image_channels(j->member[0]);

    if (!predictor_is_nnunet(j->member[0]) || nnunet_case(j, c->file[0])[0] == '\0')
        return PONS_OK;
    for (int i = 0; i < channels; i++) {
        const char *stem = i < c->file_count ? volume_file_stem(j->memory, c->file[i]) : "";
        const char *end = arena_format(j->memory, "_%04d", i);
        if (!text_ends_with(stem, end))
            return pons_fail(err, PONS_DATA, "case '%s' has no file of channel %d, expected "
                             "'%s%s'", c->name, i, c->name, end);
    }
    return PONS_OK;
}

/* ---- synthesis ------------------------------------------------------------------------------- */

static pons_status check_synthesis(const job *j, pons_error *err)
{
    const predict_flags *f = j->flags;

    if (f->logits || f->probabilities || f->uncertainty || f->label_map || f->bids)
        return pons_fail(err, PONS_USAGE, "--logits, --probabilities, --uncertainty, --label-map "
                         "and --bids are for segmentation, found a network of task = synthesis");
    if (j->member_count > 1)
        return pons_fail(err, PONS_USAGE, "found %d networks of task = synthesis, expected one"
                         "\nhint: --fold 0 takes one of a cross-validation", j->member_count);
    return PONS_OK;
}

static size_t modality_stem(const job *j, const char *stem)
{
    return predict_modalities_stem(predictor_experiment(j->member[0]), stem);
}

static pons_status arrange_synthesis(job *j, predict_input *c, pons_error *err)
{
    return predict_modalities_arrange(predictor_experiment(j->member[0]), j->memory,
                                      j->flags->target, c, err);
}

static pons_status write_synthesis(const job *j, const char *path, const predict_result *r,
                                   float *record, pons_error *err)
{
    return nifti_write(path, &r->image, &r->grid, err);
}

static void tell_volume(job *j, int number, const float *record)
{
    log_line(j->call->log, "%s -> %.4000s", j->cases[number].name, path_of(j, number));
}

/* ---- classification -------------------------------------------------------------------------- */

static pons_status check_classification(const job *j, pons_error *err)
{
    const predict_flags *f = j->flags;

    if (f->no_mirror)
        return pons_fail(err, PONS_USAGE, "--no-mirror has no effect on a network of task = "
                         "classification, which has no flipped windows");
    if (f->logits || f->probabilities || f->uncertainty || f->label_map || f->target != NULL
        || f->bids)
        return pons_fail(err, PONS_USAGE, "--logits, --probabilities, --uncertainty, --label-map, "
                         "--target and --bids are for volumes, found a network of task = "
                         "classification, whose table has the probabilities");
    return PONS_OK;
}

static pons_status check_table(job *j, bool of_folder, pons_error *err)
{
    for (int i = 0; i < j->case_count && err->status == PONS_OK; i++)
        predict_patches_check(predictor_experiment(j->member[0]), &j->cases[i], err);
    return err->status;
}

static pons_status write_classes(const job *j, const char *path, const predict_result *r,
                                 float *record, pons_error *err)
{
    memcpy(record, r->probabilities.voxels, (size_t)r->probabilities.channels * sizeof *record);
    return PONS_OK;
}

/* One process writes the rows of all. */
static void tell_classes(job *j, int number, const float *record)
{
    if (predictor_rank(j->member[0]) == 0)
        predict_classes_add(&j->table, j->cases[number].file[0], record);
}

/* ---- slides ---------------------------------------------------------------------------------- */

static bool is_map(const char *path)
{
    return text_ends_with(path, ".tif") || text_ends_with(path, ".tiff");
}

static bool is_folder(const char *path)
{
    return folder_is_there(path) || text_ends_with(path, "/");
}

/* The check precedes the search for slides, which -o may not have meant. */
static pons_status check_slides(const job *j, pons_error *err)
{
    const char *output = j->flags->output;

    if (check_classification(j, err) != PONS_OK || is_map(output) || is_folder(output))
        return err->status;
    return pons_fail(err, PONS_USAGE, "-o '%s': expected a file .csv, which has a row for each "
                     "image, or a file .tiff, which is the map of a slide", output);
}

/* Expect -o to be a map for one slide, else a folder. */
static pons_status check_maps(job *j, bool of_folder, pons_error *err)
{
    const char *output = j->flags->output;

    j->folder = is_folder(output);
    if (!j->folder && j->case_count > 1)
        return pons_fail(err, PONS_USAGE, "-o '%s': expected a folder for %d slides, as %s/",
                         output, j->case_count, output);
    for (int i = 0; i < j->case_count; i++) {
        const predict_input *c = &j->cases[i];
        if (c->file_count != 1)
            return pons_fail(err, PONS_USAGE, "'%s' and %d more: expected one file for each map of "
                             "a slide", c->file[0], c->file_count - 1);
        if (c->patch != NULL)
            return pons_fail(err, PONS_USAGE, "'%s' is a patch, expected slides for maps\n"
                             "hint: -o classes.csv writes a row for each patch", c->file[0]);
    }
    if (!png_available())
        log_warning(j->call->log, "no pictures of maps are written: this build lacks libpng");
    return PONS_OK;
}

/* Write a map, and beside it the picture of the slide under it. */
static pons_status predict_slide(const job *j, int number, pons_error *err)
{
    const char *map = path_of(j, number);
    slide_thumbnail overlay = { .rgb = NULL };
    const predict_slide_work work = { .slide = j->cases[number].file[0], .map = map,
                                      .overlay = &overlay, .stride = j->flags->stride };

    if (predict_slide_run(j->member_count, j->member, &work, err) == PONS_OK && png_available()
        && predictor_rank(j->member[0]) == 0)
        png_write_rgb(path_of_overlay(j, map), (int)overlay.columns, (int)overlay.rows,
                      overlay.rgb, err);
    slide_thumbnail_clear(&overlay);
    return predictor_share(j->member[0], err);
}

/* Predict slides in order. One that cannot be read is named, and the others are predicted. */
static pons_status predict_slides(job *j, pons_error *err)
{
    for (int i = 0; i < j->case_count && err->status == PONS_OK; i++) {
        pons_error problem = PONS_ERROR_INIT;

        if (folder_make_for(path_of(j, i), err) != PONS_OK)
            return err->status;
        if (predict_slide(j, i, &problem) == PONS_DATA)
            note_failure(j, i, problem.text, err);
        else if (problem.status != PONS_OK)
            pons_fail(err, problem.status, "%s", problem.text);
    }
    return err->status;
}

static const predict_task tasks[] = {
    { TASK_SEGMENTATION, "", check_segmentation, channel_stem, false, false, arrange_segmentation,
      check_volumes, false, write_segmentation, tell_volume, ".nii.gz", predict_volumes },
    { TASK_SYNTHESIS, "", check_synthesis, modality_stem, true, true, arrange_synthesis,
      check_volumes, false, write_synthesis, tell_volume, ".nii.gz", predict_volumes },
    { TASK_CLASSIFICATION, ".csv", check_classification, channel_stem, false, false,
      arrange_segmentation, check_table, true, write_classes, tell_classes, "", predict_volumes },
    /* Patches of slides. */
    { TASK_CLASSIFICATION, "", check_slides, channel_stem, false, false,
      arrange_segmentation, check_maps, false, NULL, NULL, ".tiff", predict_slides },
};

/* The first rules of the networks' task that hold with the ending of -o. */
static const predict_task *task_of(const job *j)
{
    task_kind task = predictor_experiment(j->member[0])->sections.experiment.task;
    const predict_task *t = tasks;

    while (t->task != task || !text_ends_with(j->flags->output, t->output))
        t++;
    return t;
}

/* Record a case that could not be read. Other cases are still written. */
static pons_status note_failure(job *j, int number, const char *problem, pons_error *err)
{
    if (j->case_count == 1)
        return pons_fail(err, PONS_DATA, "%s", problem);
    if (j->failed++ == 0)
        j->first_failed = number;
    if (j->stage != NULL)
        j->cases[number].previous = NULL;
    if (predictor_rank(j->member[0]) == 0)
        log_error(j->call->log, problem);
    return PONS_OK;
}

/* The outcome of a case for all ranks: the error that prevented its result, or "". */
typedef struct outcome {
    char problem[sizeof ((pons_error *)NULL)->text];
    float probability[];     /* one for each class, if the task writes a table                    */
} outcome;

static pons_status take_result(void *context, int number, predict_result *r,
                               const pons_error *problem, void *record, pons_error *err)
{
    job *j = context;
    outcome *o = record;

    if (r != NULL)
        j->progress.voxels += r->grid.extent[0] * r->grid.extent[1] * r->grid.extent[2];
    if (r != NULL)
        return task_of(j)->write(j, path_of(j, number), r, o->probability, err);
    memcpy(o->problem, problem->text, sizeof o->problem);
    return PONS_OK;
}

static void show_progress(void *context, int number, double share)
{
    job *j = context;

    if (predictor_rank(j->member[0]) == 0)
        case_progress_show(&j->progress, j->call->log, number, share);
}

static pons_status tell_result(void *context, int number, const void *record, pons_error *err)
{
    job *j = context;
    const outcome *o = record;

    if (o->problem[0] != '\0')
        return note_failure(j, number, o->problem, err);
    task_of(j)->tell(j, number, o->probability);
    return PONS_OK;
}

/* Log the id by which each class of several ids is written. */
static void tell_ids(const job *j)
{
    const experiment *e = predictor_experiment(j->member[0]);

    for (int c = 0; c < e->class_count && !e->regions; c++)
        if (e->classes[c].id_count > 1)
            log_line(j->call->log, "class '%s' is written as id %d, for the ids %.200s",
                     e->classes[c].name, e->classes[c].id[0],
                     class_ids_text(j->memory, &e->classes[c]));
}

/* Complete the table of all cases, also where some of them could not be read. */
static void close_table(job *j, pons_error *err)
{
    int rows = j->case_count - j->failed;

    if (j->table.open && predict_classes_close(&j->table, err) == PONS_OK && rows > 0)
        log_line(j->call->log, "%d image%s -> %.4000s", rows, text_plural(rows),
                 j->flags->output);
}

/*
 * Write [predict] tables: 'labels' and 'dseg' in the folder of predictions, or beside the file. A
 * derivative of BIDS has the table of each file beside it.
 */
static pons_status write_tables(const job *j, pons_error *err)
{
    const pons_texts *tables = &predictor_experiment(j->member[0])->sections.predict.tables;
    label_entry entry[CLASS_COUNT_MAX + 1];
    int count = written_labels(j, entry);
    const char *path = j->flags->output;
    size_t size = strlen(path) - (j->folder ? 0 : file_kind_ending(path, FILE_VOLUME));

    if (tables->count > 0 && count == 0)
        log_warning(j->call->log, "[predict] tables: regions in channels have no ids, so no table "
                    "is written");
    for (int i = 0; i < tables->count && count > 0 && err->status == PONS_OK; i++) {
        bool bids = strcmp(tables->item[i], "bids") == 0;
        const char *name = !j->folder ? "" : bids ? "/dseg" : "/labels";

        if (!bids || j->bids == NULL)
            label_table_write(j->memory, tables->item[i],
                              arena_format(j->memory, "%.*s%s", (int)size, path, name), count,
                              entry, err);
    }
    if (err->status == PONS_OK && j->bids != NULL)
        predict_bids_describe(j->memory, path, err);
    return err->status;
}

static pons_status predict_volumes(job *j, pons_error *err)
{
    const experiment *e = predictor_experiment(j->member[0]);
    size_t classes = (size_t)e->class_count;
    const predict_work work = {
        .count = j->case_count, .input = j->cases, .logits = j->flags->logits,
        .probabilities = j->flags->probabilities, .force = j->flags->force,
        .uncertainty = j->flags->uncertainty, .dropout_passes = (int)j->flags->passes,
        .dropped = j->dropped,
        .record_size = sizeof(outcome) + (task_of(j)->table ? classes * sizeof(float) : 0),
        .take = take_result, .tell = tell_result, .progress = show_progress, .context = j
    };

    if (j->flags->stride > 0)
        return pons_fail(err, PONS_USAGE, "--stride is for maps of slides");
    if (task_of(j)->table && predictor_rank(j->member[0]) == 0)
        predict_classes_open(&j->table, e, j->flags->output, err);
    if (task_of(j)->table && predictor_share(j->member[0], err) != PONS_OK)
        return err->status;
    j->progress = (case_progress){ "predicting", j->case_count, seconds_now(), 0 };
    predict_run(j->member_count, j->member, &work, err);
    case_progress_end(j->call->log);
    close_table(j, err);
    if (err->status != PONS_OK || e->sections.experiment.task != TASK_SEGMENTATION
        || j->stage != NULL || j->failed == j->case_count)
        return err->status;
    if (predictor_rank(j->member[0]) == 0)
        write_tables(j, err);
    return predictor_share(j->member[0], err);
}

/* Remove what killed processes have left of the files to be written. */
static void sweep_results(const job *j)
{
    const char *path[RESULTS_MAX];
    int cases = j->folder && j->bids == NULL ? 0 : j->case_count;

    if (j->folder)
        safe_file_sweep(j->flags->output);
    for (int n = 0; n < cases; n++)
        for (int i = 0, count = results_of(j, n, path); i < count; i++)
            safe_file_sweep_path(path[i]);
}

static pons_status predict_cases(job *j, pons_error *err)
{
    sweep_results(j);
    task_of(j)->predict(j, err);
    if (err->status == PONS_OK && j->failed > 0)
        pons_fail(err, PONS_DATA, "%d of %d cases could not be predicted, the first is '%s'",
                  j->failed, j->case_count, j->cases[j->first_failed].name);
    return err->status;
}

/* ---- run ------------------------------------------------------------------------------------- */

/* Open the network of 'source' a second time, with its dropout, if --passes asks for samples. */
static pons_status open_dropped(job *j, predict_source *source, pons_error *err)
{
    if (j->flags->passes == 0)
        return PONS_OK;
    if (!j->flags->uncertainty)
        return pons_fail(err, PONS_USAGE, "--passes is for --uncertainty");
    if (j->member_count > 1)
        return pons_fail(err, PONS_USAGE, "--passes samples the dropout of one network, found %d",
                         j->member_count);
    source->dropout = true;
    return predictor_open(source, j->member[0], j->call->log, &j->dropped, err);
}

static predict_source source_of(const job *j)
{
    const invocation *call = j->call;
    int set_count = call->set_count;
    const char **set = arena_alloc(j->memory, ((size_t)set_count + 1) * sizeof *set);

    if (set_count > 0)
        memcpy(set, call->set, (size_t)set_count * sizeof *set);
    if (j->flags->no_mirror)
        set[set_count++] = "window.mirror=";
    return (predict_source){
        .run = call->argument[0],
        .config = j->flags->config != NULL && j->flags->config[0] != '\0' ? j->flags->config : NULL,
        .set_count = set_count, .set = set,
        .image_channels = count_channels(call->argument[1]), .any = j->flags->any
    };
}

/* Open the networks that source->run names, those of the first stage on the second's devices. */
static pons_status open_networks(job *j, predict_source *source, pons_error *err)
{
    predict_folds folds = { j->flags->fold, j->flags->folds, j->memory, "" };

    predict_members_open(source, &folds, j->beside, j->call->log, j->member, &j->member_count, err);
    j->nnunet_folds = folds.opened;
    return err->status;
}

static pons_status open_members(job *j, pons_error *err)
{
    predict_source source = source_of(j);

    return open_networks(j, &source, err) == PONS_OK ? open_dropped(j, &source, err) : err->status;
}

/* ---- post-processing ------------------------------------------------------------------------- */

/* Read the rules of a folder of nnU-Net; an ensemble of several folders has none. */
static pons_status open_postprocess(job *j, pons_error *err)
{
    const char *run = j->call->argument[0];
    nnunet_postprocess *rules = &j->postprocess;

    if (nnunet_is_fold(run))
        run = arena_format(j->memory, "%s/..", run);
    if (!nnunet_is_model(run))
        return !j->flags->no_postprocess ? PONS_OK
               : pons_fail(err, PONS_USAGE, "--no-postprocess is for a folder of nnU-Net, found "
                           "'%s'", run);
    if (j->flags->no_postprocess
        || nnunet_postprocess_read(rules, j->memory, run, j->nnunet_folds, err) != PONS_OK)
        return err->status;
    if (rules->count > 0 && writes_channels(j))
        return pons_fail(err, PONS_USAGE, "'%s' is for one label a voxel, and regions are written "
                         "as channels\nhint: --no-postprocess leaves them as they are",
                         rules->file);
    if (rules->count > 0 && predictor_rank(j->member[0]) == 0)
        log_line(j->call->log, "%d rule%s of '%s' keep%s the largest part of labels", rules->count,
                 text_plural(rules->count), rules->file, rules->count == 1 ? "s" : "");
    return PONS_OK;
}

/* ---- cascades -------------------------------------------------------------------------------- */

/*
 * The model folder that a configuration has beside RUN, "TRAINER__PLANS__CONFIGURATION", or NULL.
 */
static const char *folder_beside(const job *j, const char *configuration)
{
    char *path = realpath(j->call->argument[0], NULL), *mark = NULL;
    const char *out = NULL;

    if (path != NULL && nnunet_is_fold(path))
        *strrchr(path, '/') = '\0';
    for (char *next = path; next != NULL && (next = strstr(next, "__")) != NULL; next += 2)
        mark = next;
    if (mark != NULL && strchr(mark, '/') == NULL)
        out = arena_format(j->memory, "%.*s__%s", (int)(mark - path), path, configuration);
    free(path);
    return out;
}

/* Open the model of the first stage on the devices of the second. */
static pons_status open_first(job *j, const char *model, pons_error *err)
{
    predict_flags *flags = arena_alloc(j->memory, sizeof *flags);
    job *first = arena_alloc(j->memory, sizeof *first);

    *flags = *j->flags;
    flags->logits = flags->probabilities = flags->uncertainty = false;
    flags->passes = 0;
    *first = *j;
    first->flags = flags;
    first->stage = predictor_previous(j->member[0]);
    first->member_count = 0;
    first->dropped = NULL;
    first->postprocess.count = 0;
    first->beside = j->member[0];
    j->first = first;
    predict_source source = source_of(first);
    source.run = model;
    if (open_networks(first, &source, err) != PONS_OK)
        return err->status;
    if (predictor_previous(first->member[0]) == NULL
        && predictor_image_channels(first->member[0]) == predictor_image_channels(j->member[0]))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "'%s' is not the first stage of a cascade of %d channels",
                     model, predictor_image_channels(j->member[0]));
}

/* Find the labels of a cascade's first stage, or the model that predicts them. */
static pons_status find_first(job *j, pons_error *err)
{
    const char *stage = predictor_previous(j->member[0]), *given = j->flags->previous;
    const char *path = given != NULL && given[0] != '\0' ? given : NULL;

    if (stage == NULL)
        return path == NULL ? PONS_OK
               : pons_fail(err, PONS_USAGE, "--previous '%s' is for the second stage of a cascade, "
                           "found another network", path);
    if (path == NULL)
        path = folder_beside(j, stage);
    if (path != NULL && (nnunet_is_model(path) || nnunet_is_fold(path)))
        return open_first(j, path, err);
    if (given == NULL || given[0] == '\0')
        return pons_fail(err, PONS_CONFIG, "'%s' is the second stage of a cascade, and '%s' is no "
                         "model folder of its first, '%s'\nhint: --previous FOLDER names one, or "
                         "the labels that it predicted", j->call->argument[0],
                         path != NULL ? path : "", stage);
    return predict_find_previous(j->memory, path, j->case_count, j->cases, err);
}

/* Predict the first stage. A case that fails has no labels then. */
static pons_status predict_first(job *j, pons_error *err)
{
    job *first = j->first;

    if (first == NULL)
        return PONS_OK;
    for (int i = 0; i < j->case_count; i++)
        j->cases[i].previous = path_of(first, i);
    return predict_volumes(first, err);
}

static void close_members(job *j, const pons_error *err)
{
    predictor_close(j->dropped, err);
    while (j->member_count-- > 0)
        predictor_close(j->member[j->member_count], err);
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    job j = { .call = call, .flags = given, .memory = arena_new(), .nnunet_folds = "" };

    if (j.memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (open_members(&j, err) == PONS_OK && task_of(&j)->check(&j, err) == PONS_OK
        && open_postprocess(&j, err) == PONS_OK && list_cases(&j, err) == PONS_OK
        && find_first(&j, err) == PONS_OK && check_paths(&j, err) == PONS_OK) {
        tell_ids(&j);
        if (predict_first(&j, err) == PONS_OK)
            predict_cases(&j, err);
    }
    if (j.first != NULL)
        close_members(j.first, err);
    close_members(&j, err);
    while (j.dataset_count-- > 0)
        dataset_close(j.datasets[j.dataset_count]);
    arena_free(j.memory);
    return err->status;
}

const command command_predict = {
    "predict", "segment or classify images with a trained network", "RUN[,RUN...] "
    "IMAGE[,CHANNEL...]... -o OUT", flags,
    sizeof(predict_flags), "o=output", 2, -1, run
};
