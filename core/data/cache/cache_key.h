/*
 * cache_key.h - the name of a preprocessed case: a hash of all that decides what it holds.
 */
#ifndef CORE_DATA_CACHE_CACHE_KEY_H
#define CORE_DATA_CACHE_CACHE_KEY_H

#include "base/hash/hash128.h"
#include "data/packed/packed_case_file.h"
#include "data/dataset/dataset.h"
#include "data/transform/pipeline.h"

/*
 * The content of the case's files (case_source), what their labels mean, the steps with their
 * options and plugins, and 'wish'; chain may be NULL.
 */
void cache_key(const dataset *d, const volume_chain *chain, const packed_wish *wish, int rank,
               const fingerprint *source, char key[CASE_KEY_SIZE]);

#endif
