/*
 * transpose.c - transpose blocks of 4 x 4 words or 16 x 16 bytes in vector registers.
 *
 * A round interleaves rows r and r + SIDE / 2 into rows 2r and 2r + 1; log2(SIDE) rounds transpose
 * a block. The remaining edges are copied element by element.
 */
#include "data/volume/transpose.h"

#include <string.h>

typedef uint32_t words __attribute__((vector_size(16)));
typedef uint8_t bytes __attribute__((vector_size(16)));

enum { WORDS = 4, BYTES = 16 };

/* gcc before 12 has no __builtin_shufflevector; __builtin_shuffle takes the indices as a vector. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLE(MASK, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef SHUFFLE
#define SHUFFLE(MASK, a, b, ...) __builtin_shuffle(a, b, (MASK){ __VA_ARGS__ })
#endif

#define LOW_WORDS(a, b) SHUFFLE(words, a, b, 0, 4, 1, 5)
#define HIGH_WORDS(a, b) SHUFFLE(words, a, b, 2, 6, 3, 7)
#define LOW_BYTES(a, b)                                                                           \
    SHUFFLE(bytes, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_BYTES(a, b)                                                                          \
    SHUFFLE(bytes, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

static void transpose_block_words(const uint32_t *from, int64_t from_step, uint32_t *to,
                                  int64_t to_step)
{
    words row[WORDS], next[WORDS];

    for (int r = 0; r < WORDS; r++)
        memcpy(&row[r], from + r * from_step, sizeof row[r]);
    for (int round = 0; round < 2; round++) {
        for (int r = 0; r < WORDS / 2; r++) {
            next[2 * r] = LOW_WORDS(row[r], row[r + WORDS / 2]);
            next[2 * r + 1] = HIGH_WORDS(row[r], row[r + WORDS / 2]);
        }
        memcpy(row, next, sizeof row);
    }
    for (int r = 0; r < WORDS; r++)
        memcpy(to + r * to_step, &row[r], sizeof row[r]);
}

static void transpose_block_bytes(const uint8_t *from, int64_t from_step, uint8_t *to,
                                  int64_t to_step)
{
    bytes row[BYTES], next[BYTES];

    for (int r = 0; r < BYTES; r++)
        memcpy(&row[r], from + r * from_step, sizeof row[r]);
    for (int round = 0; round < 4; round++) {
        for (int r = 0; r < BYTES / 2; r++) {
            next[2 * r] = LOW_BYTES(row[r], row[r + BYTES / 2]);
            next[2 * r + 1] = HIGH_BYTES(row[r], row[r + BYTES / 2]);
        }
        memcpy(row, next, sizeof row);
    }
    for (int r = 0; r < BYTES; r++)
        memcpy(to + r * to_step, &row[r], sizeof row[r]);
}

void transpose_words(int64_t rows, int64_t columns, const uint32_t *from, int64_t from_step,
                     uint32_t *to, int64_t to_step)
{
    int64_t whole_rows = rows / WORDS * WORDS, whole_columns = columns / WORDS * WORDS;

    for (int64_t c = 0; c < whole_columns; c += WORDS)
        for (int64_t r = 0; r < whole_rows; r += WORDS)
            transpose_block_words(from + r * from_step + c, from_step, to + c * to_step + r,
                                  to_step);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; r++)
            to[c * to_step + r] = from[r * from_step + c];
}

void transpose_bytes(int64_t rows, int64_t columns, const uint8_t *from, int64_t from_step,
                     uint8_t *to, int64_t to_step)
{
    int64_t whole_rows = rows / BYTES * BYTES, whole_columns = columns / BYTES * BYTES;

    for (int64_t c = 0; c < whole_columns; c += BYTES)
        for (int64_t r = 0; r < whole_rows; r += BYTES)
            transpose_block_bytes(from + r * from_step + c, from_step, to + c * to_step + r,
                                  to_step);
    for (int64_t c = 0; c < columns; c++)
        for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; r++)
            to[c * to_step + r] = from[r * from_step + c];
}
