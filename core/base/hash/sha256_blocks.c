/*
 * sha256_blocks.c - the compression function of SHA-256 as FIPS 180-4 writes it.
 */
#include "base/hash/sha256_blocks.h"

_Alignas(16) const uint32_t hash_round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static inline uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/*
 * A round moves every variable one place on: here it is their place that moves, and a, ..., h are
 * found behind it.
 */
static inline void add_round(uint32_t s[8], int i, uint32_t word)
{
    uint32_t a = s[-i & 7], b = s[(1 - i) & 7], c = s[(2 - i) & 7], e = s[(4 - i) & 7];
    uint32_t f = s[(5 - i) & 7], g = s[(6 - i) & 7], h = s[(7 - i) & 7];
    uint32_t t = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + word;

    s[(3 - i) & 7] += t;
    s[(7 - i) & 7] = t + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                     ((a & b) ^ (a & c) ^ (b & c));
}

static void expand(const uint8_t *block, uint32_t w[64])
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
}

void hash_blocks_plain(uint32_t state[8], const uint8_t *block, size_t count)
{
    uint32_t w[64], s[8];

    for (; count > 0; count--, block += 64) {
        expand(block, w);
        for (int i = 0; i < 8; i++)
            s[i] = state[i];
        for (int i = 0; i < 64; i += 8)
#pragma GCC unroll 8
            for (int k = 0; k < 8; k++)
                add_round(s, k, hash_round_constant[i + k] + w[i + k]);
        for (int i = 0; i < 8; i++)
            state[i] += s[i];
    }
}
