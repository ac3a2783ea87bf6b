/*
 * connected_components.h - connected parts of a class in a label volume.
 */
#ifndef CORE_METRIC_CONNECTED_COMPONENTS_H
#define CORE_METRIC_CONNECTED_COMPONENTS_H

#include <pons/plugin.h>

/*
 * Of the voxels that have 'value' only the largest connected part keeps it (of equals the first in
 * memory), the others become 'other'. Voxels that touch, also by an edge or a corner, are
 * connected. 'labels' is [extent[0]][extent[1]][extent[2]] with 'stride' bytes from voxel to voxel.
 */
pons_status keep_largest_component(uint8_t *labels, int stride, const int64_t extent[3],
                                   uint8_t value, uint8_t other, pons_error *err);

#endif
