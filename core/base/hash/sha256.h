/*
 * sha256.h - SHA-256 (FIPS 180-4) for checkpoints, plugins and datasets.
 */
#ifndef CORE_BASE_HASH_SHA256_H
#define CORE_BASE_HASH_SHA256_H

#include <pons/plugin.h>

#include "base/hash/sha256_blocks.h"

enum { SHA256_SIZE = 32 };

typedef struct sha256 {
    uint32_t state[8];
    uint64_t size;
    uint8_t block[64];
    hash_blocks *blocks;
} sha256;

void sha256_init(sha256 *h);
void sha256_add(sha256 *h, const void *data, size_t size);
void sha256_finish(sha256 *h, char hex[65]);
void sha256_finish_bytes(sha256 *h, uint8_t digest[SHA256_SIZE]);
/* sha256_file.c */
pons_status sha256_file(const char *path, char hex[65], pons_error *err);

#endif
