/*
 * classifier.c - fill a batch with images, run the evaluation program and keep its logits.
 */
#include "infer/classifier.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"

typedef struct classifying {
    const classifier_work *work;
    const experiment *experiment;
    int replicas;
    float *out;
} classifying;

int classifier_batches(const experiment *e, int count)
{
    return ceil_div_int(count, (int)e->sections.window.batch);
}

pons_status classifier_check(const experiment *e, const char *name, const char *file,
                             const pons_volume *image, pons_error *err)
{
    const int64_t *found = image->extent;
    const int *expected = e->window;

    if (found[0] == expected[0] && found[1] == expected[1] && found[2] == expected[2])
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "case '%s', '%.1000s': the image has %lld x %lld x %lld "
                     "voxels after [preprocess], expected %d x %d x %d, which the network "
                     "classifies\nhint: a step of [preprocess] gives all images one extent, such "
                     "as resize", name, file, (long long)found[0], (long long)found[1],
                     (long long)found[2], expected[0], expected[1], expected[2]);
}

/* A batch whose images are read, perhaps by several threads. */
typedef struct batch_reading {
    const classifier_work *work;
    int first;
    size_t size;              /* of an image                                                      */
    float *input;
    pthread_mutex_t lock;     /* of the following                                                 */
    int failed;               /* the first image that could not be read; -1: none                 */
    pons_error problem;
} batch_reading;

static void read_images(void *context, int64_t first, int64_t end)
{
    batch_reading *b = context;

    for (int i = (int)first; i < end && (b->work->parallel || b->failed < 0); i++) {
        pons_error problem = PONS_ERROR_INIT;

        if (b->work->read(b->work->context, b->first + i, b->input + (size_t)i * b->size, &problem)
            == PONS_OK)
            continue;
        pthread_mutex_lock(&b->lock);
        if (b->failed < 0 || i < b->failed) {
            b->failed = i;
            b->problem = problem;
        }
        pthread_mutex_unlock(&b->lock);
    }
}

/* Read 'count' images from 'first' on. The error is that of the first that cannot be read. */
static pons_status read_batch(const classifier_work *w, int first, int count, size_t size,
                              float *input, pons_error *err)
{
    batch_reading b = { .work = w, .first = first, .size = size, .input = input,
                        .lock = PTHREAD_MUTEX_INITIALIZER, .failed = -1 };

    if (w->parallel)
        parallel_run(count, 1, read_images, &b);
    else
        read_images(&b, 0, count);
    if (b.failed >= 0)
        *err = b.problem;
    return err->status;
}

/* Run one batch of this replica. */
static pons_status classify_batch(const classifying *c, const window_predictor *p, int first,
                                  pons_error *err)
{
    const classifier_work *w = c->work;
    const experiment *e = c->experiment;
    int n = (int)e->sections.window.batch, own = min_int(n, w->count - first);
    size_t image = (size_t)e->window[0] * (size_t)e->window[1] * (size_t)e->window[2]
                   * (size_t)e->task.channels;
    size_t classes = (size_t)e->task.classes;
    const float *logits;

    if (read_batch(w, first, own, image, p->input, err) != PONS_OK)
        return err->status;
    for (int i = own; i < n; i++)
        memcpy(p->input + (size_t)i * image, p->input + (size_t)(own - 1) * image,
               image * sizeof *p->input);
    if (p->run(p->context, &logits, err) != PONS_OK)
        return err->status;
    memcpy(c->out + (size_t)first * classes, logits, (size_t)own * classes * sizeof *logits);
    return PONS_OK;
}

static pons_status classify_batches(void *context, replica *r, pons_error *err)
{
    const classifying *c = context;
    const classifier_work *w = c->work;
    int batches = classifier_batches(c->experiment, w->count);
    window_predictor p;

    for (int b = w->first + r->index * w->step; b < batches; b += c->replicas * w->step) {
        if (w->stop != NULL && w->stop(w->context))
            return pons_fail(err, PONS_INTERRUPTED, "the prediction was stopped");
        if (programs_predictor(c->experiment, r->evaluation, &p, err) != PONS_OK
            || classify_batch(c, &p, b * (int)c->experiment->sections.window.batch, err)
               != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

pons_status classifier_run(replicas *r, const classifier_work *work, float *out, pons_error *err)
{
    classifying c = { work, r->experiment, r->count, out };

    return replicas_run(r, classify_batches, &c, err);
}
