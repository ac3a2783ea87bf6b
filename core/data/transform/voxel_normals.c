/*
 * voxel_normals.c - normal random numbers of many voxels, LANES quads at a time.
 *
 * The arithmetic and the bits are those of random_normal. Without FMA instructions each fused
 * multiply-add is a call of the C library, so the loop is compiled a second time for AVX2 with
 * FMA.
 */
#include <pons/transform.h>

#include "base/avx2_clone.h"
#include "base/integer.h"
#include "base/random_normal.h"

enum { LANES = 32 };

/* Philox4x32-10 of counters (quad + lane, 0, 0); word w of a lane in out[w][lane]. */
AVX2_BODY void draw_lanes(uint64_t key, uint64_t quad, uint32_t out[4][LANES])
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int n = 0; n < LANES; n++) {
        out[0][n] = (uint32_t)(quad + (uint64_t)n);
        out[1][n] = (uint32_t)((quad + (uint64_t)n) >> 32);
        out[2][n] = out[3][n] = 0;
    }
    for (int round = 0; round < 10; round++) {
        for (int n = 0; n < LANES; n++) {
            uint64_t a = (uint64_t)UINT32_C(0xd2511f53) * out[0][n];
            uint64_t b = (uint64_t)UINT32_C(0xcd9e8d57) * out[2][n];
            out[0][n] = (uint32_t)(b >> 32) ^ out[1][n] ^ k0;
            out[1][n] = (uint32_t)b;
            out[2][n] = (uint32_t)(a >> 32) ^ out[3][n] ^ k1;
            out[3][n] = (uint32_t)a;
        }
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
}

/* Normal numbers of quads quad .. quad + LANES - 1. */
AVX2_BODY void fill_body(uint64_t key, uint64_t quad, float *restrict out)
{
    uint32_t word[4][LANES];
    float normal[4][LANES];

    draw_lanes(key, quad, word);
    for (int n = 0; n < LANES; n++)
        random_pair(word[0][n], word[1][n], &normal[0][n], &normal[1][n]);
    for (int n = 0; n < LANES; n++)
        random_pair(word[2][n], word[3][n], &normal[2][n], &normal[3][n]);
    for (int n = 0; n < LANES; n++)
        for (int w = 0; w < 4; w++)
            out[4 * n + w] = normal[w][n];
}

typedef void fill_lanes(uint64_t key, uint64_t quad, float *out);

static void fill_baseline(uint64_t key, uint64_t quad, float *out)
{
    fill_body(key, quad, out);
}

AVX2_CLONE void fill_avx2(uint64_t key, uint64_t quad, float *out)
{
    fill_body(key, quad, out);
}

void pons_voxel_normals(uint64_t key, uint64_t first, int64_t count, float *out)
{
    fill_lanes *fill = AVX2_CHOOSE(fill_avx2, fill_baseline);
    uint64_t quad = first / 4, skip = first % 4;
    float normal[4 * LANES];

    while (count > 0) {
        int64_t taken = 4 * LANES - (int64_t)skip;

        taken = min_i64(taken, count);
        fill(key, quad, normal);
        memcpy(out, normal + skip, (size_t)taken * sizeof *out);
        out += taken;
        count -= taken;
        quad += LANES;
        skip = 0;
    }
}
