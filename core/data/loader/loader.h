/*
 * loader.h - micro-batches of patches cut from preprocessed cases.
 *
 * The content of a micro-batch is a function of (seed, step, number) and of the cases alone: no
 * thread count, no order of calls and no earlier micro-batch changes a bit of it (R5, R6).
 *
 * Memory is [D, H, W, C] with D, H, W the file axes i, j, k; in a 2D patch (R26) the flat axis
 * comes first.
 */
#ifndef CORE_DATA_LOADER_LOADER_H
#define CORE_DATA_LOADER_LOADER_H

#include "data/cache/cache.h"

typedef struct case_layout case_layout;

typedef enum loader_pad { LOADER_PAD_ZERO = 0, LOADER_PAD_EDGE } loader_pad;

typedef struct loader_settings {
    uint64_t seed;
    int extent[3];               /* i j k, as typed                                               */
    int per_case, batch;         /* N = batch x per_case                                          */
    int micro_batches;           /* M of a step                                                   */
    int first, count;            /* this replica's numbers: first .. first + count - 1            */
    sampling_mode sampling;
    double positive, negative;   /* balanced                                                      */
    int class_weight_count;      /* classes; 0: equal                                             */
    const double *class_weights;
    loader_pad pad;
    int threads;                 /* 0: loader_next does the work itself; -1: chosen               */
    const case_layout *layout;   /* of the cases on a device that cuts the patches; NULL: they    */
                                 /* are cut here                                                  */
} loader_settings;

/* All samples of an input of the training program (batch_layout.h). */
typedef struct loader_part {
    const char *name;
    void *data;                  /* at a multiple of 64 bytes                                     */
    size_t size;
} loader_part;

/* One micro-batch; valid until the next loader_next, loader_seek or loader_close. */
typedef struct loader_batch {
    int64_t step;                /* attempted step, from 0                                        */
    int micro_batch;             /* number in the step, 0 .. M - 1                                */
    int64_t epoch;               /* of its last case, from 0                                      */
    int part_count;
    const loader_part *part;     /* image and target first                                        */
    float *image;                /* the first part's: [N, D, H, W, C]; NULL: a device cuts it     */
    uint8_t *label;              /* the second's: [N, D, H, W, 1 | R]; NULL                       */
    int case_count;              /* batch                                                         */
    const char *const *case_id;  /* in order; sample n belongs to case_id[n / per_case]           */
} loader_batch;

typedef struct loader loader;

/*
 * 'ranks': the training cases, all of them among the cache's. 'augment': the random chain of
 * [augment], or NULL. Everything is borrowed until loader_close.
 */
pons_status loader_open(cache *held, int rank_count, const int *ranks,
                        const volume_chain *augment, const loader_settings *settings, loader **out,
                        pons_error *err);
void loader_close(loader *l);
/* The next of this replica's micro-batches, in order of step, then number. One thread. */
pons_status loader_next(loader *l, const loader_batch **batch, pons_error *err);
/* The next one is there: loader_next will neither wait nor fail. */
bool loader_ready(loader *l);
/* The next one will be the first of 'step'. */
pons_status loader_seek(loader *l, int64_t step, pons_error *err);
/* Of 'loader_threads = auto'. */
int loader_threads_chosen(void);
/* Micro-batches that a loader of these settings holds at a time. */
int loader_slots(const loader_settings *settings);
/* [D, H, W] of a patch and the flat file axis or -1 (R26). */
void loader_patch(const int extent[3], int dhw[3], int *flat_axis);

#endif
