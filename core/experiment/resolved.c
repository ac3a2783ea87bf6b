/*
 * resolved.c - check a resolved.ini by the hash in a manifest, or else by its seal.
 */
#include "experiment/resolved.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/hash/json_digest.h"
#include "checkpoint/checkpoint.h"

enum { FILE_LIMIT = 16 << 20 };

/* The hash in the manifest; "": none. */
static pons_status read_expected(const char *checkpoint, char hex[65], pons_error *err)
{
    json_t *manifest;
    const json_t *hash;

    if (checkpoint_manifest(checkpoint, &manifest, err) != PONS_OK)
        return err->status;
    hash = json_object_get(manifest, CHECKPOINT_RESOLVED);
    hex[0] = '\0';
    if (hash != NULL && (!json_is_string(hash) || json_string_length(hash) != 64))
        pons_fail(err, PONS_DATA, "'%s/manifest.json': '" CHECKPOINT_RESOLVED "' is no sha256",
                  checkpoint);
    else if (hash != NULL)
        strcpy(hex, json_string_value(hash));
    json_decref(manifest);
    return err->status;
}

pons_status resolved_check(const char *checkpoint, const char *path, bool *same, pons_error *err)
{
    char expected[65], found[65], *text = NULL;
    size_t size = 0;
    sha256 hash;

    *same = true;
    if (read_expected(checkpoint, expected, err) != PONS_OK || expected[0] == '\0'
        || file_read(path, FILE_LIMIT, &text, &size, PONS_DATA, err) != PONS_OK)
        return err->status;
    sha256_init(&hash);
    sha256_add(&hash, text, size);
    sha256_finish(&hash, found);
    *same = strcmp(found, expected) == 0;
    if (!*same && !json_digest_line_holds(text, size))
        pons_fail(err, PONS_DATA, "'%s' is not as the run wrote it: sha256 %.12s..., expected "
                  "%.12s...", path, found, expected);
    free(text);
    return err->status;
}
