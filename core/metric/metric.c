/*
 * metric.c - counting voxels, and the two ratios that follow (definitions: MONAI's DiceMetric and
 * MeanIoU with ignore_empty). Distances between surfaces are not here.
 */
#include "metric/metric.h"

#include <math.h>
#include <string.h>

const char *const metric_names[METRIC_KIND_COUNT] = { "dice", "iou" };

double metric_dice(metric_count c)
{
    if (c.label == 0)
        return NAN;
    return 2.0 * (double)c.both / (double)(c.prediction + c.label);
}

double metric_iou(metric_count c)
{
    if (c.label == 0)
        return NAN;
    return (double)c.both / (double)(c.prediction + c.label - c.both);
}

double metric_value(metric_kind kind, metric_count c)
{
    static double (*const value[METRIC_KIND_COUNT])(metric_count) = { metric_dice, metric_iou };

    return value[kind](c);
}

void metric_count_labels(const uint8_t *prediction, const uint8_t *label, int64_t voxels,
                         int classes, metric_count *out)
{
    metric_count count[256];

    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < voxels; i++) {
        count[prediction[i]].prediction++;
        count[label[i]].label++;
        count[label[i]].both += prediction[i] == label[i];
    }
    memcpy(out, count, (size_t)classes * sizeof *out);
}

void metric_count_regions(const uint8_t *prediction, const uint8_t *label, int64_t voxels,
                          int regions, metric_count *out)
{
    memset(out, 0, (size_t)regions * sizeof *out);
    for (int64_t i = 0; i < voxels; i++) {
        for (int r = 0; r < regions; r++) {
            bool p = *prediction++ != 0, g = *label++ != 0;
            out[r].prediction += p;
            out[r].label += g;
            out[r].both += p && g;
        }
    }
}

void metric_summary_add(metric_summary *s, metric_count c)
{
    if (c.label == 0) {
        s->empty += c.prediction == 0;
        s->false_alarms += c.prediction > 0;
        return;
    }
    s->defined++;
    s->missed += c.prediction == 0;
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        s->sum[kind] += metric_value((metric_kind)kind, c);
}

double metric_summary_mean(const metric_summary *s, metric_kind kind)
{
    return s->defined > 0 ? s->sum[kind] / (double)s->defined : NAN;
}

double metric_summary_mean_of(const metric_summary *s, int first, int count, metric_kind kind)
{
    double sum = 0;
    int defined = 0;

    for (int i = first; i < count; i++) {
        double mean = metric_summary_mean(&s[i], kind);
        if (isnan(mean))
            continue;
        sum += mean;
        defined++;
    }
    return defined > 0 ? sum / defined : NAN;
}
