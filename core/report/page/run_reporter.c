/*
 * run_reporter.c - keep the files of a run's report up to date beside its training.
 */
#include "report/page/run_reporter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/integer.h"
#include "base/text/text.h"
#include "cluster/group/group.h"
#include "data/case/case_read.h"
#include "report/page/case_scores.h"
#include "report/page/mosaic.h"
#include "report/page/network_levels.h"
#include "report/page/report_writer.h"
#include "report/page/worst_cases.h"
#include "report/picture/png_write.h"

struct run_reporter {
    char *folder;             /* NULL: another rank writes                                        */
    const experiment *experiment;
    report_writer *writer;    /* NULL: likewise                                                   */
    worst_cases shown;        /* of the validation under way                                      */
    bool warned;
};

/* Warn of the first failure. */
static void warn(run_reporter *r, const pons_error *problem)
{
    if (problem->status != PONS_OK && !r->warned) {
        log_warning(r->experiment->log, "the report of the run is not complete: %s",
                    problem->text);
        r->warned = true;
    }
}

static pons_status open_files(run_reporter *r, const char *folder, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;

    r->folder = strdup(folder);
    if (r->folder == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the report of a run");
    if (report_writer_open(folder, &r->writer, err) != PONS_OK)
        return err->status;
    network_levels_write(r->experiment, folder, &problem);
    warn(r, &problem);
    return PONS_OK;
}

/* The ranks that draw: of a classification rank 0 alone, which has the probabilities of all. */
static int drawing_ranks(const experiment *e)
{
    bool one = e->group == NULL || e->sections.experiment.task == TASK_CLASSIFICATION;

    return one ? 1 : group_size(e->group);
}

pons_status run_reporter_open(const char *folder, const experiment *e, run_reporter **out,
                              pons_error *err)
{
    run_reporter *r = calloc(1, sizeof *r);

    if (r == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the report of a run");
    r->experiment = e;
    worst_cases_init(&r->shown, max_int(1, WORST_CASES_MAX / drawing_ranks(e)));
    if (folder != NULL && open_files(r, folder, err) != PONS_OK) {
        run_reporter_close(r, false);
        return err->status;
    }
    *out = r;
    return PONS_OK;
}

/* ---- a validation ---------------------------------------------------------------------------- */

/* A case whose slices find no memory has no picture. */
void run_reporter_draw(run_reporter *r, const scored_case *c)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (r == NULL || c->c == NULL || !png_available())
        return;
    const mosaic_case shown = { &c->c->image, c->channel,
                                c->decided != NULL ? &c->c->label : NULL, c->decided, c->truth,
                                c->made, .steady = false };

    worst_cases_add(&r->shown, c->number, c->badness, &shown, &ignored);
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

/* The scores of classes of each case. */
static void make_class_scores(arena *memory, const validated_cases *v, case_scores *s)
{
    double *value;

    s->class_count = v->experiment->class_count - v->first_class + 1;
    s->class = class_names(memory, v);
    s->metric = metric_names(memory, v->metrics, &s->metric_count);
    value = arena_alloc(memory, (size_t)(s->case_count * s->class_count * s->metric_count)
                                * sizeof *value);
    fill_values(v, s, value);
    s->value = value;
}

/* The probability of an image's own class. */
static double own_probability(const class_ranking *r, int image)
{
    return r->probability[(int64_t)image * r->classes + r->label[image]];
}

/* A row for each image of a classification. */
static void make_image_scores(arena *memory, const validated_cases *v, case_scores *s)
{
    static const char *const class[] = { CASE_SCORES_MEAN };
    static const char *const metric[] = { "accuracy", "top5", "probability" };
    const class_ranking *r = v->images;
    size_t count = (size_t)s->case_count;
    const char **label = arena_alloc(memory, count * sizeof *label);
    const char **decision = arena_alloc(memory, count * sizeof *decision);
    double *value = arena_alloc(memory, 3 * count * sizeof *value);

    for (int n = 0; n < s->case_count; n++) {
        int decided = class_ranking_decide(r, n);

        label[n] = v->experiment->classes[r->label[n]].name;
        decision[n] = v->experiment->classes[decided].name;
        value[3 * n] = decided == r->label[n];
        value[3 * n + 1] = class_ranking_place(r, n) < 5;
        value[3 * n + 2] = own_probability(r, n);
    }
    s->class_count = 1;
    s->class = class;
    s->metric_count = 3;
    s->metric = metric;
    s->value = value;
    s->label = label;
    s->decision = decision;
}

static void write_scores(run_reporter *r, const validated_cases *v)
{
    pons_error problem = PONS_ERROR_INIT;
    arena *memory = arena_new();
    case_scores s = { .step = v->step, .case_count = v->count };
    locale_t before;

    if (memory == NULL)
        return;
    before = text_locale_begin();
    s.name = case_names(memory, v);
    if (v->images != NULL)
        make_image_scores(memory, v, &s);
    else
        make_class_scores(memory, v, &s);
    case_scores_write(r->folder, &s, &problem);
    text_locale_end(before);
    warn(r, &problem);
    arena_free(memory);
}

typedef struct ranked_image {
    int number;
    double badness;
} ranked_image;

static int compare_images(const void *a, const void *b)
{
    const ranked_image *x = a, *y = b;

    if (x->badness > y->badness || x->badness < y->badness)
        return x->badness > y->badness ? -1 : 1;
    return x->number - y->number;
}

static void draw_image(run_reporter *r, const validated_cases *v, const ranked_image *image)
{
    pons_error ignored = PONS_ERROR_INIT;
    pons_case c = { .size = sizeof c };

    if (cache_read(v->cache, v->ranks[image->number], &c, &ignored) == PONS_OK)
        run_reporter_draw(r, &(scored_case){ .number = image->number, .c = &c,
                                             .badness = image->badness });
    case_clear(&c);
}

/* The worst images of a classification are known when all have been decided. */
static void draw_images(run_reporter *r, const validated_cases *v)
{
    ranked_image *list = malloc((size_t)v->count * sizeof *list);

    if (list == NULL)
        return;
    for (int n = 0; n < v->count; n++) {
        double p = own_probability(v->images, n);

        list[n] = (ranked_image){ n, isnan(p) ? 1 : -p };
    }
    qsort(list, (size_t)v->count, sizeof *list, compare_images);
    for (int n = 0; n < v->count && n < WORST_CASES_MAX; n++)
        draw_image(r, v, &list[n]);
    free(list);
}

pons_status run_reporter_score(run_reporter *r, const validated_cases *v, pons_error *err)
{
    group *g = v->experiment->group;

    if (r == NULL || (g != NULL && worst_cases_gather(&r->shown, g, err) != PONS_OK)
        || r->writer == NULL)
        return err->status;
    write_scores(r, v);
    if (v->images != NULL)
        draw_images(r, v);
    report_writer_pictures(r->writer, &r->shown, v->count);
    return PONS_OK;
}

/* ---- the page -------------------------------------------------------------------------------- */

void run_reporter_begin_page(run_reporter *r)
{
    pons_error problem = PONS_ERROR_INIT;

    if (r == NULL || r->writer == NULL)
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
    if (last && r->writer != NULL) {
        report_writer_page(r->writer);
        report_writer_wait(r->writer, &problem);
        warn(r, &problem);
    }
    report_writer_close(r->writer);
    worst_cases_close(&r->shown);
    free(r->folder);
    free(r);
}
