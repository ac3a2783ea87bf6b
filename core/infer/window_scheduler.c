/*
 * window_scheduler.c - run volumes through devices, with a thread that prepares and one that
 * finishes.
 *
 *     prepared  ......................|    prepared, at most one ahead
 *     begun     ................|          its batches are given to devices
 *     finished  .........|                 all planes predicted and taken
 */
#include "infer/window_scheduler.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "base/thread/worker.h"
#include "infer/device_accumulator.h"

enum { SHARE_OF_MEMORY = 4, SLAB = 32 << 20, SLAB_PLANES = 4 };

typedef struct item {
    window_scheduler_volume volume;
    blender *blender;
    uint64_t size;            /* bytes of its planes in memory                                    */
    int64_t batches, handed_out, blended;
    int64_t ready, taken;     /* planes predicted; planes taken                                   */
    int64_t slab;             /* largest number of planes taken at a time                         */
} item;

typedef struct scheduler {
    const window_scheduler_work *work;
    const replicas *replicas;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    item *item;
    int prepared, begun, finished; /* counts of volumes; the last one begun may have batches left */
    uint64_t in_use, room;    /* bytes of begun volumes; their limit                              */
    thread_budget spare;      /* threads that help the preparing and the finishing thread         */
    bool failed;
    pons_error error;         /* the first error                                                  */
} scheduler;

/* The state of a device between batches. */
typedef struct device_state {
    int number;
    int64_t room;
    float *sum;
    float *all;               /* with other processes: the logits of one batch of each            */
    device_accumulator sums;  /* of the volume whose batches are in work                          */
    bool in_use;              /* windows are accumulated on the device                            */
} device_state;

