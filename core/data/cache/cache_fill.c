/*
 * cache_fill.c - all cases of a cache, read once in several threads, of all processes of a machine.
 *
 * Every case is read when the cache is opened, also those that will not be kept: a damaged file or
 * an id that is not listed ends the run before it begins.
 *
 * Threads take cases in order of the list, whatever process they are of; the failure that is
 * reported is the one of the earliest case, and warnings come out in order of the list. Threads
 * that have no case, or none any more, help with those of the others. When all have been read each
 * process maps those that others have made.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread/parallel.h"
#include "base/thread/thread.h"
#include "data/cache/cache_internal.h"
#include "data/cache/cache_key.h"
#include "data/cache/shared_memory.h"
#include "data/dataset/case_hash.h"
#include "data/dataset/case_read.h"
#include "data/dataset/class_coverage.h"
#include "data/packed/sampling_index.h"

enum { THREADS_MAX = 64 };

typedef struct fill_note {     /* what a case's warnings said */
    char *text;
    size_t size;
} fill_note;

/* What went wrong and where, told to the other processes. */
typedef struct fill_report {
    int64_t place;             /* of the earliest case that failed; 'count': none                 */
    pons_error error;
    pons_error unkept;         /* why memory holds fewer cases than it may                        */
    bool seen[CLASS_COUNT_MAX]; /* classes that its cases contain                                 */
    case_geometry geometry;    /* of its cases for training                                       */
    uint64_t validation;       /* orientations of its cases for validation                        */
} fill_report;

typedef struct fill {
    cache *cache;
    cache_share share;
    cache_board *board;
    logger *log;
    int count;
    const int *rank;
    int64_t limit;
    const bool *centres;       /* [2] */
    fill_note *note;           /* [count] */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int running;
    parallel_spare spare;      /* threads without a case                                          */
    void (*progress)(void *context);
    void *context;
    fill_report report;        /* of this process, later of all                                   */
    class_seen seen;
} fill;

/* Where a thread's case is: what it says goes to the note, whose text is complete after a flush. */
typedef struct fill_place {
    fill *fill;
    int rank;
    cache_entry *entry;
    fill_note *note;
    FILE *stream;
    logger *log;
} fill_place;

/* ---- the board ------------------------------------------------------------------------------- */

/* Next place of the list, or -1; whether the case is to be kept. */
static int fill_take(fill *f, bool *keep)
{
    int64_t place = f->board->failed == f->count ? f->board->next++ : f->count;

    *keep = f->board->full == 0;
    return place < f->count ? (int)place : -1;
}

static void fill_failed(fill *f, int place, const pons_error *err)
{
    int64_t earliest = f->board->failed;

    while (place < earliest
           && !atomic_compare_exchange_weak(&f->board->failed, &earliest, place))
        continue;
    if (place < f->report.place) {
        f->report.place = place;
        f->report.error = *err;
    }
}

/* Bytes of the limit; false: there are too few left, and nothing more is kept. */
static bool fill_reserve(fill *f, size_t size)
{
    int64_t before = atomic_fetch_add(&f->board->size, (int64_t)size);

    if (f->limit == 0 || before + (int64_t)size <= f->limit)
        return true;
    f->board->size -= (int64_t)size;
    f->board->full = 1;
    return false;
}

static bool fill_has_room(fill *f, size_t size)
{
    bool room = f->limit == 0 || f->board->size + (int64_t)size <= f->limit;

    if (!room)
        f->board->full = 1;
    return room;
}

/* ---- in memory ------------------------------------------------------------------------------- */

static void hold(cache *c, int rank, const packed_case *packed)
{
    cache_slot *slot = &c->slot[rank];

    slot->packed = *packed;
    slot->held = true;
    c->held++;
    c->size += packed->mapping != NULL ? packed->mapping_size : packed->size;
}

