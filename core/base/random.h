/*
 * random.h - counter-based random numbers (Philox4x32-10, Salmon et al. 2011), keyed by names (R5).
 */
#ifndef CORE_BASE_RANDOM_H
#define CORE_BASE_RANDOM_H

#include <stdint.h>

/* Hash of a stream's name: 64-bit FNV-1a, then the finaliser of SplitMix64. */
uint64_t random_stream_hash(const char *name);

/* out = Philox4x32-10(counter, key), bit for bit as Random123 computes it. */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/*
 * The key and counter of a draw (R5). Device kernels repeat this formula.
 *
 *     key     = seed XOR stream           key[0] its low 32 bits, key[1] its high 32 bits
 *     counter = { quad low, quad high, place, time }            32 bits each
 *
 *     draws of            quad                     place                 time
 *     the graph           element / 4              micro-batch number    attempted step
 *     the data            sample x 4096 + draw     rank of the case      epoch
 *     single voxels       element / 4              0                     0
 *
 * With quad = element / 4 the four words of the result belong to elements 4 quad .. 4 quad + 3.
 * The key of random_voxels is itself drawn with random_data.
 */
void random_graph(uint64_t seed, uint64_t stream, uint64_t step, uint64_t micro_batch,
                  uint64_t quad, uint32_t out[4]);
void random_data(uint64_t seed, uint64_t stream, uint64_t epoch, uint64_t case_rank,
                 uint64_t sample, uint64_t draw, uint32_t out[4]);
void random_voxels(uint64_t key, uint64_t quad, uint32_t out[4]);

/* Uniform in [0, 1): a multiple of 2^-24. */
static inline float random_uniform(uint32_t u) { return (float)(u >> 8) * 0x1p-24f; }
/*
 * Two normal numbers by Box-Muller: r = sqrt(-2 log(((u >> 8) + 1) 2^-24)), a = 2 pi (v >> 8)
 * 2^-24; out = { r cos a, r sin a }. Elements 4q .. 4q+3 use the words (0, 1) and (2, 3) of draw q.
 * The arithmetic is float with polynomials of our own, so that the bits do not depend on the C
 * library.
 */
void random_normal(uint32_t u, uint32_t v, float out[2]);

#endif