static void fail_run(scheduler *s, const pons_error *err)
{
    pthread_mutex_lock(&s->lock);
    if (!s->failed)
        s->error = *err;
    s->failed = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

int64_t window_scheduler_slab(const int64_t extent[3], int classes)
{
    int64_t planes = SLAB / (int64_t)sizeof(float) / (extent[1] * extent[2] * classes);

    return max_i64(planes, SLAB_PLANES);
}

/* ---- prepare --------------------------------------------------------------------------------- */

static pons_status prepare_item(scheduler *s, int number, pons_error *err)
{
    item *i = &s->item[number];
    window_scheduler_volume *v = &i->volume;
    const experiment *e;
    window_settings settings;

    if (s->work->prepare(s->work->context, number, v, err) != PONS_OK || v->image == NULL)
        return err->status;
    e = v->network->experiment;
    experiment_window_settings(e, &settings);
    settings.one_flip = v->one_flip;
    if (v->one_flip)
        settings.mirror = v->flip;
    if (window_blend_open(&settings, v->extent, v->image, e->task.channels, e->task.classes,
                          &i->blender, err) != PONS_OK)
        return err->status;
    i->batches = window_blend_batches(i->blender);
    i->size = window_blend_bytes(&settings, v->extent, e->task.classes);
    i->slab = window_scheduler_slab(v->extent, e->task.classes);
    return PONS_OK;
}

static pons_status prepare_all(void *context, pons_error *err)
{
    scheduler *s = context;

    thread_budget_set(&s->spare);
    for (int n = 0; n < s->work->count; n++) {
        pthread_mutex_lock(&s->lock);
        while (n > s->begun && !s->failed)
            pthread_cond_wait(&s->changed, &s->lock);
        bool failed = s->failed;
        pthread_mutex_unlock(&s->lock);
        if (failed)
            break;
        if (prepare_item(s, n, err) != PONS_OK) {
            fail_run(s, err);
            break;
        }
        pthread_mutex_lock(&s->lock);
        s->prepared = n + 1;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return PONS_OK; /* a failure is in 's' */
}

/* ---- devices --------------------------------------------------------------------------------- */

/* True if the next volume may begin. */
static bool may_begin(const scheduler *s)
{
    return s->begun < s->prepared && s->begun - s->finished <= s->replicas->count
        && (s->in_use == 0 || s->in_use + s->item[s->begun].size <= s->room);
}

/* The next batch; NULL: there is none. The lock is held. */
static item *next_batch(scheduler *s, int64_t *batch)
{
    for (;;) {
        item *i = s->begun > 0 ? &s->item[s->begun - 1] : NULL;

        if (s->failed)
            return NULL;
        if (i != NULL && i->handed_out < i->batches) {
            *batch = i->handed_out++;
            return i;
        }
        if (s->begun == s->work->count)
            return NULL;
        if (may_begin(s)) {
            s->in_use += s->item[s->begun++].size;
            pthread_cond_broadcast(&s->changed);
        } else {
            pthread_cond_wait(&s->changed, &s->lock);
        }
    }
}

static pons_status predict_batch(scheduler *s, device_state *l, const item *i, int64_t batch,
                                 const float **logits, pons_error *err)
{
    const replicas *network = i->volume.network;
    window_predictor p;
    int64_t room = window_blend_flip_size(i->blender);

    if (s->work->stop != NULL && s->work->stop(s->work->context))
        return pons_fail(err, PONS_INTERRUPTED, "the prediction was stopped");
    if (room > l->room) {
        free(l->sum);
        l->room = 0;
        l->sum = malloc((size_t)room * sizeof *l->sum);
        if (l->sum == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory for the logits of windows");
        l->room = room;
    }
    if (programs_predictor(network->experiment, network->item[l->number].evaluation, &p, err)
        != PONS_OK)
        return err->status;
    program_set_sample(network->item[l->number].evaluation, i->volume.sample, (uint64_t)batch);
    return window_blend_predict(i->blender, batch, &p, l->sum, logits, err);
}

/* Let the device accumulate a volume that begins, if it is the only device. */
static pons_status open_accumulator(scheduler *s, device_state *l, const item *i, pons_error *err)
{
    const replicas *network = i->volume.network;

    if (s->replicas->count > 1 || s->work->host_sums)
        return PONS_OK;
    return device_accumulator_open(&l->sums, network->experiment, &network->item[l->number],
                                   i->volume.extent, i->blender, &l->in_use, err);
}

/* Blend a batch; *done is false if there is no room before planes are taken. */
static pons_status blend_batch(device_state *l, item *i, int64_t batch, const float *logits,
                               int64_t taken, bool *done, pons_error *err)
{
    const window_blend_sums sums = { device_accumulator_read, &l->sums };

    if (l->in_use)
        return window_blend_collect(i->blender, batch, taken, &sums, done, err);
    *done = window_blend_add(i->blender, batch, logits, taken);
    return PONS_OK;
}

/*
 * Blend a batch after all earlier ones, as planes are taken; false: an error has ended the run.
 * The lock is held.
 */
static bool blend_in_turn(scheduler *s, device_state *l, item *i, int64_t batch,
                          const float *logits, pons_error *err)
{
    bool done = false;

    while (i->blended < batch && !s->failed)
        pthread_cond_wait(&s->changed, &s->lock);
    while (!done && !s->failed) {
        int64_t taken = i->taken;

        pthread_mutex_unlock(&s->lock);
        if (blend_batch(l, i, batch, logits, taken, &done, err) != PONS_OK)
            fail_run(s, err);
        pthread_mutex_lock(&s->lock);
        i->ready = window_blend_ready(i->blender);
        i->blended += done;
        pthread_cond_broadcast(&s->changed);
        while (!done && i->taken == taken && !s->failed)
            pthread_cond_wait(&s->changed, &s->lock);
    }
    return done;
}

static pons_status predict_share(void *context, int number, pons_error *err)
{
    scheduler *s = context;
    device_state l = { .number = number };
    const float *logits = NULL;
    int64_t batch = 0;
    item *i;

    pthread_mutex_lock(&s->lock);
    while ((i = next_batch(s, &batch)) != NULL) {
        pthread_mutex_unlock(&s->lock);
        if ((batch == 0 && open_accumulator(s, &l, i, err) != PONS_OK)
            || predict_batch(s, &l, i, batch, &logits, err) != PONS_OK)
            fail_run(s, err);
        pthread_mutex_lock(&s->lock);
        if (err->status != PONS_OK || !blend_in_turn(s, &l, i, batch, logits, err))
            break;
        if (l.in_use && batch == i->batches - 1) {
            device_accumulator_close(&l.sums);
            l.in_use = false;
        }
    }
    pthread_mutex_unlock(&s->lock);
    device_accumulator_close(&l.sums);
    free(l.sum);
    return PONS_OK; /* the error is in 's'; no thread waits in a collective */
}

/* ---- devices of several processes ------------------------------------------------------------ */

static item *next_volume(scheduler *s)
{
    item *i = NULL;

    pthread_mutex_lock(&s->lock);
    while (!s->failed && s->begun < s->work->count && !may_begin(s))
        pthread_cond_wait(&s->changed, &s->lock);
    if (!s->failed && s->begun < s->work->count) {
        i = &s->item[s->begun++];
        s->in_use += i->size;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return i;
}

/*
 * Predict batches first .. first + size - 1, one in each process; a process without one repeats
 * the last.
 */
static pons_status predict_round(scheduler *s, device_state *l, item *i, int64_t first,
                                 pons_error *err)
{
    group *g = s->work->shared;
    int64_t mine = first + group_rank(g), end = first + group_size(g);
    int64_t size = window_blend_batch_size(i->blender);
    const float *logits;

    if (predict_batch(s, l, i, mine < i->batches ? mine : i->batches - 1, &logits, err) != PONS_OK
        || group_all_gather(g, logits, (size_t)size * sizeof *logits, l->all, err) != PONS_OK)
        return err->status;
    end = min_i64(end, i->batches);
    pthread_mutex_lock(&s->lock);
    if (group_rank(g) > 0)
        i->blended = end;
    while (i->blended < end
           && blend_in_turn(s, l, i, i->blended, l->all + (i->blended - first) * size, err))
        ;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return PONS_OK;
}

static pons_status predict_with_others(void *context, int number, pons_error *err)
{
    scheduler *s = context;
    device_state l = { .number = number };
    int size = group_size(s->work->shared);
    item *i;

    while (err->status == PONS_OK && (i = next_volume(s)) != NULL) {
        if (i->batches == 0)
            continue;
        free(l.all);
        l.all = malloc((size_t)(size * window_blend_batch_size(i->blender)) * sizeof *l.all);
        if (l.all == NULL)
            pons_fail(err, PONS_DEVICE, "out of memory for the logits of %d processes", size);
        for (int64_t first = 0; first < i->batches && err->status == PONS_OK; first += size)
            predict_round(s, &l, i, first, err);
    }
    if (err->status != PONS_OK)
        fail_run(s, err);
    free(l.all);
    free(l.sum);
    return PONS_OK;
}

/* ---- finish ---------------------------------------------------------------------------------- */

static void release_item(scheduler *s, item *i)
{
    window_blend_close(i->blender);
    i->blender = NULL;
    s->work->release(s->work->context, &i->volume);
    i->volume = (window_scheduler_volume){ .image = NULL };
}

static pons_status finish_item(scheduler *s, int number, pons_error *err)
{
    item *i = &s->item[number];

    if (s->work->shared != NULL && group_rank(s->work->shared) > 0)
        return PONS_OK;
    window_blend_close(i->blender);
    i->blender = NULL;
    return s->work->finish(s->work->context, number, &i->volume, err);
}

/* Wait for planes taken .. end - 1; false: all have been taken, or an error. */
static bool wait_for_planes(scheduler *s, int number, int64_t *end)
{
    const item *i = &s->item[number];
    bool more;

    pthread_mutex_lock(&s->lock);
    while (!s->failed
           && (s->begun <= number || (i->ready == i->taken && i->blended < i->batches)))
        pthread_cond_wait(&s->changed, &s->lock);
    more = !s->failed && i->ready > i->taken;
    *end = min_i64(i->ready, i->taken + i->slab);
    pthread_mutex_unlock(&s->lock);
    return more;
}

static bool has_failed(scheduler *s)
{
    bool failed;

    pthread_mutex_lock(&s->lock);
    failed = s->failed;
    pthread_mutex_unlock(&s->lock);
    return failed;
}

static void take_all_planes(scheduler *s, int number, pons_error *err)
{
    item *i = &s->item[number];
    int64_t end;

    while (wait_for_planes(s, number, &end)) {
        if (s->work->take(s->work->context, number, &i->volume, i->blender, i->taken, end, err)
            != PONS_OK)
            return;
        pthread_mutex_lock(&s->lock);
        i->taken = end;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
}

static pons_status finish_all(void *context, pons_error *err)
{
    scheduler *s = context;

    thread_budget_set(&s->spare);
    for (int n = 0; n < s->work->count; n++) {
        take_all_planes(s, n, err);
        if (err->status == PONS_OK && has_failed(s))
            break;
        if (err->status != PONS_OK || finish_item(s, n, err) != PONS_OK) {
            fail_run(s, err);
            break;
        }
        release_item(s, &s->item[n]);
        pthread_mutex_lock(&s->lock);
        s->finished = n + 1;
        s->in_use -= s->item[n].size;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return PONS_OK; /* a failure is in 's' */
}

/* ---- run ------------------------------------------------------------------------------------- */

static void run_threads(scheduler *s)
{
    static worker_job *const job[2] = { prepare_all, finish_all };
    worker *helper[2] = { NULL, NULL };
    pons_error err = PONS_ERROR_INIT;
    int started = 0;

    while (started < 2
           && worker_open(WORKER_LOW, "a thread that prepares volumes", &helper[started], &err)
                  == PONS_OK
           && worker_start(helper[started], job[started], s, &err) == PONS_OK)
        started++;
    if (started < 2) {
        fail_run(s, &err);
    } else if (replica_threads_run(s->replicas->replica_threads,
                                   s->work->shared != NULL ? predict_with_others : predict_share,
                                   s, &err) != PONS_OK) {
        fail_run(s, &err);
    }
    worker_close(helper[1]);
    worker_close(helper[0]);
}

pons_status window_scheduler_run(const replicas *r, const window_scheduler_work *work,
                                 pons_error *err)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    scheduler s = { .work = work, .replicas = r, .error = PONS_ERROR_INIT,
                    .room = (uint64_t)pages * (uint64_t)page / SHARE_OF_MEMORY,
                    .spare = { experiment_threads(r->experiment) - 1 } };

    s.item = calloc((size_t)work->count + 1, sizeof *s.item);
    if (s.item == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d volumes", work->count);
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    run_threads(&s);
    for (int n = s.finished; n < work->count; n++)
        release_item(&s, &s.item[n]);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
    free(s.item);
    if (s.failed)
        return pons_fail(err, s.error.status, "%s", s.error.text);
    return PONS_OK;
}
