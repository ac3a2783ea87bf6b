/*
 * codegen_internal.h - the plan of a map while its kernels are written: its passes, and the work of
 * a thread.
 *
 * In the linear form a thread processes 'width' adjacent points of the last axis at a time. The
 * width is 8 or 4 if every operand that varies along this axis can be accessed in pieces of 16
 * bytes, else 1. In the channel form a thread holds all channels of a point. In both forms a value
 * is an array of 'width' elements in a loop over k, or a scalar.
 *
 * Reductions that keep the same axes form a pass; each pass computes the values that it needs. A
 * block owns kept elements and a piece of the reduced ones. A second kernel reduces the pieces.
 */
#ifndef PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_INTERNAL_H
#define PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_INTERNAL_H

#include "cuda/codegen/codegen.h"

typedef struct map_pass {
    uint64_t kept;         /* bits of kept axes; ragged: 1 for results of each segment            */
    bool storing;
    pons_index_space stores;     /* ragged: index space of the stores that it makes               */
    bool *needed;          /* [value]                                                             */
    /* Members of the dense form follow. */
    int lanes;             /* columns of a block                                                  */
    int64_t kept_count, reduced_count; /* kept and reduced steps of a thread                      */
    int64_t pieces, piece;             /* pieces of the reduced steps, and steps of a piece       */
} map_pass;

typedef struct codegen_map_plan {
    codegen *s;
    const pons_map *map;
    int axes;              /* axes of points                                                      */
    int64_t extent[PONS_MAP_AXES]; /* steps along each axis                                       */
    int64_t steps, most;   /* steps in total; the largest index                                   */
    int width;
    bool ragged;
    /* ragged: indices of tables */
    int table_segment, table_first, table_count, table_end, table_piece;
    int64_t piece_count;
    size_t *partial_at;    /* [reduction]                                                         */
} codegen_map_plan;

enum { RAGGED_PIECE = 2048 };

/* codegen_value.c: loads, values and stores of the current point; accumulations of 'pass'. */
void codegen_values(const codegen_map_plan *p, const map_pass *pass, text *t);
/* Whether a value is an array of 'width' numbers. */
bool codegen_is_array(const codegen_map_plan *p, int value);
/* " + 3 * i0 + i1" of an operand over the axes of 'axes', and its offset in front. */
void codegen_address(const codegen_map_plan *p, const pons_operand *o, uint64_t axes, text *t);

/* codegen_reduce.c */
uint64_t codegen_kept(const codegen_map_plan *p, const pons_reduction *r);
void codegen_accumulate(const codegen_map_plan *p, const pons_reduction *r, int number, text *t);
void codegen_reduce(codegen_map_plan *p, map_pass *pass);

#endif
