/*
 * hash128.h - XXH3-128: 128 bits that tell two blocks of bytes apart, at the speed of memory. Good
 * against accidents, not against enemies: what must withstand those is hashed by sha256.h.
 */
#ifndef CORE_BASE_HASH_HASH128_H
#define CORE_BASE_HASH_HASH128_H

#include <stddef.h>
#include <stdint.h>

typedef struct hash128 {
    uint64_t high, low;
} hash128;

/* Equal on every machine of one byte order. */
hash128 hash128_of(const void *data, size_t size);
/* Hash *total and the hash of 'data' into *total, so that the bounds between the data count. */
void hash128_add(hash128 *total, const void *data, size_t size);

#endif
