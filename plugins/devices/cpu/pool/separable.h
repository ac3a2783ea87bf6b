/*
 * separable.h - kernels whose output is a weighted sum, or a maximum, that separates over the axes:
 * resizes, mean and maximum pools and their gradients.
 *
 * Each axis has a sparse matrix of sources and weights; the weight of an element is the product
 * over the axes. The gradient of such a kernel has the transposed matrices.
 */
#ifndef PLUGINS_DEVICES_CPU_POOL_SEPARABLE_H
#define PLUGINS_DEVICES_CPU_POOL_SEPARABLE_H

#include "cpu/cpu.h"
#include "cpu/pool/row_loops.h"

typedef struct separable {
    const map_lanes *lanes;
    const row_loops *rows;
    int threads;
    bool largest;
    pons_type type[2];
    int input;                       /* index among the inputs of the call                        */
    int axes;                        /* axes; the last is combined within a row                   */
    int64_t in[PONS_RANK_MAX], out[PONS_RANK_MAX];
    row_loops_mix mix[PONS_RANK_MAX];
    int64_t run;                     /* elements of a position: channels                          */
    int64_t row_in, row_out;         /* floats of a row                                           */
} separable;

/* Source indices (at most sources_max) and weights of position i of an axis; returns the count. */
typedef int (*separable_source)(const void *context, int axis, int64_t i, int64_t *place,
                                double *weight);

/*
 * Prepare a kernel of 'request' from tensor 'from' to tensor 'to', of equal ranks. 'source' lists
 * the positions of 'from' that a position of 'to' reads; if 'transposed', it lists the positions
 * of 'to' that a position of 'from' contributes to. Bit i of 'fixed' marks an axis on which every
 * position reads itself alone.
 */
typedef struct separable_plan {
    const pons_tensor *from, *to;
    int input;
    bool largest, transposed;
    unsigned fixed;
    int64_t sources_max;
    separable_source source;
    const void *context;
} separable_plan;

pons_status separable_prepare(cpu_device *device, const pons_request *request,
                              const separable_plan *plan, pons_kernel *kernel, pons_error *err);

#endif
