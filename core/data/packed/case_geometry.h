/*
 * case_geometry.h - orientation, spacing, extent, field of view and intensities of one or many
 * images.
 *
 * A training stores the geometry of its images in the checkpoint; each predicted image is compared
 * with it. Extents, spacings and fields of view are along the patient's axes (left to right, back
 * to front, feet to head), so they do not depend on the order of the file's axes. The field of
 * view is extent times spacing; resampling keeps it. case_geometry_join gives the same bits in any
 * order of images, and joining an image twice changes nothing.
 */
#ifndef CORE_DATA_DATASET_CASE_GEOMETRY_H
#define CORE_DATA_DATASET_CASE_GEOMETRY_H

#include "base/arena.h"
#include "base/file/json.h"
#include "data/packed/packed_case.h"
#include "data/volume/volume.h"

enum { GEOMETRY_CHANNELS_MAX = 64 }; /* values of later channels are not recorded                 */

typedef struct geometry_range {
    double low, high;         /* low > high: empty                                                */
} geometry_range;

typedef struct case_geometry {
    uint64_t orientations;    /* bit n: orientation n occurs                                      */
    geometry_range spacing[3], extent[3];           /* mm; voxels                                 */
    geometry_range field[3];                        /* field of view, mm                          */
    int64_t largest[3];       /* voxels along the axes of files; not part of a checkpoint         */
    int channels;             /* channels with values; 0: values unknown                          */
    geometry_range value[GEOMETRY_CHANNELS_MAX];    /* all values of a channel                    */
    geometry_range span[GEOMETRY_CHANNELS_MAX];     /* largest - smallest value of one image      */
} case_geometry;

/* The empty set of images. */
void case_geometry_init(case_geometry *g);
/* The geometry of one volume without its intensities. */
void case_geometry_of_position(const volume *v, case_geometry *out);
/* The geometry of one F32 image with its intensities, and the same of a packed image. */
void case_geometry_of(const volume *image, case_geometry *out);
void case_geometry_of_packed(const packed_case *p, case_geometry *out);
void case_geometry_join(case_geometry *g, const case_geometry *other);

/* Codes of all orientations, such as "RAS, LPS". */
const char *case_geometry_orientations(arena *memory, const case_geometry *g);
int case_geometry_orientation_count(const case_geometry *g);
/* True if spacings along an axis differ by more than a factor of 1.25. */
bool case_geometry_spacing_varies(const case_geometry *g);
/* Text such as "1 x 1 x 3" or "1 x 1 x 1 to 1 x 1 x 3". */
const char *case_geometry_spacings(arena *memory, const case_geometry *g);
const char *case_geometry_fields(arena *memory, const case_geometry *g);

/* ---- form in a checkpoint -------------------------------------------------------------------- */

/* The geometry as a JSON object; NULL without memory. */
const char *case_geometry_text(arena *memory, const case_geometry *g);
/*
 * Read such an object; false if it is malformed. Where fields of view are absent they are set to
 * the widest that extents and spacings allow.
 */
bool case_geometry_read(const json_t *object, case_geometry *out);

/* ---- comparison of an image with a training -------------------------------------------------- */

/* True if no training image has the image's orientation. */
bool case_geometry_is_turned(const case_geometry *seen, const case_geometry *image);
/*
 * True if a spacing differs from all training spacings of its axis by more than a factor of 1.25.
 */
bool case_geometry_is_scaled(const case_geometry *seen, const case_geometry *image);
/*
 * Compare fields of view along each axis. 1: more than twice the largest of training; -1: less
 * than half of the smallest; 0: neither. The first such axis decides. 'across' is the slice axis
 * of a 2D network, which is not compared; -1 compares all axes.
 */
int case_geometry_foreign_field(const case_geometry *seen, const case_geometry *image,
                                int across);
/*
 * The first channel whose values probably have another unit than in training; -1: none. Its values
 * do not overlap with those of training, or its span differs from all training spans by more than
 * a factor of 10.
 */
int case_geometry_foreign_channel(const case_geometry *seen, const case_geometry *image);

#endif
