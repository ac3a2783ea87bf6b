/*
 * slide_thumbnail.c - shrink a level block by block.
 */
#include "data/slide/slide_thumbnail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "data/slide/tissue_mask.h"

/* Pixels of a level along a side of the blocks that are read. */
enum { BLOCK = 1024 };

typedef struct shrinking {
    slide *slide;
    const slide_level *level;
    int number;                   /* of the level                                                 */
    int64_t factor;               /* pixels of the level along a side of a pixel                  */
    slide_thumbnail *out;
    uint8_t *block;
} shrinking;

/* The mean of a square of the block, which has 'columns' columns; rounded to the nearest. */
static void put_mean(const uint8_t *rgb, int64_t columns, int64_t height, int64_t width,
                     uint8_t out[3])
{
    for (int c = 0; c < 3; c++) {
        int64_t sum = 0, count = height * width;

        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++)
                sum += rgb[3 * (y * columns + x) + c];
        out[c] = (uint8_t)((sum + count / 2) / count);
    }
}

/* Shrink the pixels of the level from (row, column) on. */
static pons_status shrink_block(const shrinking *s, int64_t row, int64_t column, int64_t side,
                                pons_error *err)
{
    const slide_level *l = s->level;
    const slide_region region = {
        .level = s->number, .row = llround((double)row * l->downsample),
        .column = llround((double)column * l->downsample), .rows = min_i64(side, l->rows - row),
        .columns = min_i64(side, l->columns - column)
    };

    if (slide_read(s->slide, &region, s->block, err) != PONS_OK)
        return err->status;
    for (int64_t y = 0; y < region.rows; y += s->factor)
        for (int64_t x = 0; x < region.columns; x += s->factor)
            put_mean(s->block + 3 * (y * region.columns + x), region.columns,
                     min_i64(s->factor, region.rows - y), min_i64(s->factor, region.columns - x),
                     s->out->rgb + 3 * ((row + y) / s->factor * s->out->columns
                                        + (column + x) / s->factor));
    return PONS_OK;
}

static pons_status shrink_level(shrinking *s, pons_error *err)
{
    int64_t side = max_i64(1, BLOCK / s->factor) * s->factor;

    s->block = malloc((size_t)(3 * side * side));
    if (s->block == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the thumbnail of '%s'",
                         slide_path(s->slide));
    for (int64_t row = 0; row < s->level->rows && err->status == PONS_OK; row += side)
        for (int64_t column = 0; column < s->level->columns && err->status == PONS_OK;
             column += side)
            shrink_block(s, row, column, side, err);
    free(s->block);
    return err->status;
}

pons_status slide_thumbnail_make(slide *s, slide_thumbnail *out, pons_error *err)
{
    const slide_level *whole = slide_level_at(s, 0);
    double scale = (double)max_i64(whole->rows, whole->columns) / SLIDE_THUMBNAIL_SIDE;
    int number = slide_level_for(s, scale);
    const slide_level *l = slide_level_at(s, number);
    int64_t factor = max_i64(1, (int64_t)ceil(scale / l->downsample));

    *out = (slide_thumbnail){ .rows = ceil_div_i64(l->rows, factor),
                              .columns = ceil_div_i64(l->columns, factor),
                              .step = l->downsample * (double)factor };
    out->rgb = malloc((size_t)(3 * out->rows * out->columns));
    out->tissue = malloc((size_t)(out->rows * out->columns));
    if (out->rgb == NULL || out->tissue == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the thumbnail of '%s'",
                         slide_path(s));
    if (shrink_level(&(shrinking){ s, l, number, factor, out, NULL }, err) == PONS_OK)
        tissue_mask_make(out->rgb, out->rows * out->columns, out->tissue);
    return err->status;
}

void slide_thumbnail_clear(slide_thumbnail *t)
{
    free(t->rgb);
    free(t->tissue);
    *t = (slide_thumbnail){ .rgb = NULL };
}

/* The pixels range[0] to range[1] - 1 that touch a range along one axis, at least one of them. */
static void touch(double from, double to, double step, int64_t count, int64_t range[2])
{
    range[0] = min_i64(max_i64((int64_t)floor(from / step), 0), count - 1);
    range[1] = min_i64(max_i64((int64_t)ceil(to / step), range[0] + 1), count);
}

bool slide_thumbnail_has_tissue(const slide_thumbnail *t, const double first[2],
                                const double end[2])
{
    int64_t row[2], column[2];

    touch(first[0], end[0], t->step, t->rows, row);
    touch(first[1], end[1], t->step, t->columns, column);
    for (int64_t y = row[0]; y < row[1]; y++)
        if (memchr(t->tissue + y * t->columns + column[0], 1, (size_t)(column[1] - column[0]))
            != NULL)
            return true;
    return false;
}
