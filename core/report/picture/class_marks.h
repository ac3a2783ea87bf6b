/*
 * class_marks.h - the classes and errors of voxels in pictures, and their colours.
 */
#ifndef CORE_REPORT_PICTURE_CLASS_MARKS_H
#define CORE_REPORT_PICTURE_CLASS_MARKS_H

#include "data/volume/volume.h"

/* An error of a voxel: a class that is missed, one that is not there, one for another. */
typedef enum mark_error {
    MARK_MISSED = 1, MARK_FALSE_ALARM, MARK_OTHER_CLASS, MARK_ERROR_COUNT
} mark_error;

enum { MARK_COLORS = 10 };   /* of classes; they repeat                                           */

/* Red, green and blue of a class, counted from 0 without the background. */
const uint8_t *mark_class_color(int index);
/* The name of that colour, such as "green". */
const char *mark_class_color_name(int index);
/* Red, green and blue of an error, none of which is taken for a class. */
const uint8_t *mark_error_color(mark_error error);
/* "missed", "false alarm", "another class". */
const char *mark_error_name(mark_error error);

/* The value of a channel of a voxel in a volume, U8 or I32. */
int mark_value(const volume *v, int64_t voxel, int channel);
/*
 * The class of a voxel in such a volume: of one channel its value, of a 0/1 channel for each region
 * the last region of the voxel, counted from 1. 0: none.
 */
int mark_class_of(const volume *v, int64_t voxel);
/* The error of a voxel; 0: label and prediction are equal. Both have the same shape. */
int mark_error_of(const volume *label, const volume *prediction, int64_t voxel);

#endif
