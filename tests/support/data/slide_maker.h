/*
 * slide_maker.h - whole-slide images for tests: tiled pyramidal TIFF files without compression,
 * assembled byte by byte. Tiles of background share one block of the file, so that a slide of
 * 100,000 x 100,000 pixels needs little of the disk.
 */
#ifndef TESTS_SLIDE_MAKER_H
#define TESTS_SLIDE_MAKER_H

#include <stdint.h>

/* A rectangle of level 0 with its colour, to whose values noise of -15 to 16 is added. */
typedef struct slide_box {
    int64_t row, column, rows, columns;
    uint8_t rgb[3];
} slide_box;

typedef struct slide_plan {
    int64_t rows, columns;
    int tile;                  /* pixels along a side of a tile, a multiple of 16                 */
    int levels;                /* each has half the rows and columns of the one before            */
    const slide_box *box;      /* where they overlap, the last one is seen; elsewhere it is white */
    int box_count;
} slide_plan;

/* The pixel of a level; its value is that of the pixel of level 0 at (row, column) x 2^level. */
void slide_plan_pixel(const slide_plan *p, int level, int64_t row, int64_t column, uint8_t rgb[3]);
/* Write the slide. A failure ends the program. */
void slide_make(const char *path, const slide_plan *p);

#endif
