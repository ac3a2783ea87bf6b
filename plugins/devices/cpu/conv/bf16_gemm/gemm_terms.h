/*
 * gemm_terms.h - the steps of the products that make up a convolution or its gradient by the
 * input.
 *
 * Both gather: a point of a target is the sum of rows of a source, each 'offset' positions further
 * on the grid, times a matrix of weights. The target is y and the sources are the phases of x, or
 * the other way round, where each phase of x is a target of its own. A term is one such row; rows
 * of few channels are joined with those that lie behind them in memory, up to WIDE_STEP bytes.
 */
#ifndef PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_TERMS_H
#define PLUGINS_DEVICES_CPU_CONV_BF16_GEMM_GEMM_TERMS_H

#include "cpu/conv/bf16_gemm/bf16_gemm.h"
#include "cpu/conv/bf16_gemm/gemm_grid.h"

enum { WIDE_JOINED = 16 };

typedef struct wide_term {
    int source;
    int64_t offset;
    int tap[WIDE_JOINED];    /* -1: nothing there */
} wide_term;

typedef struct wide_target {
    wide_view view;
    int first, count;        /* of terms; a target may have none: it is zero */
} wide_target;

typedef struct wide_terms {
    bool gradient;           /* by the input */
    int ins, outs;           /* channels of the sources and of the targets */
    int joined;              /* positions in a term */
    int point;               /* bytes from one packed position to the next */
    int steps;               /* of a term */
    int source_count, target_count, term_count;
    const wide_view *source; /* of the grid */
    wide_target *target;
    wide_term *term;
    int64_t low, high;       /* how far offsets reach to both sides */
} wide_terms;

pons_status wide_terms_init(wide_terms *t, const wide_grid *g, const pons_tensor *x,
                            const pons_tensor *w, const pons_convolution *c, bool gradient,
                            pons_error *err);
void wide_terms_clear(wide_terms *t);

#endif
