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
 * From the preprocessed grid (extent, affine and inside box of the preprocessed image) to that of
 * the file: linear between voxels, exact where the grids differ by orientation, crop and padding.
 * Planes along i of the preprocessed grid come in their order and need not be there at the same
 * time; a voxel of the file is written when the last plane that it lies between has come, and
 * never again. So what comes in one piece and what comes plane by plane are the same bits.
 */
typedef struct volume_back volume_back;

typedef enum volume_back_kind {
    VOLUME_BACK_VALUES = 0,   /* F32 [D, H, W, C]                                                 */
    VOLUME_BACK_CLASSES,      /* U8 [D, H, W, 1]: arg-max of the channels, the first of equals    */
    VOLUME_BACK_REGIONS       /* U8 [D, H, W, C]: 1 where the value is > 0.5                      */
} volume_back_kind;

/* What is brought back has the channels of 'from', whose voxels are not looked at. */
pons_status volume_back_open(const volume *from, const volume_grid *grid, volume_back **out,
                             pons_error *err);
void volume_back_close(volume_back *b);
/*
 * A volume on the file's grid as it is further than half a voxel outside the inside box: 'first' in
 * channel 0 of VALUES, 0 in all others.
 */
pons_status volume_back_start(const volume_back *b, volume_back_kind kind, float first,
                              volume *out, pons_error *err);
/*
 * values: planes first .. end - 1, [end - first][H][W][C], before them the plane first - 1 unless
 * first is 0. Into 'out', which volume_back_start has made. Any kinds of one way back at the same
 * time.
 */
void volume_back_planes(const volume_back *b, volume_back_kind kind, const float *values,
                        int64_t first, int64_t end, volume *out);
/* All of it, where the whole volume is there (F32). */
pons_status volume_bring_back(const volume *v, const volume_grid *grid, volume_back_kind kind,
                              float first, volume *out, pons_error *err);

/* ---- small services -------------------------------------------------------------------------- */

pons_status volume_copy(const volume *v, volume *out, pons_error *err);
/* Copy the position (affine, inside box) of 'from' to a volume of the same extent. */
void volume_place(volume *v, const volume *from);

#endif
