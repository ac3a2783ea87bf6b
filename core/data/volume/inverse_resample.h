/*
 * inverse_resample.h - predictions back onto the grid of the file (R28).
 */
#ifndef CORE_DATA_VOLUME_INVERSE_RESAMPLE_H
#define CORE_DATA_VOLUME_INVERSE_RESAMPLE_H

#include "data/volume/volume.h"

/*
 * Resampling from the preprocessed grid (extent, affine and inside box of the preprocessed image)
 * to the file's: linear between voxels, exact if they differ by orientation, crop and padding.
 * Planes along i of the preprocessed grid come in their order and need not be there at the same
 * time; a voxel of the file is written when the last plane that it lies between has come, and
 * never again. So what comes in one piece and what comes plane by plane are the same bits.
 */
typedef struct volume_back volume_back;

typedef enum volume_back_kind {
    VOLUME_BACK_VALUES = 0,   /* F32 [D, H, W, C]                                                 */
    VOLUME_BACK_CLASSES,      /* U8 [D, H, W, 1]: arg-max of the channels, the first of equals    */
    VOLUME_BACK_REGIONS       /* U8 [D, H, W, C]: 1 where the value is > 0.5                      */
} volume_back_kind;

/* The result has the channels of 'from'; the voxels of 'from' are not read. */
pons_status volume_back_open(const volume *from, const volume_grid *grid, volume_back **out,
                             pons_error *err);
void volume_back_close(volume_back *b);
/*
 * A volume on the file's grid as it is further than half a voxel outside the inside box: 'first' in
 * channel 0 of VALUES, 0 in all others.
 */
pons_status volume_back_start(const volume_back *b, volume_back_kind kind, float first,
                              volume *out, pons_error *err);
/*
 * values: planes first .. end - 1, [end - first][H][W][C], before them the plane first - 1 unless
 * first is 0. Into 'out', which volume_back_start has made. Any kinds of one way back at the same
 * time.
 */
void volume_back_planes(const volume_back *b, volume_back_kind kind, const float *values,
                        int64_t first, int64_t end, volume *out);
/* All of it, where the whole volume is there (F32). */
pons_status volume_bring_back(const volume *v, const volume_grid *grid, volume_back_kind kind,
                              float first, volume *out, pons_error *err);

#endif
