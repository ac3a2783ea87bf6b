/*
 * hash128.c - libxxhash's XXH3-128 of one block of bytes, or of several.
 */
#include "base/hash/hash128.h"

#include <xxhash.h>

hash128 hash128_of(const void *data, size_t size)
{
    const XXH128_hash_t hash = XXH3_128bits(data, size);

    return (hash128){ hash.high64, hash.low64 };
}

void hash128_add(hash128 *total, const void *data, size_t size)
{
    const hash128 both[2] = { *total, hash128_of(data, size) };

    *total = hash128_of(both, sizeof both);
}
