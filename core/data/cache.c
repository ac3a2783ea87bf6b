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

#include <data/cache_disk.h>
#include <data/cache_key.h>
#include <data/volume.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    bool on_disk;
    cache_disk disk;
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
    int found;                 /* in the disk cache                                               */
    bool full;
    void (*progress)(void *context);
    void *context;
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

/* Keep a case of 'size' bytes unless the limit is reached. */
static void fill_keep(fill *f, int rank, packed_case *packed, size_t size)
{
    cache_slot *slot = &f->cache->slot[rank];

    if (f->limit > 0 && f->cache->size + size > (size_t)f->limit) {
        f->full = true;
        packed_case_clear(packed);
        return;
    }
    slot->packed = *packed;
    slot->held = true;
    f->cache->size += size;
    f->cache->held++;
}

static bool fill_has_room(fill *f, size_t size)
{
    pthread_mutex_lock(&f->lock);
    bool room = f->limit == 0 || f->cache->size + size <= (size_t)f->limit;
    f->full = f->full || !room;
    pthread_mutex_unlock(&f->lock);
    return room;
}

/* ---- on disk --------------------------------------------------------------------------------- */

/* Where a thread's case is: what it says goes to the note, whose text is complete after a flush. */
typedef struct fill_place {
    fill *fill;
    int rank;
    fill_note *note;
    FILE *stream;
    logger *log;
} fill_place;

static bool disk_find(const fill_place *p, const char *key, packed_case *out)
{
    const cache *c = p->fill->cache;
    const char *note;

    if (!cache_disk_find(&c->disk, key, c->data->cases[p->rank].id, p->log, out, &note))
        return false;
    fputs(note, p->stream);
    return true;
}

/* Make the file of a case, and map it. A source that changed meanwhile has another key: what was
 * made of it is not kept under this one. */
static void disk_make(const fill_place *p, const char *key, packed_case *out, pons_error *err)
{
    const cache *c = p->fill->cache;
    const char *name = c->data->cases[p->rank].id;
    packed_case made;
    char now[CASE_KEY_SIZE];
    size_t said;

    fflush(p->stream);
    said = p->note->size;
    if (pack_case(c, p->rank, p->log, &made, err) != PONS_OK)
        return;
    fflush(p->stream);
    if (cache_key(c->data, c->chain, &c->wish, p->rank, now, err) == PONS_OK
        && strcmp(key, now) == 0
        && fill_has_room(p->fill, case_file_size(&made, p->note->text + said))
        && cache_disk_keep(&c->disk, key, name, &made, p->note->text + said, p->log)) {
        const char *note;
        cache_disk_find(&c->disk, key, name, p->log, out, &note);
    }
    packed_case_clear(&made);
}

/* Map a case, made now if need be; *out stays empty where it cannot be kept. */
static void disk_take(const fill_place *p, packed_case *out, bool *found, pons_error *err)
{
    const cache *c = p->fill->cache;
    char key[CASE_KEY_SIZE];
    int held;

    *out = (packed_case){ .code_size = 0 };
    if (cache_key(c->data, c->chain, &c->wish, p->rank, key, err) != PONS_OK)
        return;
    *found = disk_find(p, key, out);
    if (*found)
        return;
    held = cache_disk_lock(&c->disk, key);
    *found = disk_find(p, key, out); /* another process may have made it meanwhile */
    if (!*found)
        disk_make(p, key, out, err);
    cache_disk_unlock(held);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The case at 'place', its warnings kept in a note. */
static void fill_one(fill *f, int place, bool keep)
{
    pons_error err = PONS_ERROR_INIT;
    packed_case packed = { .code_size = 0 };
    fill_note *note = &f->note[place];
    FILE *stream = open_memstream(&note->text, &note->size);
    logger said = { .terminal = stream, .level = LOG_NORMAL };
    fill_place here = { f, f->rank[place], note, stream, &said };
    bool found = false;

    if (stream == NULL)
        pons_fail(&err, PONS_DEVICE, "out of memory");
    else if (keep && f->cache->on_disk)
        disk_take(&here, &packed, &found, &err);
    else if (keep)
        pack_case(f->cache, f->rank[place], &said, &packed, &err);
    else
        verify_case(f->cache, f->rank[place], &err);
    if (stream != NULL)
        fclose(stream);
    pthread_mutex_lock(&f->lock);
    if (err.status != PONS_OK)
        fill_failed(f, place, &err);
    else if (packed.codes != NULL)
        fill_keep(f, f->rank[place], &packed,
                  packed.mapping != NULL ? packed.mapping_size : packed.size);
    f->found += found;
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
        if (f->done != shown && f->progress != NULL)
            f->progress(f->context);
        shown = f->done;
    }
    pthread_mutex_unlock(&f->lock);
}

static void fill_notes(fill *f)
{
    for (int i = 0; i < f->count; i++) {
        char *rest = f->note[i].text, *line;
        while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
            if (*line != '\0' && f->log != NULL)
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
    if (f->cache->on_disk && f->log != NULL)
        log_line(f->log, "cache: %d of %d cases in '%s', %d of them from before", f->cache->held,
                 f->count, f->cache->disk.folder, f->found);
    return PONS_OK;
}

static pons_status cache_fill(cache *c, int count, const int *ranks, const cache_settings *s,
                              logger *l, pons_error *err)
{
    int threads = s->threads < 1 ? 1 : s->threads > 64 ? 64 : s->threads;
    fill f = { .cache = c, .log = l, .count = count, .rank = ranks, .limit = s->limit,
               .progress = s->progress, .context = s->context, .full = s->mode == CACHE_NONE,
               .failed = count, .error = PONS_ERROR_INIT };

    if (count == 0)
        return PONS_OK;
    f.note = calloc((size_t)count, sizeof *f.note);
    if (f.note == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    time_t begin = time(NULL);
    pons_status status = fill_run(&f, threads < count ? threads : count, err);
    if (status == PONS_OK && c->on_disk && s->limit > 0)
        cache_disk_trim(&c->disk, s->limit, begin);
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

static pons_status open_disk(cache *c, const cache_settings *s, pons_error *err)
{
    char *folder;
    pons_status status;

    if (s->folder != NULL)
        return cache_disk_open(&c->disk, s->folder, err);
    if (asprintf(&folder, "%s/.cache", s->output) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    status = cache_disk_open(&c->disk, folder, err);
    free(folder);
    return status;
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
    c->on_disk = settings->mode == CACHE_DISK;
    c->disk.lock = -1;
    for (int i = 0; i < rank_count; i++)
        c->slot[ranks[i]].wanted = true;
    if ((c->on_disk && open_disk(c, settings, err) != PONS_OK)
        || cache_fill(c, rank_count, ranks, settings, l, err) != PONS_OK) {
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
    cache_disk_close(&c->disk);
    free(c->slot);
    free(c);
}
