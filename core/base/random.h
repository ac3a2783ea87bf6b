/*
 * random.h - counter-based random numbers (Philox4x32-10, Salmon et al. 2011), keyed by names (R5).
 */
#ifndef CORE_BASE_RANDOM_H
#define CORE_BASE_RANDOM_H

#include <stdint.h>

/* Of a stream's name: FNV-1a in 64 bits, then the finaliser of SplitMix64. */
uint64_t stream_hash(const char *name);

/* out = Philox4x32-10(counter, key), bit for bit as Random123. */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/*
 * The counter of every draw is one formula, which device kernels repeat (R5):
 *
 *     key     = seed XOR stream           key[0] its low 32 bits, key[1] its high 32 bits
 *     counter = { quad low, quad high, place, time }            32 bits each
 *
 * In the graph quad = element / 4, place = micro-batch number, time = attempted step; the four
 * words of the result belong to elements 4 quad .. 4 quad + 3. In the data quad = sample x 4096 +
 * draw, place = rank of the case, time = epoch. Per voxel the key is one drawn with random_data,
 * quad = element / 4, place = time = 0.
 */
void random_graph(uint64_t seed, uint64_t stream, uint64_t step, uint64_t micro_batch,
                  uint64_t quad, uint32_t out[4]);
void random_data(uint64_t seed, uint64_t stream, uint64_t epoch, uint64_t case_rank,
                 uint64_t sample, uint64_t draw, uint32_t out[4]);
void random_voxels(uint64_t key, uint64_t quad, uint32_t out[4]);

/* [0, 1), a multiple of 2^-24. */
static inline float random_uniform(uint32_t u) { return (float)(u >> 8) * 0x1p-24f; }
/*
 * Box-Muller: r = sqrt(-2 log(((u >> 8) + 1) 2^-24)), a = 2 pi (v >> 8) 2^-24;
 * out = { r cos a, r sin a }. Normals of elements 4q .. 4q+3 come from the words (0, 1) and (2, 3).
 * Arithmetic is float with our own polynomials, so that the bits do not depend on the C library.
 */
void random_normal(uint32_t u, uint32_t v, float out[2]);

#endif
