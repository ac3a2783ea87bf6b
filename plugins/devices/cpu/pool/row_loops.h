/*
 * row_loops.h - loops over rows of channels for pools, resizes and argmax. The rows are floats; the
 * lanes of map_internal.h convert other types.
 */
#ifndef PLUGINS_DEVICES_CPU_POOL_ROW_LOOPS_H
#define PLUGINS_DEVICES_CPU_POOL_ROW_LOOPS_H

#include <stdint.h>

/*
 * Sparse matrix of an axis: position i reads source[first[i]] .. source[first[i + 1] - 1], each
 * with a weight.
 */
typedef struct row_loops_mix {
    int64_t count;
    int64_t *first, *source;
    float *weight;
} row_loops_mix;

/* The windows of one row of a pool, for the gradient of a maximum. */
typedef struct row_loops_windows {
    int64_t count, channels;
    const int64_t *begin, *end;  /* [count] range along W                                         */
} row_loops_windows;

typedef struct row_loops {
    /* to = weight x; to += weight x. */
    void (*scale)(float *to, const float *x, float weight, int64_t n);
    void (*scale_add)(float *to, const float *x, float weight, int64_t n);
    /* to = max(to, x); NaN propagates. */
    void (*largest)(float *to, const float *x, int64_t n);
    /* Rows of 'run' elements: to[i] = the weighted sum of its sources, or their maximum. */
    void (*mix)(float *to, const float *from, int64_t run, const row_loops_mix *mix);
    void (*mix_largest)(float *to, const float *from, int64_t run, const row_loops_mix *mix);
    /* index[i][c] = position of the first largest of window i: row times the width plus column. */
    void (*windows_find)(int32_t *index, const float *const *row, int rows,
                         const row_loops_windows *w);
    /* dx[w][c] += dy[i][c] if index[i][c] is position (row, w) of window i. */
    void (*windows_add)(float *dx, const float *dy, const int32_t *index, int row,
                        const row_loops_windows *w);
    /* index = candidate and best = x for each x larger (smaller) than best. */
    void (*larger)(int32_t *index, float *best, const float *x, int32_t candidate, int n);
    void (*smaller)(int32_t *index, float *best, const float *x, int32_t candidate, int n);
} row_loops;

extern const row_loops row_loops_baseline, row_loops_avx2, row_loops_avx512;

#endif
