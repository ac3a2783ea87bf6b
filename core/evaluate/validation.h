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

typedef struct validation {
    replicas *replicas;       /* with evaluation programs; they divide the windows                */
    cache *cache;
    int count;
    const int *ranks;
    metric_set metrics;       /* of surfaces and lesions, which cost time; the others are there */
    /* Called before batches of windows, by the thread of any replica; may be NULL. */
    bool (*stop)(void *context);
    /* Called with a case and its decided classes by the thread that scores it; may be NULL. */
    void (*scored)(void *context, int number, const pons_case *c, const uint8_t *decided);
    void *context;
} validation;

/* One summary for each class of the target, and one of the metrics of whole cases. */
typedef struct validation_result {
    int cases;
    bool interrupted;         /* nothing else is set then                                         */
    class_score *scores;      /* [case][class]; of the caller, NULL: not wanted. Images of a
                                 classification have none                                         */
    metric_summary *classes;  /* class_count + 1, the last of whole cases; of the caller          */
} validation_result;

pons_status validation_run(const validation *v, validation_result *result, pons_error *err);
/* The first class of means: 1 if there is a background and another class, else 0. */
int validation_first_class(const experiment *e);

#endif
