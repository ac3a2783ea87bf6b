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
#include "report/picture.h"
#include "report/png_write.h"

enum { SIDE = 96, GAP = 2, COLUMNS = 4 };
/* The palette: greys, then errors, then classes. */
enum { GREYS = 64, DARK_GREYS = 8, FIRST_ERROR = GREYS - 1, FIRST_CLASS = FIRST_ERROR + 4,
       CLASSES = 10, COLORS = FIRST_CLASS + CLASSES };
/* Layers of greys: the image, and for a synthesis the truth and what was made. Marks of classes. */
enum { IMAGE = 0, TRUTH, MADE, GREY_LAYERS };
enum { LABEL = 0, PREDICTION, ERROR, MARK_LAYERS };

static const uint8_t error_color[MOSAIC_ERROR_COUNT][3] = {
    [MOSAIC_MISSED] = { 255, 90, 60 }, [MOSAIC_FALSE_ALARM] = { 70, 150, 255 },
    [MOSAIC_OTHER_CLASS] = { 250, 220, 60 }
};

/* Colours that none of an error is taken for. */
static const uint8_t class_color[CLASSES][3] = {
    { 60, 220, 90 }, { 240, 90, 220 }, { 100, 240, 210 }, { 165, 115, 255 }, { 255, 175, 190 },
    { 170, 120, 80 }, { 0, 140, 130 }, { 150, 40, 150 }, { 140, 150, 50 }, { 190, 255, 200 }
};

const uint8_t *mosaic_error_color(mosaic_error error)
{
    return error_color[error];
}

const uint8_t *mosaic_class_color(int index)
{
    return class_color[index % CLASSES];
}

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
static int64_t count_wrong(const volume *label, const uint8_t *prediction, int64_t *section[3])
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

static void count_labelled(const volume *label, int64_t *section[3])
{
    const uint8_t *row = label->voxels;
    size_t size = (size_t)(label->extent[2] * label->channels);
    int64_t at[3];

    for (at[0] = 0; at[0] < label->extent[0]; at[0]++)
        for (at[1] = 0; at[1] < label->extent[1]; at[1]++, row += size) {
            if (row[0] == 0 && memcmp(row, row + 1, size - 1) == 0) /* most rows                  */
                continue;
            for (at[2] = 0; at[2] < label->extent[2]; at[2]++)
                for (int a = 0; a < 3 && picture_is_marked(label, at); a++)
                    section[a][at[a]]++;
        }
}

/* The sum of the differences of a synthesis in each slice, in 1024ths; -1 is around the image. */
static void add_differences(const mosaic_case *c, int64_t *section[3])
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

static int64_t largest_section(const int64_t *section, int64_t extent)
{
    int64_t largest = extent / 2;

    for (int64_t n = 0; n < extent; n++)
        if (section[n] > section[largest])
            largest = n;
    return largest;
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
    const int64_t *extent = c->image->extent;
    int64_t *count = calloc((size_t)(extent[0] + extent[1] + extent[2]), sizeof *count);
    int64_t *section[3];
    int flat = -1;

    if (count == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    section[0] = count;
    section[1] = count + extent[0];
    section[2] = count + extent[0] + extent[1];
    if (c->made != NULL && !c->steady)
        add_differences(c, section);
    if (c->label != NULL && (c->steady || count_wrong(c->label, c->prediction, section) == 0))
        count_labelled(c->label, section);
    for (int axis = 0; axis < 3; axis++)
        flat = flat < 0 && extent[axis] == 1 ? axis : flat;
    for (int axis = 0; axis < 3; axis++)
        if (flat < 0 || axis == flat)
            add_plane(s, c, axis, largest_section(section[axis], extent[axis]));
    free(count);
    return PONS_OK;
}

/* ---- points ---------------------------------------------------------------------------------- */

/* The index of a class, or of the last region of a voxel; 0: none. */
static int class_of(const uint8_t *voxel, int channels)
{
    int found = 0;

    if (channels == 1)
        return *voxel;
    for (int c = 0; c < channels; c++)
        if (voxel[c] != 0)
            found = c + 1;
    return found;
}

/* 0: both are equal. */
static int error_of(const uint8_t *label, const uint8_t *prediction, int channels)
{
    bool missed = false, wrong = false;

    for (int c = 0; c < channels; c++) {
        missed = missed || (label[c] != prediction[c] && label[c] != 0);
        wrong = wrong || (label[c] != prediction[c] && prediction[c] != 0);
    }
    return missed && wrong ? MOSAIC_OTHER_CLASS : missed ? MOSAIC_MISSED
                                                : wrong ? MOSAIC_FALSE_ALARM : 0;
}

static void keep_point(mosaic_slices *s, const mosaic_case *c, size_t to, int64_t voxel)
{
    greys_of(s, IMAGE)[to] = ((const float *)c->image->voxels)[voxel * c->image->channels
                                                                  + c->channel];
    if (s->greys) {
        greys_of(s, TRUTH)[to] = c->truth[voxel];
        greys_of(s, MADE)[to] = c->made[voxel];
    }
    if (s->marks) {
        int channels = c->label->channels;
        const uint8_t *label = (const uint8_t *)c->label->voxels + voxel * channels;
        const uint8_t *prediction = c->prediction + voxel * channels;

        marks_of(s, LABEL)[to] = (uint8_t)class_of(label, channels);
        marks_of(s, PREDICTION)[to] = (uint8_t)class_of(prediction, channels);
        marks_of(s, ERROR)[to] = (uint8_t)error_of(label, prediction, channels);
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
    return class > 0 ? (uint8_t)(FIRST_CLASS + (class - 1) % CLASSES) : background;
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
    for (int n = MOSAIC_MISSED; n < MOSAIC_ERROR_COUNT; n++)
        memcpy(palette[FIRST_ERROR + n], error_color[n], 3);
    for (int n = 0; n < CLASSES; n++)
        memcpy(palette[FIRST_CLASS + n], mosaic_class_color(n), 3);
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
