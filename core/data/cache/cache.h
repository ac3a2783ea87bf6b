/*
 * cache.h - preprocessed cases in memory, or mapped from files.
 *
 * A case is 'held' if its packed form is resident: in memory or in a mapped file. Other cases are
 * read and preprocessed each time. Volumes are [D, H, W, C] with D, H, W the file axes i, j, k.
 */
#ifndef CORE_DATA_CACHE_CACHE_H
#define CORE_DATA_CACHE_CACHE_H

#include "base/hash/hash128.h"
#include "config/sections.h"
#include "data/cache/cache_keep.h"
#include "data/cache/case_window.h"
#include "data/packed/case_geometry.h"
#include "data/dataset/dataset.h"
#include "data/packed/packed_case.h"
#include "data/transform/pipeline.h"

typedef struct cache cache;

/*
 * The processes of a run, on one or several machines, which call cache_open at the same time with
 * the same cases. Processes of one machine divide the reading and map each other's results.
 */
typedef struct cache_peers {
    int rank, count;
    /* Gather 'size' bytes of each process, ordered by rank, into 'all'. */
    pons_status (*all_gather)(void *context, const void *mine, size_t size, void *all,
                              pons_error *err);
    /* Called before cache_open fails in all processes with the same error; may be NULL. */
    void (*failed)(void *context, const pons_error *failure);
    void *context;
} cache_peers;

typedef struct cache_settings {
    cache_mode mode;           /* CACHE_DEVICE, and CACHE_SMART without a window: as CACHE_MEMORY */
    /*
     * Bytes for all processes of a machine, 0: no limit. Cases beyond the limit are held in the
     * next mode, with its own limit; with CACHE_NONE they are read each time.
     */
    int64_t limit;
    /* CACHE_SMART: the first window.total of the cases are trained on, from 'epoch' on */
    case_window window;
    int64_t epoch;
    int lane, lane_count;      /* the lanes that this machine trains on                           */
    cache_mode next_mode;      /* CACHE_NONE or another mode than 'mode'                          */
    int64_t next_limit;
    const char *folder;        /* folder of the disk cache; NULL: '.cache' in 'output'            */
    const char *output;
    int threads;               /* threads that fill the cache; 0: 1                               */
    sampling_mode sampling;    /* the loader's rule; cases get its sampling index                 */
    /*
     * Balanced: background is above this value in at least one channel; -INFINITY: all background.
     */
    double background_above;
    /*
     * Balanced: [0] foreground centres are drawn, [1] background centres. A training case without
     * a drawn kind is warned of.
     */
    bool centres[2];
    /*
     * Cases of one class each that are read at the start if no cache holds them, evenly taken from
     * the list; 0: all. Labels of voxels are always read, and cases that a cache holds.
     */
    int read_first;
    void (*progress)(void *context); /* after each case that was read, in one thread; may be NULL */
    /*
     * Check a validation case after the steps, in any thread; its failure is that of cache_open.
     * NULL: cases for validation that are not held are read without the steps.
     */
    pons_status (*check)(void *context, int rank, const pons_volume *image, pons_error *err);
    void *context;
    const cache_peers *peers;  /* NULL: this process is alone                                     */
    /*
     * CACHE_MEMORY and CACHE_DEVICE of one process: cases of an earlier cache, borrowed until
     * cache_close, which puts the cases back. NULL: none.
     */
    cache_keep *keep;
} cache_settings;

/*
 * Open a cache of the cases 'ranks'. All of them, or those of 'read_first', are read in 'threads'
 * threads, so that a bad case is found before training. CACHE_MEMORY holds them in memory.
 * CACHE_DISK maps them from files; a file is made if none has this content and these steps.
 * CACHE_SMART holds the window of an epoch, and replaces its cases as the loaders advance. 'chain'
 * ([preprocess]) and 'l' (warnings, in order of rank) may be NULL. Dataset and chain are borrowed
 * until cache_close.
 */
pons_status cache_open(const dataset *d, const pipeline *chain, int rank_count,
                       const int *ranks, const cache_settings *settings, logger *l, cache **out,
                       pons_error *err);
void cache_close(cache *c);
/*
 * Read a preprocessed case for validation: image F32, label U8 with the target (TARGET_IGNORED
 * where no metric counts), no voxels if there is no label; the name is borrowed. case_clear ends
 * it. Thread-safe.
 */
pons_status cache_read(cache *c, int rank, pons_case *out, pons_error *err);
int64_t cache_size(const cache *c); /* bytes held, in memory or mapped                            */
/* Content hash of the files of a case when they were read (case_hash.h); zeros: not known. */
hash128 cache_case_hash(const cache *c, int rank);
/* The joint geometry of all training images in the cache, after the steps. */
const case_geometry *cache_geometry(const cache *c);
/* The orientations of all validation images, after the steps; other members are not set. */
const case_geometry *cache_validation_geometry(const cache *c);

/* ---- functions for the loader ---------------------------------------------------------------- */

/* A case in use by a reader. 'own' is used for a case that the cache does not hold. */
typedef struct cache_pin {
    const packed_case *packed;
    packed_case own;
    cache *held;               /* the smart cache that holds it at 'place'; NULL: another cache   */
    int place;
} cache_pin;

/* Thread-safe. The case is valid from begin to end. */
pons_status cache_pin_begin(cache *c, int rank, cache_pin *pin, pons_error *err);
void cache_pin_end(cache_pin *pin);
const packed_case *cache_packed(const cache *c, int rank); /* NULL: not held                      */
const dataset *cache_dataset(const cache *c);
/*
 * A smart cache: a loader that will begin in 'epoch' is added before any advances. It has passed
 * all epochs before that of cache_advance. Other caches ignore both.
 */
int cache_add_reader(cache *c, int64_t epoch);
void cache_advance(cache *c, int reader, int64_t epoch);
bool cache_has_rank(const cache *c, int rank); /* true for a rank given to cache_open             */

#endif
