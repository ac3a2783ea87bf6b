/*
 * slide.h - whole-slide images, which OpenSlide reads (openslide.org): tiled pyramidal TIFF,
 * Aperio, Hamamatsu, Leica, MIRAX, Philips, Trestle, Ventana and others.
 *
 * A slide is a pyramid of levels. Level 0 is the slide as scanned; each following level shows all
 * of it at a smaller scale. Positions are rows (from the top) and columns (from the left) of level
 * 0, at every level.
 *
 * Threads may read one open slide at the same time.
 */
#ifndef CORE_DATA_SLIDE_SLIDE_H
#define CORE_DATA_SLIDE_SLIDE_H

#include <pons/plugin.h>
#include <stdint.h>

enum { SLIDE_LEVELS_MAX = 64 };
/* Pixels along one side of a slide, and of one tile of it. A larger slide is refused as a bomb. */
enum { SLIDE_SIDE_MAX = 1 << 24, SLIDE_TILE_PIXELS_MAX = 1 << 26 };

/* Bytes of decoded tiles that OpenSlide keeps of an open slide. */
enum { SLIDE_CACHE_SIZE = 32 << 20 };

typedef struct slide slide;

typedef struct slide_level {
    int64_t rows, columns;
    double downsample;         /* pixels of level 0 per pixel of this level, 1 at level 0         */
    int64_t tile[2];           /* rows and columns of a tile; 0: unknown                          */
} slide_level;

typedef struct slide_region {
    int level;
    int64_t row, column;       /* the first pixel, in pixels of level 0; may lie outside          */
    int64_t rows, columns;     /* in pixels of 'level'                                            */
} slide_region;

/*
 * PONS_DATA: the file is missing, of no known format, cut off or a bomb. PONS_CONFIG: the build
 * lacks OpenSlide. The caller closes *out.
 */
pons_status slide_open(const char *path, slide **out, pons_error *err);
/* Close a slide that no thread reads; NULL is allowed. */
void slide_close(slide *s);

const char *slide_path(const slide *s);
int slide_level_count(const slide *s);
/* Level 0 <= level < slide_level_count, in the order of their scale. */
const slide_level *slide_level_at(const slide *s, int level);
/*
 * PONS_DATA: the level has fewer rows or columns than one of its tiles. OpenSlide 3.4.1 with
 * libtiff 4.5 misplaces the pixels of such a tile, and leaves others as they were in memory.
 */
pons_status slide_check_level(const slide *s, int level, pons_error *err);
/*
 * The level of the largest downsample that is at most 1.01 x 'downsample' and that
 * slide_check_level accepts, or 0.
 */
int slide_level_for(const slide *s, double downsample);
/* Micrometres from one row of level 0 to the next, and from one column to the next; 0: unknown. */
void slide_resolution(const slide *s, double micrometres[2]);

/*
 * Read a region into rgb [rows, columns, 3]. Pixels that the slide does not have, also beyond its
 * border, show the slide's background colour, which is white unless the file names another.
 * PONS_DATA: slide_check_level refuses the level, or the file is damaged there; after damage every
 * later reading of the slide fails, too.
 */
pons_status slide_read(slide *s, const slide_region *region, uint8_t *rgb, pons_error *err);

#endif
