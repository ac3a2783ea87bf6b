/*
 * crop.c - write a box of a NIfTI file to another file.
 */
#include "data/nifti/crop.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"

static pons_status check_box(const char *image, const crop_settings *s, const volume *v,
                             pons_error *err)
{
    for (int a = 0; a < 3; a++)
        if (s->start[a] < 0 || s->start[a] >= v->extent[a] ||
            (int64_t)s->start[a] + s->extent[a] > v->extent[a])
            return pons_fail(err, PONS_USAGE, "cannot cut '%s': start %d,%d,%d and extent "
                             "%d,%d,%d reach outside, expected a box in %lld,%lld,%lld", image,
                             s->start[0], s->start[1], s->start[2], s->extent[0], s->extent[1],
                             s->extent[2], (long long)v->extent[0], (long long)v->extent[1],
                             (long long)v->extent[2]);
    return PONS_OK;
}

static void move_origin(double form[3][4], const int start[3])
{
    for (int r = 0; r < 3; r++)
        for (int a = 0; a < 3; a++)
            form[r][3] += form[r][a] * start[a];
}

static void move_grid(volume_grid *grid, const crop_settings *s, const int64_t extent[3])
{
    for (int a = 0; a < 3; a++)
        grid->extent[a] = extent[a];
    move_origin(grid->affine, s->start);
    move_origin(grid->qform, s->start);
    move_origin(grid->sform, s->start);
}

/* The NIfTI type of the result: the file's own if it is written without loss, else float32. */
static int result_type(const volume_facts *facts)
{
    bool plain = facts->slope == 1 && facts->intercept == 0;
    int type = facts->datatype;

    return plain && (type == 2 || type == 4 || type == 512) ? type : 16;
}

static void make_mask(volume *v, double above)
{
    float *x = v->voxels;
    int64_t count = pons_volume_count(v) * v->channels;

    for (int64_t n = 0; n < count; n++)
        x[n] = (double)x[n] > above;
}

pons_status crop_file(const char *image, const char *out, const crop_settings *settings,
                      pons_error *err)
{
    const crop_settings *s = settings;
    int64_t start[3] = { s->start[0], s->start[1], s->start[2] };
    int64_t extent[3];
    volume_facts facts;
    volume v;
    pons_status status;

    if (file_is(out, image))
        return pons_fail(err, PONS_USAGE, "-o '%s' is the image itself, expected another file",
                         out);
    status = nifti_read_image(image, &v, &facts, err);
    if (status)
        return status;
    for (int a = 0; a < 3; a++)
        extent[a] = s->extent[a] ? s->extent[a] : v.extent[a] - start[a];
    status = check_box(image, s, &v, err);
    if (!status)
        status = pons_volume_crop(&v, start, extent, 0, err);
    if (!status) {
        safe_file_sweep_path(out);
        move_grid(&facts.grid, s, extent);
        if (s->mask)
            make_mask(&v, s->above);
        status = nifti_write_as(out, &v, &facts.grid, s->mask ? 2 : result_type(&facts), err);
    }
    pons_volume_clear(&v);
    return status;
}
