/*
 * window_scheduler.c - devices, one thread that prepares and one that finishes, around a line of
 * volumes.
 *
 *     prepared  ......................|          made ready, at most one ahead
 *     begun     ................|                of which batches are dealt out
 *     finished  .........|                       used up, plane by plane as they are predicted
 */
#include "infer/window_scheduler.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread/parallel.h"
#include "base/thread/thread.h"
#include "infer/device_accumulator.h"

enum { NICENESS = 10, SHARE_OF_MEMORY = 4, SLAB = 32 << 20, SLAB_PLANES = 4 };

typedef struct item {
    spread_volume volume;
    stitch *stitch;
    uint64_t size;            /* of the planes that it holds, bytes                               */
    int64_t batches, dealt, blended;
    int64_t ready, taken;     /* planes                                                           */
    int64_t slab;             /* planes that are taken together, at most                          */
} item;

typedef struct spread {
    const spread_work *work;
    const replicas *replicas;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    item *item;
    int prepared, begun, finished; /* volumes; the last of 'begun' may have batches left          */
    uint64_t held, room;      /* sizes of volumes that have begun; what they may take             */
    parallel_spare spare;     /* threads that help the two that are no devices                    */
    bool failed;
    pons_error error;         /* the first one                                                    */
} spread;

/* What a device keeps between batches. */
typedef struct lane {
    int number;
    int64_t room;
    float *sum;
    float *all;               /* with other processes: a batch of each                            */
    held_sums sums;           /* of the volume whose batches are dealt out                        */
    bool held;                /* they are on the device                                           */
} lane;

