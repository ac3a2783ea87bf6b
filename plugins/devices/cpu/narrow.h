/*
 * narrow.h - convolutions with at most four channels on one side, in all three directions.
 *
 * A matrix unit wants 16 or 32 channels and computes with zeros where there are 1 to 4; these kernels
 * put the vector along the many channels, or along W where there are few on both sides.
 *
 * Loops over rows (narrow_lanes.c) work on float rows in scratch, which narrow.c fills from the
 * tensors: 'taps' is the number of (kd, kh) pairs that contribute, each with its row of numbers.
 */
#ifndef CPU_NARROW_H
#define CPU_NARROW_H

#include <pons/device.h>

enum { NARROW_CHANNELS = 4, NARROW_LANES = 16, NARROW_TAPS = 128 };

/*
 * Rows are padded so that loops may read and write whole vectors of NARROW_LANES. 'inner' counts the
 * pairs (kw, i), j = kw I + i; 'weight' has one block for each tap.
 */
typedef struct narrow_lanes {
    /* y[w][o] = sum over taps, j of x[tap][w step + j] weight[tap][j][o]; outs a multiple of 16. */
    void (*wide_forward)(float *y, int width, int outs, int taps, const float *const *x, int step,
                         int inner, const float *const *weight);
    /* sum[j][o] += x[w step + j] y[w][o] over w. */
    void (*wide_weight)(float *sum, int width, int outs, const float *x, int step, int inner,
                        const float *y);
    /* z[j][w] = sum over taps, o of y[tap][o][w] weight[tap][o][j]; rows of y and z 'pitch' apart. */
    void (*planar_spread)(float *z, int width, int pitch, int inner, int taps,
                          const float *const *y, int outs, const float *const *weight);
    /* y[o][w] = sum over taps, j of x[tap][shift[j] + w] weight[tap][j][o]; rows of y 'pitch' apart. */
    void (*planar_forward)(float *y, int width, int pitch, int outs, int taps,
                           const float *const *x, const int *shift, int inner,
                           const float *const *weight);
    /* sum[j][o][16 lanes] += x[shift[j] + w] y[o][w] over w; y is zero behind 'width'. */
    void (*planar_weight)(float *sum, int width, int pitch, int outs, const float *x,
                          const int *shift, int inner, const float *y);
    /* to[c][w] = from[w][c], rows of 'to' pitch apart; and back. */
    void (*split)(float *to, int pitch, const float *from, int width, int channels);
    void (*join)(float *to, const float *from, int pitch, int width, int channels);
    void (*from_bf16)(float *to, const uint16_t *from, int64_t count);
    void (*to_bf16)(uint16_t *to, const float *from, int64_t count);
} narrow_lanes;

extern const narrow_lanes narrow_lanes_baseline, narrow_lanes_avx2, narrow_lanes_avx512;
const narrow_lanes *narrow_lanes_row(int row); /* rows as those of map_lanes_row */

/* As pons_device_operations.prepare; declines what has more channels on both sides, is grouped or
 * dilated. */
pons_status narrow_prepare(const narrow_lanes *lanes, int threads, const pons_request *request,
                           pons_kernel *kernel, bool *supported, pons_error *err);

#endif
