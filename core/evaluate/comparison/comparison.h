/*
 * comparison.h - two evaluations of the same cases: paired differences and their test.
 */
#ifndef CORE_EVALUATE_COMPARISON_COMPARISON_H
#define CORE_EVALUATE_COMPARISON_COMPARISON_H

#include "evaluate/evaluation.h"

/* A metric of a class in the cases that have a value in both evaluations, A and B. */
typedef struct paired_metric {
    int cases;
    double mean_a, mean_b;    /* NaN: no cases                                                    */
    double difference;        /* of the means, B - A                                              */
    int better, worse;        /* cases in which B is; metrics without a direction: nearer to 0    */
    double p;                 /* of Wilcoxon's test (paired_test.h)                               */
} paired_metric;

/* The two evaluations have equal cases in equal order, and equal classes and metrics. */
typedef struct comparison {
    const evaluation *a, *b;
    paired_metric *metric;    /* [class_count + 1][METRIC_KIND_COUNT]; means in the last row      */
} comparison;

/* Compare two evaluations, which must outlive the result; its memory is a's. */
pons_status comparison_make(const evaluation *a, const evaluation *b, comparison *out,
                            pons_error *err);
/* Print a row for each class and metric, then one for each case, the largest loss of B first. */
void comparison_print_table(const comparison *c, FILE *to);

/* ---- comparison_json.c ----------------------------------------------------------------------- */

void comparison_print_json(const comparison *c, FILE *to);

#endif
