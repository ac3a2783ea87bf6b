/*
 * cache_fill.c - read all cases of a cache once, in the threads of all processes of a machine.
 *
 * Every case is read when the cache is opened, also if it will not be held: a damaged file or an
 * unlisted label id ends the run before training.
 *
 * Threads take cases in order of the list, across processes. The error of the earliest failed case
 * is reported, and warnings are logged in order of the list. Threads without a case help the
 * others. When all cases have been read, each process maps the cases that other processes have
 * made.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/progress.h"
#include "base/thread/worker.h"
#include "data/cache/cache_internal.h"
#include "data/cache/cache_smart.h"
#include "data/cache/case_hash.h"
#include "data/case/case_read.h"
#include "data/packed/sampling_index.h"

enum { THREADS_MAX = 64 };

/* ---- shared counters ------------------------------------------------------------------------- */

/* The next position of the list, or -1 at its end or after a failure. */
static int fill_next_position(fill *f)
{
    int64_t position = f->shared->failed == f->count ? f->shared->next++ : f->count;

    return position < f->count ? (int)position : -1;
}

static void fill_failed(fill *f, int position, const pons_error *err)
{
    int64_t earliest = f->shared->failed;

    while (position < earliest
           && !atomic_compare_exchange_weak(&f->shared->failed, &earliest, position))
        continue;
    if (position < f->report.position) {
        f->report.position = position;
        f->report.error = *err;
    }
}

bool fill_end_tier(fill_task *p)
{
    int open = p->tier;

    return atomic_compare_exchange_strong(&p->fill->shared->tier, &open, p->tier + 1);
}

bool fill_reserve(fill_task *p, size_t size)
{
    int64_t limit = p->fill->cache->tier[p->tier].limit;
    _Atomic int64_t *used = &p->fill->shared->size[p->tier];
    int64_t before = atomic_fetch_add(used, (int64_t)size);

    if (limit == 0 || before + (int64_t)size <= limit)
        return true;
    *used -= (int64_t)size;
    fill_end_tier(p);
    return false;
}

bool fill_has_room(fill_task *p, size_t size)
{
    int64_t limit = p->fill->cache->tier[p->tier].limit;
    bool room = limit == 0 || p->fill->shared->size[p->tier] + (int64_t)size <= limit;

    if (!room)
        fill_end_tier(p);
    return room;
}

/* ---- results of a case ---------------------------------------------------------------------- */

static void set_resident(cache *c, int rank, const packed_case *packed)
{
    cache_slot *slot = &c->slot[rank];

    slot->packed = *packed;
    slot->resident = true;
    c->resident++;
    c->size += packed->mapping != NULL ? packed->mapping_size : packed->size;
}

static void record_classes(fill *f, const packed_case *packed)
{
    class_coverage_add(&f->seen, packed->target, pons_volume_count(&packed->label));
}

static void join_geometry(fill *f, const case_geometry *g)
{
    pthread_mutex_lock(&f->lock);
    case_geometry_join(&f->report.geometry, g);
    pthread_mutex_unlock(&f->lock);
}

/* Record the orientation alone, the only geometry of validation cases that is used. */
static void record_orientation(const fill_task *p, const volume *image)
{
    case_geometry position;

    case_geometry_of_position(image, &position);
    pthread_mutex_lock(&p->fill->lock);
    p->fill->report.validation |= position.orientations;
    pthread_mutex_unlock(&p->fill->lock);
}

static void check_image(fill_task *p, const volume *image)
{
    const fill *f = p->fill;

    if (f->check != NULL)
        f->check(f->context, p->rank, image, &p->refused);
}

static void record_geometry(fill_task *p, const packed_case *packed)
{
    case_geometry g;

    if (!dataset_trains_on(p->fill->cache->data, p->rank)) {
        record_orientation(p, &packed->image);
        check_image(p, &packed->image);
        return;
    }
    case_geometry_of_packed(packed, &g);
    join_geometry(p->fill, &g);
}

/*
 * Warn if one sampling set of a training case is empty: sampler.c then uses the other one. The
 * warning depends on the run, so it is not stored in the case's file.
 */
