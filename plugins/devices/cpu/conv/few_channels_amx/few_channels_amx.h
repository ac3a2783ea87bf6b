/*
 * few_channels_amx.h - bf16 convolutions with few channels on one side on a matrix unit: forward
 * and the gradient by the input. few_channels_amx_weight.c packs the weight.
 *
 * A matrix unit multiplies 16 rows of 32 numbers by 32 x 16. Rows here are cells of 'positions'
 * neighbours along W with all their channels, which lie in one piece in memory, together with
 * what the kernel reaches on both sides; columns are all that a cell makes. The weight is spread
 * into a banded matrix for it. So few channels fill the unit, and its result is a piece of the
 * output.
 *
 * Along an axis both directions are: positions q read numbers q step + t of 'from' for the taps t
 * of a phase and make number q phases + phase of 'to'. Forward there is one phase, step is the
 * stride and t = k - pad; for the gradient there are 'stride' phases, step is 1 and k = phase +
 * pad - t s.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_AMX_FEW_CHANNELS_AMX_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_AMX_FEW_CHANNELS_AMX_H

#include "cpu/conv/few_channels/few_channels.h"
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

typedef struct tile_axis {
    int kernel, stride, pad;
    int from, to;              /* extents */
    int step, phases, low, high; /* taps of all phases lie in low .. high */
    int count;                 /* positions q */
} tile_axis;

typedef struct narrow_tile {
    const narrow_layout *layout;
    int threads, cases;
    bool gradient;
    tile_axis axis[3];
    int from_channels, to_channels;
    int positions;             /* of a cell */
    int outs;                  /* numbers that a cell makes */
    int deep, across, tall;    /* tiles: of what a cell reads, of outs, of the cells of a row */
    bool direct;               /* cells end where rows do */
    int together;              /* rows that are multiplied at a time */
    int block, band;           /* positions of a task along D and H */
    int blocks, bands, planes, rows;
    int64_t pitch, row, plane; /* bytes: from cell to cell; of buffered rows and planes */
    int64_t line;              /* numbers of a row of the result, with what a last tile adds */
    int64_t weights, area;     /* bytes: the packed weight; a thread's */
    int *first;                /* [phases + 1] of D and H: its first step */
    int *kernel_at;            /* of each step: kd kH + kh */
    int64_t *from_at, *weight_at;
} narrow_tile;

/* The kernel position of tap t of a phase; -1: none. */
int narrow_tile_kernel(const narrow_tile *n, int axis, int phase, int t);
/* The panels of a step; 'weight': bf16 [O, kD, kH, kW, I]. */
void narrow_tile_pack(const narrow_tile *n, const uint16_t *weight, int step, void *packed);

/* As narrow_prepare, where wide_runs; declines what vectors compute faster. */
pons_status narrow_tile_prepare(const narrow_lanes *lanes, int threads, const pons_request *request,
                                pons_kernel *kernel, bool *supported, pons_error *err);

/* The same for the gradient by the weight (few_channels_amx_gradient.c). */
pons_status narrow_tile_prepare_weight(int threads, const pons_request *request,
                                       pons_kernel *kernel, bool *supported, pons_error *err);

#endif
