/*
 * geometry.h - grids of volumes and their comparison.
 */
#ifndef CORE_DATA_VOLUME_GEOMETRY_H
#define CORE_DATA_VOLUME_GEOMETRY_H

#include "data/volume/volume.h"

/* The grid of a volume; qform and sform are set from its affine. */
void volume_grid_of(const volume *v, volume_grid *grid);
/*
 * Compare two grids: extents must be equal, and corner voxels at most 1 % of the smallest spacing
 * apart. PONS_DATA says what differs. 'name' and 'other' are file names for the message.
 */
pons_status volume_grid_compare(const volume_grid *a, const char *name, const volume_grid *b,
                                const char *other, pons_error *err);
/* Orientation codes of the axes, such as "RAS" or "LPS". */
void volume_orientation_codes(const double affine[3][4], char codes[4]);

#endif
