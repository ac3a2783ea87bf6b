/*
 * whole_resample.c - see whole_resample.h.
 */
#include "support/data/whole_resample.h"

pons_status whole_resample(const volume *v, const volume_grid *grid, inverse_resample_kind kind,
                           float first, volume *out, pons_error *err)
{
    inverse_resample *b;

    if (inverse_resample_open(v, grid, &b, err) != PONS_OK)
        return err->status;
    if (inverse_resample_start(b, kind, first, 0, out, err) == PONS_OK)
        inverse_resample_planes(b, kind, v->voxels, 0, v->extent[0], out);
    inverse_resample_close(b);
    return err->status;
}
