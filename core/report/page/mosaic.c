/*
 * mosaic.c - choose slices, draw them with a palette of greys and colours.
 *
 * A palette and few greys keep the picture small: 100 of them are part of one page.
 */
#include "report/page/mosaic.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "report/picture.h"
#include "report/png_write.h"
#include "report/sheet.h"

enum { SIDE = 96, GAP = 2, COLUMNS = 4 };
/* The palette: greys, then errors, then classes. */
enum { GREYS = 64, DARK_GREYS = 8, FIRST_ERROR = GREYS - 1, FIRST_CLASS = FIRST_ERROR + 4,
       CLASSES = 10, COLORS = FIRST_CLASS + CLASSES };

static const uint8_t error_color[MOSAIC_ERROR_COUNT][3] = {
    [MOSAIC_MISSED] = { 255, 90, 60 }, [MOSAIC_FALSE_ALARM] = { 70, 150, 255 },
    [MOSAIC_OTHER_CLASS] = { 250, 220, 60 }
};

const uint8_t *mosaic_error_color(mosaic_error error)
{
    return error_color[error];
}

typedef struct mosaic {
    const volume *image, *label, *prediction;
    grey_range range;
    int plane_count;
    plane plane[3];
    int top[3];               /* first row of a plane                                             */
    int column_width, width, height;
    uint8_t *pixels;          /* indices of the palette                                           */
} mosaic;

/* ---- slices ---------------------------------------------------------------------------------- */

/* Count the voxels of each slice where label and prediction differ; most rows are equal. */
static int64_t count_wrong(const volume *label, const volume *prediction, int64_t *section[3])
{
    const uint8_t *a = label->voxels, *b = prediction->voxels;
    int64_t channels = label->channels, row = label->extent[2] * channels, wrong = 0;

    for (int64_t d = 0; d < label->extent[0]; d++)
        for (int64_t h = 0; h < label->extent[1]; h++, a += row, b += row) {
            if (memcmp(a, b, (size_t)row) == 0)
                continue;
            for (int64_t w = 0; w < label->extent[2]; w++)
                if (memcmp(a + w * channels, b + w * channels, (size_t)channels) != 0) {
                    section[0][d]++;
                    section[1][h]++;
                    section[2][w]++;
                    wrong++;
                }
        }
    return wrong;
}

static void count_labelled(const volume *label, int64_t *section[3])
{
    int64_t at[3];

    for (at[0] = 0; at[0] < label->extent[0]; at[0]++)
        for (at[1] = 0; at[1] < label->extent[1]; at[1]++)
            for (at[2] = 0; at[2] < label->extent[2]; at[2]++)
                for (int a = 0; a < 3 && picture_is_marked(label, at); a++)
                    section[a][at[a]]++;
}

static int64_t largest_section(const int64_t *section, int64_t extent)
{
    int64_t largest = extent / 2;

    for (int64_t n = 0; n < extent; n++)
        if (section[n] > section[largest])
            largest = n;
    return largest;
}

