/*
 * inverse_resample.h - resample predictions from the preprocessed grid to the grid of the file
 * (R28).
 */
#ifndef CORE_DATA_VOLUME_INVERSE_RESAMPLE_H
#define CORE_DATA_VOLUME_INVERSE_RESAMPLE_H

#include "data/volume/volume.h"

/*
 * The inverse of [preprocess]: linear interpolation between voxels, exact if the grids differ by
 * orientation, crop and padding alone. The preprocessed grid is the extent, affine and inside box
 * of the preprocessed image.
 *
 * Planes along i of the preprocessed grid arrive in order and need not be in memory together. A
 * voxel of the file is written once, when the last plane that it depends on arrives. So the bits
 * do not depend on how many planes arrive at a time.
 */
typedef struct inverse_resample inverse_resample;

typedef enum inverse_resample_kind {
    INVERSE_RESAMPLE_VALUES = 0,   /* F32 [D, H, W, C]                                            */
    INVERSE_RESAMPLE_CLASSES,    /* U8 [D, H, W, 1]: arg-max of the channels, the first of equals */
    INVERSE_RESAMPLE_REGIONS, /* U8 [D, H, W, C]: 1 where the value is > 0.5                      */
    INVERSE_RESAMPLE_LOGITS   /* REGIONS of logits: 1 where the value is > 0                      */
} inverse_resample_kind;

/* The result has the channels of 'from'; the voxels of 'from' are not read. */
pons_status inverse_resample_open(const volume *from, const volume_grid *grid,
                                  inverse_resample **out, pons_error *err);
/*
 * Interpolate only within the slices of the preprocessed grid that lie across 'axis', of the
 * nearest slice, of two the upper. Called before any plane. -1: no change.
 */
void inverse_resample_separate(inverse_resample *b, int axis);
/* The spacing of the file along the axes of 'from'; false: they are not parallel. */
bool inverse_resample_spacing(const inverse_resample *b, double spacing[3]);
void inverse_resample_close(inverse_resample *b);
/*
 * Make the volume on the file's grid. Voxels more than half a voxel outside the inside box keep
 * its values: 'first' in channel 0 of VALUES, 'rest' in the others; 0 of other kinds.
 */
pons_status inverse_resample_start(const inverse_resample *b, inverse_resample_kind kind,
                                   float first, float rest, volume *out, pons_error *err);
/*
 * Add planes first .. end - 1 to 'out', a volume of inverse_resample_start. 'values' is [end -
 * first][H][W][C] with plane first - 1 in front, unless first is 0. Several kinds may be written
 * at the same time.
 */
void inverse_resample_planes(const inverse_resample *b, inverse_resample_kind kind,
                             const float *values, int64_t first, int64_t end, volume *out);

#endif
