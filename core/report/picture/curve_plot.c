/*
 * curve_plot.c - lines and dots on a white picture.
 */
#include "report/picture/curve_plot.h"

#include <math.h>
#include <string.h>

#include "base/file/file.h"
#include "report/picture/picture.h"

enum { WIDTH = 800, HEIGHT = 500, MARGIN = 20, THICK = 2, DOT = 1 };

typedef struct frame {
    picture picture;
    double left, right;       /* logarithm of x at the sides                                      */
    double low, high;         /* y at the bottom and at the top                                   */
} frame;

static const uint8_t black[3] = { 0, 0, 0 }, grey[3] = { 170, 170, 170 };
static const uint8_t pale[3] = { 228, 228, 228 };

static int column_of(const frame *f, double x)
{
    double share = (log10(x) - f->left) / (f->right - f->left);

    return MARGIN + (int)lround(share * (WIDTH - 1 - 2 * MARGIN));
}

static int row_of(const frame *f, double y)
{
    double share = (y - f->low) / (f->high - f->low);

    return MARGIN + (int)lround((1 - share) * (HEIGHT - 1 - 2 * MARGIN));
}

static void put_column(frame *f, int x, int radius, const uint8_t color[3])
{
    for (int y = MARGIN; y < HEIGHT - MARGIN; y++)
        picture_square(&f->picture, x, y, radius, color);
}

static void find_range(frame *f, const curve_plot *p)
{
    f->left = log10(p->x[0]);
    f->right = log10(p->x[p->count - 1]);
    f->low = f->high = p->y[0];
    for (int i = 0; i < p->count; i++) {
        double point = p->points != NULL ? p->points[i] : p->y[i];
        f->low = fmin(f->low, fmin(p->y[i], point));
        f->high = fmax(f->high, fmax(p->y[i], point));
    }
    if (f->high <= f->low)
        f->high = f->low + 1;
}

static void draw(frame *f, const curve_plot *p)
{
    memset(f->picture.pixels, 255, (size_t)WIDTH * HEIGHT * 3);
    for (double power = ceil(f->left); power <= f->right; power++)
        put_column(f, column_of(f, pow(10, power)), 0, pale);
    for (int i = 0; i < p->mark_count; i++)
        if (isfinite(p->mark[i].x))
            put_column(f, column_of(f, p->mark[i].x), THICK / 2, p->mark[i].color);
    for (int i = 0; p->points != NULL && i < p->count; i++)
        picture_square(&f->picture, column_of(f, p->x[i]), row_of(f, p->points[i]), DOT, grey);
    for (int i = 1; i < p->count; i++)
        picture_line(&f->picture, (int[]){ column_of(f, p->x[i - 1]), row_of(f, p->y[i - 1]) },
                     (int[]){ column_of(f, p->x[i]), row_of(f, p->y[i]) }, THICK / 2, black);
}

pons_status curve_plot_write(const curve_plot *p, const char *path, pons_error *err)
{
    frame f;

    if (picture_init(&f.picture, WIDTH, HEIGHT, err) != PONS_OK)
        return err->status;
    find_range(&f, p);
    draw(&f, p);
    safe_file_sweep_path(path);
    picture_write(&f.picture, path, err);
    picture_clear(&f.picture);
    return err->status;
}
