/*
 * sha256_file.c - the SHA-256 digest of a file.
 */
#include "base/hash/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/errno_status.h"
#include "base/file/file.h"

pons_status sha256_file(const char *path, char hex[65], pons_error *err)
{
    char block[65536];
    size_t size;
    sha256 h;
    bool broken;
    FILE *file = file_open_reader(path);

    if (file == NULL)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot open '%s': %s", path,
                         strerror(errno));
    sha256_init(&h);
    while ((size = fread(block, 1, sizeof block, file)) > 0)
        sha256_add(&h, block, size);
    broken = ferror(file) != 0;
    fclose(file);
    if (broken)
        return pons_fail(err, PONS_FAILURE, "cannot read '%s'", path);
    sha256_finish(&h, hex);
    return PONS_OK;
}
