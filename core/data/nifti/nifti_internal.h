/*
 * nifti_internal.h - what the files that read and write NIfTI share: checked header, types of
 * voxels, bytes.
 */
#ifndef CORE_DATA_NIFTI_NIFTI_INTERNAL_H
#define CORE_DATA_NIFTI_NIFTI_INTERNAL_H

#include "data/volume/volume.h"
#include <stdio.h>

enum {
    NIFTI_HEADER_SIZE = 348,  /* NIfTI-1 */
    NIFTI_2_HEADER_SIZE = 540,
    NIFTI_HEADER_LARGEST = 544, /* with the four bytes that announce extensions */
    NIFTI_KIND_UINT8 = 2       /* its code */
};

/* A type of voxel that is read; numbers pass as doubles, in this machine's byte order. */
typedef struct nifti_kind {
    int code;
    int size;                 /* bytes */
    const char *name;
    bool floating;
    void (*load)(const void *from, int64_t count, double *to);
    /* The floats that the doubles would be rounded to; NULL where it takes the doubles to know. */
    void (*load_float)(const void *from, int64_t count, float *to);
    void (*store)(const double *from, int64_t count, void *to); /* NULL: is not written */
} nifti_kind;

const nifti_kind *nifti_kind_find(int code);
/* "complex64", "RGB24", ... for messages; "unknown" else. */
const char *nifti_kind_name(int code);

typedef struct nifti_layout {
    volume_facts facts;
    const nifti_kind *kind;
    int64_t extent[4];        /* i, j, k, channels, as in the file */
    int64_t offset;           /* of the voxels, in the inflated file */
    int64_t data_size;
} nifti_layout;

/*
 * Check a header of which 'available' bytes were read (a whole file may be shorter than
 * NIFTI_HEADER_LARGEST) and fill *out. 'file_size' is the file's own; gzip: it is compressed.
 */
pons_status nifti_header_check(const char *path, const void *bytes, size_t available,
                               int64_t file_size, bool gzip, nifti_layout *out, pons_error *err);
/* The first four bytes are the size of either version's header, in either order of bytes. */
bool nifti_header_begins(const void *bytes, size_t available);
/* The header (and the four bytes after it) of a file with this grid; returns its size. */
size_t nifti_header_make(const volume_grid *grid, int channels, const nifti_kind *kind,
                         unsigned char out[NIFTI_HEADER_LARGEST]);

/*
 * Open a regular file and read its header; *data (malloc'ed) is the whole content, voxels at
 * layout->offset. NULL: the header alone.
 */
pons_status nifti_bytes_read(const char *path, nifti_layout *layout, void **data, pons_error *err);

typedef enum nifti_use {
    NIFTI_IMAGE = 0, /* F32                                                                       */
    NIFTI_LABEL,     /* I32                                                                       */
    NIFTI_IDS        /* U8, or I32 where an id is not of 0 to 255                                 */
} nifti_use;

/* The content of a file as a volume. What is no finite number, or no whole one in a label, is
 * PONS_DATA. */
pons_status nifti_convert(const char *path, const nifti_layout *layout, const void *data,
                          nifti_use use, volume *out, pons_error *err);

/*
 * Inflate a gzip file, one member or several, whose content is exactly 'out_size' bytes; checksums
 * and lengths are verified and nothing may follow. The build chooses who does it: the fast library
 * where there is one, and zlib, whose verdict counts.
 */
pons_status gzip_inflate(const char *path, const unsigned char *in, size_t in_size,
                         unsigned char *out, size_t out_size, pons_error *err);
pons_status gzip_inflate_zlib(const char *path, const unsigned char *in, size_t in_size,
                              unsigned char *out, size_t out_size, pons_error *err);
/*
 * The first bytes of the content, at most *size; becomes how many there are: fewer where 'in' ends
 * or is damaged. Fails only for want of memory.
 */
pons_status gzip_peek(const char *path, const unsigned char *in, size_t in_size, unsigned char *out,
                      size_t *size, pons_error *err);
/* Compress in one member without a time; *out is malloc'ed. */
pons_status gzip_deflate(const unsigned char *in, size_t in_size, unsigned char **out,
                         size_t *out_size, pons_error *err);
pons_status gzip_deflate_zlib(const unsigned char *in, size_t in_size, unsigned char **out,
                              size_t *out_size, pons_error *err);

#endif
