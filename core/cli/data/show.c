/*
 * show.c - draw cases before and after [preprocess], and patches as the network gets them.
 */
#include "cli/data/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "base/text/text_stream.h"
#include "cli/data/preprocess.h"
#include "config/sections.h"
#include "data/case/case_read.h"
#include "data/loader/loader.h"
#include "experiment/data_settings.h"
#include "report/picture/class_marks.h"
#include "report/picture/sheet.h"

enum { CASE_SIDE = 320, PATCH_SIDE = 160 };

static const char patches_name[] = "patches"; /* of the sheet of patches                          */

/* What both commands open. */
typedef struct showing {
    sections sections;
    dataset *data;
    pipeline *preprocess, *augment;
    int count;               /* cases that are shown                                              */
    int *rank;
    const char *folder;
    logger *log;
    text_stream captions;    /* lines of captions.txt                                             */
} showing;

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status find_rank(const dataset *d, const char *name, int *rank, pons_error *err)
{
    for (*rank = 0; *rank < d->case_count; ++*rank)
        if (strcmp(d->cases[*rank].id, name) == 0)
            return PONS_OK;
    return pons_fail(err, PONS_USAGE, "there is no case '%s' in '%s'\nhint: pons data check lists "
                     "what was found", name, d->origin);
}

/* The named cases, or all cases in order. */
static pons_status choose_cases(showing *s, int name_count, const char *const *name,
                                pons_error *err)
{
    s->count = name_count > 0 ? name_count : s->data->case_count;
    s->rank = calloc((size_t)s->count + 1, sizeof *s->rank);
    if (s->rank == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int n = 0; n < s->count; n++) {
        if (name_count == 0)
            s->rank[n] = n;
        else if (find_rank(s->data, name[n], &s->rank[n], err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

/* Every case of 'patches' needs a label. */
static pons_status open_dataset(showing *s, config *c, bool patches, bool split, pons_error *err)
{
    dataset_settings settings;

    dataset_settings_fill(c, &s->sections, &settings);
    settings.every_case = !split;
    settings.labels_optional = !patches;
    if (dataset_open(&settings, &s->data, err) != PONS_OK)
        return dataset_blame(c, &s->sections, err);
    return PONS_OK;
}

/* Cases are split for patches, or if a step of [preprocess] tells their parts apart. */
static pons_status open_data(showing *s, config *c, bool patches, pons_error *err)
{
    static const char *const kept[] = { "preprocess", "augment", NULL };

    if (sections_fill(c, &s->sections, err) != PONS_OK)
        return err->status;
    sections_skip_plugins(c, &s->sections, kept);
    if (patches && s->sections.patch.extent[0] == 0)
        return sections_require("patch", "extent", err);
    if (open_dataset(s, c, patches, patches, err) != PONS_OK
        || pipeline_open(c, "preprocess", false, s->data->channels, &s->preprocess, err) != PONS_OK
        || pipeline_open(c, "augment", true, s->data->channels, &s->augment, err) != PONS_OK
        || config_refuse_unknown(c, err) != PONS_OK)
        return err->status;
    if (patches || !pipeline_tells_cases(s->preprocess))
        return PONS_OK;
    dataset_close(s->data);
    s->data = NULL;
    return open_dataset(s, c, false, true, err);
}

static void close_data(showing *s)
{
    free(s->rank);
    pipeline_close(s->augment);
    pipeline_close(s->preprocess);
    dataset_close(s->data);
}

static pons_status picture_path(const showing *s, const char *name, char *path, size_t size,
                                pons_error *err)
{
    if (snprintf(path, size, "%s/%s.png", s->folder, name) < (int)size)
        return PONS_OK;
    return pons_fail(err, PONS_FAILURE, "cannot write a picture of '%s': the path is too long",
                     name);
}

/* ---- captions -------------------------------------------------------------------------------- */

static const char captions_name[] = "captions.txt";

static pons_status open_captions(showing *s, pons_error *err)
{
    return text_stream_open(&s->captions) ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory");
}

/* Close the captions, and write their file if every picture has been written. */
static void close_captions(showing *s, pons_error *err)
{
    char path[4096];
    safe_file f;

    if (!text_stream_close(&s->captions) && err->status == PONS_OK)
        pons_fail(err, PONS_DEVICE, "out of memory");
    if (err->status == PONS_OK
        && snprintf(path, sizeof path, "%s/%s", s->folder, captions_name) < (int)sizeof path
        && safe_file_open(&f, path, err) == PONS_OK) {
        if (safe_file_write(&f, s->captions.text, s->captions.size, err) == PONS_OK
            && safe_file_commit(&f, err) == PONS_OK)
            log_line(s->log, "'%s'", path);
        else
            safe_file_discard(&f);
    }
    free(s->captions.text);
}

/* Write the channels, which are the rows of a picture: "T1, T2". */
static void put_channels(const showing *s)
{
    const dataset *d = s->data;

    for (int c = 0; c < d->channels; c++) {
        fputs(c > 0 ? ", " : "", s->captions.to);
        if (d->channel_names != NULL)
            fputs(d->channel_names[c], s->captions.to);
        else
            fprintf(s->captions.to, "channel %d", c);
    }
}

static void put_steps(const showing *s, const pipeline *p)
{
    for (int n = 0; n < p->count; n++)
        fprintf(s->captions.to, "%s%s", n > 0 ? " " : "", p->step[n].name);
    fputs(p->count == 0 ? "no step" : "", s->captions.to);
}

/* The class of an image that has one as a whole: " (class cat)". */
static void put_class(const showing *s, int rank)
{
    if (s->data->cases[rank].class_name != NULL)
        fprintf(s->captions.to, " (class %s)", s->data->cases[rank].class_name);
}

/* The colours of the outlines, in one line. Images with one class each have no outlines. */
static void tell_colors(const showing *s)
{
    const dataset *d = s->data;
    bool regions = d->region_count > 0;
    const data_class *class = regions ? d->regions : d->classes;
    int count = regions ? d->region_count : d->class_count, first = regions ? 0 : 1;
    text_stream line;

    if (d->target != TARGET_OF_VOXELS || !text_stream_open(&line))
        return;
    for (int n = first; n < count; n++)
        fprintf(line.to, "%s%s %s", n > first ? ", " : "", class[n].name,
                mark_class_color_name(n - first));
    if (text_stream_close(&line) && line.size > 0) {
        log_line(s->log, "outlines: %s", line.text);
        fprintf(s->captions.to, "outlines: %s\n", line.text);
    }
    free(line.text);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void add_rows(sheet_item *item, int channels, const pons_case *c)
{
    for (int channel = 0; channel < channels; channel++)
        item[channel] = (sheet_item){ &c->image, &c->label, channel };
}

static pons_status draw_case(const showing *s, int rank, const pons_case *before,
                             const pons_case *after, pons_error *err)
{
    const char *name = s->data->cases[rank].id;
    int channels = before->image.channels;
    sheet_item *item = calloc((size_t)(2 * channels), sizeof *item);
    char path[4096];

    if (item == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    add_rows(item, channels, before);
    add_rows(item + channels, channels, after);
    if (picture_path(s, name, path, sizeof path, err) == PONS_OK
        && sheet_write(path, item, 2 * channels, 1, CASE_SIDE, err) == PONS_OK) {
        log_line(s->log, "'%s'", path);
        fprintf(s->captions.to, "%s.png", name);
        put_class(s, rank);
        fputs(": rows from the top: ", s->captions.to);
        put_channels(s);
        fputs(" as in the file; the same after ", s->captions.to);
        put_steps(s, s->preprocess);
        fputc('\n', s->captions.to);
    }
    free(item);
    return err->status;
}

static pons_status copy_case(const pons_case *from, pons_case *to, pons_error *err)
{
    *to = (pons_case){ .size = sizeof *to, .name = from->name };
    if (volume_copy(&from->image, &to->image, err) != PONS_OK || from->label.voxels == NULL)
        return err->status;
    return volume_copy(&from->label, &to->label, err);
}

static pons_status show_case(const showing *s, int rank, pons_error *err)
{
    pons_case before = { .size = sizeof before }, after = { .size = sizeof after };

    if (preprocess_read(s->data, rank, &before, err) == PONS_OK
        && copy_case(&before, &after, err) == PONS_OK
        && pipeline_apply(s->preprocess, dataset_step_cases(s->data, rank), &after, s->log, err)
               == PONS_OK)
        draw_case(s, rank, &before, &after, err);
    case_clear(&before);
    case_clear(&after);
    return err->status;
}

pons_status show_cases(config *c, int name_count, const char *const *name, const char *folder,
                       logger *l, pons_error *err)
{
    showing s = { .folder = folder, .log = l };

    if (open_captions(&s, err) == PONS_OK && open_data(&s, c, false, err) == PONS_OK
        && choose_cases(&s, name_count, name, err) == PONS_OK) {
        safe_file_sweep(folder);
        tell_colors(&s);
        for (int n = 0; n < s.count && err->status == PONS_OK; n++)
            show_case(&s, s.rank[n], err);
    }
    close_captions(&s, err);
    close_data(&s);
    return err->status;
}

/* ---- patches --------------------------------------------------------------------------------- */

/* Copies of samples, which outlive their micro-batch. */
typedef struct patches {
    int count, room;
    volume *image, *label;
    int *rank;               /* of the case of each                                               */
} patches;

static void clear_patches(patches *p)
{
    for (int n = 0; n < p->count; n++) {
        pons_volume_clear(&p->image[n]);
        pons_volume_clear(&p->label[n]);
    }
    free(p->image);
    free(p->label);
    free(p->rank);
}

/* The spacing of a preprocessed case along the axes of its patches. */
static pons_status read_spacing(cache *cases, int rank, int flat_axis, double spacing[3],
                                pons_error *err)
{
    double of_case[3];
    cache_pin pin;

    if (cache_pin_begin(cases, rank, &pin, err) != PONS_OK)
        return err->status;
    pons_volume_spacing(&pin.packed->image, of_case);
    cache_pin_end(&pin);
    for (int a = 0, from = 0; a < 3; a++) {
        if (a == 0 && flat_axis >= 0) {
            spacing[0] = of_case[flat_axis];
            continue;
        }
        from += from == flat_axis;
        spacing[a] = of_case[from++];
    }
    return PONS_OK;
}

static pons_status copy_volume(pons_type type, int channels, const int dhw[3],
                               const double spacing[3], const void *voxels, int sample,
                               volume *out, pons_error *err)
{
    const int64_t extent[3] = { dhw[0], dhw[1], dhw[2] };

    if (pons_volume_init(out, type, channels, extent, err) != PONS_OK)
        return err->status;
    for (int a = 0; a < 3; a++)
        out->affine[a][a] = spacing[a];
    if (voxels != NULL) /* a classification has no label of voxels */
        memcpy(out->voxels, (const char *)voxels + (size_t)sample * pons_volume_size(out),
               pons_volume_size(out));
    return PONS_OK;
}

static pons_status copy_samples(const showing *s, cache *cases, const loader_settings *settings,
                                const loader_batch *batch, patches *p, pons_error *err)
{
    int dhw[3], flat_axis, rank;
    double spacing[3];

    loader_patch_shape(settings->extent, dhw, &flat_axis);
    for (int n = 0; n < settings->batch * settings->per_case && p->count < p->room; n++) {
        volume *image = &p->image[p->count], *label = &p->label[p->count];

        if (find_rank(s->data, batch->case_id[n / settings->per_case], &rank, err) != PONS_OK
            || read_spacing(cases, rank, flat_axis, spacing, err) != PONS_OK)
            return err->status;
        p->rank[p->count] = rank;
        p->count++;
        if (copy_volume(PONS_F32, s->data->channels, dhw, spacing, batch->image, n, image, err)
                != PONS_OK
            || copy_volume(PONS_U8, dataset_target_channels(s->data), dhw, spacing, batch->label,
                           n, label, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static pons_status collect_patches(const showing *s, cache *cases, patches *p, pons_error *err)
{
    const loader_batch *batch;
    loader_settings settings;
    loader *l;

    loader_settings_fill(&s->sections, &settings);
    if (loader_open(cases, s->count, s->rank, s->augment->count > 0 ? s->augment : NULL,
                    &settings, &l, err) != PONS_OK)
        return err->status;
    while (p->count < p->room && loader_next(l, &batch, err) == PONS_OK
           && copy_samples(s, cases, &settings, batch, p, err) == PONS_OK)
        continue;
    loader_close(l);
    return err->status;
}

/* The cases of the patches: a line for each band of the sheet. */
static void put_bands(const showing *s, const patches *p, int per_row)
{
    fprintf(s->captions.to, "%s.png: patches after ", patches_name);
    put_steps(s, s->preprocess);
    fputs(", augmented by ", s->captions.to);
    put_steps(s, s->augment);
    fputs("; a band of rows from the top: ", s->captions.to);
    put_channels(s);
    for (int n = 0; n < p->count; n++) {
        if (n % per_row == 0)
            fprintf(s->captions.to, "\n%s.png, band %d from the left: ", patches_name,
                    n / per_row + 1);
        fprintf(s->captions.to, "%s%s", n % per_row > 0 ? ", " : "",
                s->data->cases[p->rank[n]].id);
        put_class(s, p->rank[n]);
    }
    fputc('\n', s->captions.to);
}

/* A square of patches; the channels of a patch stand below each other. */
static pons_status draw_patches(const showing *s, const patches *p, pons_error *err)
{
    int channels = s->data->channels, per_row = (int)ceil(sqrt((double)p->count / 2));
    int bands = ceil_div_int(p->count, per_row), count = 0;
    sheet_item *item = calloc((size_t)(bands * per_row * channels), sizeof *item);
    char path[4096];

    if (item == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int band = 0; band < bands; band++)
        for (int channel = 0; channel < channels; channel++)
            for (int n = band * per_row; n < (band + 1) * per_row; n++)
                if (n < p->count)
                    item[count++] = (sheet_item){ &p->image[n], &p->label[n], channel };
    if (picture_path(s, patches_name, path, sizeof path, err) == PONS_OK
        && sheet_write(path, item, count, per_row, PATCH_SIDE, err) == PONS_OK) {
        log_line(s->log, "'%s'", path);
        put_bands(s, p, per_row);
    }
    free(item);
    return err->status;
}

static pons_status draw_samples(const showing *s, int count, pons_error *err)
{
    patches p = { .room = count };
    cache_settings settings;
    cache *cases = NULL;

    p.image = calloc((size_t)count, sizeof *p.image);
    p.label = calloc((size_t)count, sizeof *p.label);
    p.rank = calloc((size_t)count, sizeof *p.rank);
    cache_settings_fill(&s->sections, &settings);
    if (p.image == NULL || p.label == NULL || p.rank == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    else if (cache_open(s->data, s->preprocess, s->count, s->rank, &settings, s->log, &cases, err)
                 == PONS_OK
             && collect_patches(s, cases, &p, err) == PONS_OK)
        draw_patches(s, &p, err);
    cache_close(cases);
    clear_patches(&p);
    return err->status;
}

pons_status show_patches(config *c, int name_count, const char *const *name, const char *folder,
                         int count, logger *l, pons_error *err)
{
    showing s = { .folder = folder, .log = l };

    if (open_captions(&s, err) == PONS_OK && open_data(&s, c, true, err) == PONS_OK
        && choose_cases(&s, name_count, name, err) == PONS_OK) {
        safe_file_sweep(folder);
        tell_colors(&s);
        draw_samples(&s, count, err);
    }
    close_captions(&s, err);
    close_data(&s);
    return err->status;
}
