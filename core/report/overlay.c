/*
 * overlay - draw label and prediction on three slices: pick the slices, sample them in millimetres,
 * mark where classes change.
 */
#include "report/overlay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "report/png_write.h"

enum { PANEL_SIDE = 384, GAP = 4 };

/* Which of the two has an outline here, as bits. */
enum { LABEL = 1, PREDICTION = 2 };

static const uint8_t color[4][3] = {
    [LABEL] = { 60, 220, 90 },
    [PREDICTION] = { 240, 60, 60 },
    [LABEL | PREDICTION] = { 250, 220, 60 },
};

/* One slice across 'axis'; 'right' and 'up' are the axes that run that way. */
typedef struct panel {
    int axis, right, up;
    int64_t slice;
    int width, height;       /* pixels */
    double step;             /* millimetres a pixel */
    int left;                /* in the picture */
} panel;

typedef struct picture {
    const volume *label, *prediction, *image;
    double spacing[3];
    float low, high;         /* of the image: black and white */
    panel panel[3];
    int width, height;
    uint8_t *pixels;
} picture;

static int class_at(const volume *v, const int64_t at[3], int channel)
{
    int64_t n = ((at[0] * v->extent[1] + at[1]) * v->extent[2] + at[2]) * v->channels + channel;

    return v->type == PONS_U8 ? ((const uint8_t *)v->voxels)[n] : ((const int32_t *)v->voxels)[n];
}

static bool is_marked(const volume *v, const int64_t at[3])
{
    for (int c = 0; c < v->channels; c++)
        if (class_at(v, at, c))
            return true;
    return false;
}

/* The middle of the box of everything marked, or of the volume. */
static void find_middle(const picture *p, int64_t middle[3])
{
    const int64_t *n = p->label->extent;
    int64_t low[3] = { n[0], n[1], n[2] }, high[3] = { -1, -1, -1 }, at[3];

    for (at[0] = 0; at[0] < n[0]; at[0]++)
        for (at[1] = 0; at[1] < n[1]; at[1]++)
            for (at[2] = 0; at[2] < n[2]; at[2]++) {
                if (!is_marked(p->label, at) && !is_marked(p->prediction, at))
                    continue;
                for (int a = 0; a < 3; a++) {
                    low[a] = at[a] < low[a] ? at[a] : low[a];
                    high[a] = at[a] > high[a] ? at[a] : high[a];
                }
            }
    for (int a = 0; a < 3; a++)
        middle[a] = high[a] < 0 ? n[a] / 2 : (low[a] + high[a]) / 2;
}

static void lay_out(picture *p)
{
    int64_t middle[3];
    int left = 0;

    find_middle(p, middle);
    for (int axis = 0; axis < 3; axis++) {
        panel *q = &p->panel[axis];
        double width, height;

        q->axis = axis;
        q->right = axis == 0 ? 1 : 0;
        q->up = axis == 2 ? 1 : 2;
        q->slice = middle[axis];
        width = (double)p->label->extent[q->right] * p->spacing[q->right];
        height = (double)p->label->extent[q->up] * p->spacing[q->up];
        q->step = fmax(width, height) / PANEL_SIDE;
        q->width = (int)fmax(1, rint(width / q->step));
        q->height = (int)fmax(1, rint(height / q->step));
        q->left = left;
        left += q->width + GAP;
        p->height = q->height > p->height ? q->height : p->height;
    }
    p->width = left - GAP;
}

/* The voxel under a pixel; y grows downwards. */
static void voxel_of(const picture *p, const panel *q, int x, int y, int64_t at[3])
{
    double right = ((double)x + 0.5) * q->step / p->spacing[q->right];
    double up = ((double)(q->height - 1 - y) + 0.5) * q->step / p->spacing[q->up];

    at[q->axis] = q->slice;
    at[q->right] = (int64_t)fmin(right, (double)p->label->extent[q->right] - 1);
    at[q->up] = (int64_t)fmin(up, (double)p->label->extent[q->up] - 1);
}

/* A pixel of a class other than 0 beside one of another class. */
static bool on_outline(const picture *p, const panel *q, const volume *v, int channel, int x,
                       int y)
{
    static const int step[4][2] = { { 1, 0 }, { -1, 0 }, { 0, 1 }, { 0, -1 } };
    int64_t at[3];
    int here;

    voxel_of(p, q, x, y, at);
    here = class_at(v, at, channel);
    if (!here)
        return false;
    for (int n = 0; n < 4; n++) {
        int nx = x + step[n][0], ny = y + step[n][1];

        if (nx < 0 || ny < 0 || nx >= q->width || ny >= q->height)
            return true;
        voxel_of(p, q, nx, ny, at);
        if (class_at(v, at, channel) != here)
            return true;
    }
    return false;
}

