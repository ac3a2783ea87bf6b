/*
 * slide_pool.h - the slides of a dataset: opened when they are first read, shared by all threads,
 * and the least recently read ones closed, because each open slide keeps decoded tiles.
 */
#ifndef CORE_DATA_SLIDE_SLIDE_POOL_H
#define CORE_DATA_SLIDE_SLIDE_POOL_H

#include "data/slide/slide.h"

typedef struct slide_pool slide_pool;

/*
 * A pool that has at most 'limit' slides open, or one for each thread that reads if these are more.
 * NULL: out of memory.
 */
slide_pool *slide_pool_new(int limit);
/* NULL is allowed; no thread may read. */
void slide_pool_free(slide_pool *p);
/* Add a slide and return its number, from 0; -1: out of memory. Not while threads read. */
int slide_pool_add(slide_pool *p, const char *path);

/*
 * Borrow an open slide, which is given back by slide_pool_release. Thread-safe, but a thread has
 * one slide at a time; errors are those of slide_open.
 */
pons_status slide_pool_borrow(slide_pool *p, int number, slide **out, pons_error *err);
/*
 * 'broken': slide_read has failed, after which it fails everywhere in the open slide. It is closed
 * once nobody reads it, and borrowed as a fresh one.
 */
void slide_pool_release(slide_pool *p, int number, bool broken);
const char *slide_pool_path(const slide_pool *p, int number);

#endif
