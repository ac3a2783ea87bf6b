/*
 * hash.c - SHA-256 as FIPS 180-4 writes it.
 */
#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void add_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], s[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t a = s[0], e = s[4];
        uint32_t t = s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                     ((e & s[5]) ^ (~e & s[6])) + round_constant[i] + w[i];
        uint32_t u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
                     ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t;
        s[0] = t + u;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

void sha256_init(sha256 *h)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    memset(h, 0, sizeof *h);
    memcpy(h->state, start, sizeof start);
}

void sha256_add(sha256 *h, const void *data, size_t size)
{
    const uint8_t *from = data;
    size_t held = h->size % 64;

    h->size += size;
    while (size > 0) {
        size_t part = size < 64 - held ? size : 64 - held;
        if (part == 64) {
            add_block(h->state, from);
        } else {
            memcpy(h->block + held, from, part);
            if (held + part == 64)
                add_block(h->state, h->block);
        }
        held = (held + part) % 64;
        from += part;
        size -= part;
    }
}

void sha256_finish(sha256 *h, char hex[65])
{
    static const uint8_t padding[64] = { 0x80 };
    uint64_t bits = h->size * 8;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(h, padding, 1 + (119 - h->size % 64) % 64);
    sha256_add(h, length, 8);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", h->state[i]);
}

pons_status sha256_file(const char *path, char hex[65], pons_error *err)
{
    char block[65536];
    size_t size;
    sha256 h;
    bool broken;
    FILE *file = fopen(path, "rbe");

    if (file == NULL)
        return pons_fail(err, PONS_FAILURE, "cannot open '%s': %s", path, strerror(errno));
    sha256_init(&h);
    while ((size = fread(block, 1, sizeof block, file)) > 0)
        sha256_add(&h, block, size);
    broken = ferror(file) != 0;
    fclose(file);
    if (broken)
        return pons_fail(err, PONS_FAILURE, "cannot read '%s'", path);
    sha256_finish(&h, hex);
    return PONS_OK;
}
