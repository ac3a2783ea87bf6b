/*
 * validation.h - predict the held-out cases with sliding windows and score them on the
 * preprocessed grid.
 */
#ifndef CORE_EVALUATE_VALIDATION_H
#define CORE_EVALUATE_VALIDATION_H

#include "data/cache/cache.h"
#include "data/case/case_read.h"
#include "metric/metric.h"
#include "replica/replicas.h"

/*
 * A case of this process that has been predicted: its decided classes [voxels][label channels] of a
 * segmentation, or the image that a synthesis made and the one in whose place it is; else NULL. 'c'
 * is NULL in a classification, where the result has all images at once.
 */
typedef struct scored_case {
    int number;
    const pons_case *c;
    const uint8_t *decided;
    const float *truth, *made;
    int channel;              /* of the image, to be shown                                        */
    double badness;           /* larger for a worse prediction; NaN: unknown                      */
} scored_case;

typedef struct validation {
    replicas *replicas;       /* with evaluation programs; they divide the windows                */
    cache *cache;
    int count;
    const int *ranks;
    metric_set metrics;       /* of surfaces and lesions, which cost time; the others are there */
    /* Called before batches of windows, by the thread of any replica; may be NULL. */
    bool (*stop)(void *context);
    /*
     * Called with each case by the thread that has predicted it or, in a classification, read it;
     * may be NULL.
     */
    void (*scored)(void *context, const scored_case *c);
    void *context;
} validation;

/* One summary for each class of the target, and one of the metrics of whole cases. */
typedef struct validation_result {
    int cases;
    bool interrupted;         /* nothing else is set then                                         */
    class_score *scores;      /* [case][class]; of the caller, NULL: not wanted. A
                                 classification has none                                          */
    metric_summary *classes;  /* class_count + 1, the last of whole cases; of the caller          */
    bool images;              /* of a classification: the next two are wanted                     */
    int32_t *label;           /* [case] malloc'ed                                                 */
    float *probability;       /* [case][class] malloc'ed                                          */
} validation_result;

pons_status validation_run(const validation *v, validation_result *result, pons_error *err);
/* The first class of means: 1 if there is a background and another class, else 0. */
int validation_first_class(const experiment *e);

#endif
