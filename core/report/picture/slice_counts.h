/*
 * slice_counts.h - choose the slices of a volume that pictures show.
 */
#ifndef CORE_REPORT_PICTURE_SLICE_COUNTS_H
#define CORE_REPORT_PICTURE_SLICE_COUNTS_H

#include "data/volume/volume.h"

/* A number for each slice across each axis, such as its labelled voxels. */
typedef struct slice_counts {
    int64_t extent[3];
    int64_t *axis[3];
} slice_counts;

/* All counts are 0. PONS_DEVICE without memory; slice_counts_clear frees them. */
pons_status slice_counts_init(slice_counts *s, const int64_t extent[3], pons_error *err);
void slice_counts_clear(slice_counts *s);
/* Count the voxels of a U8 or I32 volume that are not 0 in all channels; false: it has none. */
bool slice_counts_add_marked(slice_counts *s, const volume *label);
/* The slice with the largest count; of equal ones that nearest to the middle. */
int64_t slice_counts_largest(const slice_counts *s, int axis);
/* True for the axes that a volume is cut across: all, or the first one of a single slice. */
bool slice_axis_is_drawn(const int64_t extent[3], int axis);

#endif
