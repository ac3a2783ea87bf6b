/*
 * page_curves.c - charts of a run's numbers; metrics of classes are lines of their metric's chart.
 */
#include "report/page/page_internal.h"

#include <string.h>

#include "report/html/chart.h"
#include "report/html/page_frame.h"

enum { LINES_MAX = 2 * CHART_COLORS };

/* Numbers of steps that have a chart, in this order. */
static const struct { const char *name, *title, *unit; } of_steps[] = {
    { "lr", "Learning rate", "" },
    { "grad_norm", "Norm of the gradient", "" }, { "seconds", "Time of a step", "seconds" },
    { "data_seconds", "Time of a step that waits for data", "seconds" },
    { "loss_scale", "Loss scale", "" }
};

typedef struct curves {
    FILE *to;
    arena *memory;
    int run_count, chart_count;
    const report_run *run;
} curves;

static void put_chart(curves *c, const char *title, const char *unit, int count,
                      const chart_line *line)
{
    const chart drawn = { .title = title, .unit = unit, .number = ++c->chart_count,
                          .line_count = count, .line = line };

    chart_put(c->to, c->memory, &drawn);
}

/* One line for each run that has the number. */
static void put_number(curves *c, const char *kind, const char *name, const char *title,
                       const char *unit)
{
    chart_line line[LINES_MAX];
    int count = 0;

    for (int r = 0; r < c->run_count && count < LINES_MAX; r++) {
        const history_series *s = run_history_find(&c->run[r].history, kind, name);

        if (s != NULL)
            line[count++] = (chart_line){ c->run_count > 1 ? c->run[r].name : title, s->count,
                                          s->step, s->value };
    }
    if (count > 0)
        put_chart(c, title, unit, count, line);
}

/* The losses of one run together, else those of the training and those of the validations. */
static void put_losses(curves *c)
{
    static const char *const kind[] = { "step", "validation" };
    static const char *const title[] = { "Training loss", "Validation loss" };
    chart_line line[2];
    int count = 0;

    for (int n = 0; n < 2; n++) {
        const history_series *s = run_history_find(&c->run->history, kind[n], "loss");

        if (c->run_count > 1)
            put_number(c, kind[n], "loss", title[n], "");
        else if (s != NULL)
            line[count++] = (chart_line){ title[n], s->count, s->step, s->value };
    }
    if (count > 0)
        put_chart(c, count > 1 ? "Loss" : line->name, "", count, line);
}

static size_t metric_size(const char *name)
{
    return strcspn(name, ".");
}

static bool is_of_metric(const history_series *s, const char *metric)
{
    size_t size = metric_size(metric);

    return strcmp(s->kind, "validation") == 0 && s->name[size] == '.'
           && strncmp(s->name, metric, size) == 0;
}

/* The mean and the classes of a metric of one run. */
static void put_classes(curves *c, const history_series *first)
{
    const run_history *h = &c->run->history;
    char *title = arena_string(c->memory, first->name);
    chart_line line[LINES_MAX];
    int count = 0, all = 0;

    title[metric_size(title)] = '\0';
    for (int i = 0; i < h->count; i++) {
        const history_series *s = &h->series[i];

        if (!is_of_metric(s, first->name))
            continue;
        if (count < LINES_MAX)
            line[count++] = (chart_line){ s->name + metric_size(s->name) + 1, s->count, s->step,
                                          s->value };
        all++;
    }
    if (all > LINES_MAX)
        title = arena_format(c->memory, "%s, the mean and the first %d of %d classes", title,
                             LINES_MAX - 1, all - 1);
    put_chart(c, title, "validation", count, line);
}

/* Metrics of the first run. A comparison has the means only. */
static void put_metrics(curves *c)
{
    const run_history *h = &c->run->history;

    for (int i = 0; i < h->count; i++) {
        const history_series *s = &h->series[i];
        bool begins = i == 0 || !is_of_metric(&h->series[i - 1], s->name);

        if (strcmp(s->kind, "validation") != 0 || s->name[metric_size(s->name)] == '\0'
            || !begins)
            continue;
        if (c->run_count == 1)
            put_classes(c, s);
        else
            put_number(c, s->kind, s->name, s->name, "validation");
    }
}

void page_put_curves(FILE *to, arena *memory, int count, const report_run *run)
{
    curves c = { .to = to, .memory = memory, .run_count = count, .run = run };

    page_section(to, "curves", "Curves");
    fputs("<p class=\"soft\">Each value stands under the pointer. A line of many steps shows means "
          "of equal parts of the run, and a band from the smallest to the largest value.</p>\n"
          "<div class=\"grid-box\">\n", to);
    put_losses(&c);
    put_metrics(&c);
    for (size_t i = 0; i < sizeof of_steps / sizeof *of_steps; i++)
        put_number(&c, "step", of_steps[i].name, of_steps[i].title, of_steps[i].unit);
    fputs("</div>\n", to);
    page_section(to, NULL, NULL);
}
