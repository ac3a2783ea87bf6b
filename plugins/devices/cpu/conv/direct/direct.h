/*
 * direct.h - convolutions of any width, in all three directions, and matrix products.
 *
 * Every direction walks the same geometry. A point q of a coarse grid reads 'from' around
 * q step_from and makes points q step_to + phase of 'to':
 *
 *   convolution      from x, to y,  step_from = stride, step_to = 1: one phase
 *   input gradient   from y, to x,  step_from = 1, step_to = stride: stride^3 phases, each with the
 *                    kernel positions (taps) that reach it
 *   weight gradient  x and y of the convolution; sums over points
 *
 * The grid is cut into tiles of planes and rows. A tile's surroundings are copied into a float
 * buffer with zeros where there is no image, so that the loops over rows (direct_lanes.c) know
 * neither edges nor types. Outputs are cut into blocks of one or two vectors; weights lie
 * packed by block.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_DIRECT_DIRECT_H
#define PLUGINS_DEVICES_CPU_CONV_DIRECT_DIRECT_H

#include <pons/device.h>

#define DIRECT_TYPES (PONS_BF16 + 1)

/* Points of a tile's plane, for the weight gradient; y follows without gaps. */
typedef struct direct_rows {
    int rows, width;
    int64_t row_step, step; /* floats of x between rows and between points */
} direct_rows;

typedef struct direct_lanes {
    int lanes;
    /* y[w][o] = sum over taps t and j < inner of x[w step + tap[t] + j] weight[t][j][o]. */
    void (*forward)(float *y, int width, const float *x, int64_t step, int taps, const int64_t *tap,
                    int inner, const float *weight, int vectors);
    /* sum[j][o] += x[point][j] y[point][o] over points. */
    void (*weight)(float *sum, const direct_rows *rows, const float *x, int inner, const float *y,
                   int vectors);
    void (*read[DIRECT_TYPES])(float *to, const void *from, int64_t at, int64_t count);
    void (*write[DIRECT_TYPES])(void *to, int64_t at, const float *from, int64_t count);
    void (*add)(float *to, const float *from, int64_t count);
} direct_lanes;

extern const direct_lanes direct_lanes_baseline, direct_lanes_avx2, direct_lanes_avx512;
const direct_lanes *direct_lanes_row(int row); /* rows as those of map_lanes_row */

/* As pons_device_operations.prepare; f32 and bf16. */
pons_status direct_prepare(const direct_lanes *lanes, int threads, const pons_request *request,
                           pons_kernel *kernel, bool *supported, pons_error *err);
pons_status direct_matmul_prepare(const direct_lanes *lanes, int threads,
                                  const pons_request *request, pons_kernel *kernel, bool *supported,
                                  pons_error *err);

/* ---- what the files of the family share ------------------------------------------------------ */

typedef struct direct_image {
    pons_type type;
    int extent[3], channels;
} direct_image;

typedef struct direct {
    const direct_lanes *lanes;
    int threads;
    pons_kernel_kind kind;
    direct_image from, to;
    pons_type weight_type;
    int cases, groups;
    int inner, outs;             /* channels of a group on both sides */
    int kernel[3], volume;       /* volume: kernel positions */
    int step_from[3], step_to[3];
    int grid[3];                 /* points q */
    int low[3], reach[3];        /* a point reads from q step_from + low, reach positions */
    int phases, *phase_first;    /* taps of phase i: phase_first[i] .. phase_first[i + 1] - 1 */
    int *tap_kernel;             /* [volume] position in the kernel */
    int64_t *tap;                /* [volume] floats from a point's first position in the buffer */
    int tile[2], tiles[2];       /* planes and rows of points; how many of them */
    int buffer[3];               /* planes, rows, columns of the buffer */
    int outs_padded, blocks;     /* of a group: a multiple of a vector; blocks of two vectors */
    int64_t buffer_size, line_size, packed_size; /* floats */
    bool by_block;               /* a task is one block of a tile, not all of them */
    int partials;                /* weight gradient: partial sums */
} direct;

/* First output channel of a block within its group, and its vectors. */
static inline int direct_block_first(const direct *d, int block)
{
    return block * 2 * d->lanes->lanes;
}

static inline int direct_block_vectors(const direct *d, int block)
{
    return d->outs_padded - direct_block_first(d, block) > d->lanes->lanes ? 2 : 1;
}

/* Where the packed weights [tap][j][o] of a block begin. */
static inline int64_t direct_block_at(const direct *d, int group, int block)
{
    return ((int64_t)group * d->outs_padded + direct_block_first(d, block)) * d->volume * d->inner;
}

/* Element of [O, kD, kH, kW, I / groups] that joins output 'out' and input j of a group. */
int64_t direct_weight_at(const direct *d, int group, int out, int tap, int j);

/* Copy what the points of a tile read; 'from' is one tensor. */
void direct_fill(const direct *d, const void *from, int image, const int tile[2], float *buffer);

/* direct_weight_gradient.c: sizes and run of the weight gradient. */
void direct_weight_plan(direct *d);
size_t direct_weight_scratch(const direct *d);
pons_status direct_weight_run(const pons_kernel *kernel, const pons_call *call, pons_error *err);

#endif
