/*
 * gather_copy.h - kernels whose every output element is one element of an input, or a zero.
 *
 * The source offset is a sum over the axes: a stride times the position, or a table entry for the
 * position. Transposes, flips, crops, pads, concatenations and gathers have this form. Elements of
 * equal types are copied unchanged.
 */
#ifndef PLUGINS_DEVICES_CPU_MOVE_GATHER_COPY_H
#define PLUGINS_DEVICES_CPU_MOVE_GATHER_COPY_H

#include "cpu/map/map_internal.h"

#define GATHER_COPY_ZERO INT64_MIN

/* One axis of the output. */
typedef struct gather_copy_axis {
    int64_t extent, to_step;   /* positions; output stride in elements                            */
    int64_t step;              /* input stride in elements, without a table                       */
    int64_t *table;            /* [extent] input offsets or GATHER_COPY_ZERO                      */
    bool run_time_table;       /* the table is filled at run time                                 */
} gather_copy_axis;

/* 'count' adjacent elements of a row. */
typedef struct gather_copy_run {
    int64_t to, from, count;
} gather_copy_run;

typedef struct gather_copy {
    const map_lanes *lanes;
    int threads;
    pons_type type[2];
    int axes;
    gather_copy_axis axis[PONS_RANK_MAX];
    int64_t offset, to_offset;
    /* gather_copy_finish sets the members below. */
    int64_t row;               /* elements of a row, the axes behind 'axes'                       */
    int run_count;             /* runs of a row; 0: 'at' is used instead                          */
    gather_copy_run *run;
    int64_t *at;               /* [row] input offset of each element                              */
    int crossed; /* transpose: the axis with step 1, else -1; then 'axes' counts the last one too */
    int64_t pieces;            /* tasks of a row that is one run                                  */
    int64_t rows_of_task, task_count;
} gather_copy;

/* Merge axes and choose how rows are copied; false: out of memory. 't' owns its tables. */
bool gather_copy_finish(gather_copy *t);
void gather_copy_free(gather_copy *t);
/* Give copies that write parts of the same rows the same tasks, so that one thread writes a row. */
void gather_copy_align(gather_copy *t, int count);
void gather_copy_run_several(const gather_copy *t, int count, void *const *from, void *to);

#endif
