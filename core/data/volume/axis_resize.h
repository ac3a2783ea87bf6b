/*
 * axis_resize.h - resize volumes axis by axis. The edges of both grids lie in the same place.
 *
 * Voxel i of the result lies at (i + 0.5) old / new - 0.5 of the source. Beyond the last voxel its
 * value is repeated.
 */
#ifndef CORE_DATA_VOLUME_AXIS_RESIZE_H
#define CORE_DATA_VOLUME_AXIS_RESIZE_H

#include <pons/transform.h>

typedef enum axis_mode {
    AXIS_NEAREST = 0,         /* voxel floor(i old / new), as PyTorch's 'nearest'                 */
    AXIS_NEAREST_EXACT,       /* the nearest voxel, of two the upper                              */
    AXIS_LINEAR,
    AXIS_AREA,                /* mean of the voxels that the new voxel touches                    */
    AXIS_ANTIALIAS,           /* linear over as many voxels as a new one covers, as PIL, PyTorch  */
    AXIS_CUBIC                /* B-spline through the voxels, as SciPy's zoom of order 3          */
} axis_mode;

/* The source voxel of voxel 'i' of the result, for the two nearest modes. */
int64_t axis_nearest(axis_mode mode, int64_t i, int64_t old, int64_t count);

/*
 * Resize one axis of [D, H, W, C] to 'count' voxels. The result is malloc'ed; NULL: out of memory.
 */
float *axis_resize(const float *voxels, const int64_t extent[3], int channels, int axis,
                   int64_t count, axis_mode mode);

/* Resize an image (F32), each axis in its mode. An axis that keeps its extent stays as it is. */
pons_status image_resize(pons_volume *v, const int64_t extent[3], const axis_mode mode[3],
                         pons_error *err);
/* Resize labels or masks (U8) by one of the nearest modes. */
pons_status label_resize(pons_volume *v, const int64_t extent[3], axis_mode mode, pons_error *err);
/* Extent, affine and inside box of a volume that is resized to 'extent'. */
void resize_position(pons_volume *v, const int64_t extent[3]);

#endif
