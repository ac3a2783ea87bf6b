/*
 * few_channels_plan.h - the plan of a convolution with few channels, for packing and running.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_PLAN_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_PLAN_H

#include "cpu/conv/few_channels/few_channels.h"

typedef enum few_channels_form {
    VECTOR_FORWARD, VECTOR_WEIGHT, PLANAR_FORWARD, PLANAR_INPUT, PLANAR_WEIGHT
} few_channels_form;

typedef struct few_channels_side {
    pons_type type;
    int extent[3], channels;
    int64_t plane, row; /* elements */
    int pair_stride;    /* rows from the first of a pair to the second; 0: no pairs of rows */
} few_channels_side;

enum { FEW_CHANNELS_MARGIN = 64 }; /* zeros on both sides of the rows that PLANAR_INPUT adds */

typedef struct few_channels_plan {
    const few_channels_loops *lanes;
    const few_channels_vector *vector_loops;     /* of lanes, or of its pairs */
    const few_channels_planar *planar;
    int threads;
    few_channels_form form;
    bool swapped;
    bool bf16x2;                 /* see few_channels.c */
    bool upsample2, interleaved, in_place; /* by the files of loops_ */
    bool ring;                   /* a task buffers only the planes that one output plane reads */
    bool gaps;                   /* weight gradient: some rows of x meet no row of y */
    int interleaved_at;          /* floats of a row before its pairs with the next; 0: none */
    int cases;
    few_channels_side x, y;      /* the kernel slides over x */
    pons_type weight_type;
    int kernel[3], stride[3], pad[3];
    int taps;                    /* kd kh */
    int inner;                   /* kw x.channels, or their pairs */
    int outs;                    /* y.channels; in the vector forms a multiple of 16 */
    int block, band;             /* planes and rows of a task */
    int tasks, blocks, bands;    /* of all cases; of a case; of a block */
    int planes, rows;            /* buffered at most */
    int pitch, y_pitch, left_pad;    /* of planar rows: from one to the next; zeros before x */
    int64_t row, plane;          /* floats of a buffered row (all channels) and plane */
    int64_t line;                /* floats of each of the two temporary rows */
    int64_t weights, area, sums; /* floats: packed weight; a thread's; a task's partial sums */
    int *shift;
    void (*to_bf16)(uint16_t *to, const float *from, int64_t count);
} few_channels_plan;

/* Channels of the tensor in one channel of a side: 2 where channels are paired. */
static inline int few_channels_of_pair(const few_channels_plan *n, bool y)
{
    return n->bf16x2 && n->form == (y ? PLANAR_INPUT : PLANAR_FORWARD) ? 2 : 1;
}

/* Rows of y that the weight gradient takes at a time. */
static inline int few_channels_rows_together(const few_channels_plan *n)
{
    return n->y.pair_stride > 0 ? 2 : 1;
}

static inline bool few_channels_is_weight(const few_channels_plan *n)
{
    return n->form == VECTOR_WEIGHT || n->form == PLANAR_WEIGHT;
}

#endif
