/*
 * cache.c - open a cache and hand out its cases: those in the cache, and others read on demand.
 *
 * cache_fill.c fills it. A case has the same content whether the cache has it or not.
 */
#include "data/cache/cache.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "data/cache/cache_internal.h"
#include "data/cache/cache_smart.h"
#include "data/case/case_read.h"

/* ---- cases ----------------------------------------------------------------------------------- */

typedef struct largest_class {
    const uint8_t *label;
    _Atomic int most;
} largest_class;

static void find_largest_class(void *context, int64_t first, int64_t end)
{
    largest_class *l = context;
    uint8_t most = 0;
    int known = l->most;

    for (int64_t i = first; i < end; i++)
        most = max_int(l->label[i], most);
    while (most > known && !atomic_compare_exchange_weak(&l->most, &known, most))
        continue;
}

/* Refuse class indices beyond the listed ones, which would index tables beyond their end. */
static pons_status check_class_range(const dataset *d, const pons_case *c, pons_error *err)
{
    int limit = d->region_count > 0 ? 2 : d->class_count;
    largest_class l = { .label = c->label.voxels };

    if (l.label == NULL)
        return PONS_OK;
    parallel_run((int64_t)pons_volume_size(&c->label), parallel_piece(1), find_largest_class, &l);
    if (l.most < limit)
        return PONS_OK;
    return pons_fail(err, PONS_PLUGIN, "case '%s': the label has class %d after [preprocess], "
                     "expected 0 to %d", c->name, (int)l.most, limit - 1);
}

static pons_status read_preprocessed(const cache *c, int rank, logger *l, pons_case *out,
                                     pons_error *err)
{
    if (case_read(c->data, rank, out, err) != PONS_OK)
        return err->status;
    if (c->chain == NULL || (pipeline_apply(c->chain, dataset_step_cases(c->data, rank), out, l,
                                            err) == PONS_OK
                             && check_class_range(c->data, out, err) == PONS_OK)) {
        packed_case_mark_ignored(out);
        return PONS_OK;
    }
    case_clear(out);
    return err->status;
}

pons_status cache_pack(const cache *c, int rank, logger *l, packed_case *out, pons_error *err)
{
    pons_case one;

    if (read_preprocessed(c, rank, l, &one, err) != PONS_OK)
        return err->status;
    return packed_case_init(out, &one, &c->spec, err);
}

pons_status cache_pin_begin(cache *c, int rank, cache_pin *pin, pons_error *err)
{
    memset(pin, 0, sizeof *pin);
    if (c->slot[rank].resident) {
        pin->packed = &c->slot[rank].packed;
        return PONS_OK;
    }
    if (c->smart != NULL && c->slot[rank].place >= 0) {
        pin->place = c->slot[rank].place;
        if (cache_smart_pin(c->smart, pin->place, &pin->packed, err))
            pin->held = c;
        if (pin->held != NULL || err->status != PONS_OK)
            return err->status;
    }
    pin->packed = &pin->own;
    return cache_pack(c, rank, NULL, &pin->own, err);
}

void cache_pin_end(cache_pin *pin)
{
    if (pin->held != NULL)
        cache_smart_unpin(pin->held->smart, pin->place);
    packed_case_clear(&pin->own);
}

pons_status cache_read(cache *c, int rank, pons_case *out, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;

    if (!c->slot[rank].resident)
        return read_preprocessed(c, rank, NULL, out, err);
    if (packed_case_unpack(&c->slot[rank].packed, out, &problem) != PONS_OK)
        return pons_fail(err, problem.status, "case '%s': %s", c->data->cases[rank].id,
                         problem.text);
    out->name = c->data->cases[rank].id;
    return PONS_OK;
}

const packed_case *cache_packed(const cache *c, int rank)
{
    return c->slot[rank].resident ? &c->slot[rank].packed : NULL;
}

const dataset *cache_dataset(const cache *c)
{
    return c->data;
}

int cache_add_reader(cache *c, int64_t epoch)
{
    return c->smart != NULL ? cache_smart_add_reader(c->smart, epoch) : 0;
}

void cache_advance(cache *c, int reader, int64_t epoch)
{
    if (c->smart != NULL)
        cache_smart_advance(c->smart, reader, epoch);
}

