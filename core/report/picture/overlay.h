/*
 * overlay.h - a picture of a label and a prediction in the colours of their classes.
 */
#ifndef CORE_REPORT_PICTURE_OVERLAY_H
#define CORE_REPORT_PICTURE_OVERLAY_H

#include "data/dataset/dataset.h"
#include "data/volume/volume.h"
#include "report/picture/picture.h"

/*
 * 'label' and 'prediction' are U8 or I32 with equal extents and channels: one channel with the
 * number of a class, 0 without one, or a 0/1 channel for each class, of which a later one covers
 * earlier ones. 'classes' are those from number 1 on. 'image' (F32, same extent, first channel) may
 * be NULL.
 */
typedef struct overlay_case {
    const volume *label, *prediction, *image;
    int class_count;
    const data_class *classes;
} overlay_case;

/*
 * Draw slices across i, j and k in true proportions; a volume of one slice has that one alone. They
 * are the largest labelled sections, else those of the prediction, else the middle ones. The first
 * row has the outlines of the label, and the areas of the prediction; the second has the errors.
 * Below each is a legend, which names the classes of these slices. PONS_DATA if extents differ. The
 * caller clears the picture.
 */
pons_status overlay_draw(const overlay_case *c, picture *out, pons_error *err);
/* Write the picture as a PNG. PONS_CONFIG in a build without libpng. */
pons_status overlay_write(const char *path, const overlay_case *c, pons_error *err);

#endif
