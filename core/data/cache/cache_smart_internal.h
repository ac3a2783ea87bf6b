/*
 * cache_smart_internal.h - the struct of a smart cache, shared by its files.
 */
#ifndef CORE_DATA_CACHE_CACHE_SMART_INTERNAL_H
#define CORE_DATA_CACHE_CACHE_SMART_INTERNAL_H

#include "base/thread/worker.h"
#include "data/cache/cache_internal.h"
#include "data/cache/cache_smart.h"

enum { SMART_READERS_MAX = 1024 };

typedef enum smart_state {
    SMART_OUT = 0,             /* read by each reader that wants it                               */
    SMART_QUEUED,              /* will be read for 'turn'                                         */
    SMART_READING,             /* a thread reads it                                               */
    SMART_HELD,
    SMART_FAILED               /* readers receive 'failure'                                       */
} smart_state;

/* A training case. */
typedef struct smart_case {
    smart_state state;
    int64_t turn;              /* the latest turn that entered                                    */
    int64_t leaving;           /* the turn that has passed while the case is in use; -1: none     */
    int pins;
    packed_case packed;        /* HELD                                                            */
    pons_error *failure;       /* FAILED                                                          */
    shared_piece piece;        /* its copy in this process's shared memory; size 0: none          */
    int64_t piece_turn;
} smart_case;

struct cache_smart {
    cache *cache;
    case_window window;
    int *rank;                 /* [total]                                                         */
    int64_t limit;             /* bytes; 0: no limit                                              */
    smart_case *item;          /* [total], by place in the list                                   */
    int64_t epoch;             /* the earliest epoch of the readers                               */
    int64_t queued;            /* all turns before this one have entered                          */
    int reader_count;
    int64_t reader_epoch[SMART_READERS_MAX];
    shared_memory memory;
    worker *worker;
    bool stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* ---- cache_smart_shared.c: functions for several processes; the caller holds the lock -------- */

bool smart_is_shared(const cache_smart *s);
/* True if this process reads the turn. */
bool smart_is_own(const cache_smart *s, int64_t turn);
/* True if the entry of the turn's case is free: no process uses its earlier copy. */
bool smart_can_publish(const cache_smart *s, int64_t turn);
/* Free this process's copy of a case; every process has passed its turn. */
void smart_free_piece(cache_smart *s, smart_case *c);
/*
 * Give a case that is READING to the other processes, or the failure to read it. *made becomes the
 * shared copy, or is cleared if there is no room. Called without the lock.
 */
void smart_publish(cache_smart *s, int64_t turn, packed_case *made, const pons_error *failure);
/* True if another process has published the turn: *out is its case, without codes if not held. */
bool smart_fetch(const cache_smart *s, int64_t turn, packed_case *out, pons_error *failure);
/* Tell the other processes that this one has passed the turns before 'turn'. */
void smart_pass(cache_smart *s, int64_t turn);
/* Free the copies that all processes have passed; true: some are left. */
bool smart_free_passed(cache_smart *s);
/* Wait, without the lock, for another process to publish or to pass. */
void smart_wait_for_others(cache_smart *s);
/* Record the copies that this process has made when the cache was filled. */
void smart_own_filled(cache_smart *s);

#endif
