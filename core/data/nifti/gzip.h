/*
 * gzip.h - gzip in memory: inflate all or the first bytes of a file's content, and deflate.
 */
#ifndef CORE_DATA_NIFTI_GZIP_H
#define CORE_DATA_NIFTI_GZIP_H

#include <pons/plugin.h>

/* The largest ratio of lengths that deflate reaches: a bound of what a small file can hold. */
enum { DEFLATE_RATIO_MAX = 1032 };

/*
 * Inflate a gzip file of one or several members, whose content is exactly 'out_size' bytes.
 * Checksums and lengths are verified, and nothing may follow. gzip_inflate uses the fast library
 * of the build; errors are reported by zlib in any build.
 */
pons_status gzip_inflate(const char *path, const unsigned char *in, size_t in_size,
                         unsigned char *out, size_t out_size, pons_error *err);
pons_status gzip_inflate_zlib(const char *path, const unsigned char *in, size_t in_size,
                              unsigned char *out, size_t out_size, pons_error *err);
/*
 * Inflate the first *size bytes. *size receives their number, which is smaller if 'in' ends or is
 * damaged. The only error is a lack of memory.
 */
pons_status gzip_peek(const char *path, const unsigned char *in, size_t in_size, unsigned char *out,
                      size_t *size, pons_error *err);
/* Compress into one member without a time stamp; *out is malloc'ed. */
pons_status gzip_deflate(const unsigned char *in, size_t in_size, unsigned char **out,
                         size_t *out_size, pons_error *err);
pons_status gzip_deflate_zlib(const unsigned char *in, size_t in_size, unsigned char **out,
                              size_t *out_size, pons_error *err);

#endif
