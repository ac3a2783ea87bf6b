/*
 * best_metric.h - the metric that selects the best checkpoint: [train] best.
 */
#ifndef CORE_METRIC_BEST_METRIC_H
#define CORE_METRIC_BEST_METRIC_H

#include "data/dataset/dataset.h"
#include "metric/metric.h"

typedef struct best_metric {
    metric_kind kind;
    int class_index;        /* -1: the mean over classes                                          */
} best_metric;

/*
 * Parse a name such as "dice.mean", "hd95.spleen" or "dice", which is the mean. PONS_CONFIG: unknown
 * metric or class, or a class of a metric that cases have as a whole.
 */
pons_status best_metric_find(const char *name, int class_count, const data_class *classes,
                             best_metric *out, pons_error *err);
/* True if 'value' is better than 'best': larger, or smaller where the metric is a distance. */
bool best_metric_improves(best_metric m, double value, double best);

#endif
