/*
 * few_channels_plan.h - a narrow convolution as it was planned; what planning, packing and running
 * share.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_PLAN_H
#define PLUGINS_DEVICES_CPU_CONV_FEW_CHANNELS_FEW_CHANNELS_PLAN_H

#include "cpu/conv/few_channels/few_channels.h"

typedef enum narrow_form {
    WIDE_FORWARD, WIDE_WEIGHT, PLANAR_FORWARD, PLANAR_SPREAD, PLANAR_WEIGHT
} narrow_form;

typedef struct narrow_side {
    pons_type type;
    int extent[3], channels;
    int64_t plane, row; /* elements */
    int apart;          /* rows from the first of a pair to the second; 0: no pairs of rows */
} narrow_side;

enum { NARROW_MARGIN = 64 }; /* zeros on both sides of what PLANAR_SPREAD adds */

typedef struct narrow {
    const narrow_lanes *lanes;
    const narrow_wide *wide;     /* of lanes, or of its pairs */
    const narrow_planar *planar;
    int threads;
    narrow_form form;
    bool swapped;
    bool pairs;                  /* see few_channels.c */
    bool up, zipped, placed;   /* loops_upsample2.c does it, loops_interleave.c, loops_in_place.c */
    bool ring;                   /* of its planes a task buffers those that one of them reads */
    bool gaps;                   /* by the weight, with rows of x that no row of y meets */
    int zips;                    /* floats of a row before its pairs with the next; 0: none */
    int cases;
    narrow_side x, y;            /* x has the kernel slide over it */
    pons_type weight_type;
    int kernel[3], stride[3], pad[3];
    int taps, inner, outs; /* kd kh; kw x.channels, or their pairs; y.channels, wide: in 16s */
    int block, band;             /* planes and rows of a task */
    int tasks, blocks, bands;    /* of all cases; of a case; of a block */
    int planes, rows;            /* buffered at most */
    int pitch, y_pitch, lead;    /* of planar rows: from one to the next; zeros before x */
    int64_t row, plane;          /* floats of a buffered row (all channels) and plane */
    int64_t line;                /* floats of each of the two temporary rows */
    int64_t weights, area, sums; /* floats: packed weight; a thread's; a task's partial sums */
    int *shift;
    void (*to_bf16)(uint16_t *to, const float *from, int64_t count);
} narrow;

/* Of pairs, how many channels of the tensor are one of a side. */
static inline int narrow_channels_of(const narrow *n, bool y)
{
    return n->pairs && n->form == (y ? PLANAR_SPREAD : PLANAR_FORWARD) ? 2 : 1;
}

/* Rows of y that the gradient by the weight takes at a time. */
static inline int narrow_together(const narrow *n)
{
    return n->y.apart > 0 ? 2 : 1;
}

static inline bool narrow_is_weight(const narrow *n)
{
    return n->form == WIDE_WEIGHT || n->form == PLANAR_WEIGHT;
}

/*
 * few_channels_weight.c: the weight from the tensor, and its gradient from the tasks' sums into
 * it.
 */
void narrow_weight_pack(const narrow *n, const void *weight, float *packed);
void narrow_weight_add(const narrow *n, float *sums);
void narrow_weight_write(const narrow *n, const float *sums, float *weight);

/* few_channels_run.c: as pons_kernel.run. */
pons_status narrow_run(const pons_kernel *kernel, const pons_call *call, pons_error *err);

#endif
