/*
 * connected_components.h - connected components of a class in a label volume.
 */
#ifndef CORE_METRIC_CONNECTED_COMPONENTS_H
#define CORE_METRIC_CONNECTED_COMPONENTS_H

#include <pons/plugin.h>

/*
 * Keep the largest component of the voxels with 'value', the first in memory of equals, and set
 * all others to 'other'. Voxels are connected if they share a face, an edge or a corner. 'labels'
 * is [extent[0]][extent[1]][extent[2]], with 'stride' bytes from voxel to voxel.
 */
pons_status connected_components_keep_largest(uint8_t *labels, int stride, const int64_t extent[3],
                                              uint8_t value, uint8_t other, pons_error *err);

/*
 * Count the components of the voxels that have bit 'of': in count[1] those with a voxel that has
 * bit 'with' too, in count[0] the others. 'bits' is [extent[0]][extent[1]][extent[2]].
 */
pons_status connected_components_count(const uint8_t *bits, const int64_t extent[3], uint8_t of,
                                       uint8_t with, int64_t count[2], pons_error *err);

/*
 * Write the component of each voxel that has bit 'of': 1, 2, ... in the order of their first voxels
 * in memory; 0 for other voxels. 'bits' and 'id' are [extent[0]][extent[1]][extent[2]].
 */
pons_status connected_components_label(const uint8_t *bits, const int64_t extent[3], uint8_t of,
                                       int32_t *id, int32_t *count, pons_error *err);

#endif
