/*
 * overlay.c - choose the slices, draw the classes and the errors, and name their colours.
 */
#include "report/picture/overlay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/integer.h"
#include "report/picture/class_marks.h"
#include "report/picture/picture_legend.h"
#include "report/picture/pixel_text.h"
#include "report/picture/png_write.h"
#include "report/picture/slice_counts.h"

enum { SIDE = 384, GAP = 4, OUTLINE = 2, WIDTH_MIN = 480 };
enum { TEXT_SCALE = 2, CAPTION = 7 * TEXT_SCALE + 10 };
enum { NAMED_MAX = 40, ITEMS_MAX = NAMED_MAX + 3 }; /* classes of a legend; its items             */
enum { GREY_EMPTY = 20, GREY_NAMED = 128 }; /* without an image: outside areas; below areas       */

static const uint8_t white[3] = { 235, 235, 235 }, black[3] = { 0, 0, 0 };

typedef struct panel {
    plane plane;
    int left;
} panel;

/* A legend, and its first row in the picture. */
typedef struct placed_legend {
    int top, count;
    legend_item item[ITEMS_MAX];
} placed_legend;

typedef struct drawing {
    const overlay_case *of;
    grey_range range;
    int panel_count;
    panel panel[3];
    bool *seen;               /* [class_count + 1] classes of the slices                          */
    int width, height, panel_height;
    int classes_top, errors_top; /* first rows of the panels                                      */
    placed_legend classes, errors;
    char more[48];            /* how many classes have no name in the legend                      */
    picture picture;
} drawing;

/* ---- layout ---------------------------------------------------------------------------------- */

static void place_panels(drawing *d, const slice_counts *counts)
{
    double spacing[3];
    int left = 0;

    pons_volume_spacing(d->of->label, spacing);
    for (int axis = 0; axis < 3; axis++) {
        panel *p = &d->panel[d->panel_count];

        if (!slice_axis_is_drawn(counts->extent, axis))
            continue;
        plane_init(&p->plane, axis, slice_counts_largest(counts, axis), counts->extent, spacing,
                   SIDE);
        p->left = left;
        left += p->plane.width + GAP;
        d->panel_height = max_int(p->plane.height, d->panel_height);
        d->panel_count++;
    }
    d->width = max_int(left - GAP, WIDTH_MIN);
}

/* The label decides, so that pictures of several predictions show the same slices. */
static pons_status choose_slices(drawing *d, pons_error *err)
{
    slice_counts counts;

    if (slice_counts_init(&counts, d->of->label->extent, err) != PONS_OK)
        return err->status;
    if (!slice_counts_add_marked(&counts, d->of->label))
        slice_counts_add_marked(&counts, d->of->prediction);
    place_panels(d, &counts);
    slice_counts_clear(&counts);
    return PONS_OK;
}

/* The colour of a prediction's area: it keeps its hue and is darker than outlines. */
static void tint(const uint8_t color[3], int grey, uint8_t out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = (uint8_t)(color[i] * (64 + grey / 2) / 320);
}

static void mark_seen(drawing *d, int class)
{
    if (class > 0 && class <= d->of->class_count)
        d->seen[class] = true;
}

static void find_classes(drawing *d)
{
    for (int n = 0; n < d->panel_count; n++) {
        const plane *p = &d->panel[n].plane;

        for (int y = 0; y < p->height; y++)
            for (int x = 0; x < p->width; x++) {
                mark_seen(d, plane_outline_at(p, d->of->label, OUTLINE, x, y));
                mark_seen(d, mark_class_of(d->of->prediction, plane_voxel_index(p, x, y)));
            }
    }
}

/* ---- legends --------------------------------------------------------------------------------- */

static void add_item(placed_legend *l, const uint8_t edge[3], const uint8_t inside[3],
                     const char *name)
{
    legend_item *item = &l->item[l->count++];

    memcpy(item->edge, edge, 3);
    memcpy(item->inside, inside, 3);
    item->name = name;
}

static void name_classes(drawing *d)
{
    uint8_t dim[3];
    int left_out = 0, named = 0;

    add_item(&d->classes, white, black, "label");
    tint(white, GREY_NAMED, dim);
    add_item(&d->classes, dim, dim, "prediction");
    for (int class = 1; class <= d->of->class_count; class++) {
        const uint8_t *color = mark_class_color(class - 1);

        if (!d->seen[class])
            continue;
        tint(color, GREY_NAMED, dim);
        if (named++ < NAMED_MAX)
            add_item(&d->classes, color, dim, d->of->classes[class - 1].name);
        else
            left_out++;
    }
    snprintf(d->more, sizeof d->more, "and %d more", left_out);
    if (left_out > 0)
        add_item(&d->classes, black, black, d->more);
}

