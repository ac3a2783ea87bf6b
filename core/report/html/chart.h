/*
 * chart.h - curves as an inline SVG picture that needs no script: axes, lines, a legend, and the
 * values of each position as the title of an invisible bar.
 */
#ifndef CORE_REPORT_HTML_CHART_H
#define CORE_REPORT_HTML_CHART_H

#include "base/arena.h"

#include <stdio.h>

enum { CHART_COLORS = 8 };

/* Points with rising x. A y that is not finite is left out. */
typedef struct chart_line {
    const char *name;
    int count;
    const double *x, *y;
} chart_line;

typedef struct chart {
    const char *title, *unit; /* of y, "" if it has none                                          */
    int number;               /* of the chart in its page, for references                         */
    int line_count;
    const chart_line *line;
} chart;

/*
 * Write a figure. A line of many points is drawn as means of equal parts of the axis, with their
 * smallest and largest value as a band. Without a finite point nothing is written.
 */
void chart_put(FILE *to, arena *memory, const chart *c);
/* The rules of the figures' colours for the page's style sheet. */
void chart_put_style(FILE *to);

#endif
