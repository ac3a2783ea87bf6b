/*
 * map_file.h - probability maps of slides: TIFF files, tiled and deflated, with a float32 for each
 * class.
 *
 * Point (i, k) of a map stands for the pixels of level 0 from row i x step[0] on and from column
 * k x step[1] on. Maps of more than 2 GiB are BigTIFF. The resolution of a point is in the tags
 * XResolution and YResolution; ImageDescription is a JSON object with "slide", "classes", "step"
 * (pixels) and "micrometres", rows first.
 */
#ifndef CORE_DATA_SLIDE_MAP_FILE_H
#define CORE_DATA_SLIDE_MAP_FILE_H

#include <pons/plugin.h>

/* Rows and columns of a tile; points of the largest map that is read. */
enum { MAP_TILE = 256, MAP_POINTS_MAX = 1 << 28 };

typedef struct map_facts {
    int64_t rows, columns;
    int class_count;
    const char *const *name;      /* [class_count]; of a file that is read NULL: it has none      */
    const char *slide;            /* the file of the slide; may be NULL                           */
    double step[2];               /* of rows and columns; zeros: unknown                          */
    double micrometres[2];        /* from point to point; zeros: unknown                          */
} map_facts;

typedef struct map_writer map_writer;

/*
 * Begin a file under a temporary name. PONS_CONFIG: the build lacks libtiff. The facts are copied.
 */
pons_status map_writer_open(const char *path, const map_facts *facts, map_writer **out,
                            pons_error *err);
/*
 * Write rows MAP_TILE x band on, 'values' [rows][columns][classes]; the last band has the rows that
 * are left. Every band is written once, in any order.
 */
pons_status map_writer_put(map_writer *w, int64_t band, const float *values, pons_error *err);
/* Complete the file, or drop it if err->status is a failure; 'w' may be NULL. */
pons_status map_writer_close(map_writer *w, pons_error *err);

typedef struct map_file {
    map_facts facts;
    float *values;                /* [rows][columns][classes]                                     */
    struct map_text *text;        /* owner of the facts' words                                    */
} map_file;

/*
 * Read a map of float32, or one of 8 bits as v / 255, in tiles or strips. The caller clears *out,
 * also after an error. PONS_DATA: it is no such TIFF file, or it is damaged.
 */
pons_status map_file_read(const char *path, map_file *out, pons_error *err);
void map_file_clear(map_file *m);

#endif
