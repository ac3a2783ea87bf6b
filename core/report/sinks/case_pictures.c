/*
 * case_pictures.c - the slices of a validation's first cases, and the thread that draws them.
 */
#include "report/sinks/case_pictures.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/thread/worker.h"
#include "cluster/group/group.h"
#include "data/case/case_read.h"
#include "report/page/worst_cases.h"
#include "report/picture/png_write.h"

static const double SHARE = 0.005; /* of a processor                                              */

/* The slices of a validation, in the order of its cases. */
typedef struct slice_set {
    int64_t step;
    int count;                /* 0: none                                                          */
    worst_case item[WORST_CASES_MAX];
} slice_set;

struct case_pictures {
    const experiment *experiment;
    metrics *metrics;         /* NULL: another rank has them                                      */
    worker *worker;           /* NULL: likewise                                                   */
    int limit;                /* cases of a validation                                            */
    worst_cases cut;          /* of the validation under way; all are as bad, so the first stay   */
    slice_set waiting;
    slice_set drawn;          /* of the worker while it is busy                                   */
    double rest_end;          /* seconds_now(); likewise                                          */
};

pons_status case_pictures_open(const experiment *e, metrics *m, case_pictures **out,
                               pons_error *err)
{
    int limit = min_int(metrics_picture_count(e), WORST_CASES_MAX);
    case_pictures *p;

    *out = NULL;
    if (limit == 0 || !png_available() || e->sections.experiment.task == TASK_CLASSIFICATION)
        return PONS_OK;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for pictures of cases");
    p->experiment = e;
    p->metrics = m;
    p->limit = limit;
    worst_cases_init(&p->cut, limit);
    if (m != NULL && worker_open(WORKER_LOW, "the thread that draws cases", &p->worker, err)
                     != PONS_OK) {
        case_pictures_close(p);
        return err->status;
    }
    *out = p;
    return PONS_OK;
}

/* A case whose slices find no memory has no picture. */
void case_pictures_add(case_pictures *p, const scored_case *c)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (p == NULL || c->c == NULL)
        return;
    const mosaic_case shown = { &c->c->image, c->channel,
                                c->decided != NULL ? &c->c->label : NULL, c->decided, c->truth,
                                c->made, .steady = true };

    worst_cases_add(&p->cut, c->number, 0, &shown, &ignored);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void free_set(slice_set *s)
{
    for (int n = 0; n < s->count; n++)
        free(s->item[n].slices);
    *s = (slice_set){ .count = 0 };
}

static const char *case_name(const experiment *e, int number)
{
    return e->data->cases[e->data->validation[number]].id;
}

/* A picture that finds no memory is left out. */
static void send_picture(const case_pictures *p, const worst_case *c)
{
    pons_picture picture = { .name = case_name(p->experiment, c->number), .step = p->drawn.step };
    pons_error ignored = PONS_ERROR_INIT;
    mosaic_picture drawn;
    char *png = NULL;
    FILE *to;

    if (mosaic_draw(c->slices, &drawn, &ignored) != PONS_OK)
        return;
    to = open_memstream(&png, &picture.size);
    if (to != NULL) {
        bool whole = mosaic_encode(&drawn, to);

        fclose(to);
        picture.width = drawn.width;
        picture.height = drawn.height;
        picture.png = png;
        if (whole)
            metrics_picture(p->metrics, &picture);
        free(png);
    }
    free(drawn.pixels);
}

static pons_status send_set(void *context, pons_error *err)
{
    case_pictures *p = context;
    double begin = seconds_of_thread();

    (void)err;
    for (int n = 0; n < p->drawn.count; n++)
        send_picture(p, &p->drawn.item[n]);
    free_set(&p->drawn);
    p->rest_end = seconds_now() + (seconds_of_thread() - begin) * (1 / SHARE - 1);
    return PONS_OK;
}

/* ---- a validation ---------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    return ((const worst_case *)a)->number - ((const worst_case *)b)->number;
}

/* Take the first cases. Those of an earlier validation that wait are dropped. */
static void take_cut(case_pictures *p, int64_t step)
{
    worst_cases *cut = &p->cut;
    int count = min_int(cut->count, p->limit);

    free_set(&p->waiting);
    qsort(cut->item, (size_t)cut->count, sizeof *cut->item, compare_numbers);
    memcpy(p->waiting.item, cut->item, (size_t)count * sizeof *cut->item);
    p->waiting.step = step;
    p->waiting.count = count;
    for (int n = count; n < cut->count; n++)
        free(cut->item[n].slices);
    cut->count = 0;
}

/* Requires an idle worker. */
static void begin_drawing(case_pictures *p)
{
    pons_error ignored = PONS_ERROR_INIT;

    p->drawn = p->waiting;
    p->waiting = (slice_set){ .count = 0 };
    worker_start(p->worker, send_set, p, &ignored);
}

pons_status case_pictures_send(case_pictures *p, const validated_cases *v, pons_error *err)
{
    group *g = v->experiment->group;

    if (p == NULL || (g != NULL && worst_cases_gather(&p->cut, g, err) != PONS_OK)
        || p->metrics == NULL)
        return err->status;
    take_cut(p, v->step);
    if (!worker_busy(p->worker) && seconds_now() >= p->rest_end)
        begin_drawing(p);
    return PONS_OK;
}

void case_pictures_close(case_pictures *p)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (p == NULL)
        return;
    if (p->worker != NULL && worker_wait(p->worker, &ignored) == PONS_OK
        && p->waiting.count > 0)
        begin_drawing(p);
    worker_close(p->worker);
    free_set(&p->waiting);
    worst_cases_close(&p->cut);
    free(p);
}
