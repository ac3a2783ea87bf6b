/*
 * idx_file.h - the files of MNIST: a stack of images, or the class of each image.
 *
 * A file is a magic number, the extents of its axes, each a big-endian int32, and unsigned bytes
 * (LeCun, "The MNIST database"). It may be compressed by gzip, whatever its name.
 */
#ifndef CORE_DATA_IDX_IDX_FILE_H
#define CORE_DATA_IDX_IDX_FILE_H

#include "base/arena.h"
#include "data/volume/volume.h"

/* A file of images (rank 3) or classes (rank 1); the bytes lie in the arena of the reader. */
typedef struct idx_file {
    const char *path;
    int rank;
    int64_t extent[3];           /* images, rows, columns; those beyond the rank are 1            */
    const unsigned char *bytes;  /* [images][rows][columns]                                       */
} idx_file;

/* Whether the name of a file is one that MNIST gives to files of this rank. */
bool idx_file_is(const char *path, int rank);
/*
 * Read a whole file of this rank. PONS_DATA: path, field, found, expected, for another magic
 * number, an extent that is 0 or absurd, and a length that is not the header's.
 */
pons_status idx_file_read(arena *memory, const char *path, int rank, idx_file *out,
                          pons_error *err);
/* The facts of every image of a stack: [1, rows, columns], one channel, 1 mm. */
void idx_file_facts(const idx_file *stack, volume_facts *out);
/* Image 'number' as F32. */
pons_status idx_file_volume(const idx_file *stack, int64_t number, volume *out, pons_error *err);

#endif
