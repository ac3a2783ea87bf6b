/*
 * label_pair.h - two label volumes on one grid, and the metrics of their classes that need more
 * than counts of voxels.
 */
#ifndef CORE_METRIC_LABEL_PAIR_H
#define CORE_METRIC_LABEL_PAIR_H

#include "data/volume/volume.h"
#include "metric/metric.h"

/* The areas of a class: values in the volumes, which are ids or class indices. */
typedef struct class_areas {
    int count;
    const int32_t *area;
} class_areas;

/*
 * Volumes with one channel hold areas. Volumes with several hold a channel for each class, whose
 * areas are values of that channel. Each is U8 or I32; their extents are equal.
 */
typedef struct label_pair {
    const volume *prediction, *label;
    double spacing[3];        /* millimetres                                                      */
    int area_count;           /* values are below                                                 */
    int class_count;
    const class_areas *classes;
} label_pair;

/*
 * Set those values of out[class_count] in 'set' that come from surfaces or lesions; others stay.
 * 'tolerance' is that of nsd, in millimetres.
 */
pons_status label_pair_score(const label_pair *p, metric_set set, double tolerance,
                             class_score *out, pons_error *err);

#endif
