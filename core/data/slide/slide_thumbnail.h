/*
 * slide_thumbnail.h - a slide at a small scale, and its tissue.
 */
#ifndef CORE_DATA_SLIDE_SLIDE_THUMBNAIL_H
#define CORE_DATA_SLIDE_SLIDE_THUMBNAIL_H

#include "data/slide/slide.h"

/* Pixels along the longer side of a thumbnail. */
enum { SLIDE_THUMBNAIL_SIDE = 2048 };

typedef struct slide_thumbnail {
    int64_t rows, columns;
    double step;                  /* pixels of level 0 per pixel                                  */
    uint8_t *rgb;                 /* [rows][columns][3]                                           */
    uint8_t *tissue;              /* [rows][columns], by tissue_mask.h                            */
} slide_thumbnail;

/*
 * Shrink the level of the smallest scale that is not below the thumbnail's: each pixel is the mean
 * of a square of it. A slide with one level is read wholly, a few megabytes at a time. The caller
 * clears *out, also after an error.
 */
pons_status slide_thumbnail_make(slide *s, slide_thumbnail *out, pons_error *err);
void slide_thumbnail_clear(slide_thumbnail *t);
/* Whether the pixels of level 0 from 'first' to before 'end' (rows, columns) have tissue. */
bool slide_thumbnail_has_tissue(const slide_thumbnail *t, const double first[2],
                                const double end[2]);

#endif
