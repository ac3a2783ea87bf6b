/*
 * hmac_sha256.c - two digests, of the message behind the key and of that digest behind the key.
 */
#include "base/hash/hmac_sha256.h"

#include <string.h>

enum { BLOCK = 64 };

/* Begin a digest with the key, each byte of it xor 'pad'. */
static void begin_digest(sha256 *h, const uint8_t key[BLOCK], uint8_t pad)
{
    uint8_t padded[BLOCK];

    for (int i = 0; i < BLOCK; i++)
        padded[i] = key[i] ^ pad;
    sha256_init(h);
    sha256_add(h, padded, sizeof padded);
}

void hmac_sha256_init(hmac_sha256 *h, const void *key, size_t size)
{
    uint8_t block[BLOCK] = { 0 };

    if (size > BLOCK) {
        sha256_init(&h->inner);
        sha256_add(&h->inner, key, size);
        sha256_finish_bytes(&h->inner, block);
    } else if (size > 0) {
        memcpy(block, key, size);
    }
    begin_digest(&h->inner, block, 0x36);
    begin_digest(&h->outer, block, 0x5c);
}

void hmac_sha256_add(hmac_sha256 *h, const void *data, size_t size)
{
    sha256_add(&h->inner, data, size);
}

void hmac_sha256_finish(hmac_sha256 *h, uint8_t code[SHA256_SIZE])
{
    uint8_t digest[SHA256_SIZE];

    sha256_finish_bytes(&h->inner, digest);
    sha256_add(&h->outer, digest, sizeof digest);
    sha256_finish_bytes(&h->outer, code);
}
