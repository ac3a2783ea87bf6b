/*
 * loops.h - the loops over rows of the convolutions with few channels, compiled once for each kind
 * of processor with CPU_ISA naming it.
 *
 * They work on rows in scratch, which few_channels_rows.c fills from the tensors; where pairs of
 * bf16 are multiplied, some on rows of the tensors themselves. 'taps' counts the (kd, kh) pairs
 * that contribute, each with its row of numbers; 'inner' counts the pairs (kw, i), j = kw I + i;
 * 'weight' has one block for each tap. Rows in scratch are padded so that loops may read and write
 * whole vectors of FEW_CHANNELS_LANES. Each sum belongs to one output, or to one of 16 partial
 * sums, so the order of sums does not depend on the width of the processor's vectors.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_LOOPS_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_LOOPS_H

#include "cpu/map/map_lanes.h"

enum {
    FEW_CHANNELS_MAX = 4, FEW_CHANNELS_LANES = 16, FEW_CHANNELS_TAPS = 128, FEW_CHANNELS_LINES = 4
};

typedef struct few_channels_vector {
    /* y[w][o] = sum over taps, j of x[tap][w step + j] weight[tap][j][o]; outs a multiple of 16. */
    void (*forward)(float *y, int width, int outs, int taps, const float *const *x, int step,
                    int inner, const float *const *weight);
    /* sum[tap][j][o] += x[tap][w step + j] y[w][o] over w. */
    void (*weight)(float *const *sum, int width, int outs, int taps, const float *const *x,
                   int step, int inner, const float *y);
} few_channels_vector;

/*
 * Two rows of y: y[r][o][w] = sum over taps, j of x[tap][shift[j] + w] weight[r][tap][j][o], rows
 * (r, o) 'pitch' apart. Taps up to end[0] are of row 0 alone, up to end[1] of both, up to end[2]
 * of row 1.
 */
typedef struct few_channels_two_rows {
    float *y;
    int width, pitch, inner, end[3];
    const int *shift;
    const float *const *x, *const *weight[2];
} few_channels_two_rows;

typedef struct few_channels_planar {
    /* z[j][w] = sum over taps, o of y[tap][o][w] weight[tap][o][j]; rows pitch, y_pitch apart. */
    void (*spread)(float *z, int width, int pitch, int inner, int taps, const float *const *y,
                   int y_pitch, int outs, const float *const *weight);
    void (*forward)(const few_channels_two_rows *rows, int outs);
    /*
     * sum[l][j][16 lanes] += x[row][shift[j] + w] y[l][row][w] over 'rows' rows and w, for each of
     * at most FEW_CHANNELS_LINES lines l; from row to row it is x_next and y_next. y is zero behind
     * 'width'.
     */
    void (*weight)(float *const *sum, int lines, int width, int rows, const float *x,
                   int64_t x_next, const int *shift, int inner, const float *const *y,
                   int64_t y_next);
    /* to[w] = sum of from[i][w]. */
    void (*add)(float *to, int width, int count, const float *const *from);
} few_channels_planar;

/*
 * Two rows of x from rows of y, half as long: x[r][p][i][q], position 2 q + p, is the sum over taps
 * and o of
 *
 *     p = 0: y[tap][o][q] weight[r][tap][o][1][i]
 *     p = 1: y[tap][o][q] weight[r][tap][o][2][i] + y[tap][o][q + 1] weight[r][tap][o][0][i]
 *
 * Rows (r, p, i) are 'pitch' apart, rows (tap, o) 'y_pitch'; taps are as those of
 * few_channels_two_rows.
 */
typedef struct few_channels_upsample2 {
    float *x;
    int width, pitch, y_pitch, outs, end[3];
    const char *next_row; /* to prefetch, 'step' bytes for each (tap, o) */
    int step;
    const float *const *y, *const *weight[2];
} few_channels_upsample2;

