/*
 * predictor.c - pons/predict.h: networks on a thread of their own, and one image for each call.
 */
#include <pons/predict.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "embed/embed_internal.h"
#include "embed/image.h"
#include "infer/predict.h"
#include "infer/predict_members.h"

enum { RESULT_COUNT = PONS_RESULT_IMAGE + 1 };

struct pons_predictor {
    worker *thread;
    pthread_mutex_t lock;     /* one call at a time                                               */
    arena *memory;
    embed_callbacks callbacks; /* of 'line'                                                       */
    logger log;
    int count;
    predictor *member[PREDICT_MEMBERS_MAX];
};

struct pons_prediction {
    volume result[RESULT_COUNT];
};

/* ---- open ------------------------------------------------------------------------------------ */

typedef struct opening {
    pons_predictor *predictor;
    const pons_predictor_settings *settings;
} opening;

static pons_status open_members(void *context, pons_error *err)
{
    const opening *o = context;
    const pons_predictor_settings *s = o->settings;
    pons_predictor *p = o->predictor;
    predict_source source = { .run = s->run, .config = s->config, .set_count = s->set_count,
                              .set = s->set, .image_channels = s->image_channels, .alone = true };
    predict_folds folds = { .fold = OPTION_AUTO, .memory = p->memory };

    return predict_members_open(&source, &folds, NULL, &p->log, p->member, &p->count, err);
}

static pons_status close_members(void *context, pons_error *err)
{
    static const pons_error none = PONS_ERROR_INIT;
    pons_predictor *p = context;

    while (p->count > 0)
        predictor_close(p->member[--p->count], &none);
    return PONS_OK;
}

