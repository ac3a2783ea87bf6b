/*
 * separable.h - kernels in which an element of the output is a weighted sum, or the largest, of
 * elements of the input named axis by axis: resizes, mean and maximum pools and their gradients.
 *
 * Positions along an axis list whom they read and with what weight; the weight of an element is the
 * product over the axes. The gradient of such a kernel is one too, with the lists turned round.
 */
#ifndef PLUGINS_DEVICES_CPU_POOL_SEPARABLE_H
#define PLUGINS_DEVICES_CPU_POOL_SEPARABLE_H

#include "cpu/cpu.h"
#include "cpu/pool/row_loops.h"

typedef struct blend {
    const map_lanes *lanes;
    const rows_lanes *rows;
    int threads;
    bool largest;
    pons_type type[2];
    int input;                       /* among the call's                                          */
    int axes;                        /* the last one is mixed within a row                        */
    int64_t in[PONS_RANK_MAX], out[PONS_RANK_MAX];
    rows_mix mix[PONS_RANK_MAX];
    int64_t run;                     /* neighbours that are carried along: channels               */
    int64_t row_in, row_out;         /* floats                                                    */
} blend;

/* For position i of an axis: places (at most 'most') and weights; how many. */
typedef int (*blend_source)(const void *context, int axis, int64_t i, int64_t *place,
                            double *weight);

/*
 * A kernel of 'request', whose tensors 'from' and 'to' have rank axes, from 'source', which lists
 * what a position of 'to' reads; 'turned': what a position of 'from' is read by instead. With
 * 'fixed' axes bit i set, positions of axis i are their own.
 */
typedef struct blend_plan {
    const pons_tensor *from, *to;
    int input;
    bool largest, turned;
    unsigned fixed;
    int64_t most;
    blend_source source;
    const void *context;
} blend_plan;

pons_status blend_prepare(cpu_device *device, const pons_request *request, const blend_plan *plan,
                          pons_kernel *kernel, pons_error *err);

#endif
