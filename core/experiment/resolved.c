/*
 * resolved.c - the hash in the manifest, then the seal.
 */
#include "experiment/resolved.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/hash/json_digest.h"
#include "checkpoint/checkpoint.h"

enum { FILE_LIMIT = 16 << 20 };

/* "" where the manifest has none. */
static pons_status read_expected(const char *checkpoint, char hex[65], pons_error *err)
{
    json_document manifest;
    const json_value *hash;

    if (checkpoint_manifest(checkpoint, &manifest, err) != PONS_OK)
        return err->status;
    hash = json_member(manifest.root, CHECKPOINT_RESOLVED);
    hex[0] = '\0';
    if (hash != NULL && (hash->type != JSON_TEXT || strlen(hash->text) != 64))
        pons_fail(err, PONS_DATA, "'%s/manifest.json': '" CHECKPOINT_RESOLVED "' is no sha256",
                  checkpoint);
    else if (hash != NULL)
        strcpy(hex, hash->text);
    json_free(&manifest);
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
    if (!*same && !seal_line_holds(text, size))
        pons_fail(err, PONS_DATA, "'%s' is not as the run wrote it: sha256 %.12s..., expected "
                  "%.12s...", path, found, expected);
    free(text);
    return err->status;
}
