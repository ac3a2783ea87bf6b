/*
 * json_digest.c - append and verify the SHA-256 at the end of a file.
 */
#include "base/hash/json_digest.h"

#include <string.h>

#include "base/hash/sha256.h"

#define DIGEST_MEMBER ",\"sha256\":\""
#define DIGEST_MEMBER_SIZE (sizeof DIGEST_MEMBER - 1 + 64 + 3) /* the hash, '"}' and a newline */
#define DIGEST_LINE "; sha256 "
#define DIGEST_LINE_SIZE (sizeof DIGEST_LINE - 1 + 64 + 1)

static void hash_of(const char *text, size_t size, char hex[65])
{
    sha256 hash;

    sha256_init(&hash);
    sha256_add(&hash, text, size);
    sha256_finish(&hash, hex);
}

void json_digest_put(FILE *to, const char *text, size_t size)
{
    char hex[65];

    hash_of(text, size, hex);
    fprintf(to, DIGEST_MEMBER "%s\"}\n", hex);
}

pons_status json_digest_check(const char *path, const char *text, size_t size, pons_error *err)
{
    char hex[65];

    if (size < DIGEST_MEMBER_SIZE || memcmp(text + size - DIGEST_MEMBER_SIZE, DIGEST_MEMBER,
                                            sizeof DIGEST_MEMBER - 1) != 0)
        return pons_fail(err, PONS_DATA, "'%s' is incomplete: it does not end in its sha256", path);
    hash_of(text, size - DIGEST_MEMBER_SIZE, hex);
    if (memcmp(text + size - 3 - 64, hex, 64) != 0)
        return pons_fail(err, PONS_DATA, "'%s' is damaged: its text has sha256 %.12s..., expected "
                         "%.12s...", path, hex, text + size - 3 - 64);
    return PONS_OK;
}

void json_digest_put_line(FILE *to, const char *text, size_t size)
{
    char hex[65];

    hash_of(text, size, hex);
    fprintf(to, DIGEST_LINE "%s\n", hex);
}

bool json_digest_line_holds(const char *text, size_t size)
{
    char line[DIGEST_LINE_SIZE + 1] = DIGEST_LINE;

    if (size < DIGEST_LINE_SIZE)
        return false;
    hash_of(text, size - DIGEST_LINE_SIZE, line + sizeof DIGEST_LINE - 1);
    line[DIGEST_LINE_SIZE - 1] = '\n';
    return memcmp(text + size - DIGEST_LINE_SIZE, line, DIGEST_LINE_SIZE) == 0;
}
