/*
 * volume_read.c - choose the reader of a file by its name, and join the files of an image.
 */
#include "data/reader/volume_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file_kind.h"
#include "base/thread/parallel.h"
#include "data/nifti/nifti_read.h"
#include "data/picture/picture_read.h"
#include "data/volume/geometry.h"

typedef pons_status read_voxels(const char *path, volume *out, volume_facts *facts,
                                pons_error *err);

typedef struct volume_format {
    pons_status (*facts)(const char *path, volume_facts *facts, pons_error *err);
    pons_status (*label_facts)(const char *path, volume_facts *facts, pons_error *err);
    read_voxels *image, *label, *label_compact;
} volume_format;

static const volume_format nifti = { nifti_read_facts, nifti_read_facts, nifti_read_image,
                                     nifti_read_label, nifti_read_label_compact };
static const volume_format picture = { picture_read_facts, picture_read_label_facts,
                                       picture_read_image, picture_read_label,
                                       picture_read_label_compact };

static const volume_format *format_of(const char *path)
{
    return file_kind_ending(path, FILE_PICTURE) > 0 ? &picture : &nifti;
}

pons_status volume_read_facts(const char *path, volume_facts *facts, pons_error *err)
{
    return format_of(path)->facts(path, facts, err);
}

pons_status volume_read_label_facts(const char *path, volume_facts *facts, pons_error *err)
{
    return format_of(path)->label_facts(path, facts, err);
}

pons_status volume_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    return format_of(path)->image(path, out, facts, err);
}

pons_status volume_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    return format_of(path)->label(path, out, facts, err);
}

pons_status volume_read_label_compact(const char *path, volume *out, volume_facts *facts,
                                      pons_error *err)
{
    return format_of(path)->label_compact(path, out, facts, err);
}

/* ---- several files --------------------------------------------------------------------------- */

/* A file of an image; its channels begin at 'channel' of 'out'. */
typedef struct channel_file {
    const char *path;
    int channel;
    volume *out;
    pons_error problem;
} channel_file;

typedef struct channel_copy {
    const volume *part;
    const channel_file *file;
} channel_copy;

static void copy_channels(void *context, int64_t first, int64_t end)
{
    const volume *part = ((const channel_copy *)context)->part;
    const channel_file *f = ((const channel_copy *)context)->file;
    const float *from = (const float *)part->voxels + first * part->channels;
    float *to = (float *)f->out->voxels + first * f->out->channels + f->channel;

    for (int64_t n = first; n < end; n++, from += part->channels, to += f->out->channels)
        for (int c = 0; c < part->channels; c++)
            to[c] = from[c];
}

static void read_channel_file(channel_file *f)
{
    volume part;

    if (volume_read_image(f->path, &part, NULL, &f->problem) != PONS_OK)
        return;
    parallel_run(pons_volume_count(&part), parallel_piece(part.channels), copy_channels,
                 &(channel_copy){ &part, f });
    pons_volume_clear(&part);
}

static void read_channel_files_of_task(void *context, int64_t first, int64_t end)
{
    for (int64_t n = first; n < end; n++)
        read_channel_file((channel_file *)context + n);
}

/* Read the headers, compare grids, and set the first channel of each file. */
static pons_status read_channel_headers(int count, const char *const *path, volume_grid *grid,
                                        channel_file *file, int *channels, pons_error *err)
{
    volume_facts facts;
    pons_status status;

    *channels = 0;
    for (int n = 0; n < count; n++) {
        file[n] = (channel_file){ path[n], *channels, NULL, PONS_ERROR_INIT };
        status = volume_read_facts(path[n], &facts, err);
        if (status)
            return status;
        if (n == 0)
            *grid = facts.grid;
        else
            status = volume_grid_compare(&facts.grid, path[n], grid, path[0], err);
        if (status)
            return status;
        *channels += facts.channels;
    }
    return PONS_OK;
}

/* Read all files in parallel; the first error in their order is returned. */
static pons_status read_channel_files(int count, const char *const *path, channel_file *file,
                                      volume *out, volume_grid *grid, pons_error *err)
{
    volume fresh;
    int channels;

    if (read_channel_headers(count, path, grid, file, &channels, err) != PONS_OK
        || pons_volume_init(&fresh, PONS_F32, channels, grid->extent, err) != PONS_OK)
        return err->status;
    memcpy(fresh.affine, grid->affine, sizeof fresh.affine);
    for (int n = 0; n < count; n++)
        file[n].out = &fresh;
    parallel_run(count, 1, read_channel_files_of_task, file);
    for (int n = 0; n < count && err->status == PONS_OK; n++)
        if (file[n].problem.status != PONS_OK)
            pons_fail(err, file[n].problem.status, "%s", file[n].problem.text);
    if (err->status == PONS_OK)
        *out = fresh;
    else
        pons_volume_clear(&fresh);
    return err->status;
}

pons_status volume_read_channels(int count, const char *const *path, volume *out,
                                volume_grid *grid, pons_error *err)
{
    volume_facts facts;
    volume_grid first = { .units = 0 };
    channel_file *file;

    if (count == 1) {
        if (volume_read_image(path[0], out, &facts, err) == PONS_OK && grid)
            *grid = facts.grid;
        return err->status;
    }
    file = malloc((size_t)count * sizeof *file);
    if (!file)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (read_channel_files(count, path, file, out, &first, err) == PONS_OK && grid)
        *grid = first;
    free(file);
    return err->status;
}
