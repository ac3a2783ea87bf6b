/*
 * preprocess.c - run the deterministic half of the data path and write its cases.
 */
#include "cli/data/preprocess.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/progress.h"
#include "base/text/text_stream.h"
#include "base/thread/parallel.h"
#include "config/sections.h"
#include "data/case/case_load.h"
#include "data/case/case_read.h"
#include "data/nifti/nifti_write.h"
#include "data/transform/pipeline.h"
#include "data/volume/geometry.h"
#include "data/volume/volume.h"
#include "experiment/data_settings.h"

/* Keep the file's ids, because no list of labels maps them. */
static pons_status keep_ids(volume *label, const char *file, pons_error *err)
{
    const int32_t *id = label->voxels;
    int64_t count = pons_volume_count(label);
    uint8_t *value = malloc((size_t)count);

    if (!value)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int64_t n = 0; n < count; n++) {
        if (id[n] < 0 || id[n] > 255) {
            free(value);
            return pons_fail(err, PONS_DATA, "'%s' has id %d, expected 0 to 255\nhint: list the "
                             "ids in [data] labels", file, id[n]);
        }
        value[n] = (uint8_t)id[n];
    }
    free(label->voxels);
    label->voxels = value;
    label->type = PONS_U8;
    return PONS_OK;
}

/* Read a case of a dataset without a list of labels. */
static pons_status read_unlisted(const dataset *d, const data_case *info, pons_case *out,
                                 pons_error *err)
{
    loaded_case files;
    pons_status status = case_load(info, d->channels, false, &files, err);

    *out = (pons_case){ .size = sizeof *out, .name = info->id, .image = files.image,
                        .label = files.label };
    if (status || !info->label)
        return status;
    if (files.label_problem.status)
        return pons_fail(err, files.label_problem.status, "%s", files.label_problem.text);
    status = volume_grid_compare(&files.label_grid, info->label, &files.grid, info->image[0], err);
    if (!status)
        status = keep_ids(&out->label, info->label, err);
    return status;
}

pons_status preprocess_read(const dataset *d, int rank, pons_case *out, pons_error *err)
{
    return d->class_count > 0 ? case_read(d, rank, out, err)
                              : read_unlisted(d, &d->cases[rank], out, err);
}

static pons_status write_part(const char *folder, const data_case *info, const char *name,
                              const volume *v, pons_error *err)
{
    char path[4096];
    bool read = false;

    if (!v->voxels)
        return PONS_OK;
    if (snprintf(path, sizeof path, "%s/%s/%s.nii.gz", folder, info->id, name) >= (int)sizeof path)
        return pons_fail(err, PONS_FAILURE, "cannot write case '%s': the path is too long",
                         info->id);
    for (int i = 0; i < info->image_count; i++)
        read = read || file_is(path, info->image[i]);
    if (read || (info->label && file_is(path, info->label)))
        return pons_fail(err, PONS_USAGE, "-o '%s' would replace '%s', which is read, expected "
                         "another folder", folder, path);
    safe_file_sweep_path(path);
    return nifti_write(path, v, NULL, err);
}

/* A case whose image and label are written in parallel. */
typedef struct part_writing {
    const char *folder;
    const data_case *info;
    const pons_case *c;
    pons_error problem[2];
} part_writing;

static void write_parts(void *context, int64_t first, int64_t end)
{
    part_writing *w = context;

    for (int64_t n = first; n < end; n++)
        write_part(w->folder, w->info, n == 0 ? "image" : "label",
                   n == 0 ? &w->c->image : &w->c->label, &w->problem[n]);
}

static pons_status write_both(const char *folder, const data_case *info, const pons_case *c,
                              pons_error *err)
{
    part_writing w = { folder, info, c, { PONS_ERROR_INIT, PONS_ERROR_INIT } };

    parallel_run(2, 1, write_parts, &w);
    for (int n = 0; n < 2 && err->status == PONS_OK; n++)
        if (w.problem[n].status != PONS_OK)
            pons_fail(err, w.problem[n].status, "%s", w.problem[n].text);
    return err->status;
}

static pons_status write_case(const dataset *d, const pipeline *chain, int rank,
                              const char *folder, logger *l, pons_error *err)
{
    const data_case *info = &d->cases[rank];
    pons_case c = { .size = sizeof c };
    pons_status status = preprocess_read(d, rank, &c, err);

    if (!status)
        status = pipeline_apply(chain, dataset_step_cases(d, rank), &c, l, err);
    packed_case_mark_ignored(&c);
    if (!status)
        status = write_both(folder, info, &c, err);
    if (!status)
        log_line(l, "%s: %lld x %lld x %lld", info->id, (long long)c.image.extent[0],
                 (long long)c.image.extent[1], (long long)c.image.extent[2]);
    case_clear(&c);
    return status;
}

/* The log lines of a case. They are held until all earlier cases are logged. */
typedef struct case_note {
    text_stream lines;
    bool done;
} case_note;

/* All cases. Threads write several in parallel. */
typedef struct writing {
    const dataset *data;
    const pipeline *chain;
    const char *folder;
    logger *log;              /* may be NULL                                                      */
    pthread_mutex_t lock;     /* protects all members below                                       */
    case_note *note;          /* a note for each case                                             */
    int told;                 /* cases whose notes are logged                                     */
    case_progress progress;
    int failed;               /* index of the earliest failed case; number of cases: none         */
    pons_error error;
} writing;

static void tell_lines(logger *l, char *text)
{
    for (char *line; text != NULL && (line = strsep(&text, "\n")) != NULL; )
        if (*line != '\0' && l != NULL)
            log_line(l, "%s", line);
}

