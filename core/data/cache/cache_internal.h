/*
 * cache_internal.h - the struct of a cache, its kinds, and the state of filling it, shared by its
 * files.
 */
#ifndef CORE_DATA_CACHE_CACHE_INTERNAL_H
#define CORE_DATA_CACHE_CACHE_INTERNAL_H

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/text/text_stream.h"
#include "base/thread/parallel.h"
#include "data/cache/cache.h"
#include "data/cache/cache_disk.h"
#include "data/cache/shared_memory.h"
#include "data/case/class_coverage.h"
#include "data/packed/case_geometry.h"

typedef struct cache_kind cache_kind;

/* The key of a case in memory and the warnings of its preprocessing, for cache_keep. */
typedef struct kept_key {
    char key[CASE_KEY_SIZE];
    char *note;
} kept_key;

typedef struct cache_slot {
    bool wanted, resident;
    int place;                 /* of a smart cache: place among the training cases, -1: none      */
    hash128 source;            /* case_hash; zeros: not known                                   */
    packed_case packed;
    kept_key *kept;            /* NULL: the case is not kept                                      */
} cache_slot;

/* A place for cases. Cases that the first tier has no room for go to the next one. */
typedef struct cache_tier {
    const cache_kind *kind;
    int64_t limit;             /* bytes for all processes of a machine; 0: no limit               */
} cache_tier;

struct cache {
    const dataset *data;
    const pipeline *chain;
    sampling_spec spec;
    case_geometry geometry;    /* of the training cases                                           */
    case_geometry validation;  /* orientations of the validation cases                            */
    cache_slot *slot;          /* [case_count], by rank                                           */
    size_t size;
    int resident;
    int tier_count;            /* 0: no case is held                                              */
    cache_tier tier[CACHE_TIERS_MAX];
    cache_disk disk;           /* the folder of CACHE_DISK and CACHE_LMDB, with the locks of keys */
    struct cache_lmdb *lmdb;   /* NULL: not open                                                  */
    case_window window;        /* CACHE_SMART: the cases of an epoch, 'epoch' the first one       */
    int64_t epoch;
    int lane, lane_count;      /* of this machine                                                 */
    cache_keep *keep;          /* NULL: none                                                      */
    struct cache_smart *smart; /* NULL: no case is replaced                                       */
};

/* ---- cache.c --------------------------------------------------------------------------------- */
/* Read, preprocess and pack a case; 'l' receives warnings. */
pons_status cache_pack(const cache *c, int rank, logger *l, packed_case *out, pons_error *err);

/* ---- filling --------------------------------------------------------------------------------- */

/* The result of a process's cases, sent to all processes. */
typedef struct fill_report {
    int64_t position;          /* position of its earliest failed case; 'count': none             */
    pons_error error;
    pons_error unkept;         /* the cause if memory holds fewer cases than allowed              */
    bool seen[CLASS_COUNT_MAX]; /* classes that occur in its cases                                */
    case_geometry geometry;    /* of its training cases                                           */
    uint64_t validation;       /* orientations of its validation cases                            */
} fill_report;

typedef struct fill {
    cache *cache;
    shared_memory memory;
    shared_counters *shared;
    logger *log;
    int count, read_first;
    const int *rank;
    const bool *centres;       /* [2] as in cache_settings */
    text_stream *note;         /* [count] warnings by position                                    */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int running;
    thread_budget spare;       /* threads without a case, which help others                       */
    void (*progress)(void *context);
    pons_status (*check)(void *context, int rank, const pons_volume *image, pons_error *err);
    void *context;
    fill_report report;        /* of this process; after the exchange, of all                     */
    class_coverage seen;
    time_t begin;
} fill;

/* A case in work by a thread. Its log goes to 'note', whose text is complete after a flush. */
typedef struct fill_task {
    fill *fill;
    int rank;
    int tier;                  /* the tier in use                                                 */
    shared_case *entry;
    text_stream *note;
    logger *log;
    packed_case made;          /* the case, if this process has preprocessed it; else no codes    */
    size_t warned[2];          /* begin and end of the warnings of preprocessing, in 'note'       */
    pons_error refused;        /* the check of the image has failed                               */
} fill_task;

