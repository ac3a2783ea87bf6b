/*
 * metric.h - metrics of a class in a case, and their summary over cases.
 *
 * A value is undefined (NaN) where its formula divides by nothing or measures a surface that does
 * not exist. Dice and IoU exist only if the label has the class (MONAI's ignore_empty). Cases are
 * also counted: as 'empty' if prediction and label lack the class, as a false alarm if only the
 * label lacks it, as missed if only the prediction does.
 */
#ifndef CORE_METRIC_METRIC_H
#define CORE_METRIC_METRIC_H

#include <stdbool.h>
#include <stdint.h>

/* Voxels of one class in one case. */
typedef struct metric_count {
    int64_t prediction, label, both;
    int64_t voxels;           /* of the case                                                      */
} metric_count;

/* 2 |p and g| / (|p| + |g|) and |p and g| / |p or g|; NaN if the label lacks the class. */
double metric_dice(metric_count c);
double metric_iou(metric_count c);

/* Count classes 0 .. classes - 1; both arrays hold class indices. */
void metric_count_labels(const uint8_t *prediction, const uint8_t *label, int64_t voxels,
                         int classes, metric_count *out);
/* Count 'regions' 0/1 channels, [voxel][region]. */
void metric_count_regions(const uint8_t *prediction, const uint8_t *label, int64_t voxels,
                          int regions, metric_count *out);

/*
 * Set prediction and label to 0 in voxels whose label is 'ignored' (in all its channels), and
 * return their number. metric_count_drop takes voxels of value 0 out of the counts of classes, or
 * of regions.
 */
int64_t metric_clear_ignored(uint8_t *prediction, uint8_t *label, int64_t voxels, int channels,
                             uint8_t ignored);
void metric_count_drop(metric_count *count, int classes, bool regions, int64_t voxels);

typedef enum metric_kind {
    METRIC_DICE = 0, METRIC_IOU, METRIC_HD, METRIC_HD95, METRIC_ASD, METRIC_NSD,
    METRIC_SENSITIVITY, METRIC_SPECIFICITY, METRIC_PRECISION, METRIC_VOLUME_DIFFERENCE,
    METRIC_VOLUME_SIMILARITY, METRIC_LESIONS_FOUND, METRIC_LESIONS_MISSED, METRIC_LESIONS_FALSE,
    METRIC_LESION_F1, METRIC_GENERALIZED_DICE, METRIC_PSNR, METRIC_SSIM, METRIC_MAE,
    METRIC_ACCURACY, METRIC_TOP5, METRIC_BALANCED_ACCURACY, METRIC_AUC,
    METRIC_KIND_COUNT
} metric_kind;

/* The input of a metric's formula. */
typedef enum metric_source {
    METRIC_OF_COUNTS,         /* a class's voxel counts                                           */
    METRIC_OF_SURFACES,       /* a class's surfaces (surface_distance.h)                          */
    METRIC_OF_LESIONS,        /* a class's connected components (lesions.h)                       */
    METRIC_OF_CASE,           /* a case as a whole; a class has no value                          */
    METRIC_OF_IMAGE,          /* the values of an image (image_quality.h)                         */
    METRIC_OF_CASES           /* all cases at once, class by class (class_ranking.h)              */
} metric_source;

typedef struct metric_fact {
    const char *name;
    metric_source source;
    int better;               /* 1: a large value is good; -1: a small one; 0: one near 0         */
} metric_fact;

extern const metric_fact metric_facts[METRIC_KIND_COUNT];

/* A set of metrics: bit 'kind'. */
typedef uint32_t metric_set;

static inline bool metric_set_has(metric_set set, metric_kind kind)
{
    return (set >> kind & 1) != 0;
}

/* The metrics of labels that are measured where none is named. */
enum {
    METRICS_USUAL = 1 << METRIC_DICE | 1 << METRIC_IOU | 1 << METRIC_HD | 1 << METRIC_HD95
                    | 1 << METRIC_ASD | 1 << METRIC_NSD
};
/* The metrics of images that have one class each. */
enum {
    METRICS_OF_DECISIONS = 1 << METRIC_ACCURACY | 1 << METRIC_TOP5 | 1 << METRIC_BALANCED_ACCURACY
                           | 1 << METRIC_AUC
};
/* The metrics of 'set' that have this source. */
metric_set metric_set_from(metric_set set, metric_source source);
/* The kind of a name; METRIC_KIND_COUNT: none. */
metric_kind metric_kind_find(const char *name);
/* A number that is larger for a worse value. */
double metric_badness(metric_kind kind, double value);

/* A class in a case. */
typedef struct class_score {
    metric_count count;
    double value[METRIC_KIND_COUNT];
} class_score;

/* The score with every metric of counts; the others are NaN. */
class_score class_score_of_counts(metric_count c);
/*
 * Generalised Dice of classes (Sudre et al. 2017): sum w 2 |p and g| / sum w (|p| + |g|) with
 * w = 1 / |g|^2. A class without a label has the largest weight of the others. Without any voxel
 * of a class the value is 1.
 */
double metric_generalized_dice(const class_score *classes, int count);
/* The value of a case: the mean over its classes with a value, NaN without any, or its own one. */
double metric_mean_of_classes(const class_score *classes, int count, metric_kind kind);

/* The summary of one class over cases. */
typedef struct metric_summary {
    double sum[METRIC_KIND_COUNT];
    int64_t defined[METRIC_KIND_COUNT];
    int64_t undefined[METRIC_KIND_COUNT]; /* cases without a value whose label has the class      */
    int64_t empty, missed, false_alarms;
} metric_summary;

void metric_summary_add(metric_summary *s, const class_score *c);
/* The mean over cases with a value; NaN: none. */
double metric_summary_mean(const metric_summary *s, metric_kind kind);
/* The mean of the means of classes first .. count - 1, without classes that have none. */
double metric_summary_mean_of(const metric_summary *s, int first, int count, metric_kind kind);
/* The sum of 'undefined' of these classes. */
int64_t metric_summary_undefined_of(const metric_summary *s, int first, int count,
                                    metric_kind kind);

#endif
