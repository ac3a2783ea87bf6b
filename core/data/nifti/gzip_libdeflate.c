/*
 * gzip_libdeflate.c - gzip through libdeflate, which is faster than zlib and works on whole
 * buffers.
 *
 * libdeflate reports no cause of an error, so zlib reads a damaged file again for the message.
 */
#include <libdeflate.h>
#include <stdlib.h>

#include "data/nifti/gzip.h"

/* of 12; images contain noise, which higher levels do not compress further */
enum { LEVEL = 4 };

/* Inflate all members; true if they fill 'out' exactly. */
static bool inflate_members(struct libdeflate_decompressor *d, const unsigned char *in,
                            size_t in_size, unsigned char *out, size_t out_size)
{
    while (in_size) {
        size_t used, written;

        if (libdeflate_gzip_decompress_ex(d, in, in_size, out, out_size, &used, &written) !=
            LIBDEFLATE_SUCCESS)
            return false;
        in += used;
        in_size -= used;
        out += written;
        out_size -= written;
    }
    return out_size == 0;
}

pons_status gzip_inflate(const char *path, const unsigned char *in, size_t in_size,
                         unsigned char *out, size_t out_size, pons_error *err)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    bool done = d && inflate_members(d, in, in_size, out, out_size);

    libdeflate_free_decompressor(d);
    return done ? PONS_OK : gzip_inflate_zlib(path, in, in_size, out, out_size, err);
}

pons_status gzip_deflate(const unsigned char *in, size_t in_size, unsigned char **out,
                         size_t *out_size, pons_error *err)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
    size_t bound = c ? libdeflate_gzip_compress_bound(c, in_size) : 0;
    unsigned char *fresh = c ? malloc(bound) : NULL;
    size_t size = fresh ? libdeflate_gzip_compress(c, in, in_size, fresh, bound) : 0;

    libdeflate_free_compressor(c);
    if (!size) {
        free(fresh);
        return gzip_deflate_zlib(in, in_size, out, out_size, err);
    }
    *out = fresh;
    *out_size = size;
    return PONS_OK;
}
