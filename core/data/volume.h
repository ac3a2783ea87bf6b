/*
 * volume.h - read, write and compare volumes, and the way back of predictions.
 *
 * The convention of the whole program, decided here and nowhere else:
 *
 *   - A volume is [D, H, W, C], C innermost. D, H, W are the file's voxel axes i, j, k, in this
 *     order (x, y, z once oriented to RAS+), as in nibabel and MONAI: voxel (i, j, k) of channel c
 *     lies at ((i * H + j) * W + k) * C + c.
 *   - NIfTI stores i fastest. The reader transposes once, the writer transposes back; nothing else
 *     knows the file's order. The fourth axis of a file is C.
 *   - 'affine' takes (i, j, k, 1), the *centre* of a voxel, to millimetres in RAS+: x grows to the
 *     right, y to the front, z to the head. Spacing is the norm of the affine's columns.
 *   - Everything a user types (extents, spacings, axes 0 1 2) is in the order i, j, k.
 *
 * Types: F32 images, with the file's slope and intercept applied; I32 label ids as the file has
 * them; U8 labels once the INI's mapping has turned ids into class indices.
 */
#ifndef CORE_DATA_VOLUME_H
#define CORE_DATA_VOLUME_H

#include <pons/transform.h>

typedef pons_volume volume;

/* Where a file's voxels lie, as the file says it, so that another file can say the same. */
typedef struct volume_grid {
    int64_t extent[3];
    double affine[3][4];       /* the one in force: sform if its code is not 0, else qform        */
    double spacing[3];         /* norms of the affine's columns                                   */
    int qform_code, sform_code;
    double qform[3][4], sform[3][4]; /* zeros where the code is 0                                 */
    int units;                 /* NIfTI's xyzt_units                                              */
    int axes;                  /* of space that the file has: 2 is an image of one slice          */
} volume_grid;

/* What a header says beside the grid. */
typedef struct volume_facts {
    volume_grid grid;
    int channels;
    int datatype;              /* NIfTI's number                                                  */
    const char *type_name;     /* "int16"                                                         */
    double slope, intercept;   /* 1 and 0 where the file has none                                 */
    bool big_endian;
    int nifti;                 /* 1 or 2                                                          */
} volume_facts;

/* ---- files ----------------------------------------------------------------------------------- */

/*
 * Check header and length and read the facts, not the voxels (.nii.gz: only its first block is
 * inflated). Every refusal is PONS_DATA: path, field, found, expected.
 */
pons_status volume_read_facts(const char *path, volume_facts *facts, pons_error *err);
/* Read an image: F32, channels = the fourth axis. 'facts' may be NULL. */
pons_status volume_read_image(const char *path, volume *out, volume_facts *facts, pons_error *err);
/* Read a label: I32, one channel. Values that are not whole numbers are refused. */
pons_status volume_read_label(const char *path, volume *out, volume_facts *facts, pons_error *err);
/* The same as U8 where every id is one of 0 to 255, which takes a quarter of the memory. */
pons_status volume_read_ids(const char *path, volume *out, volume_facts *facts, pons_error *err);
/*
 * One image of several files with the same grid (a comma list, channels of one case); 'grid', which
 * may be NULL, is the first one's. A 4D file adds all its channels.
 */
pons_status volume_read_channels(int count, const char *const *path, volume *out,
                                 volume_grid *grid, pons_error *err);

/*
 * Write .nii or .nii.gz, by the name; creates folders; complete or absent. The type: F32 float32,
 * U8 uint8, I32 uint8 or (an id above 255) uint16. Several channels become the fourth axis. 'grid'
 * NULL: both forms from the volume's affine, code 1 (scanner), millimetres.
 */
pons_status volume_write(const char *path, const volume *v, const volume_grid *grid,
                         pons_error *err);
/* The same, F32 values as NIfTI type 'datatype' (2 uint8, 4 int16, 512 uint16, 16 float32). */
pons_status volume_write_as(const char *path, const volume *v, const volume_grid *grid,
                            int datatype, pons_error *err);

/* ---- geometry -------------------------------------------------------------------------------- */

/* The grid of a volume: both forms from its affine. */
void volume_grid_of(const volume *v, volume_grid *grid);
/*
 * Whether two grids are one: equal extents, and no corner voxel centre further apart than 1 % of
 * the smallest spacing. If not: PONS_DATA with what differs, found and expected. 'name' and 'other'
 * are file names for the message.
 */
pons_status volume_grid_compare(const volume_grid *a, const char *name, const volume_grid *b,
                                const char *other, pons_error *err);
/* "RAS", "LPS", ... */
void volume_codes(const double affine[3][4], char codes[4]);

/* ---- the way back of a prediction (R28) ------------------------------------------------------ */

/*
 * Values on the preprocessed grid (F32, any channels; affine and inside box of the preprocessed
 * image) to planes start .. start + count - 1 along i of the file's grid: linear between voxels,
 * exact where the grids differ by orientation, crop and padding. Further than half a voxel outside
 * the inside box every channel is fill[channel]. 'out' becomes [count, H, W, C] with the slab's
 * affine.
 */
pons_status volume_resample_back(const volume *v, const volume_grid *grid, int64_t start,
                                 int64_t count, const float *fill, volume *out, pons_error *err);
/*
 * All of it, slab by slab, and decided there: classes (regions false): U8 arg-max, first of equals,
 * class 0 outside; regions: U8 [D, H, W, R], 1 where the value is > 0.5.
 */
pons_status volume_decide_back(const volume *probabilities, const volume_grid *grid, bool regions,
                               volume *out, pons_error *err);

/* ---- small services -------------------------------------------------------------------------- */

pons_status volume_copy(const volume *v, volume *out, pons_error *err);
/* Copy the position (affine, inside box) of 'from' to a volume of the same extent. */
void volume_place(volume *v, const volume *from);

#endif
