/*
 * evaluation.h - compare predictions with labels on the files' grid: metrics per class and case,
 * their means, and tables of them.
 */
#ifndef CORE_EVALUATE_EVALUATION_H
#define CORE_EVALUATE_EVALUATION_H

#include "base/log.h"
#include "data/dataset/dataset.h"
#include "data/volume/volume.h"
#include "metric/id_partition.h"
#include "metric/label_pair.h"
#include "metric/metric.h"

#include <stdio.h>

/* A label id in a prediction that no class of --labels lists. */
typedef struct unlisted_id {
    int id;
    int64_t voxels;
} unlisted_id;

typedef struct evaluated_case {
    char *name;
    class_score *score;       /* [class]                                                          */
    double mean[METRIC_KIND_COUNT]; /* over classes with a value; or the metric of the case       */
    int unlisted_count;
    const unlisted_id *unlisted; /* ascending by id                                               */
} evaluated_case;

/* A fold of a cross-validation: cases 'first' to end - 1, which its training did not see. */
typedef struct evaluated_fold {
    int number, first, end;
} evaluated_fold;

/* An evaluation. Cases are added by evaluation_add_*; its classes never contain the background. */
typedef struct evaluation {
    arena *memory;
    metric_set metrics;       /* computed and printed                                             */
    metric_kind column[METRIC_KIND_COUNT]; /* the metrics in the order of tables                  */
    metric_kind order;        /* cases of the table are sorted by it                              */
    double tolerance;         /* of nsd, in millimetres                                           */
    const char *asks_surfaces; /* a flag that only metrics of labels' surfaces take; NULL: none   */
    bool images;              /* the files are images, and each channel is a class                */
    double range;             /* span of the images' values; 0: that of the label image           */
    double spacing[3];        /* in place of the label file's; 0: the file's                      */
    int class_count;
    const data_class *classes;
    const bool *listed;       /* [LABEL_ID_MAX + 1] ids in --labels; NULL: each id is a class     */
    const data_class *ignored; /* ids of the label that nothing counts; NULL: none                */
    id_partition areas;       /* partition of ids by the classes                                  */
    bool regions;             /* classes may share ids                                            */
    const char *previous;     /* labels of a cascade's first stage: a folder or one file; or NULL */
    bool printed_elsewhere;   /* another process prints the result                                */
    int case_count, room;
    evaluated_case *cases;
    struct decisions *decisions; /* task = classification: images in place of cases; or NULL      */
    int fold_count;           /* 0: no cross-validation                                           */
    const evaluated_fold *folds;
} evaluation;

/* Open an evaluation of dice and iou with a tolerance of 1 mm. */
pons_status evaluation_open(evaluation *e, pons_error *err);
void evaluation_close(evaluation *e);
/* Add a metric to the evaluation; it becomes the last column. */
void evaluation_add_metric(evaluation *e, metric_kind kind);
/*
 * Set the classes of --labels ("spleen:1 kidney:2,3"); a class that lists id 0 is background, and
 * voxels with an id of 'ignore' are not counted.
 */
pons_status evaluation_name_classes(evaluation *e, const pons_texts *items, pons_error *err);
/*
 * Set classes '1', '2', ...: every id but 0 in the files; files with several channels have no ids.
 */
pons_status evaluation_find_classes(evaluation *e, int count, const char *const *file,
                                    pons_error *err);

/* Give 'e' the classes of 'from', which must outlive it. */
void evaluation_share_classes(evaluation *e, const evaluation *from);

/*
 * Add a pair of files. PONS_DATA: their grids differ. A prediction with several channels holds
 * regions, one channel for each class.
 */
pons_status evaluation_add_files(evaluation *e, const char *name, const char *prediction,
                                 const char *label, pons_error *err);
/*
 * Read a prediction of regions and the label as regions: U8, one 0/1 channel for each class. The
 * label is TARGET_IGNORED where its id is that of 'ignore'. The caller clears both.
 */
