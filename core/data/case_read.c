/*
 * case_read.c - the files of one case, checked against each other, the label as a target.
 */
#include "data/loader.h"

#include "data/label_map.h"
#include "data/volume.h"

#include <string.h>

/* Say which case it was. */
static pons_status case_failed(const data_case *info, const pons_error *cause, pons_error *err)
{
    if (strncmp(cause->text, "case '", 6) == 0)
        return pons_fail(err, cause->status, "%s", cause->text);
    return pons_fail(err, cause->status, "case '%s': %s", info->id, cause->text);
}

static pons_status read_label(const dataset *d, const data_case *info, const volume_grid *grid,
                              volume *out, pons_error *err)
{
    volume_facts facts;
    label_map map;

    if (volume_read_ids(info->label, out, &facts, err) != PONS_OK ||
        volume_grid_compare(&facts.grid, info->label, grid, info->image[0], err) != PONS_OK ||
        label_map_init(&map, d, err) != PONS_OK)
        return err->status;
    pons_status status = label_map_apply(&map, out, info->id, info->label, err);
    label_map_clear(&map);
    return status;
}

pons_status case_read(const dataset *d, int rank, pons_case *out, pons_error *err)
{
    const data_case *info = &d->cases[rank];
    pons_error cause = PONS_ERROR_INIT;
    volume_grid grid;

    *out = (pons_case){ .size = sizeof *out, .name = info->id };
    pons_status status = volume_read_channels(info->image_count, info->image, &out->image, &grid,
                                              &cause);
    if (status == PONS_OK && out->image.channels != d->channels)
        status = pons_fail(&cause, PONS_DATA, "'%s' has %d channel%s, expected %d", info->image[0],
                           out->image.channels, out->image.channels == 1 ? "" : "s", d->channels);
    if (status == PONS_OK && info->label != NULL)
        status = read_label(d, info, &grid, &out->label, &cause);
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
