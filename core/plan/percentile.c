/*
 * percentile.c - percentiles with linear interpolation.
 */
#include "plan/percentile.h"

#include <stdlib.h>

#include "base/number_order.h"

double percentile_find(double *number, int count, double percent)
{
    double place = percent / 100 * (count - 1), part;
    int low = (int)place, high = low + 1 < count ? low + 1 : low;

    qsort(number, (size_t)count, sizeof *number, order_doubles);
    part = place - low;
    return part < 0.5 ? number[low] + (number[high] - number[low]) * part
                      : number[high] - (number[high] - number[low]) * (1 - part);
}
