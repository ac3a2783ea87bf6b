/*
 * loader.c - make micro-batches in advance, in threads of lower priority.
 *
 * A job is one case of one micro-batch. Threads take jobs in order and write to the slots of a
 * ring buffer; the consumer takes slots in order. The result of a job depends on the job alone, so
 * the number of threads, also 0, changes no bit. After loader_open nothing is allocated, except
 * for cases that the cache does not hold.
 */
#include "data/loader/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/profile/profile.h"
#include "base/thread/parallel.h"
#include "base/thread/thread.h"
#include "base/thread/worker.h"
#include "data/loader/epoch_order.h"
#include "data/loader/patch_batch.h"

#define THREADS_MAX 64

typedef struct loader_slot {
    loader_batch batch;
    loader_part *part;
    const char **case_id;      /* [batch]                                                         */
    int done;                  /* finished jobs                                                   */
    int failed;                /* position of the earliest failed case; 'batch': none             */
    pons_error error;
} loader_slot;

typedef struct loader_job {
    int64_t number;            /* number of the micro-batch in this loader's sequence             */
    int position;              /* position of the case in the micro-batch                         */
    int64_t epoch;
    int rank;
} loader_job;

/* A thread of the loader and its working memory. */
typedef struct loader_thread_start {
    struct loader *loader;
    int index;                 /* of its bench                                                    */
} loader_thread_start;

