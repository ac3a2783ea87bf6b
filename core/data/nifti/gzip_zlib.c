/*
 * gzip_zlib.c - gzip in memory through zlib: inflate the first bytes or all, and deflate.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/nifti/gzip.h"

enum { GZIP_FORMAT = 15 + 16 };

static uInt zlib_size(size_t size)
{
    return size > UINT_MAX / 2 ? UINT_MAX / 2 : (uInt)size;
}

static pons_status refuse_memory(const char *path, pons_error *err)
{
    return pons_fail(err, PONS_DEVICE, "out of memory: zlib cannot read '%s'", path);
}

pons_status gzip_peek(const char *path, const unsigned char *in, size_t in_size, unsigned char *out,
                      size_t *size, pons_error *err)
{
    z_stream z;
    int result = Z_OK;

    memset(&z, 0, sizeof z);
    if (inflateInit2(&z, GZIP_FORMAT) != Z_OK)
        return refuse_memory(path, err);
    z.next_in = (unsigned char *)in;
    z.avail_in = zlib_size(in_size);
    z.next_out = out;
    z.avail_out = (uInt)*size;
    while (z.avail_out && z.avail_in && result == Z_OK) {
        result = inflate(&z, Z_NO_FLUSH);
        if (result == Z_STREAM_END && z.avail_in)
            /* the end of a member; the content continues in the next one */
            result = inflateReset(&z);
    }
    *size -= z.avail_out;
    inflateEnd(&z);
    return result == Z_MEM_ERROR ? refuse_memory(path, err) : PONS_OK;
}

static pons_status refuse_gzip(const char *path, const char *problem, const char *expected,
                               pons_error *err)
{
    return pons_fail(err, PONS_DATA, "cannot read '%s': gzip %s, expected %s", path, problem,
                     expected);
}

/* The destination of inflated bytes: 'out', then one byte that detects an excess. */
typedef struct inflate_target {
    unsigned char *out, excess;
    size_t left, out_size;
} inflate_target;

static void target_next(inflate_target *s, z_stream *z)
{
    if (s->left) {
        z->next_out = s->out;
        z->avail_out = zlib_size(s->left);
    } else {
        z->next_out = &s->excess;
        z->avail_out = 1;
    }
}

/* Add the bytes written by one call; false: more than the header declares. */
static bool target_advance(inflate_target *s, size_t written)
{
    if (!s->left)
        return written == 0;
    s->out += written;
    s->left -= written;
    return true;
}

/* Check that another member begins behind a member's end. */
static pons_status check_next_member(const char *path, const unsigned char *next, size_t left,
                                     pons_error *err)
{
    char text[64];

    if (*next == 0x1f)
        return PONS_OK;
    snprintf(text, sizeof text, "has %zu bytes behind its end", left);
    return refuse_gzip(path, text, "none", err);
}

static pons_status zlib_inflate_members(const char *path, z_stream *z, const unsigned char *in,
                                        size_t in_size, inflate_target *s, pons_error *err)
{
    size_t given = 0;
    char text[128];

    for (;;) {
        size_t before;
        int result;

        if (!z->avail_in && given < in_size) {
            z->next_in = (unsigned char *)in + given;
            z->avail_in = zlib_size(in_size - given);
            given += z->avail_in;
        }
        target_next(s, z);
        before = z->avail_out;
        result = inflate(z, Z_NO_FLUSH);
        if (!target_advance(s, before - z->avail_out)) {
            snprintf(text, sizeof text, "%zu bytes as the header declares", s->out_size);
            return refuse_gzip(path, "holds more than the volume", text, err);
        }
        if (result == Z_STREAM_END) {
            if (!z->avail_in && given == in_size)
                break;
            if (check_next_member(path, in + given - z->avail_in, in_size - given + z->avail_in,
                                  err)
                != PONS_OK)
                return err->status;
            if (inflateReset(z) != Z_OK)
                return refuse_gzip(path, "cannot be continued", "another member", err);
        } else if (result == Z_MEM_ERROR) {
            return refuse_memory(path, err);
        } else if (result == Z_DATA_ERROR) {
            return refuse_gzip(path, z->msg ? z->msg : "is damaged", "an intact stream", err);
        } else if (result == Z_BUF_ERROR || (result == Z_OK && !z->avail_in && given == in_size &&
                                             z->avail_out)) {
            return refuse_gzip(path, "ends too early", "the end of its stream and a checksum", err);
        } else if (result != Z_OK) {
            return refuse_gzip(path, z->msg ? z->msg : "is damaged", "an intact stream", err);
        }
    }
    if (s->left) {
        snprintf(text, sizeof text, "%zu bytes as the header declares", s->out_size);
        return refuse_gzip(path, "holds less than the volume", text, err);
    }
    return PONS_OK;
}

pons_status gzip_inflate_zlib(const char *path, const unsigned char *in, size_t in_size,
                              unsigned char *out, size_t out_size, pons_error *err)
{
    inflate_target s = { .out = out, .left = out_size, .out_size = out_size };
    z_stream z;
    pons_status status;

    memset(&z, 0, sizeof z);
    if (inflateInit2(&z, GZIP_FORMAT) != Z_OK)
        return refuse_memory(path, err);
    status = zlib_inflate_members(path, &z, in, in_size, &s, err);
    inflateEnd(&z);
    return status;
}

pons_status gzip_deflate_zlib(const unsigned char *in, size_t in_size, unsigned char **out,
                              size_t *out_size, pons_error *err)
{
    z_stream z;
    size_t limit, given = 0;
    int result = Z_OK;

    memset(&z, 0, sizeof z);
    if (deflateInit2(&z, 4, Z_DEFLATED, GZIP_FORMAT, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return pons_fail(err, PONS_DEVICE, "out of memory: zlib cannot start");
    limit = in_size + in_size / 1000 + 65536;
    *out = malloc(limit);
    if (!*out) {
        deflateEnd(&z);
        return pons_fail(err, PONS_DEVICE, "out of memory: compression needs %zu bytes", limit);
    }
    *out_size = 0;
    while (result != Z_STREAM_END) {
        uInt room = zlib_size(limit - *out_size);

        if (!z.avail_in && given < in_size) {
            z.next_in = (unsigned char *)in + given;
            z.avail_in = zlib_size(in_size - given);
            given += z.avail_in;
        }
        z.next_out = *out + *out_size;
        z.avail_out = room;
        result = deflate(&z, given == in_size ? Z_FINISH : Z_NO_FLUSH);
        *out_size += room - z.avail_out;
        if (result != Z_OK && result != Z_STREAM_END)
            break;
    }
    deflateEnd(&z);
    if (result == Z_STREAM_END)
        return PONS_OK;
    free(*out);
    *out = NULL;
    return pons_fail(err, PONS_FAILURE, "cannot compress %zu bytes: zlib returned %d", in_size,
                     result);
}
