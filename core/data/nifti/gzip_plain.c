/*
 * gzip_plain.c - gzip through zlib, for a build without libdeflate.
 */
#include "data/nifti/gzip.h"

pons_status gzip_inflate(const char *path, const unsigned char *in, size_t in_size,
                         unsigned char *out, size_t out_size, pons_error *err)
{
    return gzip_inflate_zlib(path, in, in_size, out, out_size, err);
}

pons_status gzip_deflate(const unsigned char *in, size_t in_size, unsigned char **out,
                         size_t *out_size, pons_error *err)
{
    return gzip_deflate_zlib(in, in_size, out, out_size, err);
}
