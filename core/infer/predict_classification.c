/*
 * predict_classification.c - the probabilities of the classes of each image, averaged over the
 * networks.
 *
 * Each network reads and preprocesses the images for itself, batch by batch. Processes divide the
 * batches, and exchange the records of each round of them.
 */
#include "infer/infer_internal.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "data/case/case_load.h"
#include "data/case/case_read.h"
#include "infer/activation.h"
#include "infer/classifier.h"

typedef struct classified {
    int count, at;                /* networks, and the index of the current one                   */
    predictor *const *p;
    const predict_work *work;
    int first, step;              /* batches first, first + step, ... are of this process         */
    float *logits, *probability;  /* [cases][classes]: those of network 'at', and the mean        */
    char **problem;               /* [cases] why a case cannot be read; NULL: it can              */
    int64_t read;                 /* images of this process, of all networks                      */
    pthread_mutex_t lock;         /* of 'problem', 'foreign' and 'read'                           */
    bool foreign;
} classified;

/* ---- images ---------------------------------------------------------------------------------- */

static pons_status prepare_image(classified *s, const predict_input *in, pons_case *c,
                                 pons_error *err)
{
    const experiment *e = s->p[s->at]->experiment;
    const predict_member member = { s->count, s->at, s->p };
    const data_case files = { .id = in->name, .image = in->file, .image_count = in->file_count,
                              .stack = in->stack, .slice = in->slice, .patch = in->patch };
    loaded_case read;

    c->name = in->name;
    if (in->read != NULL) {
        if (in->read(in->context, &c->image, &read.grid, err) != PONS_OK)
            return err->status;
    } else if (case_load(&files, e->task.channels, false, &read, err) == PONS_OK) {
        c->image = read.image;
    } else {
        return err->status;
    }
    if (c->image.channels != e->task.channels)
        return pons_fail(err, PONS_DATA, "case '%s' has %d channel%s, the network expects %d",
                         in->name, c->image.channels, c->image.channels == 1 ? "" : "s",
                         e->task.channels);
    if (pipeline_apply(e->preprocess, PIPELINE_VALIDATION, c, NULL, err) != PONS_OK)
        return err->status;
    if (!s->work->familiar) {
        pthread_mutex_lock(&s->lock);
        predict_foreign(&member, c, s->work->force, &s->foreign, s->p[0]->log, err);
        pthread_mutex_unlock(&s->lock);
    }
    return err->status != PONS_OK ? err->status
           : classifier_check(e, in->name, in->file_count > 0 ? in->file[0] : in->name, &c->image,
                              err);
}

/* A case that cannot be read is noted, and zeros stand in its place. */
static void note_problem(classified *s, int number, const pons_error *problem)
{
    pthread_mutex_lock(&s->lock);
    if (s->problem[number] == NULL)
        s->problem[number] = strdup(problem->text);
    pthread_mutex_unlock(&s->lock);
}