static void warn_empty_set(const fill_task *p, const packed_case *packed)
{
    const cache *c = p->fill->cache;
    const data_case *info = &c->data->cases[p->rank];
    char limit[64] = "";

    if (!sampling_sets_balanced(packed->sets) || !dataset_trains_on(c->data, p->rank))
        return;

    bool empty[2] = { sampling_index_count(packed, 0) == 0, sampling_index_count(packed, 1) == 0 };

    if (isfinite(packed->background_above))
        snprintf(limit, sizeof limit, " above %g", packed->background_above);
    if (empty[0] && !empty[1] && p->fill->centres[0])
        log_warning(p->log, "case '%s' has no foreground: its patches are centred on background "
                    "alone", info->id);
    if (empty[1] && !empty[0] && p->fill->centres[1])
        log_warning(p->log, "case '%s' has no background%s: its patches are centred on foreground "
                    "alone", info->id, limit);
}

void fill_record(fill_task *p, const packed_case *packed)
{
    record_classes(p->fill, packed);
    record_geometry(p, packed);
    warn_empty_set(p, packed);
}

pons_status fill_pack(fill_task *p, pons_error *err)
{
    if (p->made.codes != NULL)
        return PONS_OK;
    text_stream_flush(p->note);
    p->warned[0] = p->note->size;
    if (cache_pack(p->fill->cache, p->rank, p->log, &p->made, err) != PONS_OK)
        return err->status;
    text_stream_flush(p->note);
    p->warned[1] = p->note->size;
    fill_record(p, &p->made);
    return PONS_OK;
}

/* ---- threads --------------------------------------------------------------------------------- */

/*
 * Read a case that will not be held. A training case is preprocessed as it will be each time, and
 * one for validation where its image is checked.
 */
static void verify_case(fill_task *p, pons_error *err)
{
    cache *c = p->fill->cache;
    bool training = dataset_trains_on(c->data, p->rank);
    bool preprocessed = training || p->fill->check != NULL;
    case_geometry g;
    packed_case packed;
    pons_case one;

    if (sampling_sets_balanced(c->spec.sets) && training) {
        if (cache_pack(c, p->rank, NULL, &packed, err) == PONS_OK) {
            fill_record(p, &packed);
            packed_case_clear(&packed);
        }
        return;
    }
    if (preprocessed)
        cache_read(c, p->rank, &one, err);
    else
        case_read(c->data, p->rank, &one, err);
    if (err->status != PONS_OK)
        return;
    class_coverage_add(&p->fill->seen, one.label.voxels, pons_volume_count(&one.label));
    if (training) {
        case_geometry_of(&one.image, &g);
        join_geometry(p->fill, &g);
    } else {
        if (preprocessed || !pipeline_has(c->chain, "orient"))
            record_orientation(p, &one.image);
        check_image(p, &one.image);
    }
    case_clear(&one);
}

/* Offer a case to the tiers from the first open one on. */
static void hold_case(fill_task *p, packed_case *out, pons_error *err)
{
    cache *c = p->fill->cache;
    bool held = false;

    for (p->tier = p->fill->shared->tier; !held && p->tier < c->tier_count; p->tier++) {
        held = c->tier[p->tier].kind->hold(p, out, err);
        if (err->status != PONS_OK)
            return;
        if (held)
            p->entry->tier = p->tier;
    }
}

/* Whether a case that is not held is among those that are read at the start. */
static bool is_read_first(const fill_task *p)
{
    const fill *f = p->fill;

    return f->read_first == 0 || f->cache->data->target != TARGET_OF_CASE
           || (p->entry - f->shared->entry) % ceil_div_int(f->count, f->read_first) == 0;
}

static void fill_case(fill_task *p, packed_case *out, pons_error *err)
{
    const cache *c = p->fill->cache;
    /* ignored: the case has been read, and its hash stays unknown */
    pons_error gone = PONS_ERROR_INIT;
    static const hash128 unknown = { 0 };

    if (p->fill->shared->tier < c->tier_count)
        hold_case(p, out, err);
    else if (is_read_first(p))
        verify_case(p, err);
    else
        return;
    packed_case_clear(&p->made);
    if (err->status == PONS_OK && memcmp(&p->entry->source, &unknown, sizeof unknown) == 0)
        case_hash(&c->data->cases[p->rank], &p->entry->source, &gone);
}

