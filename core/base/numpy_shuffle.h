/*
 * numpy_shuffle.h - the permutation of numpy's legacy generator, for splits that other programs
 * draw.
 */
#ifndef CORE_BASE_NUMPY_SHUFFLE_H
#define CORE_BASE_NUMPY_SHUFFLE_H

#include <stdint.h>

/* Set order[0..count) to RandomState(seed).permutation(count). */
void numpy_shuffle(uint32_t seed, int count, int *order);

#endif
