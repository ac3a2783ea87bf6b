/*
 * few_channels_amx.h - bf16 convolutions and input gradients with few channels on one side, on the
 * tile registers of AMX. few_channels_amx_weight.c packs the weight.
 *
 * The engine multiplies 16 rows of 32 elements by 32 x 16. A row is a cell: 'positions' neighbours
 * along W with all channels, and the reach of the kernel on both sides. A cell is contiguous in
 * memory. The columns are all outputs of a cell, and the weight becomes a banded matrix. So few
 * channels fill the engine, and a result is a piece of the output.
 *
 * Along an axis, position q reads elements q step + t of 'from' for the taps t of a phase, and
 * makes element q phases + phase of 'to'. Forward there is one phase, step is the stride and t = k
 * - pad. The input gradient has 'stride' phases, step is 1 and k = phase + pad - t s.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_AMX_FEW_CHANNELS_AMX_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_AMX_FEW_CHANNELS_AMX_H

#include "cpu/conv/few_channels/few_channels.h"
#include "cpu/conv/bf16_gemm/bf16_gemm.h"

typedef struct few_channels_amx_axis {
    int kernel, stride, pad;
    int from, to;              /* extents */
    int step, phases, low, high; /* taps of all phases lie in low .. high */
    int count;                 /* positions q */
} few_channels_amx_axis;

typedef struct few_channels_amx {
    const few_channels_layout *layout;
    int threads, cases;
    bool gradient;
    few_channels_amx_axis axis[3];
    int from_channels, to_channels;
    int positions;             /* of a cell */
    int outs;                  /* elements that a cell makes */
    int deep, across, tall;    /* tiles of a cell's inputs, of outs, of the cells of a row */
    bool direct;               /* cells end where rows do */
    int together;              /* rows that are multiplied at a time */
    int block, band;           /* positions of a task along D and H */
    int blocks, bands, planes, rows;
    int64_t pitch, row, plane; /* bytes: from cell to cell; of buffered rows and planes */
    int64_t line;              /* elements of a row of the result, to the end of its last tile */
    int64_t weights, area;     /* bytes of the packed weight and of a thread's memory */
    int *first;                /* [phases + 1]: first step of each phase of D and H */
    int *kernel_at;            /* of each step: kd kH + kh */
    int64_t *from_at, *weight_at;
} few_channels_amx;

/* The kernel position of tap t of a phase; -1: none. */
int few_channels_amx_kernel(const few_channels_amx *n, int axis, int phase, int t);
/* The panels of a step; 'weight': bf16 [O, kD, kH, kW, I]. */
void few_channels_amx_pack(const few_channels_amx *n, const uint16_t *weight, int step,
                           void *packed);

/* Profitable where vectors take longer, by a count of cycles. */
extern const conv_operations few_channels_amx_operations;
/* The weight gradient (few_channels_amx_gradient.c). */
extern const conv_operations few_channels_amx_gradient_operations;

#endif
