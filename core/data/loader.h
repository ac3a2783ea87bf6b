/*
 * loader.h - preprocessed cases in memory, and micro-batches of patches cut from them.
 *
 * The content of a micro-batch is a function of (seed, step, number) and of the cases alone: no
 * thread count, no order of calls and no earlier micro-batch changes a bit of it (R5, R6).
 *
 * Memory is [D, H, W, C] with D, H, W the file axes i, j, k; in a 2D patch (R26) the flat axis
 * comes first.
 */
#ifndef CORE_DATA_LOADER_H
#define CORE_DATA_LOADER_H

#include "base/fingerprint.h"
#include "config/sections.h"
#include "data/case_geometry.h"
#include "data/dataset.h"
#include "data/volume_chain.h"

/* ---- preprocessed cases ---------------------------------------------------------------------- */

typedef struct cache cache;

/*
 * Processes that call cache_open at one time with the same cases, on one machine or on several.
 * Those of a machine share out who reads which case, and all of them map what one has made.
 */
typedef struct cache_peers {
    int rank, count;
    /* 'size' bytes of each, by rank, into 'all'. */
    pons_status (*all_gather)(void *context, const void *mine, size_t size, void *all,
                              pons_error *err);
    /* Before cache_open returns a failure that it returns to all of them; may be NULL. */
    void (*failed)(void *context, const pons_error *failure);
    void *context;
} cache_peers;

typedef struct cache_settings {
    cache_mode mode;           /* CACHE_NONE, CACHE_MEMORY or CACHE_DISK; CACHE_DEVICE: MEMORY    */
    int64_t limit;             /* bytes of all processes of a machine; cases beyond it are read   */
                               /* each time; 0: no limit                                          */
    const char *folder;        /* of the disk cache; NULL: '.cache' in 'output'                   */
    const char *output;
    int threads;               /* that fill it, a case each while there are enough; 0: 1          */
    sampling_mode sampling;    /* what a loader will draw from the cases, so that it is found now */
    double background_above;   /* balanced: background counts above this value in some channel;   */
                               /* -INFINITY: all of it                                            */
    bool centres[2];           /* balanced: whether foreground, background centres are drawn, so  */
                               /* that a training case without any is worth a warning             */
    void (*progress)(void *context); /* after each case that was read; one thread; may be NULL    */
    void *context;
    const cache_peers *peers;  /* NULL: this process is alone                                     */
} cache_settings;

/*
 * 'ranks' are the cases that may be asked for. All of them are read now, in 'threads' threads, so
 * that a bad one is found before training; with CACHE_MEMORY they are kept, with CACHE_DISK they
 * are mapped from files, which are made where there are none of this content and these steps.
 * 'chain' ([preprocess]) and 'l' (warnings, in order of rank) may be NULL. Dataset and chain are
 * borrowed until cache_close.
 */
pons_status cache_open(const dataset *d, const volume_chain *chain, int rank_count,
                       const int *ranks, const cache_settings *settings, logger *l, cache **out,
                       pons_error *err);
void cache_close(cache *c);
/*
 * A whole preprocessed case, for validation: image F32, label U8 (dataset_target_channels), or no
 * voxels where there is no label; name borrowed. Ended by case_clear. Any thread.
 */
pons_status cache_read(cache *c, int rank, pons_case *out, pons_error *err);
int64_t cache_size(const cache *c); /* bytes held, in memory or mapped                            */
int cache_held(const cache *c);     /* cases held                                                 */
/* What the files of a case held when they were read (case_source); zeros: that is not known. */
fingerprint cache_source(const cache *c, int rank);
/* The joint geometry of all training images in the cache, after the steps. */
const case_geometry *cache_geometry(const cache *c);
/* The orientations of all validation images, after the steps; nothing else of their geometry. */
const case_geometry *cache_validation_geometry(const cache *c);

/* The files of a case on their own grid, labels mapped to the target; no transform. */
pons_status case_read(const dataset *d, int rank, pons_case *out, pons_error *err);
void case_clear(pons_case *c);

/* ---- the stream of cases (R6) ---------------------------------------------------------------- */

/* ceil(epochs x cases / (batch x micro_batches)) */
int64_t stream_steps(int64_t epochs, int64_t cases, int64_t batch, int64_t micro_batches);
/* Epochs whose last case has been consumed after 'steps' steps. */
int64_t stream_epochs(int64_t steps, int64_t cases, int64_t batch, int64_t micro_batches);
/* The order of an epoch's cases: a permutation of 0 .. cases - 1, keyed by seed and epoch. */
void stream_order(uint64_t seed, int64_t epoch, int64_t cases, int64_t *order);

/* ---- loader ---------------------------------------------------------------------------------- */

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

/* All samples of an input of the training program (patch_parts.h). */
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

/* ---- from the INI file ----------------------------------------------------------------------- */

/* What [data], [patch], [train] and [experiment] say; for one replica, M = accumulate. */
void dataset_settings_fill(config *c, const sections *s, dataset_settings *out);
/* Put file, line and key before what dataset_open has said of these settings (config_blame). */
pons_status dataset_blame(config *c, const sections *s, pons_error *err);
void cache_settings_fill(const sections *s, cache_settings *out);
void loader_settings_fill(const sections *s, loader_settings *out);

#endif
