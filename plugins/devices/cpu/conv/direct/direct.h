/*
 * direct.h - convolutions of any channels in all three directions, and matrix products.
 *
 * All directions have the same geometry. A point q of a coarse grid reads 'from' around
 * q step_from and makes points q step_to + phase of 'to':
 *
 *   convolution      from x, to y,  step_from = stride, step_to = 1: one phase
 *   input gradient   from y, to x,  step_from = 1, step_to = stride: stride^3 phases, each with the
 *                    kernel positions (taps) that reach it
 *   weight gradient  x and y of the convolution; sums over points
 *
 * The grid is divided into tiles of planes and rows. The input of a tile is copied into a float
 * buffer with zeros outside the image. So the loops over rows (direct_lanes.c) handle neither edges
 * nor types. Outputs are divided into blocks of one or two vectors. Weights are packed by block.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_DIRECT_DIRECT_H
#define PLUGINS_DEVICES_CPU_CONV_DIRECT_DIRECT_H

#include "cpu/conv/solver.h"

#define DIRECT_TYPES (PONS_BF16 + 1)

/* The points of a tile's plane in the weight gradient. y has no gaps between its rows. */
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

/* Solver of any convolution of f32 and bf16. */
extern const conv_operations direct_operations;
/* The same solver, limited to problems on which it is faster than oneDNN (direct_cost.c). */
extern const conv_operations direct_large_operations;
bool direct_supports(const conv_problem *p);
pons_status direct_prepare(const cpu_device *cpu, const conv_problem *p, pons_kernel *kernel,
                           pons_error *err);

/* The 'prepare' of pons_device_operations for matrix products of f32 and bf16. */
pons_status direct_prepare_matmul(const cpu_device *cpu, const pons_request *request,
                                  pons_kernel *kernel, bool *supported, pons_error *err);

/* ---- shared by the files of the family ------------------------------------------------------- */

typedef struct direct {
    const direct_lanes *lanes;
    int threads;
    conv_direction direction;
    conv_image from, to;
    pons_type weight_type;
    int cases, groups;
    int inner, outs;             /* channels of a group: of 'from', of 'to' */
    int kernel[3], volume;       /* volume: number of kernel positions */
    int step_from[3], step_to[3];
    int grid[3];                 /* points q */
    int low[3], reach[3];        /* point q reads 'reach' positions from q step_from + low on */
    int phases, *phase_first;    /* taps of phase i: phase_first[i] .. phase_first[i + 1] - 1 */
    int *tap_kernel;             /* [volume] position in the kernel */
    int64_t *tap;                /* [volume] floats from a point's first position in the buffer */
    int tile[2], tiles[2];       /* planes and rows of a tile; number of tiles along both */
    int buffer[3];               /* planes, rows, columns of the buffer */
    int outs_padded, blocks;     /* of a group: 'outs' in whole vectors; blocks of two vectors */
    int64_t buffer_size, line_size, packed_size; /* floats */
    bool by_block;               /* a task is one block of a tile instead of a tile */
    int partials;                /* weight gradient: number of partial sums */
} direct;

/* The first output channel of a block in its group. */
static inline int direct_block_first(const direct *d, int block)
{
    return block * 2 * d->lanes->lanes;
}

static inline int direct_block_vectors(const direct *d, int block)
{
    return d->outs_padded - direct_block_first(d, block) > d->lanes->lanes ? 2 : 1;
}

/* The offset of a block's packed weights [tap][j][o]. */
static inline int64_t direct_block_at(const direct *d, int group, int block)
{
    return ((int64_t)group * d->outs_padded + direct_block_first(d, block)) * d->volume * d->inner;
}

/* The element of [O, kD, kH, kW, I / groups] between output 'out' and input j of a group. */
int64_t direct_weight_at(const direct *d, int group, int out, int tap, int j);

/* Copy the input of a tile from the tensor 'from' into the buffer. */
void direct_fill(const direct *d, const void *from, int image, const int tile[2], float *buffer);

/* Sizes and run of the weight gradient (direct_weight_gradient.c). */
void direct_weight_gradient_plan(direct *d);
size_t direct_weight_gradient_scratch(const direct *d);
pons_status direct_weight_gradient_run(const pons_kernel *kernel, const pons_call *call,
                                       pons_error *err);

#endif
