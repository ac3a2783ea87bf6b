/*
 * transpose.h - transpose a matrix from the cache into memory.
 */
#ifndef CORE_DATA_VOLUME_TRANSPOSE_H
#define CORE_DATA_VOLUME_TRANSPOSE_H

#include <stdint.h>

/* to[c * to_step + r] = from[r * from_step + c], r < rows, c < columns; steps in elements. */
void transpose_words(int64_t rows, int64_t columns, const uint32_t *from, int64_t from_step,
                     uint32_t *to, int64_t to_step);
void transpose_bytes(int64_t rows, int64_t columns, const uint8_t *from, int64_t from_step,
                     uint8_t *to, int64_t to_step);

#endif
