/*
 * curve_plot.h - a picture of a curve over a logarithmic axis, with marks.
 */
#ifndef CORE_REPORT_PICTURE_CURVE_PLOT_H
#define CORE_REPORT_PICTURE_CURVE_PLOT_H

#include <stdint.h>

#include <pons/plugin.h>

/* A vertical line at x; NaN: none. */
typedef struct curve_mark {
    double x;
    uint8_t color[3];
} curve_mark;

/* Points with rising x above 0, and finite y; at least two. */
typedef struct curve_plot {
    int count;
    const double *x, *y;
    const double *points;     /* further values of y, drawn as dots; NULL: none                   */
    int mark_count;
    const curve_mark *mark;
} curve_plot;

/*
 * Write a PNG: a grey line at each power of ten of x, the curve in black, dots in grey, the marks
 * in their colours. PONS_CONFIG in a build without libpng.
 */
pons_status curve_plot_write(const curve_plot *p, const char *path, pons_error *err);

#endif
