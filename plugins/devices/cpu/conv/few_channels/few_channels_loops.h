/*
 * few_channels_loops.h - the loops over rows of the narrow convolutions, compiled once for each
 * kind of processor with CPU_ROW naming it.
 *
 * They work on rows in scratch, which few_channels_rows.c fills from the tensors; where pairs of
 * bf16 are multiplied, some on rows of the tensors themselves. 'taps' counts the (kd, kh) pairs
 * that contribute, each with its row of numbers; 'inner' counts the pairs (kw, i), j = kw I + i;
 * 'weight' has one block for each tap. Rows in scratch are padded so that loops may read and write
 * whole vectors of NARROW_LANES. Each sum belongs to one output, or to one of 16 partial sums, so
 * the order of sums does not depend on the width of the processor's vectors.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_LOOPS_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_LOOPS_H

#include "cpu/map/map_lanes.h"

enum { NARROW_CHANNELS = 4, NARROW_LANES = 16, NARROW_TAPS = 128, NARROW_LINES = 4 };

typedef struct narrow_wide {
    /* y[w][o] = sum over taps, j of x[tap][w step + j] weight[tap][j][o]; outs a multiple of 16. */
    void (*forward)(float *y, int width, int outs, int taps, const float *const *x, int step,
                    int inner, const float *const *weight);
    /* sum[tap][j][o] += x[tap][w step + j] y[w][o] over w. */
    void (*weight)(float *const *sum, int width, int outs, int taps, const float *const *x,
                   int step, int inner, const float *y);
} narrow_wide;

/*
 * Two rows of y: y[r][o][w] = sum over taps, j of x[tap][shift[j] + w] weight[r][tap][j][o], rows
 * (r, o) 'pitch' apart. Taps up to end[0] are of row 0 alone, up to end[1] of both, up to end[2]
 * of row 1.
 */
typedef struct narrow_two_rows {
    float *y;
    int width, pitch, inner, end[3];
    const int *shift;
    const float *const *x, *const *weight[2];
} narrow_two_rows;

typedef struct narrow_planar {
    /* z[j][w] = sum over taps, o of y[tap][o][w] weight[tap][o][j]; rows pitch, y_pitch apart. */
    void (*spread)(float *z, int width, int pitch, int inner, int taps, const float *const *y,
                   int y_pitch, int outs, const float *const *weight);
    void (*forward)(const narrow_two_rows *rows, int outs);
    /*
     * sum[l][j][16 lanes] += x[row][shift[j] + w] y[l][row][w] over 'rows' rows and w, for each of
     * at most NARROW_LINES lines l; from row to row it is x_next and y_next. y is zero behind
     * 'width'.
     */
    void (*weight)(float *const *sum, int lines, int width, int rows, const float *x,
                   int64_t x_next, const int *shift, int inner, const float *const *y,
                   int64_t y_next);
    /* to[w] = sum of from[i][w]. */
    void (*add)(float *to, int width, int count, const float *const *from);
} narrow_planar;

/*
 * Two rows of x from rows of y, half as long: x[r][p][i][q], position 2 q + p, is the sum over taps
 * and o of
 *
 *     p = 0: y[tap][o][q] weight[r][tap][o][1][i]
 *     p = 1: y[tap][o][q] weight[r][tap][o][2][i] + y[tap][o][q + 1] weight[r][tap][o][0][i]
 *
 * Rows (r, p, i) are 'pitch' apart, rows (tap, o) 'y_pitch'; taps are as those of narrow_two_rows.
 */
typedef struct narrow_up {
    float *x;
    int width, pitch, y_pitch, outs, end[3];
    const char *next_row; /* memory that is read soon, 'step' bytes of it for each (tap, o) */
    int step;
    const float *const *y, *const *weight[2];
} narrow_up;

/*
 * A row of y of bf16: y[w][o] = sum over taps and j of pair j of x[tap] times weight[tap][j][o].
 * The first 'zipped' taps are rows of pairs, of which they take x[w step + j] for j < 'numbers'; to
 * the others x is bf16, and they take numbers w step + 2 j and the next one. outs is a multiple of
 * 16.
 */
typedef struct narrow_zip {
    uint16_t *y;
    int width, outs, step, numbers, zipped, taps;
    const float *const *x, *const *weight;
} narrow_zip;

/*
 * As narrow_two_rows, a kernel of 3 and at most 2 outs: x is rows of 'width' pairs where they lie,
 * to which x[tap][-1] and x[tap][width] are zero; y[r], [w][o], is bf16, NULL: there is no row r.
 */
typedef struct narrow_place {
    uint16_t *y[2];
    int width, end[3];
    const float *const *x, *const *weight[2];
} narrow_place;

typedef struct narrow_layout {
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
} narrow_layout;

/*
 * The same loops where each number of x, y and the weight that is multiplied is a pair of bf16;
 * results are floats, those of 'join' and the last two bf16; 'add' is not for them. To
 * wide->forward x is bf16, one behind another: it multiplies x[tap][w step + 2 j] and its
 * neighbour. 'zip' makes pairs of two rows, zero for NULL: to[i] = a[i], b[i]; 'split' those of 1
 * or 2 channels as layout->split has them. 'to_bf16' counts subnormal numbers as zero, as their
 * products do.
 */
typedef struct narrow_pairs {
    const narrow_wide *wide;
    const narrow_planar *planar;
    void (*zip)(float *to, const uint16_t *a, const uint16_t *b, int64_t count);
    void (*split)(float *to, int pitch, const uint16_t *a, const uint16_t *b, int width,
                  int channels);
    void (*to_bf16)(uint16_t *to, const float *from, int64_t count);
    /* As layout->join, of 1, 2 or 4 channels; the first 'count' numbers. */
    void (*join)(uint16_t *to, const float *from, int pitch, int64_t count, int channels);
    void (*up)(const narrow_up *rows, int channels);
    void (*forward)(const narrow_zip *row);
    void (*place)(const narrow_place *rows, int outs);
} narrow_pairs;

#define NARROW_LANES_OF(row)                                                                      \
    extern const narrow_wide narrow_wide_##row;                                                   \
    extern const narrow_planar narrow_planar_##row;                                               \
    extern const narrow_layout narrow_layout_##row;

NARROW_LANES_OF(baseline)
NARROW_LANES_OF(avx2)
NARROW_LANES_OF(avx512)

extern const narrow_wide narrow_wide_pairs;
extern const narrow_planar narrow_planar_pairs;
extern const narrow_pairs narrow_pairs_avx512;

void narrow_up_rows(const narrow_up *u, int channels); /* loops_upsample2.c */
void narrow_zip_row(const narrow_zip *z);              /* loops_interleave.c */
void narrow_place_rows(const narrow_place *p, int outs); /* loops_in_place.c */

#endif
