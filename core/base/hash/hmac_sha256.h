/*
 * hmac_sha256.h - HMAC-SHA-256 (RFC 2104): a code that only a holder of the key can make.
 */
#ifndef CORE_BASE_HASH_HMAC_SHA256_H
#define CORE_BASE_HASH_HMAC_SHA256_H

#include "base/hash/sha256.h"

typedef struct hmac_sha256 {
    sha256 inner, outer;
} hmac_sha256;

void hmac_sha256_init(hmac_sha256 *h, const void *key, size_t size);
void hmac_sha256_add(hmac_sha256 *h, const void *data, size_t size);
void hmac_sha256_finish(hmac_sha256 *h, uint8_t code[SHA256_SIZE]);

#endif