struct loader {
    patch_batch patches;
    int *ranks;                /* the training cases                                              */
    int reader;                /* of a smart cache                                                */
    int64_t *order;            /* by lane of this loader: permutation of epoch 'order_epoch'      */
    int64_t *order_epoch;
    int slot_count;
    loader_slot *slot;
    int64_t taken;             /* number of micro-batches handed to the consumer                  */
    bool in_use;               /* the consumer still reads the last one                           */
    loader_job next;
    int thread_count, active;
    loader_thread_start seat[THREADS_MAX];
    worker *worker[THREADS_MAX];
    patch_scratch scratch[THREADS_MAX + 1]; /* the last one is the consumer's                     */
    bool stop, pause;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* ---- jobs ------------------------------------------------------------------------------------ */

static int64_t step_of_batch(const loader *l, int64_t number)
{
    return number / l->patches.settings.count;
}

static int micro_batch_of(const loader *l, int64_t number)
{
    return l->patches.settings.first + (int)(number % l->patches.settings.count);
}

/* Lanes whose cases this loader takes (case_window.h). */
static int lane_count(const loader *l)
{
    return l->patches.settings.window.lanes > 1 ? l->patches.settings.count : 1;
}

/* Cases of a lane in an epoch. */
static int64_t lane_cases(const loader *l)
{
    const case_window *w = &l->patches.settings.window;

    return w->count / w->lanes;
}

/* The position of a micro-batch's first case in the sequence of its lane. */
static int64_t first_case_of_batch(const loader *l, int64_t number)
{
    const loader_settings *s = &l->patches.settings;
    int64_t step = step_of_batch(l, number);

    if (s->window.lanes > 1)
        return step * s->batch;
    return (step * s->micro_batches + micro_batch_of(l, number)) * s->batch;
}

static int64_t epoch_of_batch(const loader *l, int64_t number)
{
    return first_case_of_batch(l, number) / lane_cases(l);
}

/* Find the epoch and the case of a job (R6). */
static void set_case_of_job(loader *l, loader_job *job)
{
    const loader_settings *s = &l->patches.settings;
    int64_t position = first_case_of_batch(l, job->number) + job->position;
    int64_t cases = lane_cases(l);
    int own = (int)(job->number % lane_count(l)), lane = s->window.lanes > 1 ? s->first + own : 0;
    int64_t *order = l->order + own * cases;

    job->epoch = position / cases;
    if (job->epoch != l->order_epoch[own]) {
        epoch_order_of_lane(s->seed, job->epoch, lane, cases, order);
        l->order_epoch[own] = job->epoch;
    }
    int64_t turn = case_window_turn(&s->window, job->epoch, lane, order[position % cases]);
    job->rank = l->ranks[case_window_place(&s->window, turn)];
}

static void slot_begin(loader *l, const loader_job *job)
{
    loader_slot *slot = &l->slot[job->number % l->slot_count];

    slot->done = 0;
    slot->failed = l->patches.settings.batch;
    slot->error = (pons_error)PONS_ERROR_INIT;
    slot->batch.step = step_of_batch(l, job->number);
    slot->batch.micro_batch = micro_batch_of(l, job->number);
}

/* Take the next job, whose slot is free. The caller holds the lock, unless there are no threads. */
static loader_job take_job(loader *l)
{
    loader_job job = l->next;
    loader_slot *slot = &l->slot[job.number % l->slot_count];

    if (job.position == 0)
        slot_begin(l, &job);
    set_case_of_job(l, &job);
    slot->batch.epoch = job.epoch;
    slot->case_id[job.position] = cache_dataset(l->patches.cases)->cases[job.rank].id;
    l->next.position++;
    if (l->next.position == l->patches.settings.batch)
        l->next = (loader_job){ .number = job.number + 1 };
    return job;
}

static void run_job(loader *l, const loader_job *job, patch_scratch *scratch, pons_error *err)
{
    const patch_batch *m = &l->patches;
    loader_slot *slot = &l->slot[job->number % l->slot_count];

    patch_job made = { job->epoch, job->rank, slot->batch.micro_batch,
                       (int64_t)job->position * m->settings.per_case };

    host_range_begin(RANGE_OTHER, "patches of a case");
    patch_batch_make(m, scratch, &made, slot->batch.part, err);
    host_range_end();
}

static void end_job(loader *l, const loader_job *job, const pons_error *err)
{
    loader_slot *slot = &l->slot[job->number % l->slot_count];

    slot->done++;
    if (err->status != PONS_OK && job->position < slot->failed) {
        slot->failed = job->position;
        slot->error = *err;
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool job_is_open(const loader *l)
{
    int64_t released = l->taken - (l->in_use ? 1 : 0);

    return !l->pause && l->next.number < released + l->slot_count;
}

/* Take jobs until the loader is closed. */
static pons_status loader_thread(void *context, pons_error *err)
{
    const loader_thread_start *seat = context;
    loader *l = seat->loader;
    thread_budget none = { 0 };

    (void)err; /* the slots keep failures */
    thread_budget_set(&none);
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        if (!job_is_open(l)) {
            pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        pons_error problem = PONS_ERROR_INIT;
        loader_job job = take_job(l);
        l->active++;
        pthread_mutex_unlock(&l->lock);
        run_job(l, &job, &l->scratch[seat->index], &problem);
        pthread_mutex_lock(&l->lock);
        l->active--;
        end_job(l, &job, &problem);
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    thread_budget_set(NULL);
    return PONS_OK;
}

/* Start the threads. They block all signals, which the training thread handles. */
static pons_status start_threads(loader *l, int count, pons_error *err)
{
    sigset_t before;

    thread_block_signals(&before);
    for (; l->thread_count < count; l->thread_count++) {
        int i = l->thread_count;
        l->seat[i] = (loader_thread_start){ l, i };
        if (worker_open(WORKER_LOW, "a thread that prepares patches", &l->worker[i], err) != PONS_OK
            || worker_start(l->worker[i], loader_thread, &l->seat[i], err) != PONS_OK)
            break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return l->thread_count == count ? PONS_OK : err->status;
}

/* One thread for every two processors of this process; at most four. */
int loader_threads_chosen(void)
{
    int count = thread_processors() / 2;

    return max_int(1, min_int(count, 4));
}

/* ---- open ------------------------------------------------------------------------------------ */

void loader_patch_shape(const int extent[3], int dhw[3], int *flat_axis)
{
    int flat = 0, axis = -1, next = 0;

    for (int a = 0; a < 3; a++) {
        flat += extent[a] == 1;
        if (extent[a] == 1)
            axis = a;
    }
    *flat_axis = flat == 1 ? axis : -1;
    if (*flat_axis >= 0)
        dhw[next++] = 1;
    for (int a = 0; a < 3; a++) {
        if (a != *flat_axis)
            dhw[next++] = extent[a];
    }
}

static pons_status check_settings(const cache *cases, const loader_settings *s, pons_error *err)
{
    const dataset *d = cache_dataset(cases);
    int targets = d->region_count > 0 ? d->region_count : d->class_count;

    if (s->sampling == SAMPLING_BALANCED && !(s->positive + s->negative > 0))
        return pons_fail(err, PONS_CONFIG,
                         "[patch] 'positive' and 'negative' are both 0, expected one above 0");
    if (s->sampling == SAMPLING_CLASSES && s->class_weight_count > 0 &&
        s->class_weight_count != targets)
        return pons_fail(err, PONS_CONFIG, "[patch] 'class_weights' has %d number%s, expected %d, "
                         "one for each class", s->class_weight_count,
                         s->class_weight_count == 1 ? "" : "s", targets);
    return PONS_OK;
}

static pons_status set_ranks(loader *l, int count, const int *ranks, pons_error *err)
{
    const dataset *d = cache_dataset(l->patches.cases);

    if (count == 0)
        return pons_fail(err, PONS_DATA, "there is no case to train on");
    if (l->patches.settings.window.total == 0)
        l->patches.settings.window = case_window_whole(count);
    l->taken = l->patches.settings.step * l->patches.settings.count;
    l->next = (loader_job){ .number = l->taken };
    l->ranks = malloc((size_t)count * sizeof *l->ranks);
    l->order = malloc((size_t)(lane_count(l) * lane_cases(l)) * sizeof *l->order);
    l->order_epoch = malloc((size_t)lane_count(l) * sizeof *l->order_epoch);
    if (l->ranks == NULL || l->order == NULL || l->order_epoch == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < lane_count(l); i++)
        l->order_epoch[i] = -1;
    memcpy(l->ranks, ranks, (size_t)count * sizeof *l->ranks);
    for (int i = 0; i < count; i++) {
        if (!cache_has_rank(l->patches.cases, ranks[i]))
            return pons_fail(err, PONS_FAILURE, "case %d is not among the cache's", ranks[i]);
        if (l->patches.settings.target == TARGET_OF_VOXELS && d->cases[ranks[i]].label == NULL)
            return pons_fail(err, PONS_CONFIG, "case '%s' has no label to learn from\n"
                             "hint: give 'label' in [data]", d->cases[ranks[i]].id);
        if (l->patches.settings.target == TARGET_OF_CASE && d->cases[ranks[i]].class_index < 0)
            return pons_fail(err, PONS_DATA, "case '%s' has no class to learn from",
                             d->cases[ranks[i]].id);
    }
    return PONS_OK;
}

static int thread_count(const loader_settings *s)
{
    if (s->threads < 0)
        return loader_threads_chosen();
    return min_int(s->threads, THREADS_MAX);
}

double loader_scratch_size(const pipeline *steps, const loader_settings *settings)
{
    int threads = thread_count(settings);

    return (threads > 0 ? threads : 1) * (double)patch_scratch_size(steps, settings->extent);
}

/* Slots that keep every thread busy while the consumer reads one. */
int loader_slots(const loader_settings *settings)
{
    int threads = thread_count(settings);

    return threads == 0 ? 1 : 2 + (threads - 1) / settings->batch;
}

/* Memory aligned for kernels, which may read it in place. */
static void *part_alloc(size_t size)
{
    enum { ALIGNMENT = 64 };

    return aligned_alloc(ALIGNMENT, round_up_size(size, ALIGNMENT));
}

static pons_status make_parts(loader *l, loader_slot *slot, pons_error *err)
{
    const loader_settings *s = &l->patches.settings;
    const batch_layout *parts = &l->patches.parts;

    slot->part = calloc((size_t)parts->count, sizeof *slot->part);
    slot->case_id = calloc((size_t)s->batch, sizeof *slot->case_id);
    if (slot->part == NULL || slot->case_id == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for micro-batches");
    slot->batch = (loader_batch){ .part_count = parts->count, .part = slot->part,
                                  .case_count = s->batch, .case_id = slot->case_id };
    for (int i = 0; i < parts->count; i++) {
        size_t size = (size_t)s->batch * (size_t)s->per_case * parts->item[i].size;
        slot->part[i] = (loader_part){ parts->item[i].name, part_alloc(size), size };
        if (slot->part[i].data == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory for micro-batches");
    }
    if (s->layout == NULL) {
        slot->batch.image = slot->part[BATCH_IMAGE].data;
        slot->batch.label = s->target == TARGET_OF_CASE ? NULL : slot->part[BATCH_TARGET].data;
    }
    return PONS_OK;
}

static void free_parts(loader_slot *slot)
{
    for (int i = 0; slot->part != NULL && i < slot->batch.part_count; i++)
        free(slot->part[i].data);
    free(slot->part);
    free(slot->case_id);
}

static pons_status make_slots(loader *l, pons_error *err)
{
    const loader_settings *s = &l->patches.settings;

    if (batch_layout_make(s->layout != NULL, l->patches.augment.steps, s->extent,
                          l->patches.channels, l->patches.label_channels, &l->patches.parts, err)
        != PONS_OK)
        return err->status;
    l->slot_count = loader_slots(s);
    l->slot = calloc((size_t)l->slot_count, sizeof *l->slot);
    if (l->slot == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < l->slot_count; i++) {
        if (make_parts(l, &l->slot[i], err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static pons_status make_scratch(loader *l, int threads, pons_error *err)
{
    for (int i = 0; i < threads; i++) {
        if (patch_scratch_init(&l->patches, &l->scratch[i], err) != PONS_OK)
            return err->status;
    }
    return patch_scratch_init(&l->patches, &l->scratch[THREADS_MAX], err);
}

static pons_status loader_prepare(loader *l, int rank_count, const int *ranks,
                                  const pipeline *steps, pons_error *err)
{
    const loader_settings *s = &l->patches.settings;
    int threads = thread_count(s);

    if (check_settings(l->patches.cases, s, err) != PONS_OK ||
        augment_init(&l->patches.augment, steps, err) != PONS_OK ||
        set_ranks(l, rank_count, ranks, err) != PONS_OK ||
        make_slots(l, err) != PONS_OK || make_scratch(l, threads, err) != PONS_OK)
        return err->status;
    if (!s->validation)
        l->reader = cache_add_reader(l->patches.cases, epoch_of_batch(l, l->taken));
    return start_threads(l, threads, err);
}

pons_status loader_open(cache *cases, int rank_count, const int *ranks,
                        const pipeline *augment, const loader_settings *settings, loader **out,
                        pons_error *err)
{
    loader *l = calloc(1, sizeof *l);

    if (l == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    l->patches = (patch_batch){
        .cases = cases, .settings = *settings,
        .channels = cache_dataset(cases)->channels,
        .label_channels = settings->target == TARGET_OF_CASE ? 0
                          : dataset_target_channels(cache_dataset(cases))
    };
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    if (loader_prepare(l, rank_count, ranks, augment, err) != PONS_OK) {
        loader_close(l);
        return err->status;
    }
    *out = l;
    return PONS_OK;
}

void loader_close(loader *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < THREADS_MAX; i++)
        worker_close(l->worker[i]);
    for (int i = 0; i <= THREADS_MAX; i++)
        patch_scratch_clear(&l->scratch[i]);
    for (int i = 0; l->slot != NULL && i < l->slot_count; i++)
        free_parts(&l->slot[i]);
    free(l->slot);
    free(l->ranks);
    free(l->order);
    free(l->order_epoch);
    batch_layout_clear(&l->patches.parts);
    augment_clear(&l->patches.augment);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Make a micro-batch in the calling thread, for a loader without threads. */
static void make_batch_here(loader *l)
{
    thread_budget none = { 0 }, *before = thread_budget_set(&none);

    for (int i = 0; i < l->patches.settings.batch; i++) {
        pons_error err = PONS_ERROR_INIT;
        loader_job job = take_job(l);
        run_job(l, &job, &l->scratch[THREADS_MAX], &err);
        end_job(l, &job, &err);
    }
    thread_budget_set(before);
}

static bool slot_is_full(const loader *l, const loader_slot *slot)
{
    return l->next.number > l->taken && slot->done == l->patches.settings.batch;
}

bool loader_ready(loader *l)
{
    const loader_slot *slot = &l->slot[l->taken % l->slot_count];
    bool ready;

    pthread_mutex_lock(&l->lock);
    ready = slot_is_full(l, slot) && slot->failed == l->patches.settings.batch;
    pthread_mutex_unlock(&l->lock);
    return ready;
}

pons_status loader_next(loader *l, const loader_batch **batch, pons_error *err)
{
    loader_slot *slot = &l->slot[l->taken % l->slot_count];

    if (!l->patches.settings.validation)
        cache_advance(l->patches.cases, l->reader, epoch_of_batch(l, l->taken));
    pthread_mutex_lock(&l->lock);
    l->in_use = false;
    if (l->thread_count == 0)
        make_batch_here(l);
    else
        pthread_cond_broadcast(&l->changed);
    while (!slot_is_full(l, slot))
        pthread_cond_wait(&l->changed, &l->lock);
    l->taken++;
    l->in_use = true;
    pthread_mutex_unlock(&l->lock);
    if (slot->failed < l->patches.settings.batch)
        return pons_fail(err, slot->error.status, "%s", slot->error.text);
    *batch = &slot->batch;
    return PONS_OK;
}

pons_status loader_seek(loader *l, int64_t step, pons_error *err)
{
    if (step < 0)
        return pons_fail(err, PONS_FAILURE, "cannot read the micro-batches of step %lld",
                         (long long)step);
    pthread_mutex_lock(&l->lock);
    l->pause = true;
    while (l->active > 0)
        pthread_cond_wait(&l->changed, &l->lock);
    l->taken = step * l->patches.settings.count;
    l->in_use = false;
    l->next = (loader_job){ .number = l->taken };
    l->pause = false;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return PONS_OK;
}
