/*
 * gemm_grid.h - positions of a convolution on one line, so that a kernel position is a shift.
 *
 * All images of a tensor lie behind one another on a grid [cases, D, H, W] that is larger than the
 * tensor: behind each row, plane and image is a gap of zeros wide enough for what the kernel
 * reaches over the border, so position p of the output meets position p + shift of the input
 * whatever p is. A stride takes the input apart in phases, each on the same grid: phase (b) holds
 * elements b, b + s, b + 2s, ... of each axis.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_GRID_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_GRID_H

#include <pons/device.h>

typedef struct wide_tap {
    int phase;
    int64_t shift;
} wide_tap;

/* Which elements of a tensor lie on the grid. */
typedef struct wide_view {
    int extent[3];              /* on the grid */
    int64_t start;              /* bytes, of the first */
    int64_t image, step[3];     /* bytes */
} wide_view;

typedef struct wide_grid {
    int cases, extent[3];
    int64_t count;              /* positions */
    int taps, phases;
    wide_tap *tap;              /* [kd][kh][kw] */
    wide_view *phase;           /* of the input */
    wide_view output;
    int64_t low, high;          /* how far shifts reach to both sides */
} wide_grid;

/* x -> y by w's kernel positions. */
pons_status wide_grid_init(wide_grid *g, const pons_tensor *x, const pons_tensor *y,
                           const pons_tensor *w, const pons_convolution *c, pons_error *err);
void wide_grid_clear(wide_grid *g);
/* Elements phase, phase + stride, ... of each axis. */
wide_view wide_view_of(const pons_tensor *t, const int stride[3], const int phase[3]);
/*
 * Positions from 'at' on that lie behind one another in memory, *from the first, or in a gap, *from
 * NULL. Returns how many, up to 'end'.
 */
int64_t wide_run(const wide_grid *g, const wide_view *v, const void *tensor, int64_t at,
                 int64_t end, const char **from);
/* The addresses of positions first .. first + count - 1; 'zero' for those in gaps or outside. */
void wide_positions(const wide_grid *g, const wide_view *v, const void *tensor, const char *zero,
                    int64_t first, int count, const char **to);

#endif
