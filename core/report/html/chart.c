/*
 * chart.c - reduce lines to equal parts of the axis, choose ticks, write SVG.
 */
#include "report/html/chart.h"

#include <math.h>
#include <stdbool.h>

#include "base/integer.h"
#include "report/html/html.h"

/* The picture's coordinates, and parts of the x axis. */
enum { WIDTH = 440, HEIGHT = 250, LEFT = 58, RIGHT = 26, TOP = 10, BOTTOM = 30, PARTS = 120 };

typedef struct part {
    int count;
    double first, last;       /* x of its points                                                  */
    double sum, low, high;
} part;

typedef struct chart_frame {
    const chart *chart;
    double x0, x1, y0, y1;
    part (*parts)[PARTS];     /* [line]                                                           */
    FILE *to;
} chart_frame;

/* ---- reduction ------------------------------------------------------------------------------- */

static int part_of(const chart_frame *f, double x)
{
    double share = (x - f->x0) / (f->x1 - f->x0);

    return min_int((int)(share * PARTS), PARTS - 1);
}

static void reduce_line(const chart_frame *f, const chart_line *l, part parts[PARTS])
{
    for (int i = 0; i < l->count; i++) {
        part *p;

        if (!isfinite(l->y[i]))
            continue;
        p = &parts[part_of(f, l->x[i])];
        if (p->count++ == 0)
            *p = (part){ 1, l->x[i], l->x[i], 0, l->y[i], l->y[i] };
        p->last = l->x[i];
        p->sum += l->y[i];
        p->low = fmin(p->low, l->y[i]);
        p->high = fmax(p->high, l->y[i]);
    }
}

static double part_x(const part *p)
{
    return (p->first + p->last) / 2;
}

static double part_y(const part *p)
{
    return p->sum / p->count;
}

static void extend(double value, double *low, double *high)
{
    *low = fmin(*low, value);
    *high = fmax(*high, value);
}

/* The spans of both axes; false without a finite point. */
static bool find_spans(chart_frame *f)
{
    f->x0 = f->y0 = INFINITY;
    f->x1 = f->y1 = -INFINITY;
    for (int n = 0; n < f->chart->line_count; n++) {
        const chart_line *l = &f->chart->line[n];

        for (int i = 0; i < l->count; i++)
            if (isfinite(l->y[i])) {
                extend(l->x[i], &f->x0, &f->x1);
                extend(l->y[i], &f->y0, &f->y1);
            }
    }
    if (f->x1 < f->x0)
        return false;
    if (f->x1 <= f->x0)
        extend(f->x0 + 1, &f->x0, &f->x1);
    if (f->y1 <= f->y0) {
        double around = f->y0 != 0 ? fabs(f->y0) / 10 : 1;

        f->y0 -= around;
        f->y1 += around;
    }
    return true;
}

/* ---- axes ------------------------------------------------------------------------------------ */

