/*
 * percentile.c - percentiles with linear interpolation.
 */
#include "plan/percentile.h"

#include <stdlib.h>

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

double percentile_find(double *number, int count, double percent)
{
    double place = percent / 100 * (count - 1), part;
    int low = (int)place, high = low + 1 < count ? low + 1 : low;

    qsort(number, (size_t)count, sizeof *number, compare_numbers);
    part = place - low;
    return part < 0.5 ? number[low] + (number[high] - number[low]) * part
                      : number[high] - (number[high] - number[low]) * (1 - part);
}
