/*
 * json_digest.c - the hash at the end of a file.
 */
#include "base/hash/json_digest.h"

#include <string.h>

#include "base/hash/sha256.h"

#define SEAL ",\"sha256\":\""
#define SEAL_SIZE (sizeof SEAL - 1 + 64 + 3) /* the hash and '"}' newline */
#define LINE "; sha256 "
#define LINE_SIZE (sizeof LINE - 1 + 64 + 1)

static void hash_of(const char *text, size_t size, char hex[65])
{
    sha256 hash;

    sha256_init(&hash);
    sha256_add(&hash, text, size);
    sha256_finish(&hash, hex);
}

void seal_put(FILE *to, const char *text, size_t size)
{
    char hex[65];

    hash_of(text, size, hex);
    fprintf(to, SEAL "%s\"}\n", hex);
}

pons_status seal_check(const char *path, const char *text, size_t size, pons_error *err)
{
    char hex[65];

    if (size < SEAL_SIZE || memcmp(text + size - SEAL_SIZE, SEAL, sizeof SEAL - 1) != 0)
        return pons_fail(err, PONS_DATA, "'%s' is incomplete: it does not end in its sha256", path);
    hash_of(text, size - SEAL_SIZE, hex);
    if (memcmp(text + size - 3 - 64, hex, 64) != 0)
        return pons_fail(err, PONS_DATA, "'%s' is damaged: its text has sha256 %.12s..., expected "
                         "%.12s...", path, hex, text + size - 3 - 64);
    return PONS_OK;
}

void seal_line_put(FILE *to, const char *text, size_t size)
{
    char hex[65];

    hash_of(text, size, hex);
    fprintf(to, LINE "%s\n", hex);
}

bool seal_line_holds(const char *text, size_t size)
{
    char line[LINE_SIZE + 1] = LINE;

    if (size < LINE_SIZE)
        return false;
    hash_of(text, size - LINE_SIZE, line + sizeof LINE - 1);
    line[LINE_SIZE - 1] = '\n';
    return memcmp(text + size - LINE_SIZE, line, LINE_SIZE) == 0;
}
