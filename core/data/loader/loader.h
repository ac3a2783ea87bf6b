/*
 * loader.h - micro-batches of patches, extracted from preprocessed cases.
 *
 * The content of a micro-batch is a function of (seed, step, number) and the cases. Neither the
 * number of threads nor the order of calls changes a bit (R5, R6).
 *
 * Volumes are [D, H, W, C] with D, H, W the file axes i, j, k; in a 2D patch (R26) the flat axis
 * comes first.
 */
#ifndef CORE_DATA_LOADER_LOADER_H
#define CORE_DATA_LOADER_LOADER_H

#include "data/cache/cache.h"

typedef struct device_case_layout device_case_layout;

/* Voxels of a patch beyond its case: the image's values, and whether the loss counts them. */
typedef enum loader_pad {
    LOADER_PAD_ZERO = 0, LOADER_PAD_EDGE = 1,
    LOADER_PAD_UNCOUNTED = 2     /* a flag: the target is TARGET_IGNORED, else 0                  */
} loader_pad;

typedef struct loader_settings {
    uint64_t seed;
    int extent[3];               /* i j k, as typed                                               */
    int per_case, batch;         /* samples of a micro-batch: N = batch x per_case                */
    int micro_batches;           /* M: micro-batches of a step                                    */
    int first, count;            /* this replica's micro-batches: first .. first + count - 1      */
    int64_t step;                /* the step to begin with                                        */
    case_window window;          /* the cases of an epoch; total 0: all                           */
    sampling_mode sampling;
    double positive, negative;   /* balanced: relative weights of the sets                        */
    double foreground_share;     /* foreground: of the samples of a step                          */
    bool far_beyond;             /* foreground: boxes may end beyond the case                     */
    int class_weight_count;      /* classes: length of the list; 0: equal weights                 */
    const double *class_weights;
    loader_pad pad;
    dataset_target target;       /* kind of the target part; TARGET_NONE: the part is unused      */
    /*
     * Cases of a validation: a smart cache does not wait for them, and one without a wanted voxel
     * has uniform patches.
     */
    bool validation;
    int threads;                 /* 0: loader_next does the work; -1: loader_threads_chosen       */
    /* The layout of the cases on a device that extracts patches; NULL: the host extracts them. */
    const device_case_layout *layout;
} loader_settings;

/* One input of the training program for all samples (batch_layout.h). */
typedef struct loader_part {
    const char *name;
    void *data;                  /* aligned to 64 bytes                                           */
    size_t size;
} loader_part;

/* One micro-batch; valid until the next loader_next, loader_seek or loader_close. */
typedef struct loader_batch {
    int64_t step;                /* attempted step, from 0                                        */
    int micro_batch;             /* number in the step, 0 .. M - 1                                */
    int64_t epoch;               /* epoch of its last case, from 0                                */
    int part_count;
    const loader_part *part;     /* image and target first                                        */
    float *image;                /* image part [N, D, H, W, C]; NULL: the device extracts it      */
    uint8_t *label;              /* target part [N, D, H, W, 1 | R]; NULL: likewise, or no voxels */
    int case_count;              /* batch                                                         */
    const char *const *case_id;  /* in order; sample n belongs to case_id[n / per_case]           */
} loader_batch;

typedef struct loader loader;

/*
 * Open a loader. 'ranks' are the training cases, all in the cache. 'augment' is the pipeline of
 * [augment], or NULL. Arguments are borrowed until loader_close.
 */
pons_status loader_open(cache *cases, int rank_count, const int *ranks,
                        const pipeline *augment, const loader_settings *settings, loader **out,
                        pons_error *err);
void loader_close(loader *l);
/* The next micro-batch of this replica, in order of step and number. One thread. */
pons_status loader_next(loader *l, const loader_batch **batch, pons_error *err);
/* True if loader_next will neither wait nor fail. */
bool loader_ready(loader *l);
/* Continue with the first micro-batch of 'step'. */
pons_status loader_seek(loader *l, int64_t step, pons_error *err);
/* Bytes of the scratch memory that steps of [augment] (NULL: none) use in all threads. */
double loader_scratch_size(const pipeline *steps, const loader_settings *settings);
/* The number of threads for 'loader_threads = auto'. */
int loader_threads_chosen(void);
/* The number of micro-batches in memory for these settings. */
int loader_slots(const loader_settings *settings);
/* [D, H, W] of a patch, and its flat file axis or -1 (R26). */
void loader_patch_shape(const int extent[3], int dhw[3], int *flat_axis);

#endif
