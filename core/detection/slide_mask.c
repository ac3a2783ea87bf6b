/*
 * slide_mask.c - sample a slide block by block, or a picture as a whole.
 */
#include "detection/slide_mask.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "data/picture/picture_read.h"
#include "data/reader/volume_read.h"
#include "data/slide/slide.h"
#include "data/volume/volume_files.h"

/* The pixel of a mask at the centre of a point; centres beyond the border are at the border. */
static int64_t centre_of(int64_t point, double step, int64_t pixels)
{
    return min_i64((int64_t)(((double)point + 0.5) * step), pixels - 1);
}

static bool spans(int64_t pixels, double step, int64_t points)
{
    return step > 0 && (int64_t)ceil((double)pixels / step) == points;
}

/* Whether a mask has the extent of the slide. */
static bool spans_slide(int64_t rows, int64_t columns, const int64_t extent[2],
                        const double step[2])
{
    return spans(rows, step[0], extent[0]) && spans(columns, step[1], extent[1]);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Find the extent of a picture; false: the file is none. */
static bool is_picture(const char *path, int64_t found[2])
{
    pons_error ignored = PONS_ERROR_INIT;
    volume_facts facts;

    if (!volume_file_has_suffix(path)
        || volume_read_label_facts(path, &facts, &ignored) != PONS_OK || facts.grid.extent[0] != 1)
        return false;
    found[0] = facts.grid.extent[1];
    found[1] = facts.grid.extent[2];
    return true;
}

/* Take the id at the centre of each point; 'step' is 1 for a picture of the map's extent. */
static void sample_picture(const volume *v, const int64_t extent[2], const double step[2],
                           uint8_t *ids)
{
    const uint8_t *from = v->voxels;

    for (int64_t y = 0; y < extent[0]; y++) {
        int64_t row = centre_of(y, step[0], v->extent[1]) * v->extent[2];

        for (int64_t x = 0; x < extent[1]; x++)
            ids[y * extent[1] + x] = from[(row + centre_of(x, step[1], v->extent[2]))
                                          * v->channels];
    }
}

static pons_status read_picture(const char *path, const int64_t extent[2], const double step[2],
                                uint8_t *ids, pons_error *err)
{
    volume v;

    memset(&v, 0, sizeof v);
    if (volume_read_label_compact(path, &v, NULL, err) == PONS_OK) {
        if (v.type == PONS_U8)
            sample_picture(&v, extent, step, ids);
        else
            pons_fail(err, PONS_DATA, "mask '%s' has an id above 255", path);
    }
    pons_volume_clear(&v);
    return err->status;
}

/* ---- slides ---------------------------------------------------------------------------------- */

typedef struct sampling {
    slide *slide;
    const slide_level *level;
    int number;                   /* of the level                                                 */
    const int64_t *extent;
    const double *step;
    int64_t side;                 /* points along a side of a block                               */
    uint8_t *block;
    uint8_t *ids;
} sampling;

/* Pixels of the level along a side of the blocks that are read, at least those of one point. */
enum { BLOCK = 1024 };

static int64_t row_of(const sampling *s, int64_t point)
{
    return centre_of(point, s->step[0] / s->level->downsample, s->level->rows);
}

static int64_t column_of(const sampling *s, int64_t point)
{
    return centre_of(point, s->step[1] / s->level->downsample, s->level->columns);
}

static pons_status sample_block(const sampling *s, int64_t row, int64_t column, pons_error *err)
{
    int64_t rows = min_i64(s->side, s->extent[0] - row);
    int64_t columns = min_i64(s->side, s->extent[1] - column);
    int64_t top = row_of(s, row), left = column_of(s, column);
    const slide_region region = {
        .level = s->number, .row = llround((double)top * s->level->downsample),
        .column = llround((double)left * s->level->downsample),
        .rows = row_of(s, row + rows - 1) - top + 1,
        .columns = column_of(s, column + columns - 1) - left + 1
    };

    if (slide_read(s->slide, &region, s->block, err) != PONS_OK)
        return err->status;
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++) {
            int64_t at = (row_of(s, row + y) - top) * region.columns
                         + column_of(s, column + x) - left;
            s->ids[(row + y) * s->extent[1] + column + x] = s->block[3 * at];
        }
    return PONS_OK;
}

static pons_status sample_slide(slide *mask, const int64_t extent[2], const double step[2],
                                uint8_t *ids, pons_error *err)
{
    double least = fmin(step[0], step[1]), most = fmax(step[0], step[1]);
    int number = slide_level_for(mask, least);
    const slide_level *l = slide_level_at(mask, number);
    sampling s = { mask, l, number, extent, step, 0, NULL, ids };

    s.side = max_i64(1, (int64_t)(BLOCK * l->downsample / most));
    size_t pixels = (size_t)ceil((double)s.side * most / l->downsample) + 2;
    s.block = malloc(3 * pixels * pixels);
    if (s.block == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the mask '%s'", slide_path(mask));
    for (int64_t row = 0; row < extent[0] && err->status == PONS_OK; row += s.side)
        for (int64_t column = 0; column < extent[1] && err->status == PONS_OK; column += s.side)
            sample_block(&s, row, column, err);
    free(s.block);
    return err->status;
}

static pons_status refuse_extent(const char *path, int64_t rows, int64_t columns,
                                 const int64_t extent[2], const double step[2], pons_error *err)
{
    char slide[80] = "";

    if (step[0] > 0 && step[1] > 0)
        snprintf(slide, sizeof slide, ", or the slide's %.7g x %.7g at most",
                 (double)extent[1] * step[1], (double)extent[0] * step[0]);
    return pons_fail(err, PONS_DATA, "mask '%s' has %lld x %lld pixels, expected %lld x %lld as "
                     "the map%s", path, (long long)columns, (long long)rows, (long long)extent[1],
                     (long long)extent[0], slide);
}

/* A picture of the slide's extent is sampled; libraries of slides know tiled files alone. */
static pons_status read_untiled(const char *path, const int64_t extent[2], const double step[2],
                                uint8_t *ids, const pons_error *problem, pons_error *err)
{
    int64_t found[2];

    if (!is_picture(path, found))
        return pons_fail(err, problem->status, "%s\nhint: a mask of the slide's extent is a tiled "
                         "TIFF, or a picture of at most %d pixels", problem->text,
                         PICTURE_PIXELS_MAX);
    if (spans_slide(found[0], found[1], extent, step))
        return read_picture(path, extent, step, ids, err);
    return refuse_extent(path, found[0], found[1], extent, step, err);
}

static pons_status read_slide(const char *path, const int64_t extent[2], const double step[2],
                              uint8_t *ids, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    slide *mask;

    if (slide_open(path, &mask, &problem) != PONS_OK)
        return read_untiled(path, extent, step, ids, &problem, err);
    const slide_level *l = slide_level_at(mask, 0);
    if (spans_slide(l->rows, l->columns, extent, step))
        sample_slide(mask, extent, step, ids, err);
    else
        refuse_extent(path, l->rows, l->columns, extent, step, err);
    slide_close(mask);
    return err->status;
}

pons_status slide_mask_read(const char *path, const int64_t extent[2], const double step[2],
                            uint8_t *ids, pons_error *err)
{
    static const double same[2] = { 1, 1 };
    int64_t found[2];

    if (is_picture(path, found) && found[0] == extent[0] && found[1] == extent[1])
        return read_picture(path, extent, same, ids, err);
    return read_slide(path, extent, step, ids, err);
}
