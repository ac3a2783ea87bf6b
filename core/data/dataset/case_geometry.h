/*
 * case_geometry.h - where images lie and what they hold, of one image or of many: orientations,
 * and the ranges of spacing, extent, field of view and values.
 *
 * Extents, spacings and fields of view are along the patient's axes, left to right, back to front,
 * feet to head: they do not depend on the order of the file's axes. The field of view is extent
 * times spacing, so resampling does not change it. Joining images in any order and any of them
 * several times gives the same bits.
 */
#ifndef CORE_DATA_DATASET_CASE_GEOMETRY_H
#define CORE_DATA_DATASET_CASE_GEOMETRY_H

#include "base/arena.h"
#include "base/file/json.h"
#include "data/packed/packed_case.h"
#include "data/volume/volume.h"

enum { GEOMETRY_CHANNELS_MAX = 64 }; /* of those beyond nothing is known                          */

typedef struct geometry_range {
    double low, high;         /* low > high: nothing was seen                                     */
} geometry_range;

typedef struct case_geometry {
    uint64_t orientations;    /* a bit for each that was seen                                     */
    geometry_range spacing[3], extent[3];           /* mm, voxels                                 */
    geometry_range field[3];                        /* of view, mm                                */
    int channels;             /* 0: no values were looked at                                      */
    geometry_range value[GEOMETRY_CHANNELS_MAX];    /* of all values                              */
    geometry_range span[GEOMETRY_CHANNELS_MAX];     /* of largest - smallest value of an image    */
} case_geometry;

/* No image. */
void case_geometry_init(case_geometry *g);
/* Orientation, spacing and extent of a volume, without its intensities. */
void case_geometry_place(const volume *v, case_geometry *out);
/* The geometry of one F32 image with its intensities, and that of a packed one. */
void case_geometry_of(const volume *image, case_geometry *out);
void case_geometry_of_packed(const packed_case *p, case_geometry *out);
void case_geometry_join(case_geometry *g, const case_geometry *other);

/* "RAS, LPS" */
const char *case_geometry_orientations(arena *memory, const case_geometry *g);
int case_geometry_orientation_count(const case_geometry *g);
/* Whether spacings along an axis differ by more than a factor of 1.25. */
bool case_geometry_spacing_varies(const case_geometry *g);
/* "1 x 1 x 3", or "1 x 1 x 1 to 1 x 1 x 3" */
const char *case_geometry_spacings(arena *memory, const case_geometry *g);
const char *case_geometry_fields(arena *memory, const case_geometry *g);

/* ---- as a checkpoint keeps it ---------------------------------------------------------------- */

/* A JSON object. */
const char *case_geometry_text(arena *memory, const case_geometry *g);
/*
 * false: 'object' is no such object. One without fields of view gets the widest that its extents
 * and spacings allow.
 */
bool case_geometry_read(const json_value *object, case_geometry *out);

/* ---- an image against those of a training ---------------------------------------------------- */

/* Its orientation is none of theirs. */
bool case_geometry_is_turned(const case_geometry *seen, const case_geometry *image);
/* Along some axis its spacing is outside of theirs by more than a factor of 1.25. */
bool case_geometry_is_scaled(const case_geometry *seen, const case_geometry *image);
/*
 * Its field of view against theirs: 1 along some axis it is more than twice the largest, -1 along
 * some axis less than half of the smallest, 0 neither. The first such axis counts. 'across': the
 * axis that slices of a 2D network are stacked along, which is not compared, or -1.
 */
int case_geometry_foreign_field(const case_geometry *seen, const case_geometry *image,
                                int across);
/*
 * The first channel whose values can hardly be in the unit of theirs, -1: none. They do not overlap
 * with theirs, or their span is less than a tenth of the smallest or more than ten times the
 * largest span of one of their images.
 */
int case_geometry_foreign_channel(const case_geometry *seen, const case_geometry *image);

#endif
