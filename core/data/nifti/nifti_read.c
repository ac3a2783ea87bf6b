/*
 * nifti_read.c - read the bytes of a file and make volumes of them; nifti_convert.c converts
 * voxels.
 */
#include "data/nifti/nifti_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/file/file_kind.h"
#include "base/system/huge_pages.h"
#include "base/text/text.h"
#include "data/nifti/gzip.h"
#include "data/nifti/nifti_internal.h"

/* ---- bytes ----------------------------------------------------------------------------------- */

typedef struct file_bytes {
    const char *path;
    int fd;
    int64_t size;
    bool gzip;
} file_bytes;

/* O_NONBLOCK: a FIFO is refused instead of waiting for its writer. */
static pons_status bytes_open(file_bytes *f, const char *path, pons_error *err)
{
    struct stat s;

    f->path = path;
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->fd < 0)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read '%s': %s", path,
                         strerror(errno));
    if (fstat(f->fd, &s) || !S_ISREG(s.st_mode)) {
        close(f->fd);
        if (file_kind_refuse_folder(path, FILE_VOLUME, err) != PONS_OK)
            return err->status;
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is %s, expected a regular file",
                         path, S_ISDIR(s.st_mode) ? "a folder" : "no file with an end");
    }
    f->size = s.st_size;
    return PONS_OK;
}

static pons_status bytes_read(const file_bytes *f, int64_t offset, void *out, size_t size,
                              pons_error *err)
{
    char *to = out;

    while (size) {
        ssize_t got = pread(f->fd, to, size < (1u << 30) ? size : (1u << 30), offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return pons_fail(err, PONS_DATA, "cannot read '%s': %s at byte %lld", f->path,
                             got ? strerror(errno) : "it ended", (long long)offset);
        to += got;
        offset += got;
        size -= (size_t)got;
    }
    return PONS_OK;
}

/* The beginning of a file, and of its inflated content if it is compressed. */
typedef struct file_head {
    unsigned char bytes[16384], plain[NIFTI_HEADER_LARGEST];
    const unsigned char *content;   /* 'bytes' or 'plain'                                         */
    size_t available, size;         /* bytes in 'bytes'; bytes in 'content'                       */
    bool compressed;
} file_head;

static pons_status head_read(const file_bytes *f, file_head *h, pons_error *err)
{
    h->available = f->size < (int64_t)sizeof h->bytes ? (size_t)f->size : sizeof h->bytes;
    if (bytes_read(f, 0, h->bytes, h->available, err) != PONS_OK)
        return err->status;
    h->content = h->bytes;
    h->size = h->available;
    h->compressed = h->available >= 2 && h->bytes[0] == 0x1f && h->bytes[1] == 0x8b;
    if (!h->compressed)
        return PONS_OK;
    h->content = h->plain;
    h->size = sizeof h->plain;
    return gzip_peek(f->path, h->bytes, h->available, h->plain, &h->size, err);
}

/* Refuse a file of another format and name that format, whatever the file's name. */
static pons_status check_file_kind(const file_bytes *f, const file_head *h, pons_error *err)
{
    const file_kind *kind;

    if (!h->available)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is empty, expected a NIfTI file",
                         f->path);
    if (nifti_header_begins(h->content, h->size))
        return PONS_OK;
    kind = file_kind_find(h->content, h->size);
    return kind == NULL ? PONS_OK
         : file_kind_refuse(kind, f->path, h->compressed ? "gzip of " : "", FILE_VOLUME, err);
}

/* Check that name and content agree on compression. */
static pons_status check_file_name(const file_bytes *f, const file_head *h, pons_error *err)
{
    if (f->gzip && !h->compressed)
        return pons_fail(err, PONS_DATA, "cannot read '%s': gzip begins with %02x %02x, expected "
                         "1f 8b", f->path, h->bytes[0], h->available > 1 ? h->bytes[1] : 0);
    if (!f->gzip && h->compressed)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it is compressed, expected the name "
                         "to end in '.gz'", f->path);
    return PONS_OK;
}

static pons_status header_read(file_bytes *f, nifti_layout *layout, pons_error *err)
{
    file_head head;

    f->gzip = text_ends_with(f->path, ".gz");
    if (head_read(f, &head, err) != PONS_OK || check_file_kind(f, &head, err) != PONS_OK
        || check_file_name(f, &head, err) != PONS_OK)
        return err->status;
    return nifti_header_check(f->path, head.content, head.size, f->size, f->gzip, layout, err);
}

