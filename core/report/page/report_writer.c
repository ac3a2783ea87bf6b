/*
 * report_writer.c - a queue of pictures, and the thread that empties it.
 *
 * Encoding a picture takes milliseconds of a processor, and its file several calls of the system.
 * The threads of a validation, which may wait for a processor before each call, only draw.
 */
#include "report/page/report_writer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/thread/worker.h"
#include "report/page/case_scores.h"
#include "report/page/report_page.h"

enum { PICTURES = 128 };

typedef struct waiting_picture {
    int number;
    mosaic_picture picture;
} waiting_picture;

struct report_writer {
    char *folder;
    worker *worker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    waiting_picture queue[PICTURES]; /* a ring from 'first' on                                    */
    int first, count;
    int writing;              /* number of the picture that the thread writes; -1: the page       */
    bool page, busy, closing; /* a page is asked for; something is written; no more will come     */
    pons_error problem;       /* the first one that report_writer_check has not returned          */
};

/* ---- files ----------------------------------------------------------------------------------- */

/* A run whose folder was renamed gets no second one. */
static void write_picture(report_writer *w, const waiting_picture *p, pons_error *err)
{
    arena *memory = arena_new();

    if (memory == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a picture");
    else if (case_scores_make_folder(memory, w->folder, err) == PONS_OK)
        mosaic_save(&p->picture, case_scores_picture(memory, w->folder, p->number), err);
    arena_free(memory);
    free(p->picture.pixels);
}

static void write_page(const report_writer *w, pons_error *err)
{
    arena *memory = arena_new();

    if (memory == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a report");
    else
        report_page_write(w->folder, arena_format(memory, "%s/report.html", w->folder), err);
    arena_free(memory);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Locked. */
static void keep_problem(report_writer *w, const pons_error *problem)
{
    if (w->problem.status == PONS_OK)
        w->problem = *problem;
}

/* Locked; unlocked while it writes a picture, or the page where none waits. */
static void write_next(report_writer *w)
{
    pons_error problem = PONS_ERROR_INIT;
    waiting_picture next = { .picture.pixels = NULL };

    if (w->count > 0) {
        next = w->queue[w->first];
        w->first = (w->first + 1) % PICTURES;
        w->count--;
    } else {
        w->page = false;
    }
    w->busy = true;
    w->writing = next.picture.pixels != NULL ? next.number : -1;
    pthread_mutex_unlock(&w->lock);
    if (next.picture.pixels != NULL)
        write_picture(w, &next, &problem);
    else
        write_page(w, &problem);
    pthread_mutex_lock(&w->lock);
    w->busy = false;
    keep_problem(w, &problem);
    pthread_cond_broadcast(&w->changed);
}

static pons_status write_all(void *context, pons_error *err)
{
    report_writer *w = context;

    pthread_mutex_lock(&w->lock);
    while (w->count > 0 || w->page || !w->closing) {
        if (w->count > 0 || w->page)
            write_next(w);
        else
            pthread_cond_wait(&w->changed, &w->lock);
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
    pthread_cond_init(&w->changed, NULL);
    if (worker_open(WORKER_LOW, "the thread that writes the report", &w->worker, err) != PONS_OK
        || worker_start(w->worker, write_all, w, err) != PONS_OK) {
        report_writer_close(w);
        return err->status;
    }
    *out = w;
    return PONS_OK;
}

void report_writer_note(report_writer *w, const pons_error *problem)
{
    pthread_mutex_lock(&w->lock);
    keep_problem(w, problem);
    pthread_mutex_unlock(&w->lock);
}

/* Locked. The place of a picture of this number that waits; else a new one, or NULL if full. */
static waiting_picture *find_place(report_writer *w, int number)
{
    for (int n = 0; n < w->count; n++) {
        waiting_picture *p = &w->queue[(w->first + n) % PICTURES];

        if (p->number == number)
            return p;
    }
    if (w->count == PICTURES)
        return NULL;
    waiting_picture *added = &w->queue[(w->first + w->count++) % PICTURES];

    added->picture.pixels = NULL;
    return added;
}

void report_writer_picture(report_writer *w, int number, const mosaic_picture *picture)
{
    const waiting_picture p = { number, *picture };
    pons_error problem = PONS_ERROR_INIT;
    waiting_picture *place;

    pthread_mutex_lock(&w->lock);
    while ((place = find_place(w, number)) == NULL && w->busy && w->writing == number)
        pthread_cond_wait(&w->changed, &w->lock);
    if (place != NULL) {
        free(place->picture.pixels);
        *place = p;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    if (place != NULL)
        return;
    write_picture(w, &p, &problem);
    report_writer_note(w, &problem);
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
    while (w->count > 0 || w->page || w->busy)
        pthread_cond_wait(&w->changed, &w->lock);
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
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w->folder);
    free(w);
}
