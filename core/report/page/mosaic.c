/*
 * mosaic.c - choose slices, draw them with a palette of greys and colours.
 *
 * A palette and few greys keep the picture small: 100 of them are part of one page.
 */
#include "report/page/mosaic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "report/picture/class_marks.h"
#include "report/picture/picture.h"
#include "report/picture/png_write.h"
#include "report/picture/slice_counts.h"

enum { SIDE = 96, GAP = 2, COLUMNS = 4 };
/* The palette: greys, then errors, then classes. */
enum { GREYS = 64, DARK_GREYS = 8, FIRST_ERROR = GREYS - 1,
       FIRST_CLASS = FIRST_ERROR + MARK_ERROR_COUNT, COLORS = FIRST_CLASS + MARK_COLORS };
/* Layers of greys: the image, and for a synthesis the truth and what was made. Marks of classes. */
enum { IMAGE = 0, TRUTH, MADE, GREY_LAYERS };
enum { LABEL = 0, PREDICTION, ERROR, MARK_LAYERS };

/*
 * A plane, and the points that were kept of it: its voxels, or its pixels where these are fewer. A
 * pixel reads the point column[x], row[y].
 */
typedef struct cut_plane {
    plane plane;
    int points;
    size_t first;             /* point of the block                                               */
    uint8_t column[SIDE], row[SIDE];
    int columns, rows;
} cut_plane;

/* All planes of a layer lie one after another. */
struct mosaic_slices {
    size_t size;
    int plane_count, points;
    bool greys, marks;        /* it has the layers of a synthesis, of a segmentation              */
    cut_plane plane[3];
    float sample[GREY_SAMPLES];
    float layer[];            /* greys first, then a byte per point and mark                      */
};

size_t mosaic_size(const mosaic_slices *s)
{
    return s->size;
}

static int grey_layers(const mosaic_slices *s)
{
    return s->greys ? GREY_LAYERS : 1;
}

static float *greys_of(const mosaic_slices *s, int layer)
{
    return (float *)s->layer + (size_t)layer * (size_t)s->points;
}

