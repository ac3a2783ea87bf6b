/*
 * predict_previous.c - the labels of a cascade's first stage as channels of its second.
 *
 * The labels go through [preprocess] as a target does. As in nnU-Net, background outside the voxels
 * of the image that are not 0, with their holes filled, is a label of its own meanwhile.
 */
#include "infer/infer_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/thread/parallel.h"
#include "data/packed/packed_case.h"
#include "data/reader/volume_read.h"
#include "data/volume/filled_mask.h"
#include "data/volume/geometry.h"

enum { PIECE = 1 << 16 };

pons_status predict_find_previous(arena *memory, const char *path, int count,
                                  predict_input *input, pons_error *err)
{
    bool folder = folder_is_there(path);

    if (!folder && count > 1)
        return pons_fail(err, PONS_USAGE, "--previous '%s': expected a folder for %d images", path,
                         count);
    for (int i = 0; i < count; i++) {
        const char *file = path;

        if (folder)
            file = arena_format(memory, "%s/%s.nii.gz", path, input[i].name);
        if (folder && access(file, F_OK) != 0)
            file = arena_format(memory, "%s/%s.nii", path, input[i].name);
        if (access(file, F_OK) != 0)
            return pons_fail(err, PONS_DATA, "--previous: '%s' has no labels '%s.nii.gz' of the "
                             "first stage", path, input[i].name);
        input[i].previous = file;
    }
    return PONS_OK;
}

/* Replace ids by 1 + their number. */
static pons_status number_ids(const predictor *p, const char *file, const volume *ids,
                              volume *out, pons_error *err)
{
    int64_t count = pons_volume_count(ids);
    const int32_t *from = ids->voxels;
    uint8_t *to = out->voxels;

    for (int64_t n = 0; n < count; n++) {
        int at = 0;

        while (from[n] != 0 && at < p->previous_count && p->previous_id[at] != from[n])
            at++;
        if (from[n] != 0 && at == p->previous_count)
            return pons_fail(err, PONS_DATA, "'%s' has the id %d, which is no label of '%s'", file,
                             (int)from[n], p->previous);
        to[n] = from[n] != 0 ? (uint8_t)(at + 1) : 0;
    }
    return PONS_OK;
}

static pons_status mark_outside(const volume *image, volume *label, pons_error *err)
{
    int64_t count = pons_volume_count(image);
    uint8_t *to = label->voxels, *mask = NULL;

    if (filled_mask_make(image, &mask, err) != PONS_OK)
        return err->status;
    for (int64_t n = 0; n < count; n++)
        if (to[n] == 0 && mask[n] == 0)
            to[n] = TARGET_IGNORED;
    free(mask);
    return PONS_OK;
}

pons_status predict_previous_read(const predictor *p, const predict_input *input,
                                  const volume *image, const volume_grid *grid, volume *out,
                                  pons_error *err)
{
    volume ids = { .voxels = NULL };
    volume_facts facts;

    if (input->previous == NULL)
        return pons_fail(err, PONS_DATA, "case '%s' has no labels of the first stage '%s'",
                         input->name, p->previous);
    if (volume_read_label(input->previous, &ids, &facts, err) == PONS_OK
        && volume_grid_compare(&facts.grid, input->previous, grid, input->file[0], err) == PONS_OK
        && pons_volume_init(out, PONS_U8, 1, image->extent, err) == PONS_OK) {
        volume_copy_position(out, image);
        if (number_ids(p, input->previous, &ids, out, err) == PONS_OK)
            mark_outside(image, out, err);
    }
    pons_volume_clear(&ids);
    return err->status;
}

typedef struct appending {
    const volume *image, *label;
    volume *out;
} appending;

static void append_piece(void *context, int64_t first, int64_t end)
{
    const appending *a = context;
    int from = a->image->channels, to = a->out->channels;
    const float *x = (const float *)a->image->voxels + first * from;
    const uint8_t *label = a->label->voxels;
    float *y = (float *)a->out->voxels + first * to;

    for (int64_t n = first; n < end; n++, x += from, y += to) {
        memcpy(y, x, (size_t)from * sizeof *y);
        for (int k = from; k < to; k++)
            y[k] = label[n] == k - from + 1;
    }
}

pons_status predict_previous_append(const predictor *p, pons_case *c, pons_error *err)
{
    volume out = { .voxels = NULL };
    appending a = { &c->image, &c->label, &out };

    if (pons_volume_init(&out, PONS_F32, c->image.channels + p->previous_count, c->image.extent,
                         err) != PONS_OK)
        return err->status;
    volume_copy_position(&out, &c->image);
    parallel_run(pons_volume_count(&out), PIECE, append_piece, &a);
    pons_volume_clear(&c->image);
    pons_volume_clear(&c->label);
    c->image = out;
    return PONS_OK;
}
