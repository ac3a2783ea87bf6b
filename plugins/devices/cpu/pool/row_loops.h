/*
 * row_loops.h - loops over rows of channels for pools, resizes and extremes. The rows are floats;
 * numbers of other types are converted with the lanes of map_kernel.h.
 */
#ifndef PLUGINS_DEVICES_CPU_POOL_ROW_LOOPS_H
#define PLUGINS_DEVICES_CPU_POOL_ROW_LOOPS_H

#include <stdint.h>

/* What each of 'count' positions of an axis reads: source[first[i]] .. source[first[i + 1] - 1]. */
typedef struct rows_mix {
    int64_t count;
    int64_t *first, *source;
    float *weight;
} rows_mix;

/* The windows of a row of a pool, for the gradient of a maximum. */
typedef struct rows_windows {
    int64_t count, channels;
    const int64_t *begin, *end;  /* [count] along W                                               */
} rows_windows;

typedef struct rows_lanes {
    /* to = or += weight x. */
    void (*scale)(float *to, const float *x, float weight, int64_t n);
    void (*scale_add)(float *to, const float *x, float weight, int64_t n);
    /* to = the larger of both; what is not a number stays. */
    void (*largest)(float *to, const float *x, int64_t n);
    /* Rows of 'run' numbers: to[i] = sum of weight from[source], or the largest. */
    void (*mix)(float *to, const float *from, int64_t run, const rows_mix *mix);
    void (*mix_largest)(float *to, const float *from, int64_t run, const rows_mix *mix);
    /* index[i][c] = where the first largest of window i lies: row times the width plus column. */
    void (*windows_find)(int32_t *index, const float *const *row, int rows, const rows_windows *w);
    /* dx[w][c] += dy[i][c] where index says that the largest of window i is (w, c) of its 'row'. */
    void (*windows_add)(float *dx, const float *dy, const int32_t *index, int row,
                        const rows_windows *w);
    /* index = candidate where x is larger (smaller) than best, which becomes x. */
    void (*larger)(int32_t *index, float *best, const float *x, int32_t candidate, int n);
    void (*smaller)(int32_t *index, float *best, const float *x, int32_t candidate, int n);
} rows_lanes;

extern const rows_lanes rows_lanes_baseline, rows_lanes_avx2, rows_lanes_avx512;
const rows_lanes *rows_lanes_row(int row); /* rows as those of map_lanes_row */

#endif
