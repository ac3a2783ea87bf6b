/*
 * cache_memory.c - hold cases in the memory of the process, or in memory that ranks share.
 */
#include "data/cache/cache_internal.h"

#include <stdlib.h>

/* Copy a case to memory that all processes of the machine can map. */
static bool share_case(fill_task *p)
{
    static const char key[CASE_KEY_SIZE] = "";
    fill *f = p->fill;
    pons_error cause = PONS_ERROR_INIT;
    char *bytes;
    size_t size;

    if (!fill_reserve(p, packed_case_file_size(&p->made, "")))
        return false;
    if (packed_case_file_make(key, &p->made, "", &bytes, &size, &cause) == PONS_OK) {
        shared_memory_put(&f->memory, bytes, size, &p->entry->packed, &cause);
        free(bytes);
    }
    if (cause.status == PONS_OK)
        return true;
    if (!fill_end_tier(p))
        return false;
    pthread_mutex_lock(&f->lock);
    pons_fail(&f->report.unkept, cause.status, "case '%s' and those behind it cannot be kept%s: %s",
              f->cache->data->cases[p->rank].id,
              p->tier + 1 < f->cache->tier_count ? " in memory" : ", and are read each time",
              cause.text);
    pthread_mutex_unlock(&f->lock);
    return false;
}

static bool hold_made(fill_task *p, packed_case *out)
{
    if (!fill_reserve(p, p->made.size))
        return false;
    *out = p->made;
    p->made = (packed_case){ .codes = NULL };
    return true;
}

/* Take the case of an earlier cache. */
static bool take_kept(fill_task *p, kept_key *kept, packed_case *out)
{
    packed_case packed;

    if (!cache_keep_take(p->fill->cache->keep, kept->key, &packed, &kept->note))
        return false;
    fputs(kept->note, p->note->to);
    fill_record(p, &packed);
    p->fill->shared->found++;
    if (fill_reserve(p, packed.size))
        *out = packed;
    else
        packed_case_clear(&packed);
    return true;
}

/* Make a case that can be kept, unless its files have changed meanwhile. */
static void make_kept(fill_task *p, kept_key *kept, packed_case *out, pons_error *err)
{
    if (fill_pack(p, err) != PONS_OK)
        return;
    kept->note = cache_keyed_warnings(p, err);
    if (kept->note != NULL && !cache_keyed_is_unchanged(p, err)) {
        free(kept->note);
        kept->note = NULL;
    }
    if (err->status == PONS_OK)
        hold_made(p, out);
}

/* Hold a case with its key, so that the next cache can have it. */
static bool hold_kept(fill_task *p, packed_case *out, pons_error *err)
{
    kept_key *kept = calloc(1, sizeof *kept);

    if (kept == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory");
        return false;
    }
    if (cache_keyed_find_key(p, kept->key, err) == PONS_OK && !take_kept(p, kept, out))
        make_kept(p, kept, out, err);
    if (out->codes != NULL && kept->note != NULL) {
        p->fill->cache->slot[p->rank].kept = kept;
        return true;
    }
    free(kept->note);
    free(kept);
    return out->codes != NULL;
}

static bool hold_in_memory(fill_task *p, packed_case *out, pons_error *err)
{
    if (p->fill->memory.count == 1 && p->fill->cache->keep != NULL)
        return hold_kept(p, out, err);
    if (fill_pack(p, err) != PONS_OK)
        return false;
    if (p->fill->memory.count > 1)
        return share_case(p);
    return hold_made(p, out);
}

static bool map_from_memory(fill *f, int position, packed_case *out, pons_error *cause)
{
    const shared_case *e = &f->shared->entry[position];

    return e->packed.size > 0 && shared_memory_map(&f->memory, e, out, cause) == PONS_OK;
}

const cache_kind cache_kind_memory = { .hold = hold_in_memory, .map = map_from_memory };