/* End a case, and log all notes that are complete, in the order of the cases. */
static void end_case(writing *w, int rank, const pons_error *problem)
{
    pthread_mutex_lock(&w->lock);
    w->note[rank].done = true;
    if (problem->status != PONS_OK && rank < w->failed) {
        w->failed = rank;
        w->error = *problem;
    }
    for (; w->told < w->data->case_count && w->note[w->told].done; w->told++)
        if (w->told <= w->failed)
            tell_lines(w->log, w->note[w->told].lines.text);
    if (w->log != NULL)
        case_progress_show(&w->progress, w->log, w->told, 0);
    pthread_mutex_unlock(&w->lock);
}

static void write_noted(writing *w, int rank)
{
    pons_error problem = PONS_ERROR_INIT;
    text_stream *s = &w->note[rank].lines;

    if (text_stream_open(s)) {
        logger said = { .terminal = s->to, .level = w->log ? w->log->level : LOG_NORMAL };
        write_case(w->data, w->chain, rank, w->folder, &said, &problem);
    }
    if (!text_stream_close(s) && problem.status == PONS_OK)
        pons_fail(&problem, PONS_DEVICE, "out of memory");
    end_case(w, rank, &problem);
}

/* Write cases, but none behind a failed one. */
static void write_cases(void *context, int64_t first, int64_t end)
{
    writing *w = context;

    for (int64_t rank = first; rank < end; rank++) {
        pthread_mutex_lock(&w->lock);
        bool left = rank > w->failed;
        pthread_mutex_unlock(&w->lock);
        if (!left)
            write_noted(w, (int)rank);
    }
}

static pons_status write_all(const dataset *d, const pipeline *chain, const char *folder,
                             int threads, logger *l, pons_error *err)
{
    writing w = { .data = d, .chain = chain, .folder = folder, .log = l,
                  .failed = d->case_count, .error = PONS_ERROR_INIT,
                  .progress = { "preprocessing", d->case_count, seconds_now(), 0, 0 } };
    thread_budget spare = { threads > 1 ? threads - 1 : 0 }, *before;

    w.note = calloc((size_t)d->case_count + 1, sizeof *w.note);
    if (w.note == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    pthread_mutex_init(&w.lock, NULL);
    before = thread_budget_set(&spare);
    parallel_run(d->case_count, 1, write_cases, &w);
    thread_budget_set(before);
    pthread_mutex_destroy(&w.lock);
    if (l != NULL)
        case_progress_end(l);
    for (int n = 0; n < d->case_count; n++)
        free(w.note[n].lines.text);
    free(w.note);
    return w.failed < d->case_count ? pons_fail(err, w.error.status, "%s", w.error.text) : PONS_OK;
}

/* 'split': cases for validation are told from those for training. */
static pons_status open_dataset(config *c, bool split, bool labels_optional, sections *s,
                                dataset **out, pons_error *err)
{
    dataset_settings settings;
    pons_status status = sections_fill(c, s, err);

    if (status)
        return status;
    sections_skip_plugins(c, s, (const char *const[]){ "preprocess", NULL });
    dataset_settings_fill(c, s, &settings);
    settings.every_case = !split;
    settings.labels_optional = labels_optional;
    dataset_open(&settings, out, err);
    return dataset_blame(c, s, err);
}

/* Open the dataset and its steps. The dataset is split only if a step tells its parts apart. */
static pons_status open_both(config *c, bool labels_optional, sections *s, dataset **d,
                             pipeline **chain, pons_error *err)
{
    if (open_dataset(c, false, labels_optional, s, d, err) != PONS_OK
        || pipeline_open(c, "preprocess", false, (*d)->channels, chain, err) != PONS_OK
        || config_refuse_unknown(c, err) != PONS_OK)
        return err->status;
    if (!pipeline_tells_cases(*chain))
        return PONS_OK;
    dataset_close(*d);
    *d = NULL;
    return open_dataset(c, true, labels_optional, s, d, err);
}

pons_status preprocess_write(config *c, const char *folder, logger *l, pons_error *err)
{
    dataset *d = NULL;
    sections s;
    pipeline *chain = NULL;
    cache_settings settings;

    if (open_both(c, true, &s, &d, &chain, err) == PONS_OK) {
        cache_settings_fill(&s, &settings);
        write_all(d, chain, folder, settings.threads, l, err);
    }
    pipeline_close(chain);
    dataset_close(d);
    return err->status;
}

/* Hold all cases in files: of the first kind that does so, else of CACHE_DISK. */
static void use_folder(cache_settings *s)
{
    if (cache_mode_in_folder(s->next_mode)) {
        s->mode = s->next_mode;
        s->limit = s->next_limit;
    } else if (!cache_mode_in_folder(s->mode)) {
        s->mode = CACHE_DISK;
    }
    s->next_mode = CACHE_NONE;
}

static pons_status fill_cache(const dataset *d, const pipeline *chain, int count, const int *rank,
                              const cache_settings *settings, logger *l, pons_error *err)
{
    cache *filled = NULL;

    if (count > 0)
        cache_open(d, chain, count, rank, settings, l, &filled, err);
    cache_close(filled);
    return err->status;
}

pons_status preprocess_cache(config *c, logger *l, pons_error *err)
{
    dataset *d = NULL;
    sections s;
    cache_settings settings;
    pipeline *chain = NULL;

    if (open_both(c, false, &s, &d, &chain, err) == PONS_OK) {
        cache_settings_fill(&s, &settings);
        use_folder(&settings);
        if (fill_cache(d, chain, d->training_count, d->training, &settings, l, err) == PONS_OK)
            fill_cache(d, chain, d->validation_count, d->validation, &settings, l, err);
    }
    pipeline_close(chain);
    dataset_close(d);
    return err->status;
}