pons_status evaluation_read_regions(const evaluation *e, const char *prediction, const char *label,
                                    volume *p, volume *g, pons_error *err);
/*
 * Read a pair of files for a picture: I32 with the number of a class, from 1 on, or 0; U8 with a
 * 0/1 channel for each class where ids are of several classes, or the prediction has channels.
 * Voxels whose label is ignored are background in both volumes, which the caller clears.
 */
pons_status evaluation_read_marks(const evaluation *e, const char *prediction, const char *label,
                                  volume *p, volume *g, pons_error *err);
/* Add a case with class_count scores made elsewhere. */
pons_status evaluation_add_scores(evaluation *e, const char *name, const class_score *score,
                                  pons_error *err);
/*
 * Add to scores of counts the metrics that need more. The volumes hold areas, or a channel for each
 * class; 'areas' has the list of each class.
 */
pons_status evaluation_score_masks(const evaluation *e, const volume *prediction,
                                   const volume *label, const class_areas *areas, int area_count,
                                   class_score *score, pons_error *err);

/* ---- evaluation_images.c --------------------------------------------------------------------- */

/* Set the classes to the channels of an image file: '0', '1', ...; a single one is 'image'. */
pons_status evaluation_find_channels(evaluation *e, const char *file, pons_error *err);
/*
 * Add a pair of images. PONS_DATA: grids or numbers of channels differ, or the label image has a
 * single value and there is no range.
 */
pons_status evaluation_add_images(evaluation *e, const char *name, const char *prediction,
                                  const char *label, pons_error *err);
/* Compute the metrics of an image [extent] against 'truth', whose values span 'range'. */
pons_status evaluation_score_image(const float *image, const float *truth, const int64_t extent[3],
                                   double range, class_score *score, pons_error *err);

/* ---- evaluation_summary.c -------------------------------------------------------------------- */

void evaluation_summarise(const evaluation *e, int class, metric_summary *out);
/* The mean over classes of their means over cases; of a metric of the case its mean over cases. */
double evaluation_mean(const evaluation *e, metric_kind kind);

/* ---- evaluation_folds.c ---------------------------------------------------------------------- */

/* The mean of a class over the fold's cases; 'class' = class_count: the mean over classes. */
double evaluation_fold_mean(const evaluation *e, const evaluated_fold *f, int class,
                            metric_kind kind);

/* NaN: undefined. */
typedef struct fold_spread {
    double mean, deviation;
} fold_spread;

/*
 * Mean and standard deviation (with n - 1) of evaluation_fold_mean over the folds that have a
 * value.
 */
fold_spread evaluation_fold_spread(const evaluation *e, int class, metric_kind kind);
/* The number of the fold that holds case 'number' out; -1: none. */
int evaluation_fold_of(const evaluation *e, int number);

/* ---- evaluation_interval.c ------------------------------------------------------------------- */

/* The ends of a 95 % interval; NaN: there is none. */
typedef struct mean_interval {
    double low, high;
} mean_interval;

/*
 * The intervals of the means by the bootstrap (Efron 1979): percentiles 2.5 and 97.5 of the means
 * of 2000 samples of the cases, drawn with replacement. A sample without a value of a metric does
 * not count. Writes [class_count + 1][METRIC_KIND_COUNT]; the last row has the means over classes.
 */
pons_status evaluation_intervals(const evaluation *e, mean_interval *out, pons_error *err);

/* ---- output ---------------------------------------------------------------------------------- */

/* Write cases in the order of their files, complete or not at all. */
pons_status evaluation_write_csv(const evaluation *e, const char *path, pons_error *err);
/* 'interval' is from evaluation_intervals; NULL: none are written. */
void evaluation_print_json(const evaluation *e, const mean_interval *interval, FILE *to);
/*
 * The worst case comes first: that with the worst mean of 'order'. Of many classes only the means
 * of the worst and the best are printed, and the means of each case, except with 'all'.
 */
void evaluation_print_table(const evaluation *e, const mean_interval *interval, bool all, FILE *to);

#endif