static uint8_t *marks_of(const mosaic_slices *s, int layer)
{
    return (uint8_t *)greys_of(s, grey_layers(s)) + (size_t)layer * (size_t)s->points;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static bool differs(const uint8_t *a, const uint8_t *b, int64_t channels)
{
    return channels == 1 ? *a != *b : memcmp(a, b, (size_t)channels) != 0;
}

/* Count the voxels of each slice where label and prediction differ; most rows are equal. */
static int64_t count_wrong(const volume *label, const uint8_t *prediction,
                           int64_t *const section[3])
{
    const uint8_t *a = label->voxels, *b = prediction;
    int64_t channels = label->channels, row = label->extent[2] * channels, wrong = 0;

    for (int64_t d = 0; d < label->extent[0]; d++)
        for (int64_t h = 0; h < label->extent[1]; h++, a += row, b += row) {
            int64_t of_row = 0;

            if (memcmp(a, b, (size_t)row) == 0)
                continue;
            for (int64_t w = 0; w < label->extent[2]; w++) {
                bool here = differs(a + w * channels, b + w * channels, channels);

                section[2][w] += here;
                of_row += here;
            }
            section[0][d] += of_row;
            section[1][h] += of_row;
            wrong += of_row;
        }
    return wrong;
}

/* The sum of the differences of a synthesis in each slice, in 1024ths; -1 is around the image. */
static void add_differences(const mosaic_case *c, int64_t *const section[3])
{
    const int64_t *extent = c->image->extent;
    int64_t n = 0;

    for (int64_t d = 0; d < extent[0]; d++)
        for (int64_t h = 0; h < extent[1]; h++)
            for (int64_t w = 0; w < extent[2]; w++, n++) {
                float apart = c->truth[n] > -1 ? fabsf(c->truth[n] - c->made[n]) : 0;
                int64_t by = (int64_t)(1024 * fminf(apart, 1024));

                section[0][d] += by;
                section[1][h] += by;
                section[2][w] += by;
            }
}

/* The points of an axis: all voxels, or that of each pixel. Returns their number. */
static int keep_points(const plane *p, int axis, int pixels, bool up, uint8_t *of_pixel)
{
    bool voxels = p->extent[axis] <= pixels;
    int64_t at[3];

    for (int n = 0; n < pixels; n++) {
        plane_voxel(p, up ? 0 : n, up ? n : 0, at);
        of_pixel[n] = (uint8_t)(voxels ? at[axis] : n);
    }
    return voxels ? (int)p->extent[axis] : pixels;
}

static void add_plane(mosaic_slices *s, const mosaic_case *c, int axis, int64_t slice)
{
    cut_plane *p = &s->plane[s->plane_count++];
    double spacing[3];

    pons_volume_spacing(c->image, spacing);
    plane_init(&p->plane, axis, slice, c->image->extent, spacing, SIDE);
    p->columns = keep_points(&p->plane, p->plane.right, p->plane.width, false, p->column);
    p->rows = keep_points(&p->plane, p->plane.up, p->plane.height, true, p->row);
    p->first = (size_t)s->points;
    s->points += p->columns * p->rows;
}

static pons_status choose_planes(mosaic_slices *s, const mosaic_case *c, pons_error *err)
{
    slice_counts counts;

    if (slice_counts_init(&counts, c->image->extent, err) != PONS_OK)
        return err->status;
    if (c->made != NULL && !c->steady)
        add_differences(c, counts.axis);
    if (c->label != NULL
        && (c->steady || count_wrong(c->label, c->prediction, counts.axis) == 0))
        slice_counts_add_marked(&counts, c->label);
    for (int axis = 0; axis < 3; axis++)
        if (slice_axis_is_drawn(counts.extent, axis))
            add_plane(s, c, axis, slice_counts_largest(&counts, axis));
    slice_counts_clear(&counts);
    return PONS_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

static void keep_point(mosaic_slices *s, const mosaic_case *c, size_t to, int64_t voxel)
{
    greys_of(s, IMAGE)[to] = ((const float *)c->image->voxels)[voxel * c->image->channels
                                                                  + c->channel];
    if (s->greys) {
        greys_of(s, TRUTH)[to] = c->truth[voxel];
        greys_of(s, MADE)[to] = c->made[voxel];
    }
    if (s->marks) {
        volume prediction = *c->label;

        prediction.voxels = (void *)c->prediction;
        marks_of(s, LABEL)[to] = (uint8_t)mark_class_of(c->label, voxel);
        marks_of(s, PREDICTION)[to] = (uint8_t)mark_class_of(&prediction, voxel);
        marks_of(s, ERROR)[to] = (uint8_t)mark_error_of(c->label, &prediction, voxel);
    }
}

/* The voxel along an axis of each point. */
static void find_voxels(const plane *p, int axis, int count, int pixels, bool up, int64_t *out)
{
    int64_t at[3];

    for (int n = 0; n < count; n++) {
        out[n] = n;
        if (p->extent[axis] > pixels) {
            plane_voxel(p, up ? 0 : n, up ? n : 0, at);
            out[n] = at[axis];
        }
    }
}

static void keep_plane(mosaic_slices *s, const mosaic_case *c, const cut_plane *p)
{
    const plane *q = &p->plane;
    const int64_t stride[3] = { q->extent[1] * q->extent[2], q->extent[2], 1 };
    int64_t right[SIDE], up[SIDE];
    size_t to = p->first;

    find_voxels(q, q->right, p->columns, q->width, false, right);
    find_voxels(q, q->up, p->rows, q->height, true, up);
    for (int y = 0; y < p->rows; y++)
        for (int x = 0; x < p->columns; x++)
            keep_point(s, c, to++, q->slice * stride[q->axis] + up[y] * stride[q->up]
                                   + right[x] * stride[q->right]);
}

pons_status mosaic_cut(const mosaic_case *c, mosaic_slices **out, pons_error *err)
{
    mosaic_slices chosen = { .plane_count = 0, .greys = c->made != NULL,
                             .marks = c->label != NULL }, *s;
    size_t point = (size_t)grey_layers(&chosen) * sizeof(float) + (chosen.marks ? MARK_LAYERS : 0);

    if (choose_planes(&chosen, c, err) != PONS_OK)
        return err->status;
    chosen.size = sizeof chosen + (size_t)chosen.points * point;
    s = malloc(chosen.size);
    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    memcpy(s, &chosen, sizeof chosen);
    grey_samples((const float *)c->image->voxels + c->channel, pons_volume_count(c->image),
                 c->image->channels, s->sample);
    for (int n = 0; n < s->plane_count; n++)
        keep_plane(s, c, &s->plane[n]);
    *out = s;
    return PONS_OK;
}

/* ---- drawing --------------------------------------------------------------------------------- */

typedef struct mosaic {
    const mosaic_slices *slices;
    grey_range range, truth_range, error_range;
    int top[3];               /* first row of a plane                                             */
    int columns, column_width, width, height;
    uint8_t *pixels;          /* indices of the palette                                           */
} mosaic;

static void lay_out(mosaic *m)
{
    const mosaic_slices *s = m->slices;

    m->columns = s->greys || s->marks ? COLUMNS : 1;
    for (int n = 0; n < s->plane_count; n++) {
        m->top[n] = m->height + (n > 0 ? GAP : 0);
        m->height = m->top[n] + s->plane[n].plane.height;
        m->column_width = max_int(m->column_width, s->plane[n].plane.width);
    }
    m->width = m->columns * m->column_width + (m->columns - 1) * GAP;
}

static uint8_t grey_index(const grey_range *range, float value)
{
    return (uint8_t)(grey_of(range, value) * (GREYS - 1) / 256);
}

static uint8_t class_index(int class, uint8_t background)
{
    return class > 0 ? (uint8_t)(FIRST_CLASS + (class - 1) % MARK_COLORS) : background;
}

static void draw_marks(const mosaic *m, size_t point, uint8_t grey, uint8_t *to)
{
    int step = m->column_width + GAP, error = marks_of(m->slices, ERROR)[point];
    uint8_t dark = (uint8_t)(grey / (GREYS / DARK_GREYS) * (GREYS / DARK_GREYS) / 2);

    to[step] = class_index(marks_of(m->slices, LABEL)[point], dark);
    to[2 * step] = class_index(marks_of(m->slices, PREDICTION)[point], dark);
    to[3 * step] = error > 0 ? (uint8_t)(FIRST_ERROR + error) : dark;
}

static void draw_greys(const mosaic *m, size_t point, uint8_t *to)
{
    int step = m->column_width + GAP;
    float truth = greys_of(m->slices, TRUTH)[point], made = greys_of(m->slices, MADE)[point];

    to[step] = grey_index(&m->truth_range, truth);
    to[2 * step] = grey_index(&m->truth_range, made);
    to[3 * step] = grey_index(&m->error_range, fabsf(truth - made));
}

static void draw_plane(const mosaic *m, const cut_plane *p, uint8_t *to)
{
    for (int y = 0; y < p->plane.height; y++)
        for (int x = 0; x < p->plane.width; x++) {
            size_t point = p->first + (size_t)p->row[y] * (size_t)p->columns + p->column[x];
            uint8_t *pixel = to + (size_t)y * (size_t)m->width + x;

            *pixel = grey_index(&m->range, greys_of(m->slices, IMAGE)[point]);
            if (m->slices->marks)
                draw_marks(m, point, *pixel, pixel);
            else if (m->slices->greys)
                draw_greys(m, point, pixel);
        }
}

static void draw_planes(mosaic *m)
{
    for (int n = 0; n < m->slices->plane_count; n++) {
        const cut_plane *p = &m->slices->plane[n];

        draw_plane(m, p, m->pixels + (size_t)m->top[n] * (size_t)m->width
                         + (m->column_width - p->plane.width) / 2);
    }
}

static void fill_palette(uint8_t palette[COLORS][3])
{
    for (int n = 0; n < GREYS - 1; n++)
        memset(palette[n], n * 255 / (GREYS - 2), 3);
    memset(palette[FIRST_ERROR], 0, 3);
    for (int n = MARK_MISSED; n < MARK_ERROR_COUNT; n++)
        memcpy(palette[FIRST_ERROR + n], mark_error_color((mark_error)n), 3);
    for (int n = 0; n < MARK_COLORS; n++)
        memcpy(palette[FIRST_CLASS + n], mark_class_color(n), 3);
}

pons_status mosaic_draw(const mosaic_slices *s, mosaic_picture *out, pons_error *err)
{
    mosaic m = { .slices = s, .truth_range = { -1, 1 }, .error_range = { 0, 1 } };

    lay_out(&m);
    m.pixels = calloc((size_t)m.width * (size_t)m.height, 1);
    if (m.pixels == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    m.range = grey_range_of(s->sample);
    draw_planes(&m);
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

bool mosaic_encode(const mosaic_picture *picture, FILE *to)
{
    uint8_t palette[COLORS][3];

    fill_palette(palette);
    return png_encode_indexed(to, picture->width, picture->height, picture->pixels, COLORS,
                              (const uint8_t (*)[3])palette);
}
