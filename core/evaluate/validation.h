/*
 * validation.h - the held-out cases through the sliding window, on the preprocessed grid.
 */
#ifndef CORE_EVALUATE_VALIDATION_H
#define CORE_EVALUATE_VALIDATION_H

#include "data/cache/cache.h"
#include "metric/metric.h"
#include "replica/replicas.h"

typedef struct validation {
    replicas *replicas;       /* with evaluation programs; they share the windows out             */
    cache *cache;
    int count;
    const int *ranks;
    bool (*stop)(void *context); /* asked before batches of windows, by any replica's thread; may */
                              /* be NULL                                                          */
    void *context;
} validation;

/* Results of a validation: one summary for each class of the target. */
typedef struct validation_result {
    int cases;
    bool stopped;             /* nothing else is set then                                         */
    metric_summary *classes;  /* class_count; malloc'ed by the caller                             */
} validation_result;

pons_status validation_run(const validation *v, validation_result *result, pons_error *err);
/* The first class that counts for a mean: background is left out where there are other classes. */
int validation_first_class(const experiment *e);

#endif
