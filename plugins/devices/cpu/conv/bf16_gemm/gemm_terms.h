/*
 * gemm_terms.h - the products that make up a convolution or its input gradient.
 *
 * In both, a point of a target is a sum of terms. A term is a row of a source, 'offset' positions
 * further on the grid, times a matrix of weights. Of a convolution the target is y and the sources
 * are the phases of x. Of an input gradient each phase of x is a target, and y is the source. Rows
 * of few channels are joined with the rows behind them in memory, up to GEMM_STEP bytes.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_TERMS_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_TERMS_H

#include "cpu/conv/bf16_gemm/bf16_gemm.h"
#include "cpu/conv/bf16_gemm/gemm_grid.h"

enum { GEMM_JOINED = 16 };

typedef struct gemm_term {
    int source;
    int64_t offset;
    int tap[GEMM_JOINED];    /* kernel positions; -1: none */
} gemm_term;

typedef struct gemm_target {
    gemm_view view;
    int first, count;        /* of terms; a target without terms is zero */
} gemm_target;

typedef struct gemm_terms {
    bool gradient;           /* input gradient */
    int ins, outs;           /* channels of the sources and of the targets */
    int joined;              /* positions in a term */
    int point;               /* bytes from one packed position to the next */
    int steps;               /* of a term */
    int source_count, target_count, term_count;
    const gemm_view *source; /* of the grid */
    gemm_target *target;
    gemm_term *term;
    int64_t low, high;       /* how far offsets reach to both sides */
} gemm_terms;

pons_status gemm_terms_init(gemm_terms *t, const gemm_grid *g, const conv_problem *p,
                            pons_error *err);
void gemm_terms_clear(gemm_terms *t);

#endif
