/*
 * sha256.c - SHA-256: digests of bytes that come in parts.
 */
#include "base/hash/sha256.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"

void sha256_init(sha256 *h)
{
    static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    *h = (sha256){ .blocks = hash_blocks_choose() };
    memcpy(h->state, start, sizeof start);
}

void sha256_add(sha256 *h, const void *data, size_t size)
{
    const uint8_t *from = data;
    size_t held = h->size % 64, part = min_size(size, 64 - held);

    h->size += size;
    if (held > 0 && part > 0) {
        memcpy(h->block + held, from, part);
        if (held + part < 64)
            return;
        h->blocks(h->state, h->block, 1);
        from += part;
        size -= part;
    }
    if (size >= 64)
        h->blocks(h->state, from, size / 64);
    if (size % 64 > 0)
        memcpy(h->block, from + size / 64 * 64, size % 64);
}

static void add_padding(sha256 *h)
{
    static const uint8_t padding[64] = { 0x80 };
    uint64_t bits = h->size * 8;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(h, padding, 1 + (119 - h->size % 64) % 64);
    sha256_add(h, length, 8);
}

void sha256_finish(sha256 *h, char hex[65])
{
    add_padding(h);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", h->state[i]);
}

void sha256_finish_bytes(sha256 *h, uint8_t digest[SHA256_SIZE])
{
    add_padding(h);
    for (int i = 0; i < SHA256_SIZE; i++)
        digest[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}
