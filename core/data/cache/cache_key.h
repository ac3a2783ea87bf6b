/*
 * cache_key.h - the key of a preprocessed case: a hash of everything that determines its content.
 */
#ifndef CORE_DATA_CACHE_CACHE_KEY_H
#define CORE_DATA_CACHE_CACHE_KEY_H

#include "base/hash/hash128.h"
#include "data/packed/packed_case_file.h"
#include "data/dataset/dataset.h"
#include "data/transform/pipeline.h"

/*
 * Hash the content of the case's files ('source'), the classes of its label ids, the steps with
 * options and plugins, and the sampling sets ('spec'). 'chain' may be NULL.
 */
void cache_key(const dataset *d, const pipeline *chain, const sampling_spec *spec, int rank,
               const hash128 *source, char key[CASE_KEY_SIZE]);

#endif
