/*
 * cache_keyed.c - hold cases under a hash of all that determines them, in storage that runs share.
 *
 * The first process that wants a case makes it and holds the lock of its key; others wait and then
 * map it.
 */
#include "data/cache/cache_internal.h"

#include <stdlib.h>
#include <string.h>

#include "data/cache/cache_key.h"
#include "data/cache/case_hash.h"

static const char *case_id(const fill_task *p)
{
    return p->fill->cache->data->cases[p->rank].id;
}

static bool find_case(fill_task *p, const char *key, packed_case *out)
{
    const cache *c = p->fill->cache;
    const char *note;

    if (!cache_disk_find(&c->disk, key, case_id(p), p->log, out, &note))
        return false;
    fputs(note, p->stream);
    return true;
}

/* Whether the source files are those that were hashed: another content has another key. */
static bool is_unchanged(const fill_task *p, pons_error *err)
{
    hash128 now;

    return case_hash(&p->fill->cache->data->cases[p->rank], &now, err) == PONS_OK
           && memcmp(&now, &p->entry->source, sizeof now) == 0;
}

/* Make a case with the warnings of its preprocessing, and map it. */
static void make_case(fill_task *p, const char *key, packed_case *out, pons_error *err)
{
    const cache *c = p->fill->cache;
    const char *note;
    char *warnings;

    if (fill_pack(p, err) != PONS_OK)
        return;
    fflush(p->stream);
    warnings = strndup(p->note->text + p->warned[0], p->warned[1] - p->warned[0]);
    if (warnings == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    else if (is_unchanged(p, err)
             && fill_has_room(p, packed_case_file_size(&p->made, warnings))
             && cache_disk_write(&c->disk, key, case_id(p), &p->made, warnings, p->log))
        cache_disk_find(&c->disk, key, case_id(p), p->log, out, &note);
    free(warnings);
}

static bool hold_by_key(fill_task *p, packed_case *out, pons_error *err)
{
    fill *f = p->fill;
    const cache *c = f->cache;
    char key[CASE_KEY_SIZE];
    bool found;
    int lock;

    if (case_hash(&c->data->cases[p->rank], &p->entry->source, err) != PONS_OK)
        return false;
    cache_key(c->data, c->chain, &c->spec, p->rank, &p->entry->source, key);
    found = find_case(p, key, out);
    if (!found) {
        lock = cache_disk_lock(&c->disk, key);
        found = find_case(p, key, out); /* another process may have made it while this one waited */
        if (!found)
            make_case(p, key, out, err);
        cache_disk_unlock(lock);
    }
    f->shared->found += found;
    if (found)
        fill_record(p, out);
    if (out->codes != NULL && fill_reserve(p, out->mapping_size)) {
        memcpy(p->entry->key, key, sizeof key);
        return true;
    }
    packed_case_clear(out);
    return false;
}

static bool map_by_key(fill *f, int position, packed_case *out, pons_error *cause)
{
    const shared_case *e = &f->shared->entry[position];
    const char *name = f->cache->data->cases[f->rank[position]].id, *note;

    (void)cause; /* a warning is logged */
    return e->key[0] != '\0' && cache_disk_find(&f->cache->disk, e->key, name, f->log, out, &note);
}

/* ---- a file for each case -------------------------------------------------------------------- */

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

static void trim_disk(fill *f, int tier)
{
    int64_t limit = f->cache->tier[tier].limit;

    if (limit > 0 && f->memory.self == 0)
        cache_disk_trim(&f->cache->disk, limit, f->begin);
}

static void close_disk(cache *c)
{
    cache_disk_close(&c->disk);
}

const cache_kind cache_kind_disk = { .open = open_disk, .hold = hold_by_key, .map = map_by_key,
                                     .finish = trim_disk, .close = close_disk };
