/*
 * command_find_rate.c - pons find-rate: train with rising learning rates, and suggest one from the
 * losses.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "bench/rate_measure.h"
#include "cli/bench/bench_experiment.h"
#include "report/picture/curve_plot.h"
#include "report/picture/png_write.h"

typedef struct find_rate_flags {
    bool json;
    const char *output;
    double start, end;
    int64_t steps;
} find_rate_flags;

static const pons_option flags[] = {
    PONS_FLAG(find_rate_flags, json, "no", "One JSON object on the standard output."),
    PONS_TEXT(find_rate_flags, output, "", "The picture; FILE_rate.png if it is not given."),
    PONS_REAL(find_rate_flags, start, "1e-7", DBL_MIN, DBL_MAX, "The first rate."),
    PONS_REAL(find_rate_flags, end, "10", DBL_MIN, DBL_MAX, "The rate that the last one is below."),
    PONS_INTEGER(find_rate_flags, steps, "100", 20, RATE_CURVE_MAX, "Rates, one a step."),
    PONS_OPTIONS_END
};

/* A suggestion, its words for a reader, and its mark in the picture. */
typedef struct suggested {
    const char *name;
    double rate;
    const char *meaning, *color_name;
    uint8_t color[3];
} suggested;

enum { SUGGESTIONS = 3 };

static void list_suggestions(const rate_suggestion *s, suggested out[SUGGESTIONS])
{
    const suggested all[SUGGESTIONS] = {
        { "valley", s->valley, "halfway along the longest fall", "green", { 40, 170, 70 } },
        { "steep", s->steep, "where the loss falls fastest", "blue", { 50, 90, 220 } },
        { "minimum", s->minimum, "a tenth of the rate of the smallest loss", "red",
          { 220, 50, 50 } }
    };

    memcpy(out, all, sizeof all);
}

static void print_list(const char *name, int count, const double *value)
{
    printf(",\"%s\":[", name);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            putchar(',');
        json_put_number(stdout, value[i]);
    }
    putchar(']');
}

static void print_json(const rate_curve *c, const suggested *s)
{
    fputs("{\"suggestion\":{", stdout);
    for (int i = 0; i < SUGGESTIONS; i++) {
        printf("%s\"%s\":", i > 0 ? "," : "", s[i].name);
        json_put_number(stdout, s[i].rate);
    }
    putchar('}');
    print_list("rates", c->count, c->rate);
    print_list("losses", c->count, c->loss);
    print_list("smooth", c->count, c->smooth);
    puts("}");
}

static void print_table(const suggested *s)
{
    for (int i = 0; i < SUGGESTIONS; i++)
        printf("%-8s %-9.3g %s (%s)\n", s[i].name, s[i].rate, s[i].meaning, s[i].color_name);
}

/* The name of the picture: as given, or that of the INI file without '.ini'. */
static pons_status name_picture(const find_rate_flags *f, const char *file, char **out,
                                pons_error *err)
{
    const char *base = strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file;
    size_t size = strlen(base);

    if (size > 4 && strcmp(base + size - 4, ".ini") == 0)
        size -= 4;
    if (f->output != NULL ? asprintf(out, "%s", f->output) < 0
                          : asprintf(out, "%.*s_rate.png", (int)size, base) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    return PONS_OK;
}

static pons_status write_picture(const find_rate_flags *f, const char *file, const rate_span *span,
                                 const suggested *s, logger *l, pons_error *err)
{
    curve_mark mark[SUGGESTIONS];
    const curve_plot plot = { .count = span->count, .x = span->rate, .y = span->smooth,
                              .points = span->loss, .mark_count = SUGGESTIONS, .mark = mark };
    char *path = NULL;

    for (int i = 0; i < SUGGESTIONS; i++) {
        mark[i].x = s[i].rate;
        memcpy(mark[i].color, s[i].color, sizeof s[i].color);
    }
    if (!png_available()) {
        log_line(l, "no picture is drawn: libpng is not in this build");
        return PONS_OK;
    }
    if (name_picture(f, file, &path, err) == PONS_OK
        && curve_plot_write(&plot, path, err) == PONS_OK)
        log_line(l, "picture: '%s'", path);
    free(path);
    return err->status;
}

static pons_status report(const find_rate_flags *f, const char *file, const rate_curve *c,
                          logger *l, pons_error *err)
{
    const rate_span span = rate_curve_span(c, (int)f->steps);
    const rate_suggestion found = rate_curve_suggest(&span);
    suggested list[SUGGESTIONS];

    if (!isfinite(found.valley))
        return pons_fail(err, PONS_FAILURE, "no rate can be suggested: the loss grew or was not "
                         "finite after %d of %d steps\nhint: a smaller --start", c->count,
                         (int)f->steps);
    list_suggestions(&found, list);
    if (write_picture(f, file, &span, list, l, err) != PONS_OK)
        return err->status;
    if (f->json)
        print_json(c, list);
    else
        print_table(list);
    return PONS_OK;
}

typedef struct sweep_request {
    const find_rate_flags *flags;
    const char *file;
    rate_curve *curve;
} sweep_request;

static pons_status find_rate(void *context, experiment *e, pons_error *err)
{
    const sweep_request *r = context;
    const rate_sweep sweep = { r->flags->start, r->flags->end, (int)r->flags->steps };

    if (rate_measure(e, &sweep, r->curve, err) != PONS_OK || e->first > 0)
        return err->status;
    return report(r->flags, r->file, r->curve, e->log, err);
}

static pons_status check_flags(const find_rate_flags *f, pons_error *err)
{
    if (f->end <= f->start)
        return pons_fail(err, PONS_USAGE, "--end is %g, expected more than --start, which is %g",
                         f->end, f->start);
    if (f->output != NULL && folder_is_there(f->output))
        return pons_fail(err, PONS_USAGE, "'--output' is '%s', a folder, expected a file",
                         f->output);
    if (f->output != NULL && !png_available())
        return pons_fail(err, PONS_CONFIG, "'--output' needs libpng, which is not in this build");
    return PONS_OK;
}

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const find_rate_flags *f = given;
    rate_curve *curve = calloc(1, sizeof *curve);
    config *c = NULL;

    if (curve == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (check_flags(f, err) == PONS_OK
        && invocation_config(call, call->argument[0], &c, err) == PONS_OK)
        bench_experiment_run(call, c, find_rate,
                             &(sweep_request){ f, call->argument[0], curve }, err);
    config_close(c);
    free(curve);
    return err->status;
}

const command command_find_rate = {
    "find-rate", "a sweep of learning rates, and which to take", "FILE.ini", flags,
    sizeof(find_rate_flags), "o=output", 1, 1, run
};