/* Where all processes of the machine can map it. */
static void memory_share(const fill_place *p, const packed_case *packed)
{
    static const char key[CASE_KEY_SIZE] = "";
    fill *f = p->fill;
    pons_error cause = PONS_ERROR_INIT;
    char *bytes;
    size_t size;

    if (!fill_reserve(f, case_file_size(packed, "")))
        return;
    if (case_file_pack(key, packed, "", &bytes, &size, &cause) == PONS_OK) {
        cache_share_put(&f->share, bytes, size, &p->entry->packed, &cause);
        free(bytes);
    }
    if (cause.status == PONS_OK || atomic_exchange(&f->board->full, 1) != 0)
        return;
    pthread_mutex_lock(&f->lock);
    pons_fail(&f->report.unkept, cause.status, "case '%s' and those behind it cannot be kept, and "
              "are read each time: %s", f->cache->data->cases[p->rank].id, cause.text);
    pthread_mutex_unlock(&f->lock);
}

static void see_classes(fill *f, const packed_case *packed)
{
    class_seen_add(&f->seen, packed->target, pons_volume_count(&packed->label));
}

static bool is_for_training(const dataset *d, int rank)
{
    for (int i = 0; i < d->training_count; i++) {
        if (d->training[i] == rank)
            return true;
    }
    return false;
}

static void join_geometry(fill *f, const case_geometry *g)
{
    pthread_mutex_lock(&f->lock);
    case_geometry_join(&f->report.geometry, g);
    pthread_mutex_unlock(&f->lock);
}

/* The orientation alone: no other member of a validation case's geometry is asked for. */
static void see_orientation(const fill_place *p, const volume *image)
{
    case_geometry place;

    case_geometry_place(image, &place);
    pthread_mutex_lock(&p->fill->lock);
    p->fill->report.validation |= place.orientations;
    pthread_mutex_unlock(&p->fill->lock);
}

static void see_geometry(const fill_place *p, const packed_case *packed)
{
    case_geometry g;

    if (!is_for_training(p->fill->cache->data, p->rank)) {
        see_orientation(p, &packed->image);
        return;
    }
    case_geometry_of_packed(packed, &g);
    join_geometry(p->fill, &g);
}

/*
 * Patches are centred on the other set where one is empty (sampler.c). Not among the warnings
 * that a file keeps: which cases are for training and what is drawn is the run's, not the case's.
 */
static void tell_empty(const fill_place *p, const packed_case *packed)
{
    const cache *c = p->fill->cache;
    const data_case *info = &c->data->cases[p->rank];
    char limit[64] = "";

    if (packed->sets != PACKED_SETS_BALANCED || !is_for_training(c->data, p->rank))
        return;

    bool empty[2] = { packed_set_size(packed, 0) == 0, packed_set_size(packed, 1) == 0 };

    if (isfinite(packed->background_above))
        snprintf(limit, sizeof limit, " above %g", packed->background_above);
    if (empty[0] && !empty[1] && p->fill->centres[0])
        log_warning(p->log, "case '%s' has no foreground: its patches are centred on background "
                    "alone", info->id);
    if (empty[1] && !empty[0] && p->fill->centres[1])
        log_warning(p->log, "case '%s' has no background%s: its patches are centred on foreground "
                    "alone", info->id, limit);
}

static void memory_take(const fill_place *p, packed_case *out, pons_error *err)
{
    fill *f = p->fill;

    if (cache_pack(f->cache, p->rank, p->log, out, err) != PONS_OK)
        return;
    see_classes(f, out);
    see_geometry(p, out);
    tell_empty(p, out);
    if (f->share.count > 1)
        memory_share(p, out);
    if (f->share.count > 1 || !fill_reserve(f, out->size))
        packed_case_clear(out);
}

/* ---- on disk --------------------------------------------------------------------------------- */

static bool disk_find(const fill_place *p, const char *key, packed_case *out)
{
    const cache *c = p->fill->cache;
    const char *note;

    if (!cache_disk_find(&c->disk, key, c->data->cases[p->rank].id, p->log, out, &note))
        return false;
    fputs(note, p->stream);
    return true;
}

/* Make the file of a case, and map it. What was made of a source that has changed meanwhile is not
 * kept under this key. */