/* Tell that an image was read: its batch is computed in much less time. */
static void tell_progress(classified *s)
{
    const predict_work *w = s->work;
    double done;
    int number;

    if (w->progress == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    done = fmin((double)++s->read * s->step / s->count, w->count);
    number = min_int((int)done, w->count - 1);
    w->progress(w->context, number, done - number, 0);
    pthread_mutex_unlock(&s->lock);
}

static pons_status read_image(void *context, int number, float *to, pons_error *err)
{
    classified *s = context;
    const experiment *e = s->p[s->at]->experiment;
    pons_error problem = PONS_ERROR_INIT;
    pons_case c = { .size = sizeof c };

    if (prepare_image(s, &s->work->input[number], &c, &problem) == PONS_OK)
        memcpy(to, c.image.voxels, pons_volume_size(&c.image));
    else
        memset(to, 0, (size_t)e->window[0] * (size_t)e->window[1] * (size_t)e->window[2]
                      * (size_t)e->task.channels * sizeof *to);
    case_clear(&c);
    tell_progress(s);
    if (problem.status == PONS_DATA)
        note_problem(s, number, &problem);
    else if (problem.status != PONS_OK)
        pons_fail(err, problem.status, "%s", problem.text);
    return err->status;
}

static bool stop_due(void *context)
{
    const classified *s = context;

    return predict_stop_due(s->work, s->p[0]->experiment->group);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* Add the probabilities of a network to the mean. The host adds them, so the order is fixed. */
static void add_network(classified *s)
{
    const experiment *e = s->p[s->at]->experiment;
    int64_t count = (int64_t)s->work->count * e->class_count;

    activation_apply(e->activation, s->logits, s->work->count, e->class_count);
    for (int64_t i = 0; i < count; i++)
        s->probability[i] += s->logits[i] / (float)s->count;
}

static pons_status run_networks(classified *s, pons_error *err)
{
    const classifier_work work = { .count = s->work->count, .first = s->first, .step = s->step,
                                   .read = read_image, .parallel = s->work->familiar,
                                   .stop = stop_due, .context = s };

    for (s->at = 0; s->at < s->count && err->status == PONS_OK; s->at++)
        if (classifier_run(&s->p[s->at]->replicas, &work, s->logits, err) == PONS_OK)
            add_network(s);
    return err->status;
}

/* ---- results --------------------------------------------------------------------------------- */

static bool is_finite(const float *x, int count)
{
    float sum = 0;

    for (int i = 0; i < count; i++)
        sum += x[i];
    return isfinite(sum);
}

static pons_status take_case(classified *s, int number, void *record, pons_error *err)
{
    const predict_work *w = s->work;
    int classes = s->p[0]->experiment->class_count;
    const float *row = s->probability + (int64_t)number * classes;
    const int64_t one[3] = { 1, 1, 1 };
    predict_result result = { .grid = { .units = 0 } };
    pons_error problem = PONS_ERROR_INIT;

    if (s->problem[number] != NULL)
        pons_fail(&problem, PONS_DATA, "%s", s->problem[number]);
    else if (!is_finite(row, classes))
        pons_fail(&problem, PONS_DATA, "case '%s': the logits are not finite, expected numbers",
                  w->input[number].name);
    if (problem.status != PONS_OK)
        return w->take(w->context, number, NULL, &problem, record, err);
    if (pons_volume_init(&result.probabilities, PONS_F32, classes, one, err) != PONS_OK)
        return err->status;
    memcpy(result.probabilities.voxels, row, (size_t)classes * sizeof *row);
    w->take(w->context, number, &result, NULL, record, err);
    pons_volume_clear(&result.probabilities);
    return err->status;
}

/* Exchange the records of one batch of each process, and tell all of them in order of cases. */
static pons_status tell_round(classified *s, int first, int batch, char *mine, char *all,
                              pons_error *err)
{
    const predict_work *w = s->work;
    group *g = s->p[0]->experiment->group;
    size_t size = (size_t)batch * w->record_size;
    int own = first + s->first * batch;

    memset(mine, 0, size);
    for (int i = 0; i < batch && own + i < w->count; i++)
        if (take_case(s, own + i, mine + (size_t)i * w->record_size, err) != PONS_OK)
            return err->status;
    if (g == NULL)
        memcpy(all, mine, size);
    else if (group_all_gather(g, mine, size, all, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < batch * s->step && first + i < w->count && err->status == PONS_OK; i++)
        w->tell(w->context, first + i, all + (size_t)i * w->record_size, err);
    return err->status;
}

static pons_status tell_cases(classified *s, pons_error *err)
{
    const predict_work *w = s->work;
    int batch = (int)s->p[0]->experiment->sections.window.batch, round = batch * s->step;
    char *records = malloc((size_t)(batch + round) * w->record_size + 1);

    if (records == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int first = 0; first < w->count && err->status == PONS_OK; first += round)
        tell_round(s, first, batch, records, records + (size_t)batch * w->record_size, err);
    free(records);
    return err->status;
}

/* Processes must list the same cases, and networks the same classes, batches and devices. */
static pons_status compare_networks(const classified *s, pons_error *err)
{
    const experiment *first = s->p[0]->experiment;

    for (int n = 1; n < s->count; n++) {
        const experiment *e = s->p[n]->experiment;
        bool same = e->class_count == first->class_count;

        for (int c = 0; c < e->class_count && same; c++)
            same = strcmp(e->classes[c].name, first->classes[c].name) == 0;
        if (!same || e->sections.window.batch != first->sections.window.batch)
            return pons_fail(err, PONS_CONFIG, "network %d of the ensemble has %s than the first",
                             n + 1, same ? "another [window] batch" : "other classes");
    }
    return first->group == NULL ? PONS_OK : predict_compare_names(first->group, s->work, err);
}

pons_status predict_classification(int count, predictor *const *p, const predict_work *work,
                                   pons_error *err)
{
    const group *g = p[0]->experiment->group;
    size_t values = (size_t)work->count * (size_t)p[0]->experiment->class_count;
    classified s = { .count = count, .p = p, .work = work,
                     .first = g != NULL ? group_rank(g) : 0,
                     .step = g != NULL ? group_size(g) : 1, .lock = PTHREAD_MUTEX_INITIALIZER };

    s.logits = calloc(values + 1, sizeof *s.logits);
    s.probability = calloc(values + 1, sizeof *s.probability);
    s.problem = calloc((size_t)work->count + 1, sizeof *s.problem);
    if (s.logits == NULL || s.probability == NULL || s.problem == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for %d images", work->count);
    else if (compare_networks(&s, err) == PONS_OK && run_networks(&s, err) == PONS_OK)
        tell_cases(&s, err);
    for (int i = 0; i < work->count && s.problem != NULL; i++)
        free(s.problem[i]);
    free(s.problem);
    free(s.probability);
    free(s.logits);
    return err->status;
}
