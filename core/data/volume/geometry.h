/*
 * geometry.h - grids of volumes: what they are, and whether two are one.
 */
#ifndef CORE_DATA_VOLUME_GEOMETRY_H
#define CORE_DATA_VOLUME_GEOMETRY_H

#include "data/volume/volume.h"

/* The grid of a volume: both forms from its affine. */
void volume_grid_of(const volume *v, volume_grid *grid);
/*
 * Whether two grids are one: equal extents, and no corner voxel centre further apart than 1 % of
 * the smallest spacing. If not: PONS_DATA with what differs, found and expected. 'name' and 'other'
 * are file names for the message.
 */
pons_status volume_grid_compare(const volume_grid *a, const char *name, const volume_grid *b,
                                const char *other, pons_error *err);
/* "RAS", "LPS", ... */
void volume_codes(const double affine[3][4], char codes[4]);

#endif