static void name_errors(drawing *d)
{
    for (int n = MARK_MISSED; n < MARK_ERROR_COUNT; n++) {
        const uint8_t *color = mark_error_color((mark_error)n);

        add_item(&d->errors, color, color, mark_error_name((mark_error)n));
    }
}

static void place_rows(drawing *d)
{
    name_classes(d);
    name_errors(d);
    d->classes_top = CAPTION;
    d->classes.top = d->classes_top + d->panel_height + GAP;
    d->errors_top = d->classes.top + GAP
                  + picture_legend_height(d->classes.item, d->classes.count, d->width);
    d->errors.top = d->errors_top + d->panel_height + GAP;
    d->height = d->errors.top
              + picture_legend_height(d->errors.item, d->errors.count, d->width);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void draw_classes(const drawing *d, const plane *p, int x, int y, uint8_t *to)
{
    int64_t voxel = plane_voxel_index(p, x, y);
    int predicted = mark_class_of(d->of->prediction, voxel);
    int outlined = plane_outline_at(p, d->of->label, OUTLINE, x, y);
    int grey = predicted > 0 ? GREY_NAMED : GREY_EMPTY;

    if (d->of->image != NULL)
        grey = grey_at(&d->range, d->of->image, 0, voxel);
    memset(to, grey, 3);
    if (outlined > 0)
        memcpy(to, mark_class_color(outlined - 1), 3);
    else if (predicted > 0)
        tint(mark_class_color(predicted - 1), grey, to);
}

static void draw_errors(const drawing *d, const plane *p, int x, int y, uint8_t *to)
{
    int64_t voxel = plane_voxel_index(p, x, y);
    int error = mark_error_of(d->of->label, d->of->prediction, voxel);

    memset(to, d->of->image != NULL ? grey_at(&d->range, d->of->image, 0, voxel) / 2 : GREY_EMPTY,
           3);
    if (error > 0)
        memcpy(to, mark_error_color((mark_error)error), 3);
}

static void draw_panel(drawing *d, const panel *p)
{
    const plane *q = &p->plane;
    int down = (d->panel_height - q->height) / 2;
    char caption[64];

    snprintf(caption, sizeof caption, "%c %lld", "ijk"[q->axis], (long long)q->slice);
    pixel_text_put(&d->picture, p->left + GAP, (CAPTION - 7 * TEXT_SCALE) / 2, TEXT_SCALE, caption,
                   white);
    for (int y = 0; y < q->height; y++)
        for (int x = 0; x < q->width; x++) {
            draw_classes(d, q, x, y,
                         picture_pixel(&d->picture, p->left + x, d->classes_top + down + y));
            draw_errors(d, q, x, y,
                        picture_pixel(&d->picture, p->left + x, d->errors_top + down + y));
        }
}

static pons_status draw(drawing *d, pons_error *err)
{
    if (choose_slices(d, err) != PONS_OK)
        return err->status;
    find_classes(d);
    place_rows(d);
    if (d->of->image != NULL)
        d->range = grey_range_of_image(d->of->image, 0);
    if (picture_init(&d->picture, d->width, d->height, err) != PONS_OK)
        return err->status;
    for (int n = 0; n < d->panel_count; n++)
        draw_panel(d, &d->panel[n]);
    picture_legend_put(&d->picture, d->classes.item, d->classes.count, d->classes.top, d->width);
    picture_legend_put(&d->picture, d->errors.item, d->errors.count, d->errors.top, d->width);
    return PONS_OK;
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

pons_status overlay_draw(const overlay_case *c, picture *out, pons_error *err)
{
    drawing d = { .of = c };

    if (check_extents(c->label, c->prediction, "prediction", err) != PONS_OK
        || (c->image != NULL && check_extents(c->label, c->image, "image", err) != PONS_OK))
        return err->status;
    d.seen = calloc((size_t)c->class_count + 1, sizeof *d.seen);
    if (d.seen == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    if (draw(&d, err) == PONS_OK)
        *out = d.picture;
    free(d.seen);
    return err->status;
}

pons_status overlay_write(const char *path, const overlay_case *c, pons_error *err)
{
    picture p;

    if (!png_available())
        return pons_fail(err, PONS_CONFIG,
                         "'--overlay' needs libpng, which is not in this build");
    if (overlay_draw(c, &p, err) != PONS_OK)
        return err->status;
    safe_file_sweep_path(path);
    picture_write(&p, path, err);
    picture_clear(&p);
    return err->status;
}
