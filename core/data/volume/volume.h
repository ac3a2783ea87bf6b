/*
 * volume.h - volumes: voxels with a position in the scanner's space.
 *
 * The convention of the whole program is defined here:
 *
 *   - A volume is [D, H, W, C], C innermost. D, H, W are the file's voxel axes i, j, k, in this
 *     order (x, y, z once oriented to RAS+), as in nibabel and MONAI: voxel (i, j, k) of channel c
 *     lies at ((i * H + j) * W + k) * C + c.
 *   - NIfTI stores i fastest. The reader transposes once, the writer transposes back; all other
 *     code uses [D, H, W, C]. The fourth axis of a file is C.
 *   - 'affine' takes (i, j, k, 1), the *centre* of a voxel, to millimetres in RAS+: x grows to the
 *     right, y to the front, z to the head. Spacing is the norm of the affine's columns.
 *   - Everything a user types (extents, spacings, axes 0 1 2) is in the order i, j, k.
 *
 * Types: F32 images, with the file's slope and intercept applied; U8 or I32 label ids as in the
 * file; U8 targets (data/dataset/label_map.h).
 */
#ifndef CORE_DATA_VOLUME_VOLUME_H
#define CORE_DATA_VOLUME_VOLUME_H

#include <pons/transform.h>

typedef pons_volume volume;

#define LABEL_ID_MAX 65535 /* largest id in a label file */

/* The grid of a file as its header states it, so that another file can be written with the same. */
typedef struct volume_grid {
    int64_t extent[3];
    double affine[3][4];       /* sform if its code is not 0, else qform                          */
    double spacing[3];         /* norms of the affine's columns                                   */
    int qform_code, sform_code;
    double qform[3][4], sform[3][4]; /* zeros where the code is 0                                 */
    int units;                 /* NIfTI's xyzt_units                                              */
    int intent;                /* NIfTI's intent_code                                             */
    int axes;                  /* spatial axes of the file; 2: an image of one slice              */
} volume_grid;

/* The facts of a NIfTI header. */
typedef struct volume_facts {
    volume_grid grid;
    int channels;
    int datatype;              /* NIfTI's datatype code                                           */
    const char *type_name;     /* such as "int16"                                                 */
    double slope, intercept;   /* 1 and 0 where the file has none                                 */
    bool big_endian;
    int nifti;                 /* 1 or 2                                                          */
} volume_facts;

pons_status volume_copy(const volume *v, volume *out, pons_error *err);
/* Copy the position (affine, inside box) of 'from' to a volume of the same extent. */
void volume_copy_position(volume *v, const volume *from);
/* Copy a channel of an F32 volume to out [voxels]. */
void volume_copy_channel(const volume *v, int channel, float *out);

#endif
