/*
 * evaluation_summary.c - summaries of an evaluation over cases.
 */
#include "evaluate/evaluation.h"

#include <math.h>
#include <string.h>

void evaluation_summarise(const evaluation *e, int class, metric_summary *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < e->case_count; i++)
        metric_summary_add(out, &e->cases[i].score[class]);
}

/* The mean over cases of a metric of the case. */
static double mean_of_cases(const evaluation *e, metric_kind kind)
{
    double sum = 0;

    for (int i = 0; i < e->case_count; i++)
        sum += e->cases[i].mean[kind];
    return e->case_count > 0 ? sum / e->case_count : NAN;
}

double evaluation_mean(const evaluation *e, metric_kind kind)
{
    double sum = 0;
    int defined = 0;

    if (metric_facts[kind].source == METRIC_OF_CASE)
        return mean_of_cases(e, kind);
    for (int c = 0; c < e->class_count; c++) {
        metric_summary s;

        evaluation_summarise(e, c, &s);
        if (s.defined[kind] == 0)
            continue;
        sum += metric_summary_mean(&s, kind);
        defined++;
    }
    return defined > 0 ? sum / defined : NAN;
}