static pons_status open_predictor(pons_predictor *p, const pons_predictor_settings *s,
                                  pons_error *err)
{
    opening o = { p, s };

    p->memory = arena_new();
    if (p->memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (embed_open_thread(&p->thread, err) == PONS_OK)
        embed_run(p->thread, open_members, &o, err);
    return err->status;
}

static pons_predictor *new_predictor(const pons_predictor_settings *s, pons_error *err)
{
    pons_predictor *p = NULL;

    if (s->run == NULL)
        pons_fail(err, PONS_USAGE, "pons_predictor_settings.run is NULL, expected a run");
    else if ((p = calloc(1, sizeof *p)) == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    if (p == NULL)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    embed_callbacks_open(&p->callbacks, NULL, s->line, s->context);
    p->log = (logger){ .level = LOG_NORMAL, .line = embed_line, .context = &p->callbacks };
    return p;
}

pons_status pons_predictor_open(const pons_predictor_settings *settings, pons_predictor **out,
                                pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    pons_predictor_settings s;
    pons_predictor *p = NULL;

    if (embed_copy(&s, sizeof s, settings, "pons_predictor_settings", &problem) == PONS_OK)
        p = new_predictor(&s, &problem);
    if (p != NULL && open_predictor(p, &s, &problem) == PONS_OK)
        *out = p;
    else
        pons_predictor_close(p);
    return embed_return(&problem, err);
}

void pons_predictor_close(pons_predictor *p)
{
    pons_error ignored = PONS_ERROR_INIT;

    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    pthread_mutex_unlock(&p->lock);
    if (p->thread != NULL)
        embed_run(p->thread, close_members, p, &ignored);
    worker_close(p->thread);
    embed_callbacks_close(&p->callbacks);
    pthread_mutex_destroy(&p->lock);
    arena_free(p->memory);
    free(p);
}

/* ---- facts ----------------------------------------------------------------------------------- */

int pons_predictor_channels(const pons_predictor *p)
{
    return predictor_experiment(p->member[0])->task.channels;
}

int pons_predictor_classes(const pons_predictor *p)
{
    return predictor_experiment(p->member[0])->class_count;
}

bool pons_predictor_has_regions(const pons_predictor *p)
{
    return predictor_experiment(p->member[0])->regions;
}

const char *pons_predictor_class(const pons_predictor *p, int number, int *id)
{
    const experiment *e = predictor_experiment(p->member[0]);

    if (number < 0 || number >= e->class_count)
        return NULL;
    if (id != NULL)
        *id = e->classes[number].id_count > 0 ? e->classes[number].id[0] : number;
    return e->classes[number].name;
}

/* ---- predict --------------------------------------------------------------------------------- */

typedef struct call {
    pons_predictor *predictor;
    const pons_predict_request *request;
    pons_prediction *out;
    embed_callbacks callbacks; /* of 'stop'                                                       */
} call;

static pons_status read_image(void *context, volume *image, volume_grid *grid, pons_error *err)
{
    const call *c = context;

    return image_read(c->request->image, c->request->name, image, grid, err);
}

static pons_status take_result(void *context, int number, predict_result *r,
                               const pons_error *problem, void *record, pons_error *err)
{
    const call *c = context;

    if (r == NULL)
        return pons_fail(err, problem->status, "%s", problem->text);
    volume *const from[RESULT_COUNT] = {
        [PONS_RESULT_CLASSES] = &r->classes, [PONS_RESULT_LOGITS] = &r->logits,
        [PONS_RESULT_PROBABILITIES] = &r->probabilities, [PONS_RESULT_ENTROPY] = &r->entropy,
        [PONS_RESULT_VARIANCE] = &r->variance, [PONS_RESULT_IMAGE] = &r->image
    };
    for (int i = 0; i < RESULT_COUNT; i++) {
        c->out->result[i] = *from[i];
        memset(from[i], 0, sizeof *from[i]);
    }
    return PONS_OK;
}

static pons_status tell_nothing(void *context, int number, const void *record, pons_error *err)
{
    return PONS_OK;
}

static bool stop_due(void *context)
{
    return embed_stop(&((call *)context)->callbacks);
}

static void tell_progress(void *context, int number, double share, int64_t voxels)
{
    call *c = context;

    if (c->request->progress == NULL)
        return;
    pthread_mutex_lock(&c->callbacks.lock);
    c->request->progress(c->request->context, share);
    pthread_mutex_unlock(&c->callbacks.lock);
}

static pons_status predict_image(void *context, pons_error *err)
{
    call *c = context;
    const pons_predict_request *q = c->request;
    const predict_input input = {
        .name = q->name, .file_count = q->image == NULL ? q->file_count : 0, .file = q->file,
        .read = q->image != NULL ? read_image : NULL, .context = c, .target = q->target
    };
    const predict_work work = {
        .count = 1, .input = &input, .logits = q->logits, .probabilities = q->probabilities,
        .uncertainty = q->uncertainty, .force = q->force, .take = take_result,
        .tell = tell_nothing, .stop = stop_due, .progress = tell_progress, .context = c
    };

    return predict_run(c->predictor->count, c->predictor->member, &work, err);
}

/* The files of an image: one, or one for each channel; that of the target may be missing. */
static pons_status check_files(const experiment *e, const pons_predict_request *q,
                               pons_error *err)
{
    bool synthesis = e->sections.experiment.task == TASK_SYNTHESIS;

    if (q->file_count < 1 || q->file == NULL)
        return pons_fail(err, PONS_USAGE, "the request has neither an image nor a file");
    if (synthesis && q->file_count > 1 && q->file_count != e->task.channels)
        return pons_fail(err, PONS_USAGE, "the request has %d files, expected one, or %d",
                         q->file_count, e->task.channels);
    for (int i = 0; i < q->file_count; i++)
        if (q->file[i] == NULL && !(synthesis && q->file_count > 1 && i == q->target))
            return pons_fail(err, PONS_USAGE, "file %d of the request is NULL", i);
    return PONS_OK;
}

static pons_status check_target(const pons_predictor *p, const pons_predict_request *q,
                                pons_error *err)
{
    const experiment *e = predictor_experiment(p->member[0]);

    if (p->count > 1)
        return pons_fail(err, PONS_CONFIG, "found %d networks of task = synthesis, expected one",
                         p->count);
    if (q->target < 0 || q->target >= e->class_count || !experiment_is_target(e, q->target))
        return pons_fail(err, PONS_CONFIG, "the network does not make modality %d", q->target);
    return PONS_OK;
}

/* Refuse what 'pons predict' refuses by its flags. */
static pons_status check_request(const pons_predictor *p, const pons_predict_request *q,
                                 pons_error *err)
{
    const experiment *e = predictor_experiment(p->member[0]);
    task_kind task = e->sections.experiment.task;

    if (q->image == NULL && check_files(e, q, err) != PONS_OK)
        return err->status;
    if ((task != TASK_SEGMENTATION && (q->logits || q->uncertainty))
        || (task == TASK_SYNTHESIS && q->probabilities))
        return pons_fail(err, PONS_CONFIG, "logits, probabilities and uncertainty are not of this "
                         "network's task");
    return task == TASK_SYNTHESIS ? check_target(p, q, err) : PONS_OK;
}

static pons_status run_request(pons_predictor *p, const pons_predict_request *q,
                               pons_prediction **out, pons_error *err)
{
    call c = { .predictor = p, .request = q };

    if (check_request(p, q, err) != PONS_OK)
        return err->status;
    c.out = calloc(1, sizeof *c.out);
    if (c.out == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    embed_callbacks_open(&c.callbacks, q->stop, NULL, q->context);
    pthread_mutex_lock(&p->lock);
    embed_run(p->thread, predict_image, &c, err);
    pthread_mutex_unlock(&p->lock);
    embed_callbacks_close(&c.callbacks);
    if (err->status == PONS_OK)
        *out = c.out;
    else
        pons_prediction_free(c.out);
    return err->status;
}

pons_status pons_predictor_run(pons_predictor *p, const pons_predict_request *request,
                               pons_prediction **out, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    pons_predict_request q;
    pons_image image;

    if (embed_copy(&q, sizeof q, request, "pons_predict_request", &problem) == PONS_OK
        && (q.image == NULL
            || embed_copy(&image, sizeof image, q.image, "pons_image", &problem) == PONS_OK)) {
        if (q.image != NULL)
            q.image = &image;
        if (q.name == NULL)
            q.name = "image";
        run_request(p, &q, out, &problem);
    }
    return embed_return(&problem, err);
}

void pons_prediction_free(pons_prediction *r)
{
    for (int i = 0; r != NULL && i < RESULT_COUNT; i++)
        pons_volume_clear(&r->result[i]);
    free(r);
}

const pons_volume *pons_prediction_volume(const pons_prediction *r, pons_result result)
{
    return (int)result >= 0 && (int)result < RESULT_COUNT && r->result[result].voxels != NULL
           ? &r->result[result] : NULL;
}
