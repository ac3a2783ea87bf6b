/*
 * sheet.c - see sheet.h.
 */
#include "report/picture/sheet.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "report/picture/class_marks.h"
#include "report/picture/picture.h"
#include "report/picture/png_write.h"
#include "report/picture/slice_counts.h"

enum { GAP = 4 };

/* An item with its slices and their place in the picture. */
typedef struct placed_item {
    int plane_count;
    plane plane[3];
    int width, height;       /* of all slices side by side                                        */
    int left, top;
} placed_item;

/* ---- slices ---------------------------------------------------------------------------------- */

static pons_status choose_planes(const sheet_item *item, int side, placed_item *out,
                                 pons_error *err)
{
    const volume *v = item->image;
    slice_counts counts;
    double spacing[3];

    if (slice_counts_init(&counts, v->extent, err) != PONS_OK)
        return err->status;
    if (item->label->voxels != NULL)
        slice_counts_add_marked(&counts, item->label);
    pons_volume_spacing(v, spacing);
    for (int axis = 0; axis < 3; axis++) {
        plane *p = &out->plane[out->plane_count];

        if (!slice_axis_is_drawn(v->extent, axis))
            continue;
        plane_init(p, axis, slice_counts_largest(&counts, axis), v->extent, spacing, side);
        out->width += p->width + (out->plane_count++ > 0 ? GAP : 0);
        out->height = max_int(p->height, out->height);
    }
    slice_counts_clear(&counts);
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

static void draw_plane(picture *to, const plane *p, int left, int top, const sheet_item *item,
                       const grey_range *range)
{
    bool labelled = item->label->voxels != NULL;

    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++) {
            uint8_t *pixel = picture_pixel(to, left + x, top + y);
            int outlined = labelled ? plane_outline_at(p, item->label, 1, x, y) : 0;

            if (outlined > 0)
                memcpy(pixel, mark_class_color(outlined - 1), 3);
            else
                memset(pixel, grey_at(range, item->image, item->channel,
                                      plane_voxel_index(p, x, y)), 3);
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
