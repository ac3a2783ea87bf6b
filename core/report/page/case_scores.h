/*
 * case_scores.h - the scores of the last validation, case by case: validation/cases.csv of a run.
 *
 * The table has the columns of 'pons evaluate --csv' and 'step', the steps that were done. That of
 * a classification has a row per image, and the names of its class and of the decision. A picture
 * validation/case_0001.png belongs to the first case, and so on.
 */
#ifndef CORE_REPORT_PAGE_CASE_SCORES_H
#define CORE_REPORT_PAGE_CASE_SCORES_H

#include "base/arena.h"

#include <pons/plugin.h>
#include <stdint.h>

/* 'value' is [case][class][metric], NaN where undefined. The last class is the mean of a case. */
typedef struct case_scores {
    int64_t step;
    int case_count, class_count, metric_count; /* class_count includes the mean                   */
    const char *const *name, *const *class, *const *metric;
    const double *value;
    const char *const *label, *const *decision; /* of a classification, else NULL                 */
} case_scores;

#define CASE_SCORES_MEAN "(mean)"

/* The value of a class of a case. */
double case_scores_value(const case_scores *s, int number, int class, int metric);
/* The path of a case's picture, numbers from 0. */
const char *case_scores_picture(arena *memory, const char *run, int number);

/* Make the folder 'validation' of a run, whose own folder must be there. */
pons_status case_scores_make_folder(arena *memory, const char *run, pons_error *err);
/* Write the table to the folder of a run. */
pons_status case_scores_write(const char *run, const case_scores *s, pons_error *err);
/*
 * Read the table of a run. Without one case_count is 0. PONS_DATA: the table is malformed.
 * Everything lies in 'memory'.
 */
pons_status case_scores_read(arena *memory, const char *run, case_scores *out, pons_error *err);

/* The numbers of the cases, the worst mean of a metric first and undefined ones last. */
const int *case_scores_sort(arena *memory, const case_scores *s, int metric);

#endif
