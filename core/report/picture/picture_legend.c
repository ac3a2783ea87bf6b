/*
 * picture_legend.c - see picture_legend.h.
 */
#include "report/picture/picture_legend.h"

#include "report/picture/pixel_text.h"

enum { SCALE = 2, SQUARE = 7 * SCALE, EDGE = 2, SPACE = 8, MARGIN = 4, GAP = 20,
       ROW = SQUARE + 10 };

/* The place of items that follow each other. */
typedef struct flow {
    int width, x, row;
} flow;

static int item_width(const legend_item *item)
{
    return SQUARE + SPACE + pixel_text_width(item->name, SCALE);
}

/* Return the column of the next item; it begins a row where the last one has no room for it. */
static int flow_place(flow *f, const legend_item *item)
{
    int width = item_width(item), x;

    if (f->x > MARGIN && f->x + width > f->width) {
        f->x = MARGIN;
        f->row++;
    }
    x = f->x;
    f->x += width + GAP;
    return x;
}

int picture_legend_height(const legend_item *item, int count, int width)
{
    flow f = { .width = width, .x = MARGIN };

    for (int n = 0; n < count; n++)
        flow_place(&f, &item[n]);
    return count > 0 ? (f.row + 1) * ROW : 0;
}

static void put_item(picture *to, const legend_item *item, int left, int top)
{
    static const uint8_t white[3] = { 235, 235, 235 };

    for (int y = 0; y < SQUARE; y++)
        for (int x = 0; x < SQUARE; x++) {
            bool inside = x >= EDGE && y >= EDGE && x < SQUARE - EDGE && y < SQUARE - EDGE;

            picture_square(to, left + x, top + y, 0, inside ? item->inside : item->edge);
        }
    pixel_text_put(to, left + SQUARE + SPACE, top, SCALE, item->name, white);
}

void picture_legend_put(picture *to, const legend_item *item, int count, int top, int width)
{
    flow f = { .width = width, .x = MARGIN };

    for (int n = 0; n < count; n++) {
        int x = flow_place(&f, &item[n]);

        put_item(to, &item[n], x, top + f.row * ROW + (ROW - SQUARE) / 2);
    }
}