static pons_status voxels_inflate(const file_bytes *f, const nifti_layout *layout,
                                  unsigned char *data, pons_error *err)
{
    unsigned char *packed = huge_pages_alloc((size_t)f->size);
    pons_status status;

    if (!packed)
        return pons_fail(err, PONS_DEVICE, "out of memory: '%s' needs %lld bytes", f->path,
                         (long long)f->size);
    status = bytes_read(f, 0, packed, (size_t)f->size, err);
    if (!status)
        status = gzip_inflate(f->path, packed, (size_t)f->size, data,
                              (size_t)(layout->offset + layout->data_size), err);
    free(packed);
    return status;
}

/*
 * Open a regular file and check its header. *data (malloc'ed) receives the whole content, with
 * voxels at layout->offset; 'data' NULL: read the header alone.
 */
static pons_status nifti_read_bytes(const char *path, nifti_layout *layout, void **data,
                                    pons_error *err)
{
    file_bytes f;
    void *fresh = NULL;
    pons_status status = bytes_open(&f, path, err);

    if (status)
        return status;
    status = header_read(&f, layout, err);
    if (!status && data) {
        fresh = huge_pages_alloc((size_t)(layout->offset + layout->data_size));
        if (!fresh)
            status = pons_fail(err, PONS_DEVICE, "out of memory: the voxels of '%s' need %lld "
                               "bytes", path, (long long)(layout->offset + layout->data_size));
        else if (f.gzip)
            status = voxels_inflate(&f, layout, fresh, err);
        else
            status = bytes_read(&f, 0, fresh, (size_t)f.size, err);
    }
    close(f.fd);
    if (status)
        free(fresh);
    else if (data)
        *data = fresh;
    return status;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static pons_status check_label_header(const char *path, const nifti_layout *layout, pons_error *err)
{
    const volume_facts *facts = &layout->facts;

    if (facts->slope != 1 || facts->intercept != 0)
        return pons_fail(err, PONS_DATA, "cannot read label '%s': 'scl_slope' is %g and "
                         "'scl_inter' %g, expected 1 and 0", path, facts->slope,
                         facts->intercept);
    if (facts->channels != 1)
        return pons_fail(err, PONS_DATA, "cannot read label '%s': 'dim[4]' is %d, expected 1",
                         path, facts->channels);
    return PONS_OK;
}

static pons_status read_volume(const char *path, nifti_use use, volume *out, volume_facts *facts,
                               pons_error *err)
{
    nifti_layout layout;
    void *data;
    pons_status status = nifti_read_bytes(path, &layout, &data, err);

    if (status)
        return status;
    if (use != NIFTI_IMAGE)
        status = check_label_header(path, &layout, err);
    if (!status)
        status = nifti_convert(path, &layout, data, use, out, err);
    free(data);
    if (!status && facts)
        *facts = layout.facts;
    return status;
}

pons_status nifti_read_facts(const char *path, volume_facts *facts, pons_error *err)
{
    nifti_layout layout;
    pons_status status = nifti_read_bytes(path, &layout, NULL, err);

    if (!status)
        *facts = layout.facts;
    return status;
}

pons_status nifti_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    return read_volume(path, NIFTI_IMAGE, out, facts, err);
}

pons_status nifti_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    return read_volume(path, NIFTI_LABEL, out, facts, err);
}

pons_status nifti_read_label_compact(const char *path, volume *out, volume_facts *facts,
                                     pons_error *err)
{
    return read_volume(path, NIFTI_LABEL_COMPACT, out, facts, err);
}

/* ---- voxels as stored ------------------------------------------------------------------------ */

static bool is_plain(const nifti_layout *layout)
{
    const volume_facts *facts = &layout->facts;

    return layout->extent[3] == 1 && layout->kind->load_float != NULL && !layout->kind->floating
        && layout->kind->size <= 2 && (layout->kind->size == 1 || !facts->big_endian)
        && facts->slope == 1 && facts->intercept == 0;
}

pons_status nifti_read_stored(const char *path, nifti_stored *out, pons_error *err)
{
    nifti_layout layout;

    *out = (nifti_stored){ .content = NULL };
    if (nifti_read_bytes(path, &layout, NULL, err) != PONS_OK || !is_plain(&layout)
        || nifti_read_bytes(path, &layout, &out->content, err) != PONS_OK)
        return err->status;
    if (!is_plain(&layout)) { /* the file has changed */
        nifti_stored_clear(out);
        return PONS_OK;
    }
    out->facts = layout.facts;
    memcpy(out->extent, layout.extent, sizeof out->extent);
    out->size = layout.kind->size;
    out->kind = layout.kind;
    out->voxels = (const unsigned char *)out->content + layout.offset;
    return PONS_OK;
}

void nifti_stored_clear(nifti_stored *s)
{
    free(s->content);
    s->content = NULL;
}

void nifti_stored_floats(const nifti_stored *s, int64_t first, int64_t count, float *to)
{
    s->kind->load_float(s->voxels + first * s->size, count, to);
}