static void disk_make(const fill_place *p, const char *key, packed_case *out, pons_error *err)
{
    const cache *c = p->fill->cache;
    const char *name = c->data->cases[p->rank].id;
    packed_case made;
    fingerprint now;
    size_t said;

    fflush(p->stream);
    said = p->note->size;
    if (cache_pack(c, p->rank, p->log, &made, err) != PONS_OK)
        return;
    see_classes(p->fill, &made);
    see_geometry(p, &made);
    fflush(p->stream);
    if (case_source(&c->data->cases[p->rank], &now, err) == PONS_OK
        && memcmp(&now, &p->entry->source, sizeof now) == 0
        && fill_has_room(p->fill, case_file_size(&made, p->note->text + said))
        && cache_disk_keep(&c->disk, key, name, &made, p->note->text + said, p->log)) {
        const char *note;
        cache_disk_find(&c->disk, key, name, p->log, out, &note);
    }
    tell_empty(p, &made);
    packed_case_clear(&made);
}

/* Map a case, made now if need be; *out stays empty where it cannot be kept. */
static void disk_take(const fill_place *p, packed_case *out, pons_error *err)
{
    fill *f = p->fill;
    const cache *c = f->cache;
    char key[CASE_KEY_SIZE];
    bool found;
    int held;

    if (case_source(&c->data->cases[p->rank], &p->entry->source, err) != PONS_OK)
        return;
    cache_key(c->data, c->chain, &c->wish, p->rank, &p->entry->source, key);
    found = disk_find(p, key, out);
    if (!found) {
        held = cache_disk_lock(&c->disk, key);
        found = disk_find(p, key, out); /* another process may have made it meanwhile */
        if (!found)
            disk_make(p, key, out, err);
        cache_disk_unlock(held);
    }
    f->board->found += found;
    if (found) {
        see_classes(f, out);
        see_geometry(p, out);
        tell_empty(p, out);
    }
    if (out->codes != NULL && fill_reserve(f, out->mapping_size))
        memcpy(p->entry->key, key, sizeof key);
    else
        packed_case_clear(out);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Read a case that will not be kept; for training as it will be each time. */
static void verify_case(const fill_place *p, pons_error *err)
{
    cache *c = p->fill->cache;
    bool training = is_for_training(c->data, p->rank);
    case_geometry g;
    packed_case packed;
    pons_case one;

    if (c->wish.sets == PACKED_SETS_BALANCED && training) {
        if (cache_pack(c, p->rank, NULL, &packed, err) == PONS_OK) {
            see_classes(p->fill, &packed);
            see_geometry(p, &packed);
            tell_empty(p, &packed);
            packed_case_clear(&packed);
        }
        return;
    }
    if (training)
        cache_read(c, p->rank, &one, err);
    else
        case_read(c->data, p->rank, &one, err);
    if (err->status != PONS_OK)
        return;
    class_seen_add(&p->fill->seen, one.label.voxels, pons_volume_count(&one.label));
    if (training) {
        case_geometry_of(&one.image, &g);
        join_geometry(p->fill, &g);
    } else if (!volume_chain_has(c->chain, "orient")) {
        see_orientation(p, &one.image); /* the steps were not applied */
    }
    case_clear(&one);
}

static void take_case(const fill_place *p, bool keep, packed_case *out, pons_error *err)
{
    const cache *c = p->fill->cache;
    pons_error gone = PONS_ERROR_INIT; /* it has been read: that will do */

    if (keep && c->on_disk) {
        disk_take(p, out, err);
        return;
    }
    if (keep)
        memory_take(p, out, err);
    else
        verify_case(p, err);
    if (err->status == PONS_OK)
        case_source(&c->data->cases[p->rank], &p->entry->source, &gone);
}

/* The case at 'place', its warnings kept in a note. */
static void fill_one(fill *f, int place, bool keep)
{
    pons_error err = PONS_ERROR_INIT, unsaid = PONS_ERROR_INIT;
    packed_case packed = { .code_size = 0 };
    fill_note *note = &f->note[place];
    FILE *stream = open_memstream(&note->text, &note->size);
    logger said = { .terminal = stream, .level = LOG_NORMAL };
    fill_place here = { f, f->rank[place], &f->board->entry[place], note, stream, &said };

    here.entry->process = f->share.self;
    if (stream == NULL)
        pons_fail(&err, PONS_DEVICE, "out of memory");
    else
        take_case(&here, keep, &packed, &err);
    if (stream != NULL)
        fclose(stream);
    if (f->share.count > 1 && note->size > 0)
        cache_share_put(&f->share, note->text, note->size, &here.entry->said, &unsaid);
    pthread_mutex_lock(&f->lock);
    if (err.status != PONS_OK)
        fill_failed(f, place, &err);
    else if (packed.codes != NULL)
        hold(f->cache, f->rank[place], &packed);
    f->board->done++;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void *fill_work(void *argument)
{
    fill *f = argument;
    int place;
    bool keep;

    parallel_borrow(&f->spare);
    while ((place = fill_take(f, &keep)) >= 0)
        fill_one(f, place, keep);
    f->spare.threads++;
    pthread_mutex_lock(&f->lock);
    f->running--;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* Show how far the threads are until the last has ended. */
static void fill_watch(fill *f)
{
    int64_t shown = 0, done;

    pthread_mutex_lock(&f->lock);
    while (f->running > 0) {
        pthread_cond_wait(&f->changed, &f->lock);
        done = f->board->done;
        if (done != shown && f->log != NULL)
            log_progress(f->log, "reading cases: %lld of %d", (long long)done, f->count);
        if (done != shown && f->progress != NULL)
            f->progress(f->context);
        shown = done;
    }
    pthread_mutex_unlock(&f->lock);
}

/* threads: that take cases; of 'all'. */
static pons_status fill_read(fill *f, int threads, int all, pons_error *err)
{
    pthread_t thread[THREADS_MAX];
    pons_error none = PONS_ERROR_INIT; /* one thread does */
    int started = 0;

    f->running = threads;
    f->spare.threads = all - threads;
    while (started < threads
           && thread_start(&thread[started], fill_work, f, "a thread that reads cases", &none)
                  == PONS_OK)
        started++;
    pthread_mutex_lock(&f->lock);
    f->running -= threads - started;
    pthread_mutex_unlock(&f->lock);
    if (started == 0)
        return pons_fail(err, none.status, "%s", none.text);
    fill_watch(f);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    return PONS_OK;
}

/* ---- what all have made ---------------------------------------------------------------------- */

/* All processes have read their cases, and know what went wrong with any of them. */
static pons_status fill_meet(fill *f, const cache_peers *p, pons_error *err)
{
    fill_report *all;
    int64_t earliest = f->count;

    if (p == NULL || p->count < 2)
        return PONS_OK;
    all = malloc((size_t)p->count * sizeof *all);
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", p->count);
    memcpy(f->report.seen, f->seen.seen, sizeof f->report.seen);
    if (p->all_gather(p->context, &f->report, sizeof f->report, all, err) == PONS_OK)
        for (int r = 0; r < p->count; r++) {
            if (all[r].place < earliest) {
                earliest = all[r].place;
                f->report.error = (pons_error)PONS_ERROR_INIT;
                pons_fail(&f->report.error, all[r].error.status, "rank %d failed: %s", r,
                          all[r].error.text);
            }
            class_seen_join(&f->seen, all[r].seen);
            case_geometry_join(&f->report.geometry, &all[r].geometry);
            f->report.validation |= all[r].validation;
            if (all[r].unkept.status != PONS_OK)
                pons_fail(&f->report.unkept, PONS_FAILURE, "%s", all[r].unkept.text);
        }
    free(all);
    f->report.place = earliest;
    if (earliest < f->count && p->failed != NULL)
        p->failed(p->context, &f->report.error);
    return err->status;
}

static void fill_notes(const fill *f)
{
    for (int i = 0; i < f->count; i++) {
        char *other = f->note[i].text != NULL ? NULL
                      : cache_share_said(&f->share, &f->board->entry[i]);
        char *rest = other != NULL ? other : f->note[i].text, *line;
        while (rest != NULL && (line = strsep(&rest, "\n")) != NULL) {
            if (*line != '\0' && f->log != NULL)
                log_line(f->log, "%s", line);
        }
        free(other);
    }
    if (f->report.unkept.status != PONS_OK && f->log != NULL)
        log_warning(f->log, "%s", f->report.unkept.text);
}

static void fill_sources(const fill *f)
{
    for (int i = 0; i < f->count; i++)
        f->cache->slot[f->rank[i]].source = f->board->entry[i].source;
}

/* The cases that other processes have made, and those that lie in shared memory. */
static void fill_map(fill *f)
{
    for (int i = 0; i < f->count; i++) {
        const cache_entry *e = &f->board->entry[i];
        const char *name = f->cache->data->cases[f->rank[i]].id, *note;
        pons_error cause = PONS_ERROR_INIT;
        packed_case packed;

        if (f->cache->slot[f->rank[i]].held)
            continue;
        if (e->packed.size > 0 && cache_share_map(&f->share, e, &packed, &cause) == PONS_OK)
            hold(f->cache, f->rank[i], &packed);
        else if (e->key[0] != '\0'
                 && cache_disk_find(&f->cache->disk, e->key, name, f->log, &packed, &note))
            hold(f->cache, f->rank[i], &packed);
        if (cause.status != PONS_OK && f->log != NULL)
            log_warning(f->log, "case '%s': is read each time: %s", name, cause.text);
    }
}

static void fill_tell(fill *f)
{
    cache *c = f->cache;

    if (f->log == NULL)
        return;
    if (c->on_disk)
        log_line(f->log, "cache: %d of %d cases in '%s', %lld of them from before", c->held,
                 f->count, c->disk.folder, (long long)f->board->found);
    else if (f->share.count > 1)
        log_line(f->log, "cache: %d of %d cases, %.1f MB that the %d ranks of this machine share",
                 c->held, f->count, 1e-6 * (double)c->size, f->share.count);
}

static pons_status fill_run(fill *f, const cache_settings *s, pons_error *err)
{
    int threads = s->threads < 1 ? 1 : s->threads > THREADS_MAX ? THREADS_MAX : s->threads;
    time_t begin = time(NULL);

    if (fill_read(f, threads < f->count ? threads : f->count, threads, err) != PONS_OK
        || fill_meet(f, s->peers, err) != PONS_OK)
        return err->status;
    fill_notes(f);
    if (f->report.place < f->count)
        return pons_fail(err, f->report.error.status, "%s", f->report.error.text);
    if (f->log != NULL)
        class_seen_warn(&f->seen, f->log);
    f->cache->geometry = f->report.geometry;
    f->cache->validation.orientations = f->report.validation;
    fill_sources(f);
    fill_map(f);
    fill_tell(f);
    if (f->cache->on_disk && s->limit > 0 && f->share.self == 0)
        cache_disk_trim(&f->cache->disk, s->limit, begin);
    return PONS_OK;
}

static void add_text(fingerprint *total, const char *text)
{
    fingerprint_add(total, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

/* What processes have in common that share a cache: its files, and how they are kept. */
static fingerprint mark_of(const dataset *d, int count, const int *ranks, const cache_settings *s)
{
    const int64_t numbers[] = { s->mode, s->limit, s->sampling };
    fingerprint total = { { 0 } };

    fingerprint_add(&total, numbers, sizeof numbers);
    fingerprint_add(&total, &s->background_above, sizeof s->background_above);
    add_text(&total, s->folder);
    add_text(&total, s->output);
    for (int i = 0; i < count; i++) {
        const data_case *c = &d->cases[ranks[i]];

        for (int n = 0; n < c->image_count; n++)
            add_text(&total, c->image[n]);
        add_text(&total, c->label);
    }
    return total;
}

pons_status cache_fill(cache *c, int count, const int *ranks, const cache_settings *s, logger *l,
                       pons_error *err)
{
    fill f = { .cache = c, .log = l, .count = count, .rank = ranks, .limit = s->limit,
               .centres = s->centres, .progress = s->progress, .context = s->context,
               .report = { .place = count } };

    if (count == 0)
        return PONS_OK;
    if (cache_share_open(&f.share, count, mark_of(c->data, count, ranks, s), s->peers, l, err)
        != PONS_OK)
        return err->status;
    f.board = f.share.board;
    if (s->mode == CACHE_NONE)
        f.board->full = 1;
    f.note = calloc((size_t)count, sizeof *f.note);
    if (f.note == NULL) {
        cache_share_close(&f.share);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    class_seen_init(&f.seen, c->data);
    case_geometry_init(&f.report.geometry);
    fill_run(&f, s, err);
    class_seen_clear(&f.seen);
    pthread_cond_destroy(&f.changed);
    pthread_mutex_destroy(&f.lock);
    for (int i = 0; i < count; i++)
        free(f.note[i].text);
    free(f.note);
    cache_share_close(&f.share);
    return err->status;
}
