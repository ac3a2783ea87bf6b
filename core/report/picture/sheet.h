/*
 * sheet.h - a picture of several volumes, each as slices through its largest labelled sections.
 */
#ifndef CORE_REPORT_PICTURE_SHEET_H
#define CORE_REPORT_PICTURE_SHEET_H

#include "data/volume/volume.h"

/*
 * One channel of an image (F32) and the label (U8 or I32, same extent; voxels NULL: none). Slices
 * across axes 0, 1, 2 stand side by side; a volume of one slice has that one alone. A slice is the
 * one with most labelled voxels, or the middle one.
 */
typedef struct sheet_item {
    const volume *image, *label;
    int channel;
} sheet_item;

/*
 * Write a PNG with 'per_row' items side by side, each slice with 'side' pixels along its longer
 * side, in the proportions of the volume's spacing. Classes, or regions, are outlined in the
 * colours of class_marks.h. PONS_CONFIG in a build without libpng.
 */
pons_status sheet_write(const char *path, const sheet_item *item, int count, int per_row, int side,
                        pons_error *err);

#endif
