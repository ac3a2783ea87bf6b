/*
 * progress_plot.c - three panels over the steps of a run.
 */
#include "report/page/progress_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "report/picture/pixel_text.h"
#include "report/picture/png_write.h"

enum { WIDTH = 1000, LEFT = 110, RIGHT = 110, TOP = 50, GAP = 70, BOTTOM = 60, PANELS = 3 };
enum { FIRST_HEIGHT = 420, HEIGHT = 180, SCALE = 2, LETTER = 7 * SCALE, TICKS = 4 };

static const uint8_t black[3] = { 30, 30, 30 }, pale[3] = { 225, 225, 225 };
static const uint8_t blue[3] = { 40, 90, 200 }, green[3] = { 30, 140, 70 };
static const uint8_t red[3] = { 200, 60, 40 };
static const uint8_t light_green[3] = { 150, 205, 165 };

/* A panel's rows, and the spans of its axes. */
typedef struct panel {
    int top, height;
    double x1, low, high;     /* steps begin at 0                                                 */
} panel;

typedef struct progress {
    const report_run *run;
    picture picture;
} progress;

/* ---- axes ------------------------------------------------------------------------------------ */

static int column_of(const panel *p, double x)
{
    return LEFT + (int)lround(x / p->x1 * (WIDTH - LEFT - RIGHT));
}

static int row_of(const panel *p, double y)
{
    return p->top + (int)lround((p->high - y) / (p->high - p->low) * p->height);
}

static void widen(panel *p, const history_series *s)
{
    for (int i = 0; s != NULL && i < s->count; i++)
        if (isfinite(s->value[i])) {
            p->low = fmin(p->low, s->value[i]);
            p->high = fmax(p->high, s->value[i]);
        }
}

/* The span of the finite values of two series, which may be NULL; false: there are none. */
static bool find_span(const history_series *s, const history_series *other, panel *p)
{
    p->low = INFINITY;
    p->high = -INFINITY;
    widen(p, s);
    widen(p, other);
    if (p->high < p->low)
        return false;
    if (p->high <= p->low)
        p->high = p->low + (p->low != 0 ? fabs(p->low) : 1);
    return true;
}

static void put_right_aligned(picture *to, int right, int y, const char *text,
                              const uint8_t color[3])
{
    pixel_text_put(to, right - pixel_text_width(text, SCALE), y, SCALE, text, color);
}

/* Values at the left, or at the right, of lines that both axes share. */
static void put_values(progress *d, const panel *p, bool right, const uint8_t color[3])
{
    for (int n = 0; n <= TICKS; n++) {
        double value = p->low + (p->high - p->low) * n / TICKS;
        int y = row_of(p, value) - LETTER / 2;
        char text[32];

        snprintf(text, sizeof text, "%.3g", value);
        if (right)
            pixel_text_put(&d->picture, WIDTH - RIGHT + 8, y, SCALE, text, color);
        else
            put_right_aligned(&d->picture, LEFT - 8, y, text, color);
    }
}

