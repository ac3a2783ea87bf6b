/*
 * case_hash.c - read the files of a case and hash their bytes.
 *
 * Names and times of files are not hashed: a copied dataset has equal hashes, and a changed file
 * with an old time has another one.
 */
#include "data/cache/case_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/system/huge_pages.h"

static pons_status read_file_bytes(int fd, const char *path, char *to, size_t size, pons_error *err)
{
    size_t done = 0;

    while (done < size) {
        ssize_t part = read(fd, to + done, size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return pons_fail(err, PONS_DATA, "cannot read '%s': %s", path,
                             part < 0 ? strerror(errno) : "it ended");
        done += (size_t)part;
    }
    return PONS_OK;
}

static pons_status hash_open_file(hash128 *total, int fd, const char *path, pons_error *err)
{
    struct stat s;
    char *bytes;

    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is no regular file", path);
    bytes = huge_pages_alloc((size_t)s.st_size + 1);
    if (bytes == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory: '%s' needs %lld bytes", path,
                         (long long)s.st_size);
    if (read_file_bytes(fd, path, bytes, (size_t)s.st_size, err) == PONS_OK)
        hash128_add(total, bytes, (size_t)s.st_size);
    free(bytes);
    return err->status;
}

static pons_status hash_file(hash128 *total, const char *path, pons_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read '%s': %s", path,
                         strerror(errno));
    hash_open_file(total, fd, path, err);
    close(fd);
    return err->status;
}

/* Hash the bytes of an image and its extents, which do not follow from the bytes. */
static pons_status hash_slice(const data_case *c, hash128 *out)
{
    const idx_file *stack = c->stack;
    int64_t count = stack->extent[1] * stack->extent[2];
    hash128 total = { 0 };

    hash128_add(&total, stack->extent, sizeof stack->extent);
    hash128_add(&total, stack->bytes + c->slice * count, (size_t)count);
    *out = total;
    return PONS_OK;
}

pons_status case_hash(const data_case *c, hash128 *out, pons_error *err)
{
    hash128 total = { 0 };

    if (c->stack != NULL)
        return hash_slice(c, out);
    if (c->patch != NULL)
        return slide_patch_hash(c->patch, out, err);
    for (int n = 0; n < c->image_count; n++)
        if (hash_file(&total, c->image[n], err) != PONS_OK)
            return err->status;
    if (c->label != NULL && hash_file(&total, c->label, err) != PONS_OK)
        return err->status;
    *out = total;
    return PONS_OK;
}
