/*
 * metric.c - count voxels, compute metrics of counts and summarise (definitions: MONAI's DiceMetric
 * and MeanIoU with ignore_empty, its confusion matrix and GeneralizedDiceScore; Taha and Hanbury,
 * "Metrics for evaluating 3D medical image segmentation", 2015, for volumes).
 */
#include "metric/metric.h"

#include <math.h>
#include <string.h>

const metric_fact metric_facts[METRIC_KIND_COUNT] = {
    [METRIC_DICE] = { "dice", METRIC_OF_COUNTS, 1 },
    [METRIC_IOU] = { "iou", METRIC_OF_COUNTS, 1 },
    [METRIC_HD] = { "hd", METRIC_OF_SURFACES, -1 },
    [METRIC_HD95] = { "hd95", METRIC_OF_SURFACES, -1 },
    [METRIC_ASD] = { "asd", METRIC_OF_SURFACES, -1 },
    [METRIC_NSD] = { "nsd", METRIC_OF_SURFACES, 1 },
    [METRIC_SENSITIVITY] = { "sensitivity", METRIC_OF_COUNTS, 1 },
    [METRIC_SPECIFICITY] = { "specificity", METRIC_OF_COUNTS, 1 },
    [METRIC_PRECISION] = { "precision", METRIC_OF_COUNTS, 1 },
    [METRIC_VOLUME_DIFFERENCE] = { "volume_difference", METRIC_OF_COUNTS, 0 },
    [METRIC_VOLUME_SIMILARITY] = { "volume_similarity", METRIC_OF_COUNTS, 1 },
    [METRIC_LESIONS_FOUND] = { "lesions_found", METRIC_OF_LESIONS, 1 },
    [METRIC_LESIONS_MISSED] = { "lesions_missed", METRIC_OF_LESIONS, -1 },
    [METRIC_LESIONS_FALSE] = { "lesions_false", METRIC_OF_LESIONS, -1 },
    [METRIC_LESION_F1] = { "lesion_f1", METRIC_OF_LESIONS, 1 },
    [METRIC_GENERALIZED_DICE] = { "generalized_dice", METRIC_OF_CASE, 1 },
    [METRIC_PSNR] = { "psnr", METRIC_OF_IMAGE, 1 },
    [METRIC_SSIM] = { "ssim", METRIC_OF_IMAGE, 1 },
    [METRIC_MAE] = { "mae", METRIC_OF_IMAGE, -1 },
    [METRIC_ACCURACY] = { "accuracy", METRIC_OF_CASE, 1 },
    [METRIC_TOP5] = { "top5", METRIC_OF_CASE, 1 },
    [METRIC_BALANCED_ACCURACY] = { "balanced_accuracy", METRIC_OF_CASES, 1 },
    [METRIC_AUC] = { "auc", METRIC_OF_CASES, 1 }
};

metric_set metric_set_from(metric_set set, metric_source source)
{
    metric_set found = 0;

    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        if (metric_facts[kind].source == source)
            found |= set & (metric_set)1 << kind;
    return found;
}

metric_kind metric_kind_find(const char *name)
{
    int kind = 0;

    while (kind < METRIC_KIND_COUNT && strcmp(metric_facts[kind].name, name) != 0)
        kind++;
    return (metric_kind)kind;
}

double metric_badness(metric_kind kind, double value)
{
    int better = metric_facts[kind].better;

    return better == 0 ? fabs(value) : -better * value;
}

/* ---- counts ---------------------------------------------------------------------------------- */

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

/* The quotient of two counts; NaN: the divisor is 0. */
static double ratio(int64_t a, int64_t b)
{
    return b > 0 ? (double)a / (double)b : NAN;
}

static double volume_similarity(metric_count c)
{
    return 1 - ratio(c.prediction > c.label ? c.prediction - c.label : c.label - c.prediction,
                     c.prediction + c.label);
}

