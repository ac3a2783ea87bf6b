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
 * Parse a name such as "dice.mean", "hd95.spleen" or "dice", which is the mean. PONS_CONFIG: an
 * unknown metric or class, or a class of a metric that cases have as a whole.
 */
pons_status best_metric_find(const char *name, int class_count, const data_class *classes,
                             best_metric *out, pons_error *err);
/* A validation by the metric. */
typedef struct best_score {
    double value;           /* the mean over cases that define it; NaN: none                      */
    int64_t undefined;      /* cases and classes of the label that have no value                  */
} best_score;

/*
 * True if 'score' is better than 'best': its value is a number and fewer values are undefined; of
 * equally many the larger value, or the smaller one where the metric is a distance. Otherwise a
 * network that misses a class of a difficult case would have a better mean distance.
 */
bool best_metric_improves(best_metric m, best_score score, best_score best);

#endif
