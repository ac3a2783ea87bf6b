/*
 * cache.c - preprocessed cases, read once in several threads and kept, or read when asked for.
 *
 * Every case is read when the cache is opened, also those that will not be kept: a damaged file or
 * an id that is not listed ends the run before it begins.
 *
 * Which cases are kept has no influence on what they hold. Threads take cases in order of the list;
 * the failure that is reported is the one of the earliest case, and warnings come out in order of
 * the list, however many threads there are.
 */
#include <data/cache_hold.h>

#include <data/volume.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct cache_slot {
    bool wanted, held;
    packed_case packed;
} cache_slot;

struct cache {
    const dataset *data;
    const volume_chain *chain;
    packed_wish wish;
    cache_slot *slot;          /* [case_count], by rank                                           */
    size_t size;
    int held;
};

/* ---- one case -------------------------------------------------------------------------------- */

static pons_status read_case(const cache *c, int rank, logger *l, pons_case *out, pons_error *err)
{
    if (case_read(c->data, rank, out, err) != PONS_OK)
        return err->status;
    if (c->chain == NULL || volume_chain_apply(c->chain, out, l, err) == PONS_OK)
        return PONS_OK;
    case_clear(out);
    return err->status;
}

static pons_status pack_case(const cache *c, int rank, logger *l, packed_case *out,
                             pons_error *err)
{
    pons_case one;

    if (read_case(c, rank, l, &one, err) != PONS_OK)
        return err->status;
    return packed_case_init(out, &one, &c->wish, err);
}

pons_status cache_hold_begin(cache *c, int rank, cache_hold *hold, pons_error *err)
{
    memset(hold, 0, sizeof *hold);
    if (c->slot[rank].held) {
        hold->packed = &c->slot[rank].packed;
        return PONS_OK;
    }
    hold->packed = &hold->own;
    return pack_case(c, rank, NULL, &hold->own, err);
}

void cache_hold_end(cache_hold *hold)
{
    packed_case_clear(&hold->own);
}

pons_status cache_read(cache *c, int rank, pons_case *out, pons_error *err)
{
    if (!c->slot[rank].held)
        return read_case(c, rank, NULL, out, err);
    if (packed_case_open(&c->slot[rank].packed, out, err) != PONS_OK)
        return err->status;
    out->name = c->data->cases[rank].id;
    return PONS_OK;
}

const dataset *cache_dataset(const cache *c)
{
    return c->data;
}

bool cache_knows(const cache *c, int rank)
{
    return rank >= 0 && rank < c->data->case_count && c->slot[rank].wanted;
}

int64_t cache_size(const cache *c)
{
    return (int64_t)c->size;
}

int cache_held(const cache *c)
{
    return c->held;
}

/* ---- filling --------------------------------------------------------------------------------- */

typedef struct fill_note {     /* what a case's warnings said */
    char *text;
    size_t size;
} fill_note;

typedef struct fill {
    cache *cache;
    logger *log;
    int count;
    const int *rank;
    int64_t limit;
    fill_note *note;           /* [count] */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int next, done, running;
    bool full;
    int failed;                /* place of the earliest failure; 'count': none                    */
    pons_error error;
} fill;

/* Next place of the list, or -1; whether the case is to be kept. */
static int fill_take(fill *f, bool *keep)
{
    pthread_mutex_lock(&f->lock);
    int place = f->next < f->count && f->failed == f->count ? f->next++ : -1;
    *keep = !f->full;
    pthread_mutex_unlock(&f->lock);
    return place;
}

/* Read a case that will not be kept. */
static void verify_case(const cache *c, int rank, pons_error *err)
{
    pons_case one;

    if (case_read(c->data, rank, &one, err) == PONS_OK)
        case_clear(&one);
}

static void fill_failed(fill *f, int place, const pons_error *err)
{
    if (place < f->failed) {
        f->failed = place;
        f->error = *err;
    }
}

/* Keep a case unless the limit is reached. */
static void fill_keep(fill *f, int rank, packed_case *packed)
{
    cache_slot *slot = &f->cache->slot[rank];

    if (f->limit > 0 && f->cache->size + packed->size > (size_t)f->limit) {
        f->full = true;
        packed_case_clear(packed);
        return;
    }
    slot->packed = *packed;
    slot->held = true;
    f->cache->size += packed->size;
    f->cache->held++;
}

