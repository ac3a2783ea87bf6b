/*
 * overlay.c - draw label and prediction on three slices: choose the slices, draw outlines where
 * classes change.
 */
#include "report/overlay.h"

#include <string.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "report/picture.h"
#include "report/png_write.h"

enum { PANEL_SIDE = 384, GAP = 4 };

/* Bits of an outline: label, prediction or both. */
enum { LABEL = 1, PREDICTION = 2 };

static const uint8_t color[4][3] = {
    [LABEL] = { 60, 220, 90 },
    [PREDICTION] = { 240, 60, 60 },
    [LABEL | PREDICTION] = { 250, 220, 60 },
};

typedef struct panel {
    plane plane;
    int left;                /* first column in the picture                                       */
} panel;

typedef struct drawing {
    const volume *label, *prediction, *image;
    grey_range range;
    panel panel[3];
    int width, height;
    picture picture;
} drawing;

/* The centre of the bounding box of a volume's marked voxels; false: it has none. */
static bool find_centre(const volume *v, int64_t middle[3])
{
    const int64_t *n = v->extent;
    int64_t low[3] = { n[0], n[1], n[2] }, high[3] = { -1, -1, -1 }, at[3];

    for (at[0] = 0; at[0] < n[0]; at[0]++)
        for (at[1] = 0; at[1] < n[1]; at[1]++)
            for (at[2] = 0; at[2] < n[2]; at[2]++) {
                if (!picture_is_marked(v, at))
                    continue;
                for (int a = 0; a < 3; a++) {
                    low[a] = min_i64(at[a], low[a]);
                    high[a] = max_i64(at[a], high[a]);
                }
            }
    for (int a = 0; a < 3; a++)
        middle[a] = (low[a] + high[a]) / 2;
    return high[0] >= 0;
}

/* The label decides, so that pictures of several predictions show the same slices. */
static void find_middle(const drawing *d, int64_t middle[3])
{
    if (!find_centre(d->label, middle) && !find_centre(d->prediction, middle))
        for (int a = 0; a < 3; a++)
            middle[a] = d->label->extent[a] / 2;
}

static void lay_out(drawing *d)
{
    double spacing[3];
    int64_t middle[3];
    int left = 0;

    pons_volume_spacing(d->label, spacing);
    find_middle(d, middle);
    for (int axis = 0; axis < 3; axis++) {
        panel *q = &d->panel[axis];

        plane_init(&q->plane, axis, middle[axis], d->label->extent, spacing, PANEL_SIDE);
        q->left = left;
        left += q->plane.width + GAP;
        d->height = max_int(q->plane.height, d->height);
    }
    d->width = left - GAP;
}

static uint8_t background_at(const drawing *d, const int64_t at[3])
{
    if (d->image == NULL)
        return picture_is_marked(d->label, at) ? 90 : 20;
    return grey_at(&d->range, d->image, 0, at);
}

/* Draw the outlines of all regions; a later region covers earlier ones. */
static void draw_outlines(const drawing *d, const plane *q, int x, int y, uint8_t *to)
{
    int count = d->label->channels;

    for (int c = 0; c < count; c++) {
        int whose = (plane_on_outline(q, d->label, c, x, y) ? LABEL : 0)
                  | (plane_on_outline(q, d->prediction, c, x, y) ? PREDICTION : 0);

        for (int i = 0; i < 3 && whose; i++)
            to[i] = (uint8_t)(color[whose][i] * (2 * count - c) / (2 * count));
    }
}

static void draw_panel(drawing *d, const panel *p)
{
    const plane *q = &p->plane;

    for (int y = 0; y < q->height; y++)
        for (int x = 0; x < q->width; x++) {
            uint8_t *to = picture_pixel(&d->picture, p->left + x,
                                        y + (d->height - q->height) / 2);
            int64_t at[3];

            plane_voxel(q, x, y, at);
            memset(to, background_at(d, at), 3);
            draw_outlines(d, q, x, y, to);
        }
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

static pons_status draw(drawing *d, const char *path, pons_error *err)
{
    lay_out(d);
    if (d->image != NULL)
        d->range = grey_range_of_image(d->image, 0);
    if (picture_init(&d->picture, d->width, d->height, err) != PONS_OK)
        return err->status;
    for (int n = 0; n < 3; n++)
        draw_panel(d, &d->panel[n]);
    safe_file_sweep_path(path);
    picture_write(&d->picture, path, err);
    picture_clear(&d->picture);
    return err->status;
}

pons_status overlay_write(const char *path, const volume *label, const volume *prediction,
                          const volume *image, pons_error *err)
{
    drawing d = { .label = label, .prediction = prediction, .image = image };

    if (!png_available())
        return pons_fail(err, PONS_CONFIG,
                         "'--overlay' needs libpng, which is not in this build");
    if (check_extents(label, prediction, "prediction", err) != PONS_OK
        || (image != NULL && check_extents(label, image, "image", err) != PONS_OK))
        return err->status;
    return draw(&d, path, err);
}
