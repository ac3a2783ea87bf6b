/*
 * metric.h - Dice and IoU of label volumes, and what is told of many cases.
 *
 * A value exists only where the label has the class (MONAI's ignore_empty). What has no value is
 * not dropped in silence: it is counted, as 'empty' where the prediction has none either, else as a
 * false alarm. A missed class has the value 0 and is counted as well.
 */
#ifndef CORE_METRIC_METRIC_H
#define CORE_METRIC_METRIC_H

#include <stdbool.h>
#include <stdint.h>

/* Voxels of one class in one case. */
typedef struct metric_count {
    int64_t prediction, label, both;
} metric_count;

/* 2 |p and g| / (|p| + |g|) and |p and g| / |p or g|; NaN where the label has none. */
double metric_dice(metric_count c);
double metric_iou(metric_count c);

/* Of classes 0 .. classes - 1; both arrays hold class indices. */
void metric_count_labels(const uint8_t *prediction, const uint8_t *label, int64_t voxels,
                         int classes, metric_count *out);
/* Of 'regions' channels that are 0 or 1, [voxel][region]. */
void metric_count_regions(const uint8_t *prediction, const uint8_t *label, int64_t voxels,
                          int regions, metric_count *out);

typedef enum metric_kind { METRIC_DICE = 0, METRIC_IOU, METRIC_KIND_COUNT } metric_kind;
extern const char *const metric_names[METRIC_KIND_COUNT];
double metric_value(metric_kind kind, metric_count c);

/* One class over many cases. */
typedef struct metric_summary {
    double sum[METRIC_KIND_COUNT];
    int64_t defined, empty, missed, false_alarms;
} metric_summary;

void metric_summary_add(metric_summary *s, metric_count c);
/* NaN when no case has a value. */
double metric_summary_mean(const metric_summary *s, metric_kind kind);
/* Mean over classes first .. count - 1 of the classes' means, those without one left out. */
double metric_summary_mean_of(const metric_summary *s, int first, int count, metric_kind kind);

#endif
