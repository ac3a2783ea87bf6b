/*
 * mosaic.h - a small picture of a validation case: three planes, each as image, label, prediction
 * and error.
 */
#ifndef CORE_REPORT_PAGE_MOSAIC_H
#define CORE_REPORT_PAGE_MOSAIC_H

#include "data/volume/volume.h"

/* Colours of the error: a class that is missed, one that is not there, one for another. */
typedef enum mosaic_error {
    MOSAIC_MISSED = 1, MOSAIC_FALSE_ALARM, MOSAIC_OTHER_CLASS, MOSAIC_ERROR_COUNT
} mosaic_error;

/* Red, green and blue of an error's colour. */
const uint8_t *mosaic_error_color(mosaic_error error);

/* A drawn picture: indices of the palette, rows from the top; at most 114 kB. */
typedef struct mosaic_picture {
    int width, height;
    uint8_t *pixels;          /* malloc'ed                                                        */
} mosaic_picture;

/*
 * Draw a picture. The planes are the slices with most wrong voxels, else with most labelled ones,
 * across axes 0, 1 and 2, in the proportions of the spacing; a volume of one slice has that one
 * alone. 'image' is F32 and gives the spacing; its first channel is drawn. 'label' is U8 with class
 * indices, or a 0/1 channel for each region, and 'prediction' has its shape. Classes have the
 * colours of sheet.h. PONS_DEVICE without memory.
 */
pons_status mosaic_draw(const volume *image, const volume *label, const uint8_t *prediction,
                        mosaic_picture *out, pons_error *err);
/* Write a PNG. PONS_CONFIG in a build without libpng. */
pons_status mosaic_save(const mosaic_picture *picture, const char *path, pons_error *err);
#endif
