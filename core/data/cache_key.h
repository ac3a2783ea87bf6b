/*
 * cache_key.h - the name of a preprocessed case: a hash of all that decides what it holds.
 */
#ifndef CORE_DATA_CACHE_KEY_H
#define CORE_DATA_CACHE_KEY_H

#include "data/case_file.h"
#include "data/dataset.h"
#include "data/volume_chain.h"

/*
 * The content of the case's files, what their labels mean, the steps with their options and
 * plugins, and 'wish'; chain may be NULL. PONS_DATA where a file cannot be read.
 */
pons_status cache_key(const dataset *d, const volume_chain *chain, const packed_wish *wish,
                      int rank, char key[CASE_KEY_SIZE], pons_error *err);

#endif