bool cache_has_rank(const cache *c, int rank)
{
    return rank >= 0 && rank < c->data->case_count && c->slot[rank].wanted;
}

int64_t cache_size(const cache *c)
{
    return c->smart != NULL ? cache_smart_size(c->smart) : (int64_t)c->size;
}

hash128 cache_case_hash(const cache *c, int rank)
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

static sampling_spec sampling_spec_of(const dataset *d, const cache_settings *s)
{
    static const sampling_sets sets[] = {
        [SAMPLING_UNIFORM] = SAMPLING_SETS_NONE, [SAMPLING_BALANCED] = SAMPLING_SETS_BALANCED,
        [SAMPLING_CLASSES] = SAMPLING_SETS_CLASSES, [SAMPLING_WHOLE] = SAMPLING_SETS_NONE,
        [SAMPLING_FOREGROUND] = SAMPLING_SETS_CLASSES_VALID
    };
    sampling_spec spec = { .sets = sets[s->sampling], .background_above = s->background_above,
                           .set_count = d->region_count > 0 ? d->region_count : d->class_count };

    if (spec.sets == SAMPLING_SETS_BALANCED && d->ignored != NULL)
        spec.sets = SAMPLING_SETS_BALANCED_VALID;
    spec.set_count += spec.sets == SAMPLING_SETS_CLASSES_VALID;
    return spec;
}

/* The kind that holds cases in this mode; NULL: none is held. */
static const cache_kind *cache_kind_of(cache_mode mode)
{
    static const cache_kind *const kinds[] = {
        [CACHE_NONE] = NULL, [CACHE_MEMORY] = &cache_kind_memory, [CACHE_DISK] = &cache_kind_disk,
        [CACHE_LMDB] = &cache_kind_lmdb, [CACHE_SMART] = &cache_kind_smart,
        [CACHE_DEVICE] = &cache_kind_memory
    };

    return kinds[mode];
}

static pons_status add_tier(cache *c, cache_mode mode, int64_t limit, const cache_settings *s,
                            logger *l, pons_error *err)
{
    const cache_kind *kind = cache_kind_of(mode);

    if (mode == CACHE_SMART && (c->window.total == 0 || case_window_keeps_all(&c->window)))
        kind = &cache_kind_memory;
    if (kind == NULL)
        return PONS_OK;
    c->tier[c->tier_count++] = (cache_tier){ kind, limit };
    return kind->open != NULL ? kind->open(c, s, l, err) : PONS_OK;
}

pons_status cache_open(const dataset *d, const pipeline *chain, int rank_count,
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
    c->spec = sampling_spec_of(d, settings);
    case_geometry_init(&c->geometry);
    case_geometry_init(&c->validation);
    c->disk.lock = -1;
    /* Cases that the next cache does not take would be beyond the limit. */
    c->keep = settings->mode != CACHE_SMART && settings->limit == 0 ? settings->keep : NULL;
    c->window = settings->window;
    c->epoch = settings->epoch;
    c->lane = settings->lane;
    c->lane_count = settings->lane_count;
    for (int i = 0; i < rank_count; i++)
        c->slot[ranks[i]].wanted = true;
    if (add_tier(c, settings->mode, settings->limit, settings, l, err) != PONS_OK
        || add_tier(c, settings->next_mode, settings->next_limit, settings, l, err) != PONS_OK
        || cache_fill(c, rank_count, ranks, settings, l, err) != PONS_OK) {
        cache_close(c);
        return err->status;
    }
    *out = c;
    return PONS_OK;
}

/* Leave a case to the next cache. */
static void keep_case(cache *c, cache_slot *slot)
{
    cache_keep_put(c->keep, slot->kept->key, &slot->packed, slot->kept->note);
    free(slot->kept);
}

void cache_close(cache *c)
{
    if (c == NULL)
        return;
    cache_smart_close(c->smart);
    for (int i = 0; i < c->data->case_count; i++) {
        if (c->slot[i].kept != NULL)
            keep_case(c, &c->slot[i]);
        packed_case_clear(&c->slot[i].packed);
    }
    for (int n = 0; n < c->tier_count; n++)
        if (c->tier[n].kind->close != NULL)
            c->tier[n].kind->close(c);
    free(c->slot);
    free(c);
}