/* The case at 'place', its warnings kept in a note. */
static void fill_one(fill *f, int place, bool keep)
{
    pons_error err = PONS_ERROR_INIT;
    packed_case packed;
    fill_note *note = &f->note[place];
    FILE *stream = f->log != NULL ? open_memstream(&note->text, &note->size) : NULL;
    logger quiet = { .terminal = stream, .level = f->log != NULL ? f->log->level : LOG_QUIET };

    if (keep)
        pack_case(f->cache, f->rank[place], stream != NULL ? &quiet : NULL, &packed, &err);
    else
        verify_case(f->cache, f->rank[place], &err);
    if (stream != NULL)
        fclose(stream);
    pthread_mutex_lock(&f->lock);
    if (err.status != PONS_OK)
        fill_failed(f, place, &err);
    else if (keep)
        fill_keep(f, f->rank[place], &packed);
    f->done++;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void *fill_work(void *argument)
{
    fill *f = argument;
    int place;
    bool keep;

    while ((place = fill_take(f, &keep)) >= 0)
        fill_one(f, place, keep);
    pthread_mutex_lock(&f->lock);
    f->running--;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* Show how far the threads are until the last has ended. */
static void fill_watch(fill *f)
{
    int shown = 0;

    pthread_mutex_lock(&f->lock);
    while (f->running > 0) {
        pthread_cond_wait(&f->changed, &f->lock);
        if (f->done != shown && f->log != NULL)
            log_progress(f->log, "reading cases: %d of %d", f->done, f->count);
        shown = f->done;
    }
    pthread_mutex_unlock(&f->lock);
}

static void fill_notes(fill *f)
{
    for (int i = 0; i < f->count; i++) {
        char *rest = f->note[i].text, *line;
        while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
            if (*line != '\0')
                log_line(f->log, "%s", line);
        }
        free(f->note[i].text);
    }
}

static pons_status fill_run(fill *f, int threads, pons_error *err)
{
    pthread_t thread[64];
    int started = 0;

    f->running = threads;
    while (started < threads && pthread_create(&thread[started], NULL, fill_work, f) == 0)
        started++;
    pthread_mutex_lock(&f->lock);
    f->running -= threads - started;
    pthread_mutex_unlock(&f->lock);
    if (started == 0)
        return pons_fail(err, PONS_FAILURE, "cannot start a thread to read cases");
    fill_watch(f);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    fill_notes(f);
    if (f->failed < f->count)
        return pons_fail(err, f->error.status, "%s", f->error.text);
    return PONS_OK;
}

static pons_status cache_fill(cache *c, int count, const int *ranks, const cache_settings *s,
                              logger *l, pons_error *err)
{
    int threads = s->threads < 1 ? 1 : s->threads > 64 ? 64 : s->threads;
    fill f = { .cache = c, .log = l, .count = count, .rank = ranks, .limit = s->limit,
               .full = s->mode == CACHE_NONE, .failed = count, .error = PONS_ERROR_INIT };

    if (count == 0)
        return PONS_OK;
    f.note = calloc((size_t)count, sizeof *f.note);
    if (f.note == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    pons_status status = fill_run(&f, threads < count ? threads : count, err);
    pthread_cond_destroy(&f.changed);
    pthread_mutex_destroy(&f.lock);
    free(f.note);
    return status;
}

/* ---- open ------------------------------------------------------------------------------------ */

static packed_wish wish_of(const dataset *d, const cache_settings *s)
{
    static const packed_sets sets[] = {
        [SAMPLING_UNIFORM] = PACKED_SETS_NONE, [SAMPLING_BALANCED] = PACKED_SETS_BALANCED,
        [SAMPLING_CLASSES] = PACKED_SETS_CLASSES, [SAMPLING_WHOLE] = PACKED_SETS_NONE
    };

    return (packed_wish){
        .sets = sets[s->sampling],
        .set_count = d->region_count > 0 ? d->region_count : d->class_count,
        .background_above = s->background_above
    };
}

pons_status cache_open(const dataset *d, const volume_chain *chain, int rank_count,
                       const int *ranks, const cache_settings *settings, logger *l, cache **out,
                       pons_error *err)
{
    cache *c = calloc(1, sizeof *c);

    if (c != NULL)
        c->slot = calloc((size_t)d->case_count, sizeof *c->slot);
    if (c == NULL || c->slot == NULL) {
        free(c);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    c->data = d;
    c->chain = chain;
    c->wish = wish_of(d, settings);
    for (int i = 0; i < rank_count; i++)
        c->slot[ranks[i]].wanted = true;
    if (cache_fill(c, rank_count, ranks, settings, l, err) != PONS_OK) {
        cache_close(c);
        return err->status;
    }
    *out = c;
    return PONS_OK;
}

void cache_close(cache *c)
{
    if (c == NULL)
        return;
    for (int i = 0; i < c->data->case_count; i++)
        packed_case_clear(&c->slot[i].packed);
    free(c->slot);
    free(c);
}
