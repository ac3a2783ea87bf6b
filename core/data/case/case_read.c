/*
 * case_read.c - check image, channels and label grid of a case, and map label ids to the target.
 */
#include "data/case/case_read.h"

#include <string.h>

#include "data/case/case_load.h"
#include "data/dataset/label_map.h"
#include "data/volume/geometry.h"

/* Put the case's id before the message, unless it is there. */
static pons_status case_failed(const data_case *info, const pons_error *cause, pons_error *err)
{
    if (strncmp(cause->text, "case '", 6) == 0)
        return pons_fail(err, cause->status, "%s", cause->text);
    return pons_fail(err, cause->status, "case '%s': %s", info->id, cause->text);
}

static pons_status map_label(const dataset *d, const data_case *info, loaded_case *files,
                             volume *valid, pons_error *err)
{
    label_map map;

    if (files->label_problem.status != PONS_OK)
        return pons_fail(err, files->label_problem.status, "%s", files->label_problem.text);
    if (volume_grid_compare(&files->label_grid, info->label, &files->grid, info->image[0], err)
            != PONS_OK
        || label_map_init(&map, d, err) != PONS_OK)
        return err->status;
    if (d->ignored == NULL || label_map_valid(&map, &files->label, valid, err) == PONS_OK)
        label_map_apply(&map, &files->label, info->id, info->label, err);
    label_map_clear(&map);
    return err->status;
}

pons_status case_read(const dataset *d, int rank, pons_case *out, pons_error *err)
{
    const data_case *info = &d->cases[rank];
    pons_error cause = PONS_ERROR_INIT;
    volume valid = { .voxels = NULL };
    loaded_case files;
    pons_status status = case_load(info, d->channels, true, &files, &cause);

    if (status == PONS_OK && files.image.channels != d->channels)
        status = pons_fail(&cause, PONS_DATA, "'%s' has %d channel%s, expected %d", info->image[0],
                           files.image.channels, files.image.channels == 1 ? "" : "s",
                           d->channels);
    if (status == PONS_OK && info->label != NULL)
        status = map_label(d, info, &files, &valid, &cause);
    *out = (pons_case){ .size = sizeof *out, .name = info->id, .image = files.image,
                        .label = files.label, .valid = valid };
    if (status == PONS_OK)
        return PONS_OK;
    case_clear(out);
    return case_failed(info, &cause, err);
}

void case_clear(pons_case *c)
{
    pons_volume_clear(&c->image);
    pons_volume_clear(&c->label);
    pons_volume_clear(&c->valid);
}
