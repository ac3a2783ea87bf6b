/*
 * hash128.h - 128 bits that tell two blocks of bytes apart, at the speed of memory. Good
 * against accidents, not against enemies: what must withstand those is hashed by sha256.h.
 */
#ifndef CORE_BASE_HASH_HASH128_H
#define CORE_BASE_HASH_HASH128_H

#include <stddef.h>
#include <stdint.h>

typedef struct fingerprint {
    uint64_t word[2];
} fingerprint;

/* Equal on every machine of one byte order. */
fingerprint fingerprint_of(const void *data, size_t size);
/*
 * *total becomes one of what it was of, then of these: where one ends and the next begins counts.
 */
void fingerprint_add(fingerprint *total, const void *data, size_t size);

#endif
