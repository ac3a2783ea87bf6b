/*
 * run_reporter.c - keep the files of a run's report up to date beside its training.
 */
#include "report/page/run_reporter.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "report/page/case_scores.h"
#include "report/page/mosaic.h"
#include "report/page/network_levels.h"
#include "report/page/report_writer.h"
#include "report/png_write.h"

struct run_reporter {
    char *folder;
    logger *log;
    report_writer *writer;
    bool warned;
};

/* Warn of the first failure. */
static void warn(run_reporter *r, const pons_error *problem)
{
    if (problem->status != PONS_OK && !r->warned) {
        log_warning(r->log, "the report of the run is not complete: %s", problem->text);
        r->warned = true;
    }
}

pons_status run_reporter_open(const char *folder, const experiment *e, run_reporter **out,
                              pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    run_reporter *r = calloc(1, sizeof *r);

    if (r == NULL || (r->folder = strdup(folder)) == NULL) {
        free(r);
        return pons_fail(err, PONS_DEVICE, "out of memory for the report of a run");
    }
    r->log = e->log;
    if (report_writer_open(folder, &r->writer, err) != PONS_OK) {
        run_reporter_close(r, false);
        return err->status;
    }
    network_levels_write(e, folder, &problem);
    warn(r, &problem);
    *out = r;
    return PONS_OK;
}

/* ---- a validation ---------------------------------------------------------------------------- */

void run_reporter_draw(run_reporter *r, int number, const pons_case *c, const uint8_t *decided)
{
    pons_error problem = PONS_ERROR_INIT;
    mosaic_picture picture;

    if (r == NULL || !png_available())
        return;
    if (mosaic_draw(&c->image, &c->label, decided, &picture, &problem) == PONS_OK)
        report_writer_picture(r->writer, number, &picture);
    else
        report_writer_note(r->writer, &problem);
}

static void fill_values(const validated_cases *v, const case_scores *s, double *value)
{
    int classes = v->experiment->class_count;

    for (int n = 0; n < v->count; n++)
        for (int c = v->first_class; c <= classes; c++)
            for (int m = 0; m < s->metric_count; m++) {
                const class_score *score = v->score + (int64_t)n * classes;
                metric_kind kind = metric_kind_find(s->metric[m]);

                *value++ = c < classes ? score[c].value[kind]
                         : metric_mean_of_classes(score + v->first_class, classes - v->first_class,
                                                  kind);
            }
}

static const char *const *class_names(arena *memory, const validated_cases *v)
{
    const experiment *e = v->experiment;
    const char **name = arena_alloc(memory, (size_t)(e->class_count + 1) * sizeof *name);

    for (int c = v->first_class; c < e->class_count; c++)
        name[c - v->first_class] = e->classes[c].name;
    name[e->class_count - v->first_class] = CASE_SCORES_MEAN;
    return name;
}

static const char *const *metric_names(arena *memory, metric_set metrics, int *count)
{
    const char **name = arena_alloc(memory, METRIC_KIND_COUNT * sizeof *name);

    *count = 0;
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        if (metric_set_has(metrics, (metric_kind)kind))
            name[(*count)++] = metric_facts[kind].name;
    return name;
}

static const char *const *case_names(arena *memory, const validated_cases *v)
{
    const char **name = arena_alloc(memory, (size_t)v->count * sizeof *name);

    for (int n = 0; n < v->count; n++)
        name[n] = v->experiment->data->cases[v->ranks[n]].id;
    return name;
}

void run_reporter_score(run_reporter *r, const validated_cases *v)
{
    pons_error problem = PONS_ERROR_INIT;
    arena *memory = r != NULL ? arena_new() : NULL;
    case_scores s = { .step = v->step, .case_count = v->count,
                      .class_count = v->experiment->class_count - v->first_class + 1 };
    double *value;

    if (memory == NULL)
        return;
    s.name = case_names(memory, v);
    s.class = class_names(memory, v);
    s.metric = metric_names(memory, v->metrics, &s.metric_count);
    value = arena_alloc(memory, (size_t)(s.case_count * s.class_count * s.metric_count)
                                * sizeof *value);
    fill_values(v, &s, value);
    s.value = value;
    case_scores_write(r->folder, &s, &problem);
    warn(r, &problem);
    arena_free(memory);
}

/* ---- the page -------------------------------------------------------------------------------- */

void run_reporter_begin_page(run_reporter *r)
{
    pons_error problem = PONS_ERROR_INIT;

    if (r == NULL)
        return;
    report_writer_page(r->writer);
    report_writer_check(r->writer, &problem);
    warn(r, &problem);
}

void run_reporter_close(run_reporter *r, bool last)
{
    pons_error problem = PONS_ERROR_INIT;

    if (r == NULL)
        return;
    if (last) {
        report_writer_page(r->writer);
        report_writer_wait(r->writer, &problem);
        warn(r, &problem);
    }
    report_writer_close(r->writer);
    free(r->folder);
    free(r);
}
