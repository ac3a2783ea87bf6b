/*
 * number_order.h - the order of numbers for qsort and bsearch.
 */
#ifndef CORE_BASE_NUMBER_ORDER_H
#define CORE_BASE_NUMBER_ORDER_H

/* Doubles that rise. */
static inline int order_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

#endif
