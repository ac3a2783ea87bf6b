/*
 * gzip_libdeflate - gzip by libdeflate, which takes whole buffers and half of zlib's time. It says
 * only that something is wrong; then zlib reads the file again and says what.
 */
#include <libdeflate.h>
#include <stdlib.h>

#include "data/nifti/nifti_internal.h"

/* Of 12: images are mostly noise, which no level shrinks. */
enum { LEVEL = 4 };

/* All members, exactly filling 'out'. */
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
