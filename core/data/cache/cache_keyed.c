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

static const cache_store *store_of(const fill_task *p)
{
    return p->fill->cache->tier[p->tier].kind->store;
}

static bool find_case(fill_task *p, const char *key, stored_case *out)
{
    if (!store_of(p)->find(p->fill->cache, key, case_id(p), p->log, out))
        return false;
    fputs(out->note, p->note->to);
    return true;
}

pons_status cache_keyed_find_key(fill_task *p, char key[CASE_KEY_SIZE], pons_error *err)
{
    const cache *c = p->fill->cache;

    if (case_hash(&c->data->cases[p->rank], &p->entry->source, err) == PONS_OK)
        cache_key(c->data, c->chain, &c->spec, p->rank, &p->entry->source, key);
    return err->status;
}

bool cache_keyed_is_unchanged(const fill_task *p, pons_error *err)
{
    hash128 now;

    return case_hash(&p->fill->cache->data->cases[p->rank], &now, err) == PONS_OK
           && memcmp(&now, &p->entry->source, sizeof now) == 0;
}

char *cache_keyed_warnings(const fill_task *p, pons_error *err)
{
    char *text;

    text_stream_flush(p->note);
    text = strndup(p->note->text + p->warned[0], p->warned[1] - p->warned[0]);
    if (text == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    return text;
}

/* Make a case with the warnings of its preprocessing, and find it. */
static void make_case(fill_task *p, const char *key, stored_case *out, pons_error *err)
{
    cache *c = p->fill->cache;
    char *warnings;

    if (fill_pack(p, err) != PONS_OK)
        return;
    warnings = cache_keyed_warnings(p, err);
    if (warnings != NULL && cache_keyed_is_unchanged(p, err)
        && fill_has_room(p, packed_case_file_size(&p->made, warnings))
        && store_of(p)->write(c, key, case_id(p), &p->made, warnings, p->log))
        store_of(p)->find(c, key, case_id(p), p->log, out);
    free(warnings);
}

bool cache_keyed_hold(fill_task *p, packed_case *out, pons_error *err)
{
    fill *f = p->fill;
    cache *c = f->cache;
    stored_case stored = { .note = NULL };
    char key[CASE_KEY_SIZE];
    bool found, held;
    int lock;

    if (cache_keyed_find_key(p, key, err) != PONS_OK)
        return false;
    found = find_case(p, key, &stored);
    if (!found) {
        lock = cache_disk_lock(&c->disk, key);
        /* another process may have made it while this one waited */
        found = find_case(p, key, &stored);
        if (!found)
            make_case(p, key, &stored, err);
        cache_disk_unlock(lock);
    }
    f->shared->found += found;
    if (stored.packed.codes == NULL)
        return false;
    if (found)
        fill_record(p, &stored.packed);
    held = fill_reserve(p, stored.packed.mapping_size);
    store_of(p)->end(c, &stored, held ? out : NULL);
    if (held)
        memcpy(p->entry->key, key, sizeof key);
    return held;
}

bool cache_keyed_map(fill *f, int position, packed_case *out, pons_error *cause)
{
    cache *c = f->cache;
    const shared_case *e = &f->shared->entry[position];
    const char *name = c->data->cases[f->rank[position]].id;

    (void)cause; /* a warning is logged */
    return e->key[0] != '\0'
           && c->tier[e->tier].kind->store->map(c, e->key, name, f->log, out);
}

pons_status cache_keyed_folder(cache *c, const cache_settings *s, pons_error *err)
{
    char *folder;
    pons_status status;

    if (c->disk.folder != NULL)
        return PONS_OK;
    if (s->folder != NULL)
        return cache_disk_open(&c->disk, s->folder, err);
    if (asprintf(&folder, "%s/.cache", s->output) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    status = cache_disk_open(&c->disk, folder, err);
    free(folder);
    return status;
}

/* ---- a file for each case -------------------------------------------------------------------- */

static pons_status open_disk(cache *c, const cache_settings *s, logger *l, pons_error *err)
{
    (void)l;
    return cache_keyed_folder(c, s, err);
}

static bool find_file(cache *c, const char *key, const char *name, logger *l, stored_case *out)
{
    return cache_disk_find(&c->disk, key, name, l, &out->packed, &out->note);
}

static void end_file(cache *c, stored_case *found, packed_case *out)
{
    (void)c;
    if (out != NULL)
        *out = found->packed;
    else
        packed_case_clear(&found->packed);
}

static bool write_file(cache *c, const char *key, const char *name, const packed_case *p,
                       const char *note, logger *l)
{
    return cache_disk_write(&c->disk, key, name, p, note, l);
}

static bool map_file(cache *c, const char *key, const char *name, logger *l, packed_case *out)
{
    const char *note;

    return cache_disk_find(&c->disk, key, name, l, out, &note);
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

static const cache_store files = { find_file, end_file, write_file, map_file };

const cache_kind cache_kind_disk = { .store = &files, .open = open_disk, .hold = cache_keyed_hold,
                                     .map = cache_keyed_map, .finish = trim_disk,
                                     .close = close_disk };
