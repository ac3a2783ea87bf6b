/*
 * sheet.c - see sheet.h.
 */
#include "report/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "report/picture.h"
#include "report/png_write.h"

enum { GAP = 4, COLORS = 10 };

static const struct { const char *name; uint8_t rgb[3]; } palette[COLORS] = {
    { "green", { 60, 220, 90 } },   { "red", { 240, 60, 60 } },     { "blue", { 80, 150, 255 } },
    { "yellow", { 250, 220, 60 } }, { "magenta", { 240, 90, 220 } }, { "cyan", { 70, 225, 225 } },
    { "orange", { 255, 150, 40 } }, { "violet", { 165, 115, 255 } }, { "pink", { 255, 175, 190 } },
    { "brown", { 190, 130, 80 } }
};

const char *sheet_color_name(int index)
{
    return palette[(index - 1) % COLORS].name;
}

/* An item with its slices and their place in the picture. */
typedef struct placed_item {
    int plane_count;
    plane plane[3];
    int width, height;       /* of all slices side by side                                        */
    int left, top;
} placed_item;

/* ---- slices ---------------------------------------------------------------------------------- */

/* Count the labelled voxels of each slice across 'axis'. */
static void count_sections(const volume *label, int64_t *const section[3])
{
    int64_t at[3];

    for (at[0] = 0; at[0] < label->extent[0]; at[0]++)
        for (at[1] = 0; at[1] < label->extent[1]; at[1]++)
            for (at[2] = 0; at[2] < label->extent[2]; at[2]++)
                if (picture_is_marked(label, at))
                    for (int a = 0; a < 3; a++)
                        section[a][at[a]]++;
}

static int64_t largest_of(const int64_t *section, int64_t extent)
{
    int64_t largest = 0;

    for (int64_t n = 1; n < extent; n++)
        if (section[n] > section[largest])
            largest = n;
    return section[largest] > 0 ? largest : extent / 2;
}

static pons_status find_slices(const sheet_item *item, int64_t slice[3], pons_error *err)
{
    const int64_t *extent = item->image->extent;
    int64_t *counts, *section[3];

    for (int a = 0; a < 3; a++)
        slice[a] = extent[a] / 2;
    if (item->label->voxels == NULL)
        return PONS_OK;
    counts = calloc((size_t)(extent[0] + extent[1] + extent[2]), sizeof *counts);
    if (counts == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    section[0] = counts;
    section[1] = counts + extent[0];
    section[2] = counts + extent[0] + extent[1];
    count_sections(item->label, section);
    for (int a = 0; a < 3; a++)
        slice[a] = largest_of(section[a], extent[a]);
    free(counts);
    return PONS_OK;
}

/* A volume of one slice is drawn across that axis only. */
static int first_axis(const int64_t extent[3], int *end)
{
    for (int axis = 0; axis < 3; axis++)
        if (extent[axis] == 1) {
            *end = axis + 1;
            return axis;
        }
    *end = 3;
    return 0;
}

static pons_status choose_planes(const sheet_item *item, int side, placed_item *out,
                                 pons_error *err)
{
    const volume *v = item->image;
    int64_t slice[3];
    double spacing[3];
    int end, axis = first_axis(v->extent, &end);

    if (find_slices(item, slice, err) != PONS_OK)
        return err->status;
    pons_volume_spacing(v, spacing);
    for (; axis < end; axis++) {
        plane *p = &out->plane[out->plane_count++];

        plane_init(p, axis, slice[axis], v->extent, spacing, side);
        out->width += p->width + (out->plane_count > 1 ? GAP : 0);
        out->height = max_int(p->height, out->height);
    }
    return PONS_OK;
}

/* ---- layout ---------------------------------------------------------------------------------- */

/* Place the items in rows, columns as wide as their widest item. Sets the picture's extent. */
static void place_items(placed_item *item, int count, int per_row, int *width, int *height)
{
    *width = *height = 0;
    for (int column = 0, left = 0; column < per_row && column < count; column++) {
        int widest = 0;

        for (int n = column; n < count; n += per_row) {
            item[n].left = left;
            widest = max_int(item[n].width, widest);
        }
        *width = left + widest;
        left += widest + 2 * GAP;
    }
    for (int first = 0, top = 0; first < count; first += per_row) {
        int highest = 0;

        for (int n = first; n < count && n < first + per_row; n++) {
            item[n].top = top;
            highest = max_int(item[n].height, highest);
        }
        *height = top + highest;
        top += highest + 2 * GAP;
    }
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* The class whose outline goes through a pixel; a later region covers earlier ones. 0: none. */
static int outline_at(const plane *p, const volume *label, int x, int y)
{
    int found = 0;
    int64_t at[3];

    if (label->voxels == NULL)
        return 0;
    plane_voxel(p, x, y, at);
    for (int c = 0; c < label->channels; c++)
        if (plane_on_outline(p, label, c, x, y))
            found = label->channels > 1 ? c + 1 : picture_class_at(label, at, 0);
    return found;
}

static void draw_plane(picture *to, const plane *p, int left, int top, const sheet_item *item,
                       const grey_range *range)
{
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            uint8_t *pixel = picture_pixel(to, left + x, top + y);
            int outlined = outline_at(p, item->label, x, y);
            int64_t at[3];

            plane_voxel(p, x, y, at);
            if (outlined > 0)
                memcpy(pixel, palette[(outlined - 1) % COLORS].rgb, 3);
            else
                memset(pixel, grey_at(range, item->image, item->channel, at), 3);
        }
}

static void draw_item(picture *to, const placed_item *place, const sheet_item *item)
{
    grey_range range = grey_range_of_image(item->image, item->channel);
    int left = place->left;

    for (int n = 0; n < place->plane_count; n++) {
        draw_plane(to, &place->plane[n], left, place->top, item, &range);
        left += place->plane[n].width + GAP;
    }
}

static pons_status draw_all(const char *path, const sheet_item *item, placed_item *place,
                            int count, int per_row, int side, pons_error *err)
{
    picture drawn;
    int width, height;

    for (int n = 0; n < count; n++)
        if (choose_planes(&item[n], side, &place[n], err) != PONS_OK)
            return err->status;
    place_items(place, count, per_row, &width, &height);
    if (picture_init(&drawn, width, height, err) != PONS_OK)
        return err->status;
    for (int n = 0; n < count; n++)
        draw_item(&drawn, &place[n], &item[n]);
    picture_write(&drawn, path, err);
    picture_clear(&drawn);
    return err->status;
}

pons_status sheet_write(const char *path, const sheet_item *item, int count, int per_row, int side,
                        pons_error *err)
{
    placed_item *place;

    if (!png_available())
        return pons_fail(err, PONS_CONFIG, "a picture needs libpng, which is not in this build");
    place = calloc((size_t)count, sizeof *place);
    if (place == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    draw_all(path, item, place, count, per_row, side, err);
    free(place);
    return err->status;
}
