/*
 * nifti_read.h - read volumes from NIfTI files.
 */
#ifndef CORE_DATA_NIFTI_NIFTI_READ_H
#define CORE_DATA_NIFTI_NIFTI_READ_H

#include "data/volume/volume.h"

/*
 * Check header and length and read the facts without the voxels; of .nii.gz only the first bytes
 * are inflated. Every error of a file is PONS_DATA: path, field, found, expected.
 */
pons_status nifti_read_facts(const char *path, volume_facts *facts, pons_error *err);
/* Read an image: F32, channels = the fourth axis. 'facts' may be NULL. */
pons_status nifti_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err);
/* Read a label as I32, one channel. A value that is not whole is PONS_DATA. */
pons_status nifti_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err);
/* Read a label as U8 if all ids are 0 to 255, which takes a quarter of the memory; else as I32. */
pons_status nifti_read_label_compact(const char *path, volume *out, volume_facts *facts,
                                     pons_error *err);

/*
 * The voxels of a file as it stores them, i fastest, for readers to which their order is the same:
 * one channel of whole numbers of 8 or 16 bits, in native byte order and without a scale.
 */
typedef struct nifti_stored {
    volume_facts facts;
    int64_t extent[3];         /* i, j, k                                                         */
    int size;                  /* bytes of a voxel                                                */
    const struct nifti_kind *kind;
    void *content;             /* malloc'ed; NULL: the file stores other voxels                   */
    const unsigned char *voxels; /* in 'content'                                                  */
} nifti_stored;

/* PONS_OK with a 'content' of NULL if the file stores other voxels. The caller clears *out. */
pons_status nifti_read_stored(const char *path, nifti_stored *out, pons_error *err);
void nifti_stored_clear(nifti_stored *s);
/* Write voxels 'first' and so on as floats, which are those of nifti_read_image. */
void nifti_stored_floats(const nifti_stored *s, int64_t first, int64_t count, float *to);

#endif
