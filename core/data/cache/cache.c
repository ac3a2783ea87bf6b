/*
 * cache.c - preprocessed cases as they are asked for: kept (cache_fill.c), or read now. Which cases
 * are kept has no influence on what they hold.
 */
#include "data/cache/cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/parallel.h"
#include "data/cache/cache_internal.h"
#include "data/dataset/case_read.h"

/* ---- one case -------------------------------------------------------------------------------- */

typedef struct largest {
    const uint8_t *label;
    _Atomic int most;
} largest;

static void find_largest(void *context, int64_t first, int64_t end)
{
    largest *l = context;
    uint8_t most = 0;
    int known = l->most;

    for (int64_t i = first; i < end; i++)
        most = l->label[i] > most ? l->label[i] : most;
    while (most > known && !atomic_compare_exchange_weak(&l->most, &known, most))
        continue;
}

/* A class beyond those that are listed would be counted behind a table's end. */
static pons_status check_classes(const dataset *d, const pons_case *c, pons_error *err)
{
    int limit = d->region_count > 0 ? 2 : d->class_count;
    largest l = { .label = c->label.voxels };

    if (l.label != NULL)
        parallel_run((int64_t)pons_volume_size(&c->label), parallel_piece(1), find_largest, &l);
    if (l.most < limit)
        return PONS_OK;
    return pons_fail(err, PONS_PLUGIN, "case '%s': the label has class %d after [preprocess], "
                     "expected 0 to %d", c->name, (int)l.most, limit - 1);
}

static pons_status read_case(const cache *c, int rank, logger *l, pons_case *out, pons_error *err)
{
    if (case_read(c->data, rank, out, err) != PONS_OK)
        return err->status;
    if (c->chain == NULL || (volume_chain_apply(c->chain, out, l, err) == PONS_OK
                             && check_classes(c->data, out, err) == PONS_OK))
        return PONS_OK;
    case_clear(out);
    return err->status;
}

pons_status cache_pack(const cache *c, int rank, logger *l, packed_case *out, pons_error *err)
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
    return cache_pack(c, rank, NULL, &hold->own, err);
}

void cache_hold_end(cache_hold *hold)
{
    packed_case_clear(&hold->own);
}

pons_status cache_read(cache *c, int rank, pons_case *out, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;

    if (!c->slot[rank].held)
        return read_case(c, rank, NULL, out, err);
    if (packed_case_open(&c->slot[rank].packed, out, &problem) != PONS_OK)
        return pons_fail(err, problem.status, "case '%s': %s", c->data->cases[rank].id,
                         problem.text);
    out->name = c->data->cases[rank].id;
    return PONS_OK;
}

const packed_case *cache_packed(const cache *c, int rank)
{
    return c->slot[rank].held ? &c->slot[rank].packed : NULL;
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

fingerprint cache_source(const cache *c, int rank)
{
    return c->slot[rank].source;
}

const case_geometry *cache_geometry(const cache *c)
{
    return &c->geometry;
}

const case_geometry *cache_validation_geometry(const cache *c)
{
    return &c->validation;
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
    case_geometry_init(&c->geometry);
    case_geometry_init(&c->validation);
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
