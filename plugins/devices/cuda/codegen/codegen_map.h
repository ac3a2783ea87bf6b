/*
 * codegen_map.h - a map while its kernels are written: passes, what a thread holds, and where.
 *
 * A thread visits points. In the linear form it takes 'width' neighbours on the last axis at a
 * time: 8 or 4 where every operand that moves along that axis does so in pieces of 16 bytes, else
 * 1. In the channel form it holds all channels of a point. Either way a value is 'width' numbers in
 * a loop over k, or one.
 *
 * Reductions that keep the same axes are one pass; each pass computes the values that it needs.
 * Blocks own kept elements, and a piece of what is reduced; pieces are joined by a second kernel.
 */
#ifndef PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_MAP_H
#define PLUGINS_DEVICES_CUDA_CODEGEN_CODEGEN_MAP_H

#include "cuda/codegen/codegen.h"

typedef struct map_pass {
    uint64_t kept;         /* axes of points; ragged: 1 for results of each segment               */
    bool storing;
    pons_index_space stores;     /* ragged: which of the stores                                   */
    bool *needed;          /* [value]                                                             */
    /* Dense: */
    int lanes;             /* columns of a block                                                  */
    int64_t kept_count, reduced_count; /* in steps of a thread                                    */
    int64_t pieces, piece;             /* of what is reduced, and its size                        */
} map_pass;

typedef struct map_source_plan {
    cuda_source *s;
    const pons_map *map;
    int axes;              /* of points                                                           */
    int64_t extent[PONS_MAP_AXES]; /* of steps                                                    */
    int64_t steps, most;   /* steps in all; the largest number that an index must hold            */
    int width;
    bool ragged;
    int table_segment, table_first, table_count, table_end, table_piece; /* ragged                */
    int64_t piece_count;
    size_t *partial_at;    /* [reduction]                                                         */
} map_source_plan;

enum { RAGGED_PIECE = 2048 };

/* codegen_value.c: loads, values and stores of the current point; accumulations of 'pass'. */
void source_values(const map_source_plan *p, const map_pass *pass, text *t);
/* Is a value 'width' numbers? */
bool source_is_wide(const map_source_plan *p, int value);
/* " + 3 * i0 + i1" of an operand over the axes of 'axes', and its offset in front. */
void source_address(const map_source_plan *p, const pons_operand *o, uint64_t axes, text *t);

/* codegen_reduce.c */
uint64_t source_kept(const map_source_plan *p, const pons_reduction *r);
/* Numbers that a thread accumulates for a reduction: 'width' or 1. */
int source_accumulators(const map_source_plan *p, const pons_reduction *r);
void source_accumulate(const map_source_plan *p, const pons_reduction *r, int number, text *t);
void source_reduce(map_source_plan *p, map_pass *pass);

#endif
