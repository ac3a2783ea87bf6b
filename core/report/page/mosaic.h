/*
 * mosaic.h - a small picture of a validation case: three planes, each as image, label, prediction
 * and error.
 *
 * The slices are cut while the case is in memory, which is cheap; they are drawn and encoded later.
 */
#ifndef CORE_REPORT_PAGE_MOSAIC_H
#define CORE_REPORT_PAGE_MOSAIC_H

#include <stdio.h>

#include "data/volume/volume.h"

/*
 * The drawn parts of a case. 'image' is F32 and gives the spacing. A segmentation has 'label', U8
 * with class indices or a 0/1 channel for each region, and 'prediction' of the same shape. A
 * synthesis has 'truth' and 'made', a value from -1 to 1 per voxel. Others are NULL; the image then
 * stands alone.
 */
typedef struct mosaic_case {
    const volume *image;
    int channel;              /* of the image                                                     */
    const volume *label;
    const uint8_t *prediction;
    const float *truth, *made;
    bool steady;              /* slices that do not depend on what was predicted                  */
} mosaic_case;

/* A malloc'ed block of 'size' bytes without pointers, at most 500 kB, which may be copied. */
typedef struct mosaic_slices mosaic_slices;

/*
 * Cut the slices with most wrong voxels or the largest differences, else with most labelled voxels,
 * else the middle ones, across axes 0, 1 and 2; of a volume of one slice that one alone. Steady
 * ones are those of most labelled voxels or the middle. They have no more points than pixels.
 * PONS_DEVICE without memory.
 */
pons_status mosaic_cut(const mosaic_case *c, mosaic_slices **out, pons_error *err);
size_t mosaic_size(const mosaic_slices *s);

/* A drawn picture: indices of the palette, rows from the top; at most 114 kB. */
typedef struct mosaic_picture {
    int width, height;
    uint8_t *pixels;          /* malloc'ed                                                        */
} mosaic_picture;

/*
 * Draw slices in the proportions of the spacing. The columns of a segmentation are image, label,
 * prediction and error, those of a synthesis image, truth, made image and their difference. Classes
 * and errors have the colours of class_marks.h. PONS_DEVICE without memory.
 */
pons_status mosaic_draw(const mosaic_slices *s, mosaic_picture *out, pons_error *err);
/* Write a PNG. PONS_CONFIG in a build without libpng. */
pons_status mosaic_save(const mosaic_picture *picture, const char *path, pons_error *err);
/* Write the same file to a stream. False: the stream or libpng fails, or the build lacks it. */
bool mosaic_encode(const mosaic_picture *picture, FILE *to);

#endif
