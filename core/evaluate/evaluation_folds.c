/*
 * evaluation_folds.c - means of the folds of a cross-validation, and their spread over folds.
 */
#include "evaluate/evaluation.h"

#include <math.h>

double evaluation_fold_mean(const evaluation *e, const evaluated_fold *f, int class,
                            metric_kind kind)
{
    evaluation part = *e;

    part.cases = e->cases + f->first;
    part.case_count = f->end - f->first;
    if (class >= e->class_count)
        return evaluation_mean(&part, kind);
    metric_summary s;
    evaluation_summarise(&part, class, &s);
    return metric_summary_mean(&s, kind);
}

fold_spread evaluation_fold_spread(const evaluation *e, int class, metric_kind kind)
{
    fold_spread s = { NAN, NAN };
    double sum = 0, squares = 0;
    int defined = 0;

    for (int n = 0; n < e->fold_count; n++) {
        double mean = evaluation_fold_mean(e, &e->folds[n], class, kind);

        if (isnan(mean))
            continue;
        sum += mean;
        defined++;
    }
    if (defined > 0)
        s.mean = sum / defined;
    for (int n = 0; n < e->fold_count; n++) {
        double apart = evaluation_fold_mean(e, &e->folds[n], class, kind) - s.mean;

        squares += isfinite(apart) ? apart * apart : 0;
    }
    if (defined > 1 && isfinite(s.mean))
        s.deviation = sqrt(squares / (defined - 1));
    return s;
}

int evaluation_fold_of(const evaluation *e, int number)
{
    for (int n = 0; n < e->fold_count; n++)
        if (number >= e->folds[n].first && number < e->folds[n].end)
            return e->folds[n].number;
    return -1;
}
