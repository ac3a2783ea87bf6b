/*
 * random.c - Philox4x32-10, and the packing of names, steps and elements into its counter.
 */
#include "base/random_normal.h"

uint64_t random_stream_hash(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *name != '\0'; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)UINT32_C(0xd2511f53) * c0;
        uint64_t b = (uint64_t)UINT32_C(0xcd9e8d57) * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static void draw_at(uint64_t key, uint64_t quad, uint64_t place, uint64_t time, uint32_t out[4])
{
    const uint32_t counter[4] = { (uint32_t)quad, (uint32_t)(quad >> 32), (uint32_t)place,
                                  (uint32_t)time };
    const uint32_t words[2] = { (uint32_t)key, (uint32_t)(key >> 32) };
    philox(counter, words, out);
}

void random_graph(uint64_t seed, uint64_t stream, uint64_t step, uint64_t micro_batch,
                  uint64_t quad, uint32_t out[4])
{
    draw_at(seed ^ stream, quad, micro_batch, step, out);
}

void random_data(uint64_t seed, uint64_t stream, uint64_t epoch, uint64_t case_rank,
                 uint64_t sample, uint64_t draw, uint32_t out[4])
{
    draw_at(seed ^ stream, sample * 4096 + draw, case_rank, epoch, out);
}

void random_voxels(uint64_t key, uint64_t quad, uint32_t out[4])
{
    draw_at(key, quad, 0, 0, out);
}

void random_normal(uint32_t u, uint32_t v, float out[2])
{
    random_pair(u, v, &out[0], &out[1]);
}
