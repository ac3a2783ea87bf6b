/*
 * gemm_grid.h - number the positions of a convolution so that a kernel position is a shift.
 *
 * The grid [cases, D, H, W] is larger than the tensor. Behind each row, plane and image is a gap of
 * zeros, wide enough for the reach of the kernel over the border. So for every p, position p of the
 * output meets position p + shift of the input. A stride s divides the input into phases on the
 * same grid: phase b holds elements b, b + s, b + 2s, ... of each axis.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_GRID_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_GRID_H

#include "cpu/conv/problem.h"

typedef struct gemm_tap {
    int phase;
    int64_t shift;
} gemm_tap;

/* The elements of a tensor that lie on the grid. */
typedef struct gemm_view {
    int extent[3];              /* on the grid */
    int64_t start;              /* bytes, of the first */
    int64_t image, step[3];     /* bytes */
} gemm_view;

typedef struct gemm_grid {
    int cases, extent[3];
    int64_t count;              /* positions */
    int taps, phases;
    gemm_tap *tap;              /* [kd][kh][kw] */
    gemm_view *phase;           /* of the input */
    gemm_view output;
    int64_t low, high;          /* how far shifts reach to both sides */
} gemm_grid;

pons_status gemm_grid_init(gemm_grid *g, const conv_problem *p, pons_error *err);
void gemm_grid_clear(gemm_grid *g);
/* Elements phase, phase + stride, ... of each axis. */
gemm_view gemm_view_of(const pons_tensor *t, const int stride[3], const int phase[3]);
/*
 * Find the positions from 'at' to before 'end' that are consecutive in memory, or in one gap.
 * Returns their count. *from is the address of the first, or NULL in a gap.
 */
int64_t gemm_grid_run(const gemm_grid *g, const gemm_view *v, const void *tensor, int64_t at,
                      int64_t end, const char **from);
/* The addresses of positions first .. first + count - 1; 'zero' for those in gaps or outside. */
void gemm_grid_positions(const gemm_grid *g, const gemm_view *v, const void *tensor,
                         const char *zero, int64_t first, int count, const char **to);

#endif
