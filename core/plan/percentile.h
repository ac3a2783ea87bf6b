/*
 * percentile.h - percentiles of a few numbers, such as one of each case.
 */
#ifndef CORE_PLAN_PERCENTILE_H
#define CORE_PLAN_PERCENTILE_H

/*
 * Sort the numbers (count > 0) and interpolate between the two next to the share, as numpy's
 * percentile does.
 */
double percentile_find(double *number, int count, double percent);

#endif