static double column_of(const chart_frame *f, double x)
{
    return LEFT + (x - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double row_of(const chart_frame *f, double y)
{
    return HEIGHT - BOTTOM - (y - f->y0) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

/* The digits that tell ticks up to 'largest' from each other. */
static int tick_digits(double step, double largest)
{
    return max_int(4, (int)(floor(log10(largest)) - floor(log10(step))) + 1);
}

/* A step of 1, 2 or 5 times a power of ten that divides the span into four to ten. */
static double tick_step(double span)
{
    double power = pow(10, floor(log10(span / 4))), share = span / 4 / power;

    return power * (share >= 5 ? 5 : share >= 2 ? 2 : 1);
}

static void put_ticks_x(const chart_frame *f)
{
    double step = fmax(tick_step(f->x1 - f->x0), 1);
    int every = (f->x1 - f->x0) / step > 6 ? 2 : 1, n = 0;

    for (double x = ceil(f->x0 / step) * step; x <= f->x1; x += step * every, n++)
        fprintf(f->to, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.8g</text>\n", column_of(f, x),
                column_of(f, x), TOP, HEIGHT - BOTTOM, column_of(f, x), HEIGHT - 12, x);
}

static void put_ticks_y(const chart_frame *f)
{
    double step = tick_step(f->y1 - f->y0);
    int digits = tick_digits(step, fmax(fabs(f->y0), fabs(f->y1)));

    for (double y = ceil(f->y0 / step) * step; y <= f->y1 + step * 1e-6; y += step)
        fprintf(f->to, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.*g</text>\n", LEFT, WIDTH - RIGHT,
                row_of(f, y), row_of(f, y), LEFT - 5, row_of(f, y) + 4, digits,
                fabs(y) < step * 1e-6 ? 0 : y);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_band(const chart_frame *f, const part parts[PARTS], int number)
{
    bool wide = false;

    for (int i = 0; i < PARTS; i++)
        wide = wide || parts[i].count > 1;
    if (!wide)
        return;
    fprintf(f->to, "<polygon class=\"band k%d\" points=\"", number % CHART_COLORS);
    for (int i = 0; i < PARTS; i++)
        if (parts[i].count > 0)
            fprintf(f->to, "%.1f,%.1f ", column_of(f, part_x(&parts[i])),
                    row_of(f, parts[i].high));
    for (int i = PARTS - 1; i >= 0; i--)
        if (parts[i].count > 0)
            fprintf(f->to, "%.1f,%.1f ", column_of(f, part_x(&parts[i])), row_of(f, parts[i].low));
    fputs("\"/>\n", f->to);
}

/* Lines beyond the colours are dashed. */
static void put_curve(const chart_frame *f, const part parts[PARTS], int number)
{
    int points = 0;

    fprintf(f->to, "<polyline class=\"k%d%s\" points=\"", number % CHART_COLORS,
            number >= CHART_COLORS ? " dashed" : "");
    for (int i = 0; i < PARTS; i++)
        if (parts[i].count > 0)
            fprintf(f->to, "%.1f,%.1f ", column_of(f, part_x(&parts[i])),
                    row_of(f, part_y(&parts[i])));
    fputs("\"/>\n", f->to);
    for (int i = 0; i < PARTS; i++)
        points += parts[i].count > 0;
    for (int i = 0; i < PARTS && points <= 40; i++)
        if (parts[i].count > 0)
            fprintf(f->to, "<circle class=\"k%d\" r=\"2.5\" cx=\"%.1f\" cy=\"%.1f\"/>",
                    number % CHART_COLORS, column_of(f, part_x(&parts[i])),
                    row_of(f, part_y(&parts[i])));
}

/* The values of part 'index' of all lines. */
static void put_values(const chart_frame *f, int index)
{
    bool named = false;

    for (int n = 0; n < f->chart->line_count; n++) {
        const part *p = &f->parts[n][index];

        if (p->count == 0)
            continue;
        if (!named)
            fprintf(f->to, p->last > p->first ? "step %.0f to %.0f" : "step %.0f", p->first,
                    p->last);
        named = true;
        fputc('\n', f->to);
        html_put_text(f->to, f->chart->line[n].name);
        fprintf(f->to, ": %.6g", part_y(p));
        if (p->count > 1)
            fprintf(f->to, " (%.4g to %.4g)", p->low, p->high);
    }
}

static bool has_values(const chart_frame *f, int index)
{
    for (int n = 0; n < f->chart->line_count; n++)
        if (f->parts[n][index].count > 0)
            return true;
    return false;
}

/* Bars over the whole height, whose titles a browser shows under the pointer. */
static void put_bars(const chart_frame *f)
{
    double width = (double)(WIDTH - LEFT - RIGHT) / PARTS;

    for (int i = 0; i < PARTS; i++) {
        if (!has_values(f, i))
            continue;
        fprintf(f->to, "<rect class=\"bar\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\">"
                "<title>", LEFT + i * width, TOP, width, HEIGHT - TOP - BOTTOM);
        put_values(f, i);
        fputs("</title></rect>\n", f->to);
    }
}

/* ---- figure ---------------------------------------------------------------------------------- */

static double last_value(const chart_line *l)
{
    for (int i = l->count - 1; i >= 0; i--)
        if (isfinite(l->y[i]))
            return l->y[i];
    return NAN;
}

static void put_legend(const chart_frame *f)
{
    fputs("<ul class=\"legend\">", f->to);
    for (int n = 0; n < f->chart->line_count; n++) {
        fprintf(f->to, "<li><svg class=\"key\" viewBox=\"0 0 20 8\" aria-hidden=\"true\"><line "
                "class=\"k%d%s\" x1=\"0\" x2=\"20\" y1=\"4\" y2=\"4\"/></svg> ", n % CHART_COLORS,
                n >= CHART_COLORS ? " dashed" : "");
        html_put_text(f->to, f->chart->line[n].name);
        fputs(" <span class=\"last\">", f->to);
        html_put_number(f->to, last_value(&f->chart->line[n]), 4);
        fputs("</span></li>", f->to);
    }
    fputs("</ul>\n", f->to);
}

static void put_lines(const chart_frame *f)
{
    for (int n = 0; n < f->chart->line_count; n++)
        put_band(f, f->parts[n], n);
    for (int n = 0; n < f->chart->line_count; n++)
        put_curve(f, f->parts[n], n);
}

void chart_put(FILE *to, arena *memory, const chart *c)
{
    chart_frame f = { .chart = c, .to = to };

    if (!find_spans(&f))
        return;
    f.parts = arena_alloc(memory, (size_t)c->line_count * sizeof *f.parts);
    for (int n = 0; n < c->line_count; n++)
        reduce_line(&f, &c->line[n], f.parts[n]);
    fprintf(to, "<figure><figcaption id=\"chart-%d\">", c->number);
    html_put_text(to, c->title);
    if (c->unit[0] != '\0') {
        fputs(" <small>(", to);
        html_put_text(to, c->unit);
        fputs(")</small>", to);
    }
    fprintf(to, "</figcaption>\n<svg class=\"chart\" role=\"img\" aria-labelledby=\"chart-%d\" "
            "viewBox=\"0 0 %d %d\">\n", c->number, WIDTH, HEIGHT);
    put_ticks_x(&f);
    put_ticks_y(&f);
    put_lines(&f);
    put_bars(&f);
    fputs("</svg>\n", to);
    put_legend(&f);
    fputs("</figure>\n", to);
}

void chart_put_style(FILE *to)
{
    static const char *const color[2][CHART_COLORS] = {
        { "#2457c5", "#c2500a", "#127345", "#8038b8", "#b8233a", "#08737d", "#7a5a10", "#b0307f" },
        { "#7aa5ff", "#ff9d5c", "#5fd39a", "#c99bf5", "#ff8090", "#5cc9d4", "#dcb860", "#f090cc" }
    };

    fputs("svg.chart{width:100%;height:auto;display:block}"
          "svg.key{width:20px;height:8px}"
          "svg text{font-size:12px;fill:var(--soft)}"
          ".grid{stroke:var(--line);stroke-width:1}"
          "polyline,.key line{fill:none;stroke-width:2}.key line{stroke-width:4}"
          ".band{opacity:.18;stroke:none}.bar{fill:transparent}.bar:hover{fill:var(--hover)}"
          ".dashed{stroke-dasharray:5 3}\n", to);
    for (int dark = 0; dark < 2; dark++) {
        fputs(dark ? "@media(prefers-color-scheme:dark){" : "", to);
        for (int n = 0; n < CHART_COLORS; n++)
            fprintf(to, "polyline.k%d,line.k%d{stroke:%s}polygon.k%d,circle.k%d{fill:%s}", n, n,
                    color[dark][n], n, n, color[dark][n]);
        fputs(dark ? "}\n" : "\n", to);
    }
}