/*
 * A kind of cache: a way to hold cases. cache_kind_of has the table. All functions but 'hold' may
 * be NULL.
 */
struct cache_kind {
    const struct cache_store *store; /* of kinds that hold cases by key                           */
    /* Prepare the storage of an opened cache; 'l' may be NULL. */
    pons_status (*open)(cache *c, const cache_settings *s, logger *l, pons_error *err);
    /*
     * Hold a case, which is found or made by fill_pack. True: held, and *out is it if this process
     * maps it already. False: there is no room (fill_reserve), or 'err' is set; the next tier may
     * take p->made. Called by several threads.
     */
    bool (*hold)(fill_task *p, packed_case *out, pons_error *err);
    /* Map the case at a position of the list, which another process has put into this tier. */
    bool (*map)(fill *f, int position, packed_case *out, pons_error *cause);
    /* All cases have been read and mapped. 'tier' is that of this kind. */
    void (*finish)(fill *f, int tier);
    void (*close)(cache *c);
};

extern const cache_kind cache_kind_memory, cache_kind_disk, cache_kind_lmdb, cache_kind_smart;

/* ---- cache_keyed.c --------------------------------------------------------------------------- */

/* A case that a store has found, valid until its 'end'. */
typedef struct stored_case {
    packed_case packed;
    const char *note;          /* the text stored with it                                         */
    void *reading;             /* of the store                                                    */
} stored_case;

/*
 * A storage of cases by key (cache_key.h), which runs share. Its functions are called by several
 * threads, except 'map'. 'name' is that of the case in warnings; 'l' may be NULL.
 */
typedef struct cache_store {
    /* Find a case and verify it; false: there is none, or a damaged one, of which 'l' is told. */
    bool (*find)(cache *c, const char *key, const char *name, logger *l, stored_case *out);
    /* End a find. If 'out' is not NULL, it takes the case where the store can map it already. */
    void (*end)(cache *c, stored_case *found, packed_case *out);
    /* Write a case; false: it cannot be written, and 'l' has a warning with the cause. */
    bool (*write)(cache *c, const char *key, const char *name, const packed_case *p,
                  const char *note, logger *l);
    /* Map a case that was found or written, after all have been. */
    bool (*map)(cache *c, const char *key, const char *name, logger *l, packed_case *out);
} cache_store;

/* Find the key of the case from its files. */
pons_status cache_keyed_find_key(fill_task *p, char key[CASE_KEY_SIZE], pons_error *err);
/* Whether the source files are those that were hashed: another content has another key. */
bool cache_keyed_is_unchanged(const fill_task *p, pons_error *err);
/* The warnings of preprocessing p->made as a new text; NULL, with 'err': no memory. */
char *cache_keyed_warnings(const fill_task *p, pons_error *err);
/* The functions 'hold' and 'map' of a kind with a store. */
bool cache_keyed_hold(fill_task *p, packed_case *out, pons_error *err);
bool cache_keyed_map(fill *f, int position, packed_case *out, pons_error *cause);
/* Open the folder of the settings, unless another tier has. */
pons_status cache_keyed_folder(cache *c, const cache_settings *s, pons_error *err);

/* ---- cache_fill.c ---------------------------------------------------------------------------- */
/* Read all cases of the list and hold those that the mode and the limit allow. */
pons_status cache_fill(cache *c, int count, const int *ranks, const cache_settings *s, logger *l,
                       pons_error *err);
/* Preprocess the case into p->made, once, and record its classes and its geometry. */
pons_status fill_pack(fill_task *p, pons_error *err);
/* Record the classes and the geometry of a case that was found. */
void fill_record(fill_task *p, const packed_case *packed);
/* Reserve bytes of the tier's limit. False: too few are left; the tier takes no further case. */
bool fill_reserve(fill_task *p, size_t size);
bool fill_has_room(fill_task *p, size_t size);
/* Let no further case into the tier; true: it was open. */
bool fill_end_tier(fill_task *p);

#endif
