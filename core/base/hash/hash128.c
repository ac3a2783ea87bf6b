/*
 * hash128.c - eight sums side by side, each a chain of multiplications and rotations that a
 * changed word cannot leave as it was; then all of them and the size are mixed, twice, differently.
 */
#include "base/hash/hash128.h"

#include <string.h>

enum { LANES = 8 };

static const uint64_t ODD[2] = { UINT64_C(0x9e3779b185ebca87), UINT64_C(0xc2b2ae3d27d4eb4f) };

static uint64_t turn(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void take(uint64_t lane[LANES], const unsigned char *from)
{
    for (int n = 0; n < LANES; n++) {
        uint64_t word;

        memcpy(&word, from + 8 * n, sizeof word);
        lane[n] = turn(lane[n] + word * ODD[1], 31) * ODD[0];
    }
}

static uint64_t mix(const uint64_t lane[LANES], uint64_t size, uint64_t seed, int first)
{
    uint64_t h = seed ^ size * ODD[0];

    for (int n = 0; n < LANES; n++) {
        h = (h ^ turn(lane[(n + first) % LANES], 7 * n + 3)) * ODD[1];
        h ^= h >> 32;
    }
    h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

fingerprint fingerprint_of(const void *data, size_t size)
{
    const unsigned char *from = data;
    unsigned char rest[8 * LANES] = { 0 };
    uint64_t lane[LANES];
    size_t left = size;

    for (int n = 0; n < LANES; n++)
        lane[n] = ODD[0] * (uint64_t)(n + 1);
    for (; left >= sizeof rest; from += sizeof rest, left -= sizeof rest)
        take(lane, from);
    if (left > 0)
        memcpy(rest, from, left);
    take(lane, rest);
    return (fingerprint){ { mix(lane, size, 1, 0), mix(lane, size, 2, 3) } };
}

void fingerprint_add(fingerprint *total, const void *data, size_t size)
{
    fingerprint both[2] = { *total, fingerprint_of(data, size) };

    *total = fingerprint_of(both, sizeof both);
}