static uint8_t grey_at(const picture *p, const int64_t at[3])
{
    const volume *v = p->image;
    int64_t n = (at[0] * p->label->extent[1] + at[1]) * p->label->extent[2] + at[2];
    float x;

    if (!v)
        return is_marked(p->label, at) ? 90 : 20;
    x = (((const float *)v->voxels)[n * v->channels] - p->low) / (p->high - p->low);
    return (uint8_t)(255 * (x < 0 ? 0 : x > 1 ? 1 : x));
}

/* The outline of the last region that has one here, over those before it. */
static void draw_outlines(const picture *p, const panel *q, int x, int y, uint8_t *to)
{
    int count = p->label->channels;

    for (int c = 0; c < count; c++) {
        int whose = (on_outline(p, q, p->label, c, x, y) ? LABEL : 0)
                  | (on_outline(p, q, p->prediction, c, x, y) ? PREDICTION : 0);

        for (int i = 0; i < 3 && whose; i++)
            to[i] = (uint8_t)(color[whose][i] * (2 * count - c) / (2 * count));
    }
}

static void draw_panel(picture *p, const panel *q)
{
    for (int y = 0; y < q->height; y++)
        for (int x = 0; x < q->width; x++) {
            uint8_t *to = p->pixels + ((size_t)(y + (p->height - q->height) / 2) *
                                           (size_t)p->width + (size_t)(q->left + x)) * 3;
            int64_t at[3];

            voxel_of(p, q, x, y, at);
            memset(to, grey_at(p, at), 3);
            draw_outlines(p, q, x, y, to);
        }
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* Black and white at the 1st and 99th percentile of some thousand voxels, scattered. */
static void find_window(picture *p)
{
    enum { SAMPLES = 4096 };
    float sample[SAMPLES];
    uint64_t count = (uint64_t)pons_volume_count(p->image);

    for (uint64_t n = 0; n < SAMPLES; n++) {
        uint64_t voxel = (n * UINT64_C(0x9e3779b97f4a7c15) >> 16) % count;

        sample[n] = ((const float *)p->image->voxels)[voxel * (uint64_t)p->image->channels];
    }
    qsort(sample, SAMPLES, sizeof *sample, compare_floats);
    p->low = sample[SAMPLES / 100];
    p->high = sample[SAMPLES - 1 - SAMPLES / 100];
    if (!(p->high > p->low))
        p->high = p->low + 1;
}

static pons_status check_extents(const volume *label, const volume *other, const char *what,
                                 pons_error *err)
{
    if (!memcmp(label->extent, other->extent, sizeof label->extent))
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "cannot draw: the %s is %lld x %lld x %lld, expected the "
                     "label's %lld x %lld x %lld", what, (long long)other->extent[0],
                     (long long)other->extent[1], (long long)other->extent[2],
                     (long long)label->extent[0], (long long)label->extent[1],
                     (long long)label->extent[2]);
}

static pons_status write_picture(picture *p, const char *path, pons_error *err)
{
    pons_status status;

    lay_out(p);
    p->pixels = calloc((size_t)p->width * (size_t)p->height, 3);
    if (!p->pixels)
        return pons_fail(err, PONS_DEVICE, "out of memory: a picture of %d x %d pixels", p->width,
                         p->height);
    for (int n = 0; n < 3; n++)
        draw_panel(p, &p->panel[n]);
    status = png_write_rgb(path, p->width, p->height, p->pixels, err);
    free(p->pixels);
    return status;
}

static pons_status make_folder(const char *path, pons_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash && slash != path ? strndup(path, (size_t)(slash - path)) : NULL;
    pons_status status = folder ? folder_make(folder, err) : PONS_OK;

    free(folder);
    return status;
}

pons_status overlay_write(const char *path, const volume *label, const volume *prediction,
                          const volume *image, pons_error *err)
{
    picture p = { .label = label, .prediction = prediction, .image = image };
    pons_status status;

    if (!png_available())
        return pons_fail(err, PONS_CONFIG,
                         "'--overlay' needs libpng, which is not in this build");
    status = check_extents(label, prediction, "prediction", err);
    if (!status && image)
        status = check_extents(label, image, "image", err);
    if (!status)
        status = make_folder(path, err);
    if (status)
        return status;
    pons_volume_spacing(label, p.spacing);
    if (image)
        find_window(&p);
    return write_picture(&p, path, err);
}
