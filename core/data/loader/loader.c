/*
 * loader.c - micro-batches, made ahead by threads of lower priority.
 *
 * A job is one case of one micro-batch. Threads take jobs in order and write into the slots of a
 * ring; the consumer takes the slots in order. What a job writes depends on nothing but the job, so
 * the number of threads, 0 included, changes no bit. After the ring is made nothing is allocated
 * (but for cases that the cache does not hold).
 */
#include "data/loader/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "base/thread/thread.h"
#include "data/loader/epoch_order.h"
#include "data/loader/patch_batch.h"

#define THREADS_MAX 64
#define NICENESS 10

typedef struct loader_slot {
    loader_batch batch;
    loader_part *part;
    const char **case_id;      /* [batch]                                                         */
    int done;                  /* jobs                                                            */
    int failed;                /* place of the earliest failure; 'batch' cases: none              */
    pons_error error;
} loader_slot;

typedef struct loader_job {
    int64_t number;            /* sequence number of the micro-batch                              */
    int place;                 /* case in it                                                      */
    int64_t epoch;
    int rank;
} loader_job;

struct loader {
    patch_maker maker;
    int rank_count;
    int *ranks;
    int64_t *order;            /* of epoch 'order_epoch'                                          */
    int64_t order_epoch;
    int slot_count;
    loader_slot *slot;
    int64_t taken;             /* micro-batches handed out, from number 0 on                      */
    bool lent;                 /* the last one is still with the consumer                         */
    loader_job next;
    int thread_count, active;
    pthread_t thread[THREADS_MAX];
    patch_bench bench[THREADS_MAX + 1]; /* the last one is the consumer's                         */
    bool stop, pause;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* ---- jobs ------------------------------------------------------------------------------------ */

static int64_t step_of(const loader *l, int64_t number)
{
    return number / l->maker.settings.count;
}

static int micro_batch_of(const loader *l, int64_t number)
{
    return l->maker.settings.first + (int)(number % l->maker.settings.count);
}

/* Where in the stream of cases a job's case stands (R6). */
static void locate_case(loader *l, loader_job *job)
{
    const loader_settings *s = &l->maker.settings;
    int64_t batch = step_of(l, job->number) * s->micro_batches + micro_batch_of(l, job->number);
    int64_t position = batch * s->batch + job->place;

    job->epoch = position / l->rank_count;
    if (job->epoch != l->order_epoch) {
        stream_order(s->seed, job->epoch, l->rank_count, l->order);
        l->order_epoch = job->epoch;
    }
    job->rank = l->ranks[l->order[position % l->rank_count]];
}

static void slot_begin(loader *l, const loader_job *job)
{
    loader_slot *slot = &l->slot[job->number % l->slot_count];

    slot->done = 0;
    slot->failed = l->maker.settings.batch;
    slot->error = (pons_error)PONS_ERROR_INIT;
    slot->batch.step = step_of(l, job->number);
    slot->batch.micro_batch = micro_batch_of(l, job->number);
}

/* The next job is described and counted; its slot is free. Under the lock, or without threads. */
static loader_job job_take(loader *l)
{
    loader_job job = l->next;
    loader_slot *slot = &l->slot[job.number % l->slot_count];

    if (job.place == 0)
        slot_begin(l, &job);
    locate_case(l, &job);
    slot->batch.epoch = job.epoch;
    slot->case_id[job.place] = cache_dataset(l->maker.held)->cases[job.rank].id;
    l->next.place++;
    if (l->next.place == l->maker.settings.batch)
        l->next = (loader_job){ .number = job.number + 1 };
    return job;
}

static void job_run(loader *l, const loader_job *job, patch_bench *bench, pons_error *err)
{
    const patch_maker *m = &l->maker;
    loader_slot *slot = &l->slot[job->number % l->slot_count];

    patch_make(m, bench, job->epoch, job->rank, slot->batch.part,
               (int64_t)job->place * m->settings.per_case, err);
}

static void job_end(loader *l, const loader_job *job, const pons_error *err)
{
    loader_slot *slot = &l->slot[job->number % l->slot_count];

    slot->done++;
    if (err->status != PONS_OK && job->place < slot->failed) {
        slot->failed = job->place;
        slot->error = *err;
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool job_is_open(const loader *l)
{
    int64_t released = l->taken - (l->lent ? 1 : 0);

    return !l->pause && l->next.number < released + l->slot_count;
}

typedef struct loader_seat {
    loader *loader;
    int index;
} loader_seat;

static void *loader_work(void *argument)
{
    loader_seat start = *(loader_seat *)argument;
    loader *l = start.loader;
    parallel_spare none = { 0 };

    free(argument);
    parallel_borrow(&none);
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        if (!job_is_open(l)) {
            pthread_cond_wait(&l->changed, &l->lock);
            continue;
        }
        pons_error err = PONS_ERROR_INIT;
        loader_job job = job_take(l);
        l->active++;
        pthread_mutex_unlock(&l->lock);
        job_run(l, &job, &l->bench[start.index], &err);
        pthread_mutex_lock(&l->lock);
        l->active--;
        job_end(l, &job, &err);
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Signals are for the thread that trains. */
static pons_status start_threads(loader *l, int count, pons_error *err)
{
    sigset_t before;

    thread_block_signals(&before);
    for (int i = 0; i < count; i++) {
        loader_seat *start = malloc(sizeof *start);
        if (start != NULL)
            *start = (loader_seat){ l, i };
        if (start == NULL)
            pons_fail(err, PONS_DEVICE, "out of memory for a thread that prepares patches");
        else
            thread_start(&l->thread[i], loader_work, start, "a thread that prepares patches", err);
        if (err->status != PONS_OK) {
            free(start);
            break;
        }
        l->thread_count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return l->thread_count == count ? PONS_OK : err->status;
}

/* One for every two processors of this process, four at most. */
int loader_threads_chosen(void)
{
    int count = thread_processors() / 2;

    return count < 1 ? 1 : count > 4 ? 4 : count;
}

/* ---- open ------------------------------------------------------------------------------------ */

void loader_patch(const int extent[3], int dhw[3], int *flat_axis)
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

static pons_status check_settings(const cache *held, const loader_settings *s, pons_error *err)
{
    const dataset *d = cache_dataset(held);
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

static pons_status take_ranks(loader *l, int count, const int *ranks, pons_error *err)
{
    const dataset *d = cache_dataset(l->maker.held);

    if (count == 0)
        return pons_fail(err, PONS_DATA, "there is no case to train on");
    l->rank_count = count;
    l->ranks = malloc((size_t)count * sizeof *l->ranks);
    l->order = malloc((size_t)count * sizeof *l->order);
    l->order_epoch = -1;
    if (l->ranks == NULL || l->order == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    memcpy(l->ranks, ranks, (size_t)count * sizeof *l->ranks);
    for (int i = 0; i < count; i++) {
        if (!cache_knows(l->maker.held, ranks[i]))
            return pons_fail(err, PONS_FAILURE, "case %d is not among the cache's", ranks[i]);
        if (d->cases[ranks[i]].label == NULL)
            return pons_fail(err, PONS_CONFIG, "case '%s' has no label to learn from\n"
                             "hint: give 'label' in [data]", d->cases[ranks[i]].id);
    }
    return PONS_OK;
}

static int thread_count(const loader_settings *s)
{
    if (s->threads < 0)
        return loader_threads_chosen();
    return s->threads > THREADS_MAX ? THREADS_MAX : s->threads;
}

/* Enough to keep every thread busy while one is with the consumer. */
int loader_slots(const loader_settings *settings)
{
    int threads = thread_count(settings);

    return threads == 0 ? 1 : 2 + (threads - 1) / settings->batch;
}

/* Where kernels may read it. */
static void *part_alloc(size_t size)
{
    enum { ALIGNMENT = 64 };

    return aligned_alloc(ALIGNMENT, round_up_size(size, ALIGNMENT));
}

static pons_status make_parts(loader *l, loader_slot *slot, pons_error *err)
{
    const loader_settings *s = &l->maker.settings;
    const patch_parts *parts = &l->maker.parts;

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
        slot->batch.image = slot->part[PATCH_IMAGE].data;
        slot->batch.label = slot->part[PATCH_TARGET].data;
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
    const loader_settings *s = &l->maker.settings;

    if (patch_parts_make(s->layout != NULL, l->maker.augment.chain, s->extent, l->maker.channels,
                         l->maker.label_channels, &l->maker.parts, err) != PONS_OK)
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

static pons_status make_benches(loader *l, int threads, pons_error *err)
{
    for (int i = 0; i < threads; i++) {
        if (patch_bench_init(&l->maker, &l->bench[i], err) != PONS_OK)
            return err->status;
    }
    return patch_bench_init(&l->maker, &l->bench[THREADS_MAX], err);
}

static pons_status loader_prepare(loader *l, int rank_count, const int *ranks,
                                  const volume_chain *chain, pons_error *err)
{
    const loader_settings *s = &l->maker.settings;
    int threads = thread_count(s);

    if (check_settings(l->maker.held, s, err) != PONS_OK ||
        augment_init(&l->maker.augment, chain, err) != PONS_OK ||
        take_ranks(l, rank_count, ranks, err) != PONS_OK ||
        make_slots(l, err) != PONS_OK || make_benches(l, threads, err) != PONS_OK)
        return err->status;
    return start_threads(l, threads, err);
}

pons_status loader_open(cache *held, int rank_count, const int *ranks,
                        const volume_chain *augment, const loader_settings *settings, loader **out,
                        pons_error *err)
{
    loader *l = calloc(1, sizeof *l);

    if (l == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    l->maker = (patch_maker){
        .held = held, .settings = *settings,
        .channels = cache_dataset(held)->channels,
        .label_channels = dataset_target_channels(cache_dataset(held))
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
    for (int i = 0; i < l->thread_count; i++)
        pthread_join(l->thread[i], NULL);
    for (int i = 0; i <= THREADS_MAX; i++)
        patch_bench_clear(&l->bench[i]);
    for (int i = 0; l->slot != NULL && i < l->slot_count; i++)
        free_parts(&l->slot[i]);
    free(l->slot);
    free(l->ranks);
    free(l->order);
    patch_parts_clear(&l->maker.parts);
    augment_clear(&l->maker.augment);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- next and seek --------------------------------------------------------------------------- */

/* Without threads: make the micro-batch here. */
static void make_now(loader *l)
{
    parallel_spare none = { 0 }, *before = parallel_borrow(&none);

    for (int i = 0; i < l->maker.settings.batch; i++) {
        pons_error err = PONS_ERROR_INIT;
        loader_job job = job_take(l);
        job_run(l, &job, &l->bench[THREADS_MAX], &err);
        job_end(l, &job, &err);
    }
    parallel_borrow(before);
}

static bool slot_is_full(const loader *l, const loader_slot *slot)
{
    return l->next.number > l->taken && slot->done == l->maker.settings.batch;
}

bool loader_ready(loader *l)
{
    const loader_slot *slot = &l->slot[l->taken % l->slot_count];
    bool ready;

    pthread_mutex_lock(&l->lock);
    ready = slot_is_full(l, slot) && slot->failed == l->maker.settings.batch;
    pthread_mutex_unlock(&l->lock);
    return ready;
}

pons_status loader_next(loader *l, const loader_batch **batch, pons_error *err)
{
    loader_slot *slot = &l->slot[l->taken % l->slot_count];

    pthread_mutex_lock(&l->lock);
    l->lent = false;
    if (l->thread_count == 0)
        make_now(l);
    else
        pthread_cond_broadcast(&l->changed);
    while (!slot_is_full(l, slot))
        pthread_cond_wait(&l->changed, &l->lock);
    l->taken++;
    l->lent = true;
    pthread_mutex_unlock(&l->lock);
    if (slot->failed < l->maker.settings.batch)
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
    l->taken = step * l->maker.settings.count;
    l->lent = false;
    l->next = (loader_job){ .number = l->taken };
    l->pause = false;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    return PONS_OK;
}
