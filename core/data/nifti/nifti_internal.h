/*
 * nifti_internal.h - shared by the NIfTI files: the checked header, voxel types, file content.
 */
#ifndef CORE_DATA_NIFTI_NIFTI_INTERNAL_H
#define CORE_DATA_NIFTI_NIFTI_INTERNAL_H

#include "data/nifti/nifti_write.h"
#include "data/volume/volume.h"
#include <stdio.h>

enum {
    NIFTI_HEADER_SIZE = 348,  /* NIfTI-1 */
    NIFTI_2_HEADER_SIZE = 540,
    NIFTI_HEADER_LARGEST = 544, /* with the 4 bytes that announce extensions */
    NIFTI_KIND_UINT8 = 2       /* NIfTI's code */
};

/* A voxel type. Values are converted through double, in native byte order. */
typedef struct nifti_kind {
    int code;
    int size;                 /* bytes */
    const char *name;
    bool floating;
    void (*load)(const void *from, int64_t count, double *to);
    /* Load floats equal to the rounded doubles; NULL: load and round doubles. */
    void (*load_float)(const void *from, int64_t count, float *to);
    /* Load whole numbers that I32 always holds; NULL: load doubles, and check them. */
    void (*load_id)(const void *from, int64_t count, int32_t *to);
    void (*store)(const double *from, int64_t count, void *to); /* NULL: not written */
} nifti_kind;

const nifti_kind *nifti_kind_find(int code);
/* The name of any code, such as "complex64" or "RGB24", for messages; else "unknown". */
const char *nifti_kind_name(int code);

typedef struct nifti_layout {
    volume_facts facts;
    const nifti_kind *kind;
    int64_t extent[4];        /* i, j, k, channels, as in the file */
    int64_t offset;           /* byte of the first voxel in the inflated file */
    int64_t data_size;
} nifti_layout;

/*
 * Check a header and fill *out. 'available' bytes were read; a whole file may be shorter than
 * NIFTI_HEADER_LARGEST. 'file_size' is the size on disk; 'gzip': the file is compressed.
 */
pons_status nifti_header_check(const char *path, const void *bytes, size_t available,
                               int64_t file_size, bool gzip, nifti_layout *out, pons_error *err);
/* True if the first four bytes are the header size of either version in either byte order. */
bool nifti_header_begins(const void *bytes, size_t available);
/* Make the header of a file with this grid, and the 4 bytes after it; returns their size. */
size_t nifti_header_make(const volume_grid *grid, int channels, const nifti_values *values,
                         unsigned char out[NIFTI_HEADER_LARGEST]);

typedef enum nifti_use {
    NIFTI_IMAGE = 0, /* F32                                                                       */
    NIFTI_LABEL,     /* I32                                                                       */
    NIFTI_LABEL_COMPACT        /* U8, or I32 if an id is above 255 or negative                    */
} nifti_use;

/*
 * Convert the content of a file to a volume. PONS_DATA: a value of an image is not finite, or a
 * value of a label is not whole.
 */
pons_status nifti_convert(const char *path, const nifti_layout *layout, const void *data,
                          nifti_use use, volume *out, pons_error *err);

#endif
