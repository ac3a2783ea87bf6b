/*
 * value_series.h - a number over a run in bounded memory, drawn as a sparkline.
 */
#ifndef CORE_REPORT_LIVE_VALUE_SERIES_H
#define CORE_REPORT_LIVE_VALUE_SERIES_H

#include <stdbool.h>
#include <stddef.h>

enum { VALUE_SERIES_SIZE = 256 };

/* Means of 'stride' values each. A full series halves itself, and 'stride' doubles. */
typedef struct value_series {
    int count;
    long stride, held;    /* stride 0 stands for 1; held: values in 'sum'                         */
    double sum, last;
    double value[VALUE_SERIES_SIZE];
} value_series;

/* Add a value; one that is not finite is 'last' alone. */
void value_series_add(value_series *s, double value);
/*
 * Write the series as at most 'columns' characters between its least and its greatest value: block
 * elements in UTF-8, or ASCII. A text without room for all of them is cut between two of them.
 */
void value_series_draw(const value_series *s, int columns, bool utf8, char *out, size_t size);

#endif