static void fail(spread *s, const pons_error *err)
{
    pthread_mutex_lock(&s->lock);
    if (!s->failed)
        s->error = *err;
    s->failed = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- prepare --------------------------------------------------------------------------------- */

static pons_status prepare_item(spread *s, int number, pons_error *err)
{
    item *i = &s->item[number];
    spread_volume *v = &i->volume;
    const experiment *e;
    window_settings settings;

    if (s->work->prepare(s->work->context, number, v, err) != PONS_OK || v->image == NULL)
        return err->status;
    e = v->network->experiment;
    experiment_window_settings(e, &settings);
    if (stitch_open(&settings, v->extent, v->image, e->task.channels, e->task.classes, &i->stitch,
                    err) != PONS_OK)
        return err->status;
    i->batches = stitch_batches(i->stitch);
    i->size = stitch_bytes(&settings, v->extent, e->task.classes);
    i->slab = SLAB / (int64_t)sizeof(float) / (v->extent[1] * v->extent[2] * e->task.classes);
    i->slab = i->slab > SLAB_PLANES ? i->slab : SLAB_PLANES;
    return PONS_OK;
}

static void *prepare_all(void *context)
{
    spread *s = context;
    pons_error err = PONS_ERROR_INIT;

    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    parallel_borrow(&s->spare);
    for (int n = 0; n < s->work->count; n++) {
        pthread_mutex_lock(&s->lock);
        while (n > s->begun && !s->failed)
            pthread_cond_wait(&s->changed, &s->lock);
        bool failed = s->failed;
        pthread_mutex_unlock(&s->lock);
        if (failed)
            break;
        if (prepare_item(s, n, &err) != PONS_OK) {
            fail(s, &err);
            break;
        }
        pthread_mutex_lock(&s->lock);
        s->prepared = n + 1;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Whether the volume after the last one begun may begin now. */
static bool may_begin(const spread *s)
{
    return s->begun < s->prepared && s->begun - s->finished <= s->replicas->count
        && (s->held == 0 || s->held + s->item[s->begun].size <= s->room);
}

/* The next batch; NULL when there is none any more. With the lock held. */
static item *next_batch(spread *s, int64_t *batch)
{
    for (;;) {
        item *i = s->begun > 0 ? &s->item[s->begun - 1] : NULL;

        if (s->failed)
            return NULL;
        if (i != NULL && i->dealt < i->batches) {
            *batch = i->dealt++;
            return i;
        }
        if (s->begun == s->work->count)
            return NULL;
        if (may_begin(s)) {
            s->held += s->item[s->begun++].size;
            pthread_cond_broadcast(&s->changed);
        } else {
            pthread_cond_wait(&s->changed, &s->lock);
        }
    }
}

static pons_status predict(spread *s, lane *l, const item *i, int64_t batch, const float **logits,
                           pons_error *err)
{
    const replicas *network = i->volume.network;
    window_predictor p;
    int64_t room = stitch_room(i->stitch);

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
    if (network_predictor(network->experiment, network->item[l->number].evaluation, &p, err)
        != PONS_OK)
        return err->status;
    return stitch_predict(i->stitch, batch, &p, l->sum, logits, err);
}

/* Of a volume that begins: all its windows are this device's. */
static pons_status hold_sums(spread *s, lane *l, const item *i, pons_error *err)
{
    const replicas *network = i->volume.network;

    if (s->replicas->count > 1)
        return PONS_OK;
    return held_sums_take(&l->sums, network->experiment, &network->item[l->number],
                          i->volume.extent, i->stitch, &l->held, err);
}

/* False: there is no room for all of it before planes are taken. */
static pons_status blend(lane *l, item *i, int64_t batch, const float *logits, int64_t taken,
                         bool *done, pons_error *err)
{
    const stitch_sums sums = { held_sums_read, &l->sums };

    if (l->held)
        return stitch_collect(i->stitch, batch, taken, &sums, done, err);
    *done = stitch_blend(i->stitch, batch, logits, taken);
    return PONS_OK;
}

/*
 * Blend when all batches before are blended, as planes are taken; false: something has failed. With
 * the lock held.
 */
static bool blend_in_turn(spread *s, lane *l, item *i, int64_t batch, const float *logits,
                          pons_error *err)
{
    bool done = false;

    while (i->blended < batch && !s->failed)
        pthread_cond_wait(&s->changed, &s->lock);
    while (!done && !s->failed) {
        int64_t taken = i->taken;

        pthread_mutex_unlock(&s->lock);
        if (blend(l, i, batch, logits, taken, &done, err) != PONS_OK)
            fail(s, err);
        pthread_mutex_lock(&s->lock);
        i->ready = stitch_ready(i->stitch);
        i->blended += done;
        pthread_cond_broadcast(&s->changed);
        while (!done && i->taken == taken && !s->failed)
            pthread_cond_wait(&s->changed, &s->lock);
    }
    return done;
}

static pons_status predict_share(void *context, int number, pons_error *err)
{
    spread *s = context;
    lane l = { .number = number };
    const float *logits = NULL;
    int64_t batch = 0;
    item *i;

    pthread_mutex_lock(&s->lock);
    while ((i = next_batch(s, &batch)) != NULL) {
        pthread_mutex_unlock(&s->lock);
        if ((batch == 0 && hold_sums(s, &l, i, err) != PONS_OK)
            || predict(s, &l, i, batch, &logits, err) != PONS_OK)
            fail(s, err);
        pthread_mutex_lock(&s->lock);
        if (err->status != PONS_OK || !blend_in_turn(s, &l, i, batch, logits, err))
            break;
        if (l.held && batch == i->batches - 1) {
            held_sums_drop(&l.sums);
            l.held = false;
        }
    }
    pthread_mutex_unlock(&s->lock);
    held_sums_drop(&l.sums);
    free(l.sum);
    return PONS_OK; /* a failure is in 's', and nobody waits in a sum */
}

/* ---- one device of each of several processes ------------------------------------------------- */

static item *next_volume(spread *s)
{
    item *i = NULL;

    pthread_mutex_lock(&s->lock);
    while (!s->failed && s->begun < s->work->count && !may_begin(s))
        pthread_cond_wait(&s->changed, &s->lock);
    if (!s->failed && s->begun < s->work->count) {
        i = &s->item[s->begun++];
        s->held += i->size;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return i;
}

/* Batches first .. first + size - 1, one for each process; who has none repeats the last. */
static pons_status predict_round(spread *s, lane *l, item *i, int64_t first, pons_error *err)
{
    group *g = s->work->shared;
    int64_t mine = first + group_rank(g), end = first + group_size(g);
    int64_t size = stitch_size(i->stitch);
    const float *logits;

    if (predict(s, l, i, mine < i->batches ? mine : i->batches - 1, &logits, err) != PONS_OK
        || group_all_gather(g, logits, (size_t)size * sizeof *logits, l->all, err) != PONS_OK)
        return err->status;
    end = end < i->batches ? end : i->batches;
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
    spread *s = context;
    lane l = { .number = number };
    int size = group_size(s->work->shared);
    item *i;

    while (err->status == PONS_OK && (i = next_volume(s)) != NULL) {
        if (i->batches == 0)
            continue;
        free(l.all);
        l.all = malloc((size_t)(size * stitch_size(i->stitch)) * sizeof *l.all);
        if (l.all == NULL)
            pons_fail(err, PONS_DEVICE, "out of memory for the logits of %d processes", size);
        for (int64_t first = 0; first < i->batches && err->status == PONS_OK; first += size)
            predict_round(s, &l, i, first, err);
    }
    if (err->status != PONS_OK)
        fail(s, err);
    free(l.all);
    free(l.sum);
    return PONS_OK;
}

/* ---- finish ---------------------------------------------------------------------------------- */

static void release(spread *s, item *i)
{
    stitch_close(i->stitch);
    i->stitch = NULL;
    s->work->release(s->work->context, &i->volume);
    i->volume = (spread_volume){ .image = NULL };
}

static pons_status finish_item(spread *s, int number, pons_error *err)
{
    item *i = &s->item[number];

    if (s->work->shared != NULL && group_rank(s->work->shared) > 0)
        return PONS_OK;
    stitch_close(i->stitch);
    i->stitch = NULL;
    return s->work->finish(s->work->context, number, &i->volume, err);
}

/* Whether there are planes to be taken, taken .. end - 1; false: no more will come. */
static bool wait_for_planes(spread *s, int number, int64_t *end)
{
    const item *i = &s->item[number];
    bool more;

    pthread_mutex_lock(&s->lock);
    while (!s->failed
           && (s->begun <= number || (i->ready == i->taken && i->blended < i->batches)))
        pthread_cond_wait(&s->changed, &s->lock);
    more = !s->failed && i->ready > i->taken;
    *end = i->ready < i->taken + i->slab ? i->ready : i->taken + i->slab;
    pthread_mutex_unlock(&s->lock);
    return more;
}

static bool has_failed(spread *s)
{
    bool failed;

    pthread_mutex_lock(&s->lock);
    failed = s->failed;
    pthread_mutex_unlock(&s->lock);
    return failed;
}

static void take_planes(spread *s, int number, pons_error *err)
{
    item *i = &s->item[number];
    int64_t end;

    while (wait_for_planes(s, number, &end)) {
        if (s->work->take(s->work->context, number, &i->volume, i->stitch, i->taken, end, err)
            != PONS_OK)
            return;
        pthread_mutex_lock(&s->lock);
        i->taken = end;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
}

static void *finish_all(void *context)
{
    spread *s = context;
    pons_error err = PONS_ERROR_INIT;

    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    parallel_borrow(&s->spare);
    for (int n = 0; n < s->work->count; n++) {
        take_planes(s, n, &err);
        if (err.status == PONS_OK && has_failed(s))
            break;
        if (err.status != PONS_OK || finish_item(s, n, &err) != PONS_OK) {
            fail(s, &err);
            break;
        }
        release(s, &s->item[n]);
        pthread_mutex_lock(&s->lock);
        s->finished = n + 1;
        s->held -= s->item[n].size;
        pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

/* ---- run ------------------------------------------------------------------------------------- */

static void run(spread *s)
{
    static void *(*const helper[])(void *) = { prepare_all, finish_all };
    pthread_t thread[2];
    pons_error err = PONS_ERROR_INIT;
    int started = 0;

    while (started < 2
           && thread_start(&thread[started], helper[started], s, "a thread that prepares volumes",
                           &err) == PONS_OK)
        started++;
    if (started < 2) {
        fail(s, &err);
    } else if (crew_run(s->replicas->crew, s->work->shared != NULL ? predict_with_others
                                                                : predict_share, s, &err)
               != PONS_OK) {
        fail(s, &err);
    }
    while (started > 0)
        pthread_join(thread[--started], NULL);
}

pons_status spread_run(const replicas *r, const spread_work *work, pons_error *err)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    spread s = { .work = work, .replicas = r, .error = PONS_ERROR_INIT,
                 .room = (uint64_t)pages * (uint64_t)page / SHARE_OF_MEMORY,
                 .spare = { experiment_threads(r->experiment) - 1 } };

    s.item = calloc((size_t)work->count + 1, sizeof *s.item);
    if (s.item == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d volumes", work->count);
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    run(&s);
    for (int n = s.finished; n < work->count; n++)
        release(&s, &s.item[n]);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
    free(s.item);
    if (s.failed)
        return pons_fail(err, s.error.status, "%s", s.error.text);
    return PONS_OK;
}