class_score class_score_of_counts(metric_count c)
{
    class_score s = { .count = c };

    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        s.value[kind] = NAN;
    s.value[METRIC_DICE] = metric_dice(c);
    s.value[METRIC_IOU] = metric_iou(c);
    s.value[METRIC_SENSITIVITY] = ratio(c.both, c.label);
    s.value[METRIC_SPECIFICITY] = ratio(c.voxels - c.prediction - c.label + c.both,
                                        c.voxels - c.label);
    s.value[METRIC_PRECISION] = ratio(c.both, c.prediction);
    s.value[METRIC_VOLUME_DIFFERENCE] = ratio(c.prediction - c.label, c.label);
    s.value[METRIC_VOLUME_SIMILARITY] = volume_similarity(c);
    return s;
}

double metric_generalized_dice(const class_score *classes, int count)
{
    double largest = 0, both = 0, sum = 0;
    int64_t predicted = 0;

    for (int c = 0; c < count; c++) {
        double label = (double)classes[c].count.label;
        largest = label > 0 ? fmax(largest, 1 / (label * label)) : largest;
    }
    for (int c = 0; c < count; c++) {
        metric_count n = classes[c].count;
        double label = (double)n.label, weight = n.label > 0 ? 1 / (label * label) : largest;
        both += weight * 2 * (double)n.both;
        sum += weight * (double)(n.prediction + n.label);
        predicted += n.prediction;
    }
    return sum > 0 ? both / sum : predicted == 0;
}

double metric_mean_of_classes(const class_score *classes, int count, metric_kind kind)
{
    double sum = 0;
    int defined = 0;

    if (metric_facts[kind].source == METRIC_OF_CASE)
        return metric_generalized_dice(classes, count);
    for (int c = 0; c < count; c++) {
        if (isnan(classes[c].value[kind]))
            continue;
        sum += classes[c].value[kind];
        defined++;
    }
    return defined > 0 ? sum / defined : NAN;
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
    for (int c = 0; c < classes; c++) {
        out[c] = count[c];
        out[c].voxels = voxels;
    }
}

void metric_count_regions(const uint8_t *prediction, const uint8_t *label, int64_t voxels,
                          int regions, metric_count *out)
{
    for (int r = 0; r < regions; r++)
        out[r] = (metric_count){ .voxels = voxels };
    for (int64_t i = 0; i < voxels; i++) {
        for (int r = 0; r < regions; r++) {
            bool p = *prediction++ != 0, g = *label++ != 0;
            out[r].prediction += p;
            out[r].label += g;
            out[r].both += p && g;
        }
    }
}

int64_t metric_clear_ignored(uint8_t *prediction, uint8_t *label, int64_t voxels, int channels,
                             uint8_t ignored)
{
    size_t size = (size_t)channels;
    int64_t cleared = 0;

    for (int64_t v = 0; v < voxels; v++, prediction += size, label += size) {
        if (label[0] != ignored)
            continue;
        memset(prediction, 0, size);
        memset(label, 0, size);
        cleared++;
    }
    return cleared;
}

void metric_count_drop(metric_count *count, int classes, bool regions, int64_t voxels)
{
    for (int c = 0; c < classes; c++) {
        bool holds = c == 0 && !regions;
        count[c].voxels -= voxels;
        count[c].prediction -= holds ? voxels : 0;
        count[c].label -= holds ? voxels : 0;
        count[c].both -= holds ? voxels : 0;
    }
}

/* ---- summary --------------------------------------------------------------------------------- */

void metric_summary_add(metric_summary *s, const class_score *c)
{
    bool predicted = c->count.prediction > 0, labelled = c->count.label > 0;

    s->empty += !predicted && !labelled;
    s->missed += !predicted && labelled;
    s->false_alarms += predicted && !labelled;
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
        if (isnan(c->value[kind])) {
            s->undefined[kind] += labelled;
            continue;
        }
        s->defined[kind]++;
        s->sum[kind] += c->value[kind];
    }
}

double metric_summary_mean(const metric_summary *s, metric_kind kind)
{
    return s->defined[kind] > 0 ? s->sum[kind] / (double)s->defined[kind] : NAN;
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

int64_t metric_summary_undefined_of(const metric_summary *s, int first, int count,
                                    metric_kind kind)
{
    int64_t undefined = 0;

    for (int i = first; i < count; i++)
        undefined += s[i].undefined[kind];
    return undefined;
}
