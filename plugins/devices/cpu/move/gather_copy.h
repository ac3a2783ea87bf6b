/*
 * gather_copy.h - kernels in which every element of the output is one element of an input, or a
 * zero.
 *
 * Where it comes from is a sum over the axes: a multiple of the position, or what a table says for
 * it. Transposes, flips, crops, pads, concatenations and gathers are of this kind. Numbers of equal
 * types are moved as they are.
 */
#ifndef PLUGINS_DEVICES_CPU_MOVE_GATHER_COPY_H
#define PLUGINS_DEVICES_CPU_MOVE_GATHER_COPY_H

#include "cpu/map/map_kernel.h"

#define TAKE_NOTHING INT64_MIN

/* One axis of the output. */
typedef struct take_axis {
    int64_t extent, to_step;   /* elements of the output between neighbours                       */
    int64_t step;              /* elements of the input, where there is no table                  */
    int64_t *table;            /* [extent] elements of the input, or TAKE_NOTHING                 */
    bool late;                 /* the table is filled when the kernel runs                        */
} take_axis;

/* 'count' neighbours of a row. */
typedef struct take_run {
    int64_t to, from, count;
} take_run;

typedef struct take {
    const map_lanes *lanes;
    int threads;
    pons_type type[2];
    int axes;
    take_axis axis[PONS_RANK_MAX];
    int64_t offset, to_offset;
    /* What follows is made by take_finish. */
    int64_t row;               /* elements: the axes behind 'axes' joined                         */
    int run_count;             /* 0: 'at' says for each element                                   */
    take_run *run;
    int64_t *at;               /* [row]                                                           */
    int crossed;               /* transposed: the axis with step 1, or -1; the last one is 'axes' */
    int64_t pieces;            /* of a row that is one run                                        */
    int64_t rows_of_task, task_count;
} take;

/* Join axes, choose how to copy rows; false: out of memory. Tables belong to 't' from then on. */
bool take_finish(take *t);
void take_free(take *t);
/* Takes that write parts of the same rows: cut them alike, so that a row is written at once. */
void take_align(take *t, int count);
void take_run_several(const take *t, int count, void *const *from, void *to);

#endif
