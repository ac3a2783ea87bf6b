/*
 * report_writer.c - the newest validation that waits, and the thread that writes it and rests.
 *
 * Encoding a picture takes milliseconds of a processor, and its file several calls of the system.
 * The validation only cuts slices; the pauses bound what a run of short validations pays for this.
 */
#include "report/page/report_writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/thread/thread.h"
#include "base/thread/worker.h"
#include "report/page/case_scores.h"
#include "report/page/report_page.h"

static const double SHARE = 0.02; /* of a processor                                               */

/* The pictures of a validation. */
typedef struct picture_set {
    int cases, count;         /* cases: of the validation; 0: no set waits                        */
    worst_case item[WORST_CASES_MAX];
} picture_set;

struct report_writer {
    char *folder;
    worker *worker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    picture_set waiting;
    double rest_end;          /* seconds_now()                                                    */
    bool page, busy;          /* a page is asked for; something is written                        */
    int hurried;              /* callers that wait                                                */
    bool closing;             /* no more will come                                                */
    pons_error problem;       /* the first one that report_writer_check has not returned          */
};

/* ---- files ----------------------------------------------------------------------------------- */

static void write_picture(const char *path, const worst_case *c, pons_error *err)
{
    mosaic_picture picture;

    if (mosaic_draw(c->slices, &picture, err) != PONS_OK)
        return;
    mosaic_save(&picture, path, err);
    free(picture.pixels);
}

static bool has_case(const picture_set *s, int number)
{
    for (int n = 0; n < s->count; n++)
        if (s->item[n].number == number)
            return true;
    return false;
}

/* Remove the pictures that earlier validations have left of cases that this one shows none of. */
static void remove_others(const report_writer *w, const picture_set *s, arena *memory)
{
    for (int n = 0; n < s->cases && s->cases > s->count; n++)
        if (!has_case(s, n))
            unlink(case_scores_picture(memory, w->folder, n));
}

/* A run whose folder was renamed gets no second one. */
static void write_pictures(const report_writer *w, const picture_set *s, pons_error *err)
{
    arena *memory = arena_new();

    if (memory == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    else if (s->cases > 0 && case_scores_make_folder(memory, w->folder, err) == PONS_OK) {
        remove_others(w, s, memory);
        for (int n = 0; n < s->count && err->status == PONS_OK; n++)
            write_picture(case_scores_picture(memory, w->folder, s->item[n].number), &s->item[n],
                          err);
    }
    arena_free(memory);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void free_set(picture_set *s)
{
    for (int n = 0; n < s->count; n++)
        free(s->item[n].slices);
    *s = (picture_set){ .cases = 0 };
}

/* Locked; unlocked while it writes. Then it rests in proportion to the time that it took. */
static void write_next(report_writer *w)
{
    pons_error problem = PONS_ERROR_INIT, of_page = PONS_ERROR_INIT;
    picture_set next = w->waiting;
    double begin = seconds_of_thread();
    bool page = w->page;

    w->waiting = (picture_set){ .cases = 0 };
    w->page = false;
    w->busy = true;
    pthread_mutex_unlock(&w->lock);
    write_pictures(w, &next, &problem);
    if (page)
        report_page_write(w->folder, NULL, &of_page);
    free_set(&next);
    pthread_mutex_lock(&w->lock);
    w->busy = false;
    w->rest_end = seconds_now() + (seconds_of_thread() - begin) * (1 / SHARE - 1);
    if (w->problem.status == PONS_OK)
        w->problem = problem.status != PONS_OK ? problem : of_page;
    pthread_cond_broadcast(&w->changed);
}

/* Locked. A page comes after the pictures of its validation, so these wait for it. */
static bool is_due(const report_writer *w)
{
    bool hurried = w->hurried > 0 || w->closing;

    return (w->page && seconds_now() >= w->rest_end)
        || (hurried && (w->page || w->waiting.cases > 0));
}

/* Locked. Wait for a change, or for the end of the rest. */
static void wait_for_work(report_writer *w)
{
    const struct timespec end = clock_timespec(w->rest_end);

    if (w->page)
        pthread_cond_timedwait(&w->changed, &w->lock, &end);
    else
        pthread_cond_wait(&w->changed, &w->lock);
}

static pons_status write_all(void *context, pons_error *err)
{
    report_writer *w = context;

    pthread_mutex_lock(&w->lock);
    while (is_due(w) || !w->closing) {
        if (is_due(w))
            write_next(w);
        else
            wait_for_work(w);
    }
    pthread_mutex_unlock(&w->lock);
    return PONS_OK;
}

/* ---- the callers ----------------------------------------------------------------------------- */

pons_status report_writer_open(const char *folder, report_writer **out, pons_error *err)
{
    report_writer *w = calloc(1, sizeof *w);

    if (w == NULL || (w->folder = strdup(folder)) == NULL) {
        free(w);
        return pons_fail(err, PONS_DEVICE, "out of memory for the report of a run");
    }
    w->problem = (pons_error)PONS_ERROR_INIT;
    pthread_mutex_init(&w->lock, NULL);
    thread_condition(&w->changed);
    if (worker_open(WORKER_LOW, "the thread that writes the report", &w->worker, err) != PONS_OK
        || worker_start(w->worker, write_all, w, err) != PONS_OK) {
        report_writer_close(w);
        return err->status;
    }
    *out = w;
    return PONS_OK;
}

void report_writer_pictures(report_writer *w, worst_cases *shown, int cases)
{
    pthread_mutex_lock(&w->lock);
    free_set(&w->waiting);
    w->waiting.cases = cases;
    w->waiting.count = shown->count;
    memcpy(w->waiting.item, shown->item, (size_t)shown->count * sizeof *shown->item);
    shown->count = 0;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void report_writer_page(report_writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->page = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Locked. */
static pons_status take_problem(report_writer *w, pons_error *err)
{
    pons_error problem = w->problem;

    w->problem = (pons_error)PONS_ERROR_INIT;
    return problem.status == PONS_OK ? PONS_OK
                                     : pons_fail(err, problem.status, "%s", problem.text);
}

pons_status report_writer_check(report_writer *w, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&w->lock);
    status = take_problem(w, err);
    pthread_mutex_unlock(&w->lock);
    return status;
}

pons_status report_writer_wait(report_writer *w, pons_error *err)
{
    pons_status status;

    pthread_mutex_lock(&w->lock);
    w->hurried++;
    pthread_cond_broadcast(&w->changed);
    while (w->waiting.cases > 0 || w->page || w->busy)
        pthread_cond_wait(&w->changed, &w->lock);
    w->hurried--;
    status = take_problem(w, err);
    pthread_mutex_unlock(&w->lock);
    return status;
}

void report_writer_close(report_writer *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    worker_close(w->worker);
    free_set(&w->waiting);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->folder);
    free(w);
}
