/*
 * case_check.c - check the parts of a transform's contract (transform.h) that cost no pass over
 * voxels.
 */
#include "data/transform/case_check.h"

#include <string.h>

static pons_status check_extents(const pons_volume *v, const pons_volume *image, const char *name,
                                 pons_error *err)
{
    for (int a = 0; a < 3; a++) {
        if (v->extent[a] < 1 || v->extent[a] != image->extent[a])
            return pons_fail(err, PONS_PLUGIN, "the %s has %lld voxels along %c, the image %lld",
                             name, (long long)v->extent[a], "ijk"[a],
                             (long long)image->extent[a]);
        if (v->inside_start[a] < 0 || v->inside_extent[a] < 0
            || v->inside_start[a] + v->inside_extent[a] > v->extent[a])
            return pons_fail(err, PONS_PLUGIN, "the box inside the %s, %lld from %lld on along %c, "
                             "is not within its %lld voxels", name, (long long)v->inside_extent[a],
                             (long long)v->inside_start[a], "ijk"[a], (long long)v->extent[a]);
    }
    return PONS_OK;
}

static pons_status check_volume(const pons_volume *v, const pons_volume *was,
                                const pons_volume *image, const char *name, pons_error *err)
{
    if (was->voxels == NULL)
        return PONS_OK;
    if (v->voxels == NULL || v->type != was->type || v->channels != was->channels)
        return pons_fail(err, PONS_PLUGIN, "the %s has lost its voxels, its type or a channel",
                         name);
    if (check_extents(v, image, name, err) != PONS_OK)
        return err->status;
    if (memcmp(v->affine, image->affine, sizeof v->affine) != 0)
        return pons_fail(err, PONS_PLUGIN, "the %s has another affine than the image", name);
    return PONS_OK;
}

pons_status case_check(const pons_case *c, const pons_case *was, pons_error *err)
{
    double inverse[3][4];

    if (check_volume(&c->image, &was->image, &c->image, "image", err) != PONS_OK
        || check_volume(&c->label, &was->label, &c->image, "label", err) != PONS_OK
        || check_volume(&c->valid, &was->valid, &c->image, "mask", err) != PONS_OK)
        return err->status;
    if (!pons_affine_invert((const double (*)[4])c->image.affine, inverse))
        return pons_fail(err, PONS_PLUGIN, "the affine has become singular, expected three "
                         "independent axes");
    return PONS_OK;
}