static pons_status choose_planes(mosaic *m, pons_error *err)
{
    const int64_t *extent = m->label->extent;
    int64_t *count = calloc((size_t)(extent[0] + extent[1] + extent[2]), sizeof *count);
    int64_t *section[3];
    double spacing[3];
    int flat = -1;

    if (count == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    section[0] = count;
    section[1] = count + extent[0];
    section[2] = count + extent[0] + extent[1];
    if (count_wrong(m->label, m->prediction, section) == 0)
        count_labelled(m->label, section);
    pons_volume_spacing(m->image, spacing);
    for (int axis = 0; axis < 3; axis++)
        flat = flat < 0 && extent[axis] == 1 ? axis : flat;
    for (int axis = 0; axis < 3; axis++)
        if (flat < 0 || axis == flat)
            plane_init(&m->plane[m->plane_count++], axis,
                       largest_section(section[axis], extent[axis]), extent, spacing, SIDE);
    free(count);
    return PONS_OK;
}

static void lay_out(mosaic *m)
{
    for (int n = 0; n < m->plane_count; n++) {
        m->top[n] = m->height + (n > 0 ? GAP : 0);
        m->height = m->top[n] + m->plane[n].height;
        m->column_width = max_int(m->column_width, m->plane[n].width);
    }
    m->width = COLUMNS * m->column_width + (COLUMNS - 1) * GAP;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* The index of a class, or of the last region of a voxel; 0: none. */
static int class_of(const volume *v, const int64_t at[3])
{
    int found = 0;

    if (v->channels == 1)
        return picture_class_at(v, at, 0);
    for (int c = 0; c < v->channels; c++)
        if (picture_class_at(v, at, c) != 0)
            found = c + 1;
    return found;
}

/* 0: both are equal. */
static int error_of(const mosaic *m, const int64_t at[3])
{
    bool missed = false, wrong = false;

    for (int c = 0; c < m->label->channels; c++) {
        int label = picture_class_at(m->label, at, c);
        int prediction = picture_class_at(m->prediction, at, c);

        missed = missed || (label != prediction && label != 0);
        wrong = wrong || (label != prediction && prediction != 0);
    }
    return missed && wrong ? MOSAIC_OTHER_CLASS : missed ? MOSAIC_MISSED
                                                : wrong ? MOSAIC_FALSE_ALARM : 0;
}

static uint8_t class_index(int class, uint8_t background)
{
    return class > 0 ? (uint8_t)(FIRST_CLASS + (class - 1) % CLASSES) : background;
}

static void draw_pixel(mosaic *m, const plane *p, int x, int y, uint8_t *to)
{
    uint8_t grey, dark;
    int64_t at[3];
    int error;

    plane_voxel(p, x, y, at);
    grey = (uint8_t)(grey_at(&m->range, m->image, 0, at) * (GREYS - 1) / 256);
    dark = (uint8_t)(grey / (GREYS / DARK_GREYS) * (GREYS / DARK_GREYS) / 2);
    error = error_of(m, at);
    to[0] = grey;
    to[m->column_width + GAP] = class_index(class_of(m->label, at), dark);
    to[2 * (m->column_width + GAP)] = class_index(class_of(m->prediction, at), dark);
    to[3 * (m->column_width + GAP)] = error > 0 ? (uint8_t)(FIRST_ERROR + error) : dark;
}

static void draw_planes(mosaic *m)
{
    for (int n = 0; n < m->plane_count; n++) {
        const plane *p = &m->plane[n];
        int left = (m->column_width - p->width) / 2;

        for (int y = 0; y < p->height; y++)
            for (int x = 0; x < p->width; x++)
                draw_pixel(m, p, x, y, m->pixels + (size_t)(m->top[n] + y) * (size_t)m->width
                                       + left + x);
    }
}

static void fill_palette(uint8_t palette[COLORS][3])
{
    for (int n = 0; n < GREYS - 1; n++)
        memset(palette[n], n * 255 / (GREYS - 2), 3);
    memset(palette[FIRST_ERROR], 0, 3);
    for (int n = MOSAIC_MISSED; n < MOSAIC_ERROR_COUNT; n++)
        memcpy(palette[FIRST_ERROR + n], error_color[n], 3);
    for (int n = 0; n < CLASSES; n++)
        memcpy(palette[FIRST_CLASS + n], sheet_color(n + 1), 3);
}

static pons_status draw(mosaic *m, pons_error *err)
{
    if (choose_planes(m, err) != PONS_OK)
        return err->status;
    lay_out(m);
    m->pixels = calloc((size_t)m->width * (size_t)m->height, 1);
    if (m->pixels == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    m->range = grey_range_of(m->image, 0);
    draw_planes(m);
    return PONS_OK;
}

pons_status mosaic_draw(const volume *image, const volume *label, const uint8_t *prediction,
                        mosaic_picture *out, pons_error *err)
{
    volume predicted = *label;
    mosaic m = { .image = image, .label = label, .prediction = &predicted };

    predicted.voxels = (void *)prediction;
    if (draw(&m, err) != PONS_OK)
        return err->status;
    *out = (mosaic_picture){ m.width, m.height, m.pixels };
    return PONS_OK;
}

pons_status mosaic_save(const mosaic_picture *picture, const char *path, pons_error *err)
{
    uint8_t palette[COLORS][3];

    fill_palette(palette);
    return png_write_indexed(path, picture->width, picture->height, picture->pixels, COLORS,
                             (const uint8_t (*)[3])palette, err);
}