/* Read the case at a position of the list; its warnings go to its note. */
static void fill_one(fill *f, int position)
{
    pons_error err = PONS_ERROR_INIT, unsaid = PONS_ERROR_INIT;
    packed_case packed = { .code_size = 0 };
    text_stream *note = &f->note[position];
    bool open = text_stream_open(note);
    logger log = { .terminal = note->to, .level = LOG_NORMAL };
    fill_task here = { .fill = f, .rank = f->rank[position], .entry = &f->shared->entry[position],
                       .note = note, .log = &log, .refused = PONS_ERROR_INIT };

    here.entry->process = f->memory.self;
    if (open)
        fill_case(&here, &packed, &err);
    if (err.status == PONS_OK)
        err = here.refused;
    if (!text_stream_close(note) && err.status == PONS_OK)
        pons_fail(&err, PONS_DEVICE, "out of memory for the warnings of a case");
    if (f->memory.count > 1 && note->size > 0)
        shared_memory_put(&f->memory, note->text, note->size, &here.entry->warnings, &unsaid);
    pthread_mutex_lock(&f->lock);
    if (err.status != PONS_OK)
        fill_failed(f, position, &err);
    else if (packed.codes != NULL)
        set_resident(f->cache, f->rank[position], &packed);
    f->shared->done++;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static pons_status fill_thread(void *context, pons_error *err)
{
    fill *f = context;
    int position;

    (void)err; /* the report keeps failures */
    thread_budget_set(&f->spare);
    while ((position = fill_next_position(f)) >= 0)
        fill_one(f, position);
    f->spare.threads++;
    pthread_mutex_lock(&f->lock);
    f->running--;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return PONS_OK;
}

/* Show progress until the last thread has ended. */
static void fill_show_progress(fill *f)
{
    case_progress progress = { "reading", f->count, seconds_now(), 0, 0 };
    int64_t shown = 0, done;

    pthread_mutex_lock(&f->lock);
    while (f->running > 0) {
        pthread_cond_wait(&f->changed, &f->lock);
        done = f->shared->done;
        if (done != shown && f->log != NULL)
            case_progress_show(&progress, f->log, (int)done, 0);
        if (done != shown && f->progress != NULL)
            f->progress(f->context);
        shown = done;
    }
    pthread_mutex_unlock(&f->lock);
}

/* 'threads' take cases; 'all' includes the threads that help. */
static pons_status fill_run_threads(fill *f, int threads, int all, pons_error *err)
{
    worker *reader[THREADS_MAX] = { NULL };
    pons_error none = PONS_ERROR_INIT; /* one thread does */
    int started = 0;

    f->running = threads;
    f->spare.threads = all - threads;
    while (started < threads
           && worker_open(WORKER_NORMAL, "a thread that reads cases", &reader[started], &none)
                  == PONS_OK
           && worker_start(reader[started], fill_thread, f, &none) == PONS_OK)
        started++;
    pthread_mutex_lock(&f->lock);
    f->running -= threads - started;
    pthread_mutex_unlock(&f->lock);
    if (started > 0)
        fill_show_progress(f);
    for (int i = 0; i < threads && reader[i] != NULL; i++)
        worker_close(reader[i]);
    return started > 0 ? PONS_OK : pons_fail(err, none.status, "%s", none.text);
}

/* ---- results of all processes ---------------------------------------------------------------- */

/* Exchange reports, so that all processes know the earliest failure. */
static pons_status fill_exchange_reports(fill *f, const cache_peers *p, pons_error *err)
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
            if (all[r].position < earliest) {
                earliest = all[r].position;
                f->report.error = (pons_error)PONS_ERROR_INIT;
                pons_fail(&f->report.error, all[r].error.status, "rank %d failed: %s", r,
                          all[r].error.text);
            }
            class_coverage_join(&f->seen, all[r].seen);
            case_geometry_join(&f->report.geometry, &all[r].geometry);
            f->report.validation |= all[r].validation;
            if (all[r].unkept.status != PONS_OK)
                pons_fail(&f->report.unkept, PONS_FAILURE, "%s", all[r].unkept.text);
        }
    free(all);
    f->report.position = earliest;
    if (earliest < f->count && p->failed != NULL)
        p->failed(p->context, &f->report.error);
    return err->status;
}