static void put_grid(progress *d, const panel *p)
{
    for (int n = 0; n <= TICKS; n++) {
        int y = p->top + p->height * n / TICKS;
        int x = LEFT + (WIDTH - LEFT - RIGHT) * n / TICKS;
        char text[32];

        picture_line(&d->picture, (int[]){ LEFT, y }, (int[]){ WIDTH - RIGHT, y }, 0, pale);
        picture_line(&d->picture, (int[]){ x, p->top }, (int[]){ x, p->top + p->height }, 0, pale);
        snprintf(text, sizeof text, "%.6g", rint(p->x1 * n / TICKS));
        pixel_text_put(&d->picture, x - pixel_text_width(text, SCALE) / 2,
                       p->top + p->height + 8, SCALE, text, black);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The mean of the values of each column. */
static void put_line(progress *d, const panel *p, const history_series *s, const uint8_t color[3])
{
    int before[2] = { -1, 0 };

    for (int i = 0; i < s->count;) {
        int column = column_of(p, s->step[i]), count = 0;
        double sum = 0;

        for (; i < s->count && column_of(p, s->step[i]) == column; i++)
            if (isfinite(s->value[i])) {
                sum += s->value[i];
                count++;
            }
        if (count == 0)
            continue;
        int here[2] = { column, row_of(p, sum / count) };

        picture_line(&d->picture, before[0] < 0 ? here : before, here, 1, color);
        memcpy(before, here, sizeof before);
    }
}

static void put_dots(progress *d, const panel *p, const history_series *s, const uint8_t color[3])
{
    for (int i = 0; i < s->count; i++)
        if (isfinite(s->value[i]))
            picture_square(&d->picture, column_of(p, s->step[i]), row_of(p, s->value[i]), 3, color);
}

static history_series moving_average(const report_run *r, const history_series *s)
{
    double *value = arena_alloc(r->memory, (size_t)s->count * sizeof *value), average = NAN;
    history_series out = *s;

    for (int i = 0; i < s->count; i++) {
        if (isfinite(s->value[i]))
            average = isnan(average) ? s->value[i] : 0.9 * average + 0.1 * s->value[i];
        value[i] = average;
    }
    out.value = value;
    return out;
}

/* ---- panels ---------------------------------------------------------------------------------- */

static panel make_panel(const progress *d, int number)
{
    panel p = { .top = TOP, .height = FIRST_HEIGHT,
                .x1 = fmax(1, (double)d->run->history.steps) };

    for (int n = 0; n < number; n++) {
        p.top += p.height + GAP;
        p.height = HEIGHT;
    }
    return p;
}

/* 'other' is of validations; either may be NULL. */
static void put_panel(progress *d, const panel *p, const history_series *s,
                      const history_series *other, const char *title)
{
    int y = p->top - LETTER - 8;

    put_grid(d, p);
    put_values(d, p, false, blue);
    if (s != NULL)
        put_line(d, p, s, blue);
    pixel_text_put(&d->picture, LEFT, y, SCALE, title, blue);
    if (other == NULL)
        return;
    put_line(d, p, other, red);
    pixel_text_put(&d->picture, LEFT + pixel_text_width(title, SCALE), y, SCALE, ", validation",
                   red);
}

/* The metric of [train] best over a panel that has another axis at the left. */
static void put_metric(progress *d, panel p)
{
    const report_run *r = d->run;
    const char *name = report_run_setting(r, "train", "best");
    const history_series *s = run_history_find(&r->history, "validation", name);
    history_series average;
    char title[256];

    if (!find_span(s, NULL, &p))
        return;
    average = moving_average(r, s);
    put_values(d, &p, true, green);
    put_dots(d, &p, s, light_green);
    put_line(d, &p, &average, green);
    snprintf(title, sizeof title, "%s (line - moving average)", name);
    put_right_aligned(&d->picture, WIDTH - RIGHT, p.top - LETTER - 8, title, green);
}

static void draw(progress *d)
{
    static const char *const shown[PANELS][2] = {
        { "loss", "training loss" }, { "seconds", "seconds of a step" }, { "lr", "learning rate" }
    };

    memset(d->picture.pixels, 255, (size_t)d->picture.width * (size_t)d->picture.height * 3);
    for (int n = 0; n < PANELS; n++) {
        const run_history *h = &d->run->history;
        const history_series *s = run_history_find(h, "step", shown[n][0]);
        const history_series *other = n == 0 ? run_history_find(h, "validation", "loss") : NULL;
        panel p = make_panel(d, n);

        if (find_span(s, other, &p))
            put_panel(d, &p, s, other, shown[n][1]);
        if (n == 0)
            put_metric(d, p);
    }
    put_right_aligned(&d->picture, WIDTH - RIGHT, d->picture.height - LETTER - 10, "step", black);
}

pons_status progress_plot_write(const report_run *r, const char *path, pons_error *err)
{
    progress d = { .run = r };
    int height = TOP + FIRST_HEIGHT + (PANELS - 1) * (GAP + HEIGHT) + BOTTOM;

    if (picture_init(&d.picture, WIDTH, height, err) != PONS_OK)
        return err->status;
    draw(&d);
    safe_file_sweep_path(path);
    /* picture_write would make a second folder for a run whose folder was renamed */
    png_write_rgb(path, d.picture.width, d.picture.height, d.picture.pixels, err);
    picture_clear(&d.picture);
    return err->status;
}
