/*
 * opened_cache.h - a cache of a few small cases, opened as a run opens it, for tests of the kinds
 * that hold cases in files.
 */
#ifndef TESTS_OPENED_CACHE_H
#define TESTS_OPENED_CACHE_H

#include "support/dataset_maker.h"

#include "data/transform/pipeline.h"

enum { CASES = 3, SIDE = 12 };

/* Steps that scale intensities. */
extern const char plain[];

/* The kind of the caches that are opened, at first CACHE_DISK, and of what it has no room for. */
extern cache_mode opened_mode, opened_next_mode;

/* Cases of an earlier cache; at first NULL. */
extern cache_keep *opened_keep;

typedef struct opened {
    config *ini;
    dataset *data;
    pipeline *chain;
    cache *held;
    int found;                 /* cases that were found in the cache                              */
    char said[4096];
} opened;

/* Values of voxels; the second differs from the first at one voxel. */
double image_value(int64_t i, int64_t j, int64_t k);
double other_value(int64_t i, int64_t j, int64_t k);

/* Write case n, of 'side' or of SIDE voxels along each axis, or all cases, into a folder. */
void write_sized_case(const char *folder, int n, int side, maker_value *value);
void write_case(const char *folder, int n, maker_value *value);
void write_cases(const char *folder);

/* Open the dataset and the steps. */
void open_data(opened *o, const char *folder, const char *steps);
/* Open its cache, in the folder 'kept/deep'. */
pons_status fill_cache(opened *o, int64_t limit, pons_error *err);
/* Both. */
pons_status try_open(opened *o, const char *folder, const char *steps, int64_t limit,
                     pons_error *err);
void open_cache(opened *o, const char *folder, const char *steps, int64_t limit);
void close_cache(opened *o);

/* Open the cache, count the cases that it found, and close it. All must be held. */
int count_found_cases(const char *folder, const char *steps);
/* A cache repeats the warning of each case that it finds. */
void assert_warnings_are_repeated(void);
/* Each case of the cache equals the case that is preprocessed without a cache. */
void assert_true_cases(const opened *o);

#endif
