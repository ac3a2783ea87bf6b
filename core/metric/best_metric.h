/*
 * best_metric.h - the number by which a validation is the best: [train] best.
 */
#ifndef CORE_METRIC_BEST_METRIC_H
#define CORE_METRIC_BEST_METRIC_H

#include "data/dataset/dataset.h"
#include "metric/metric.h"

typedef struct best_metric {
    metric_kind kind;
    int class_index;        /* -1: the mean                                                       */
} best_metric;

/* 'name' is "dice.mean", or "iou.spleen"; PONS_CONFIG where there is no such number. */
pons_status best_metric_find(const char *name, int class_count, const data_class *classes,
                             best_metric *out, pons_error *err);

#endif