/*
 * A row of y of bf16: y[w][o] = sum over taps and j of pair j of x[tap] times weight[tap][j][o].
 * The first 'interleaved' taps have rows of pairs and take x[w step + j] for j < 'numbers'. The
 * other taps have rows of bf16 and take elements w step + 2 j and w step + 2 j + 1. outs is a
 * multiple of 16.
 */
typedef struct few_channels_interleave {
    uint16_t *y;
    int width, outs, step, numbers, interleaved, taps;
    const float *const *x, *const *weight;
} few_channels_interleave;

/*
 * As few_channels_two_rows, a kernel of 3 and at most 2 outs: x is rows of 'width' pairs where
 * they lie, to which x[tap][-1] and x[tap][width] are zero; y[r], [w][o], is bf16, NULL: there is
 * no row r.
 */
typedef struct few_channels_in_place {
    uint16_t *y[2];
    int width, end[3];
    const float *const *x, *const *weight[2];
} few_channels_in_place;

typedef struct few_channels_layout {
    /* to[c][w] = from[w][c], rows of 'to' pitch apart, zero from width to pitch; and back. */
    void (*split)(float *to, int pitch, const float *from, int width, int channels);
    void (*join)(float *to, const float *from, int pitch, int width, int channels);
    void (*from_bf16)(float *to, const uint16_t *from, int64_t count);
    void (*to_bf16)(uint16_t *to, const float *from, int64_t count);
    /*
     * to[cell][o] = from[cell / 16][o / 16][cell % 16][o % 16] for o < outs; where outs is no
     * multiple of 16, up to 16 numbers are written behind the last cell's.
     */
    void (*tiles_to_bf16)(uint16_t *to, const float *from, int cells, int outs);
} few_channels_layout;

/*
 * The same loops for factors that are pairs of bf16. Results are floats; those of 'join', 'forward'
 * and 'in_place' are bf16. 'planar->add' is not for them. 'vector_loops->forward' reads x as bf16
 * and multiplies x[tap][w step + 2 j] and its neighbour. 'interleave' writes to[i] = a[i], b[i];
 * NULL is a row of zeros. 'split' does so for 1 or 2 channels and splits them as layout->split
 * does. 'to_bf16' flushes subnormal numbers to zero, as the products do.
 */
typedef struct few_channels_bf16x2 {
    const few_channels_vector *vector_loops;
    const few_channels_planar *planar;
    void (*interleave)(float *to, const uint16_t *a, const uint16_t *b, int64_t count);
    void (*split)(float *to, int pitch, const uint16_t *a, const uint16_t *b, int width,
                  int channels);
    void (*to_bf16)(uint16_t *to, const float *from, int64_t count);
    /* As layout->join for 1, 2 or 4 channels; the first 'count' elements. */
    void (*join)(uint16_t *to, const float *from, int pitch, int64_t count, int channels);
    void (*upsample2)(const few_channels_upsample2 *rows, int channels);
    void (*forward)(const few_channels_interleave *row);
    void (*in_place)(const few_channels_in_place *rows, int outs);
} few_channels_bf16x2;

#define FEW_CHANNELS_LOOPS_OF(row)                                                                \
    extern const few_channels_vector few_channels_vector_##row;                                   \
    extern const few_channels_planar few_channels_planar_##row;                                   \
    extern const few_channels_layout few_channels_layout_##row;

FEW_CHANNELS_LOOPS_OF(baseline)
FEW_CHANNELS_LOOPS_OF(avx2)
FEW_CHANNELS_LOOPS_OF(avx512)

extern const few_channels_vector few_channels_vector_bf16x2;
extern const few_channels_planar few_channels_planar_bf16x2;
extern const few_channels_bf16x2 few_channels_bf16x2_avx512;

void few_channels_upsample2_rows(const few_channels_upsample2 *u,
                                 int channels); /* loops_upsample2.c */
void few_channels_interleave_row(const few_channels_interleave *z);         /* loops_interleave.c */
void few_channels_in_place_rows(const few_channels_in_place *p, int outs); /* loops_in_place.c */

#endif