static void fill_log_warnings(const fill *f)
{
    for (int i = 0; i < f->count; i++) {
        char *other = f->note[i].text != NULL ? NULL
                      : shared_memory_warnings(&f->memory, &f->shared->entry[i]);
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

static void fill_set_hashes(const fill *f)
{
    for (int i = 0; i < f->count; i++)
        f->cache->slot[f->rank[i]].source = f->shared->entry[i].source;
}

/* Map the cases that other processes have made, and those in shared memory. */
static void fill_map(fill *f)
{
    cache *c = f->cache;

    for (int i = 0; i < f->count && c->tier_count > 0; i++) {
        const cache_kind *kind = c->tier[f->shared->entry[i].tier].kind;
        pons_error cause = PONS_ERROR_INIT;
        packed_case packed;

        if (c->slot[f->rank[i]].resident || kind->map == NULL)
            continue;
        if (kind->map(f, i, &packed, &cause))
            set_resident(c, f->rank[i], &packed);
        if (cause.status != PONS_OK && f->log != NULL)
            log_warning(f->log, "case '%s': is read each time: %s",
                        c->data->cases[f->rank[i]].id, cause.text);
    }
}

static int count_resident(const fill *f, int tier)
{
    int count = 0;

    for (int i = 0; i < f->count; i++)
        count += f->cache->slot[f->rank[i]].resident && f->shared->entry[i].tier == tier;
    return count;
}

static const char *place_of_tier(const fill *f, int tier)
{
    return f->cache->tier[tier].kind->store != NULL ? f->cache->disk.folder : "memory";
}

static void fill_log_summary(fill *f)
{
    cache *c = f->cache;

    if (f->log == NULL)
        return;
    if (c->tier_count > 1)
        log_line(f->log, "cache: %d of %d cases, %d of them in %s and %d in %s", c->resident,
                 f->count, count_resident(f, 0), place_of_tier(f, 0), count_resident(f, 1),
                 place_of_tier(f, 1));
    else if (c->disk.folder != NULL)
        log_line(f->log, "cache: %d of %d cases in '%s', %lld of them from before", c->resident,
                 f->count, c->disk.folder, (long long)f->shared->found);
    else if (c->keep != NULL && f->shared->found > 0)
        log_line(f->log, "cache: %d of %d cases in memory, %lld of them from before", c->resident,
                 f->count, (long long)f->shared->found);
    else if (f->memory.count > 1)
        log_line(f->log, "cache: %d of %d cases, %.1f MB that the %d ranks of this machine share",
                 c->resident, f->count, 1e-6 * (double)c->size, f->memory.count);
}

static pons_status fill_run(fill *f, const cache_settings *s, pons_error *err)
{
    int threads = max_int(1, min_int(s->threads, THREADS_MAX));

    if (fill_run_threads(f, min_int(threads, f->count), threads, err) != PONS_OK
        || fill_exchange_reports(f, s->peers, err) != PONS_OK)
        return err->status;
    fill_log_warnings(f);
    if (f->report.position < f->count)
        return pons_fail(err, f->report.error.status, "%s", f->report.error.text);
    if (f->log != NULL)
        class_coverage_warn(&f->seen, f->log);
    f->cache->geometry = f->report.geometry;
    f->cache->validation.orientations = f->report.validation;
    fill_set_hashes(f);
    fill_map(f);
    fill_log_summary(f);
    for (int n = 0; n < f->cache->tier_count; n++)
        if (f->cache->tier[n].kind->finish != NULL)
            f->cache->tier[n].kind->finish(f, n);
    return PONS_OK;
}

static void add_text(hash128 *total, const char *text)
{
    hash128_add(total, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

/* A hash of what processes need in common to share a cache: its files and its settings. */
static hash128 cache_id(const dataset *d, int count, const int *ranks, const cache_settings *s)
{
    const int64_t numbers[] = { s->mode, s->limit, s->next_mode, s->next_limit, s->sampling,
                                s->window.count, s->window.lanes, s->lane, s->lane_count };
    hash128 total = { 0 };

    hash128_add(&total, numbers, sizeof numbers);
    hash128_add(&total, &s->background_above, sizeof s->background_above);
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
    fill f = { .cache = c, .log = l, .count = count, .read_first = s->read_first,
               .rank = ranks, .centres = s->centres, .progress = s->progress, .check = s->check,
               .context = s->context, .begin = time(NULL),
               .report = { .position = count } };

    if (count == 0)
        return PONS_OK;
    if (shared_memory_open(&f.memory, count, cache_id(c->data, count, ranks, s), s->peers, l, err)
        != PONS_OK)
        return err->status;
    f.shared = f.memory.shared;
    f.note = calloc((size_t)count, sizeof *f.note);
    if (f.note == NULL) {
        shared_memory_close(&f.memory);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    pthread_mutex_init(&f.lock, NULL);
    pthread_cond_init(&f.changed, NULL);
    class_coverage_init(&f.seen, c->data);
    case_geometry_init(&f.report.geometry);
    if (fill_run(&f, s, err) == PONS_OK && c->tier_count > 0
        && c->tier[0].kind == &cache_kind_smart)
        cache_smart_open(c, ranks, &f.memory, err);
    class_coverage_clear(&f.seen);
    pthread_cond_destroy(&f.changed);
    pthread_mutex_destroy(&f.lock);
    for (int i = 0; i < count; i++)
        free(f.note[i].text);
    free(f.note);
    shared_memory_close(&f.memory);
    return err->status;
}
