/*
 * sha256_blocks.h - the function inside SHA-256, for whichever processor is there.
 */
#ifndef CORE_BASE_HASH_SHA256_BLOCKS_H
#define CORE_BASE_HASH_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* Add 'count' blocks of 64 bytes to a digest. */
typedef void hash_blocks(uint32_t state[8], const uint8_t *block, size_t count);

hash_blocks hash_blocks_plain;
/* The fastest one that runs here. */
hash_blocks *hash_blocks_choose(void);

extern const uint32_t hash_round_constant[64];

#endif
