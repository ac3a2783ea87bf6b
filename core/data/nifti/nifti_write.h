/*
 * nifti_write.h - write volumes to NIfTI files.
 */
#ifndef CORE_DATA_NIFTI_NIFTI_WRITE_H
#define CORE_DATA_NIFTI_NIFTI_WRITE_H

#include "data/volume/volume.h"

/*
 * Write .nii or .nii.gz, by the name; make missing folders. The file is complete or absent. The
 * caller sweeps temporary files (base/file/file.h), once for many files of a folder. Types:
 * F32 as float32, U8 as uint8, I32 as uint8 or (an id above 255) uint16. Several channels become
 * the fourth axis. 'grid' NULL: qform and sform from the volume's affine, code 1 (scanner),
 * millimetres.
 */
pons_status nifti_write(const char *path, const volume *v, const volume_grid *grid,
                        pons_error *err);
/* The values of a file: a voxel is 'slope' times the number that is stored. */
typedef struct nifti_values {
    int datatype;             /* NIfTI's: 2 uint8, 4 int16, 512 uint16, 16 float32                */
    double slope;             /* above 0                                                          */
} nifti_values;

/* The same, with these values. */
pons_status nifti_write_values(const char *path, const volume *v, const volume_grid *grid,
                               const nifti_values *values, pons_error *err);
/* The same with NIfTI type 'datatype', and slope 1. */
pons_status nifti_write_as(const char *path, const volume *v, const volume_grid *grid,
                           int datatype, pons_error *err);
/* The same on the volume's own grid. The caller syncs many of them at once (folder_sync_files). */
pons_status nifti_write_unsynced(const char *path, const volume *v, int datatype, pons_error *err);

#endif
