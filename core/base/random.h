/*
 * random.h - counter-based random numbers (Philox4x32-10, Salmon et al. 2011) under keys of names (R5).
 */
#ifndef CORE_BASE_RANDOM_H
#define CORE_BASE_RANDOM_H

#include <stdint.h>

/* FNV-1a, 64 bit, then mixed; of a stream's name. */
uint64_t stream_hash(const char *name);

/* out = Philox4x32-10(counter, key). */
void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/*
 * In the graph (R5): the four numbers of elements 4q .. 4q+3. The 128-bit counter holds
 * { low 32 of stream ^ high 32 of stream rotated by micro-batch's high half ... } exactly as written
 * in random.c; this function is the definition, kernels repeat it.
 */
void random_graph(uint64_t seed, uint64_t stream, uint64_t step, uint64_t micro_batch, uint64_t quad,
                  uint32_t out[4]);
/* In the data (R5): draw number 'draw' of a sample; the four numbers it yields. */
void random_data(uint64_t seed, uint64_t stream, uint64_t epoch, uint64_t case_rank, uint64_t sample,
                 uint64_t draw, uint32_t out[4]);
/* Per-voxel numbers under a 64-bit key drawn with random_data: elements 4q .. 4q+3. */
void random_voxels(uint64_t key, uint64_t quad, uint32_t out[4]);

static inline float random_uniform(uint32_t u) { return (float)(u >> 8) * 0x1p-24f; }
/* Box-Muller: two normals from two numbers. */
void random_normal(uint32_t u, uint32_t v, float out[2]);

#endif
