/*
 * cache.h - preprocessed cases in memory, or mapped from files.
 *
 * Memory is [D, H, W, C] with D, H, W the file axes i, j, k.
 */
#ifndef CORE_DATA_CACHE_CACHE_H
#define CORE_DATA_CACHE_CACHE_H

#include "base/hash/hash128.h"
#include "config/sections.h"
#include "data/dataset/case_geometry.h"
#include "data/dataset/dataset.h"
#include "data/packed/packed_case.h"
#include "data/transform/pipeline.h"

typedef struct cache cache;

/*
 * Processes that call cache_open at one time with the same cases, on one machine or on several.
 * Those of a machine share out who reads which case, and all of them map what one has made.
 */
typedef struct cache_peers {
    int rank, count;
    /* Gather 'size' bytes of each process, by rank, into 'all'. */
    pons_status (*all_gather)(void *context, const void *mine, size_t size, void *all,
                              pons_error *err);
    /* Called before cache_open fails in all processes alike; may be NULL. */
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
/* Content hash of the files of a case when they were read (case_hash.h); zeros: not known. */
fingerprint cache_source(const cache *c, int rank);
/* The joint geometry of all training images in the cache, after the steps. */
const case_geometry *cache_geometry(const cache *c);
/* The orientations of all validation images, after the steps; nothing else of their geometry. */
const case_geometry *cache_validation_geometry(const cache *c);

/* ---- for a loader ---------------------------------------------------------------------------- */

/* A case for reading; 'own' was read for this call because the cache does not hold it. */
typedef struct cache_hold {
    const packed_case *packed;
    packed_case own;
} cache_hold;

/* Any thread; between begin and end the case stays. */
pons_status cache_hold_begin(cache *c, int rank, cache_hold *hold, pons_error *err);
void cache_hold_end(cache_hold *hold);
const packed_case *cache_packed(const cache *c, int rank); /* NULL: it is not held                */
const dataset *cache_dataset(const cache *c);
bool cache_knows(const cache *c, int rank); /* one of cache_open's ranks                          */

#endif
