/*
 * patch_batch.c - plan, place, cut and change the patches of one case.
 *
 * Everything drawn here depends on (seed, epoch, rank of the case, sample) and on names (R5), so it
 * does not matter which thread does it, or when.
 */
#include "data/loader/patch_batch.h"

#include <stdlib.h>
#include <string.h>

#include <pons/device.h>

#include "base/random.h"
#include "data/loader/device_case_layout.h"
#include "data/loader/patch_extract.h"
#include "data/loader/sampler.h"

enum { SLAB_COUNT = 16384 }; /* values of an image that stay in the first levels of the cache */

pons_status patch_bench_init(const patch_maker *m, patch_bench *b, pons_error *err)
{
    b->records = malloc(augment_record_size(&m->augment) + 1);
    b->numbers = malloc(PONS_SAMPLE_PARAMS_MAX * (size_t)m->channels * sizeof *b->numbers);
    return b->records != NULL && b->numbers != NULL ? PONS_OK
         : pons_fail(err, PONS_DEVICE, "out of memory");
}

void patch_bench_clear(patch_bench *b)
{
    free(b->records);
    free(b->numbers);
    *b = (patch_bench){ NULL };
}

/*
 * Cut the patch a few planes at a time, and change these while they are in cache as far
 * as the steps look at one voxel only; what comes behind the first step that does not
 * sees the whole patch.
 */
static pons_status cut_and_change(const patch_maker *m, const patch_bench *b,
                                  const packed_case *packed, const pons_sample *sample,
                                  const int64_t start[3], pons_patch *whole, pons_error *err)
{
    const int64_t *e = sample->extent;
    int64_t plane = e[1] * e[2], planes = SLAB_COUNT / (plane * m->channels);
    int fused = augment_pointwise(&m->augment);

    planes = planes < 1 ? 1 : planes;
    for (int64_t first = 0; first < e[0]; first += planes) {
        int64_t count = e[0] - first < planes ? e[0] - first : planes;
        pons_patch part = *whole;

        patch_cut(packed, sample, start, m->settings.pad, first, count, whole->image,
                  whole->label);
        part.extent[0] = count;
        part.first = first * plane;
        part.image += part.first * m->channels;
        part.label += part.first * m->label_channels;
        if (augment_apply(&m->augment, 0, fused, b->records, &part, err) != PONS_OK)
            return err->status;
    }
    return augment_apply(&m->augment, fused, augment_count(&m->augment), b->records, whole, err);
}

/* ---- for a device that cuts ------------------------------------------------------------------ */

/* Where sample 'n' of a part lies. */
static void *part_at(const patch_maker *m, const loader_part *part, int i, int64_t n)
{
    return (char *)part[i].data + (size_t)n * m->parts.item[i].size;
}

/* What the device is told of the steps, in the order of the parts: a step's numbers, its key. */
static void tell_steps(const patch_maker *m, const patch_bench *b, const loader_part *part,
                       int64_t n)
{
    pons_sample_params told = { .size = sizeof told, .channels = m->channels,
                                .number = b->numbers };
    int step = -1;

    for (int i = PATCH_NUMBER; i < m->parts.count; i++) {
        const patch_part *p = &m->parts.item[i];
        void *to = part_at(m, part, i, n);
        if (p->step != step) {
            step = p->step;
            memset(b->numbers, 0,
                   PONS_SAMPLE_PARAMS_MAX * (size_t)m->channels * sizeof *b->numbers);
            told.normal = false;
            told.key = 0;
            augment_numbers(&m->augment, step, b->records, &told);
        }
        if (p->kind == PATCH_NUMBER)
            memcpy(to, b->numbers + p->number * m->channels, p->size);
        else
            memcpy(to, (const int32_t[]){ (int32_t)(uint32_t)told.key,
                                          (int32_t)(uint32_t)(told.key >> 32), told.normal },
                   p->size);
    }
}

static pons_status tell_sample(const patch_maker *m, const patch_bench *b,
                               const packed_case *packed, const pons_rng *draws,
                               const pons_sample *sample, const int64_t start[3],
                               const loader_part *part, int64_t n, pons_error *err)
{
    case_place at = case_layout_of(m->settings.layout, (int)draws->case_rank);
    int32_t *image = part_at(m, part, PATCH_IMAGE, n), *target = part_at(m, part, PATCH_TARGET, n);

    image[PONS_PATCH_VALUES] = at.values;
    image[PONS_PATCH_TABLE] = at.table;
    image[PONS_PATCH_CODE_SIZE] = at.code_size;
    target[PONS_PATCH_VALUES] = at.target;
    target[PONS_PATCH_TABLE] = target[PONS_PATCH_CODE_SIZE] = 0;
    if (!patch_places(packed, sample, start, m->settings.pad, image + PONS_PATCH_PLACE,
                      target + PONS_PATCH_PLACE))
        return pons_fail(err, PONS_CONFIG, "a step of [augment] turns a patch by other than "
                         "quarters, which [data] cache = device cannot do\n"
                         "hint: --set data.cache=memory");
    tell_steps(m, b, part, n);
    return PONS_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

static pons_status make_sample(const patch_maker *m, patch_bench *b, const packed_case *packed,
                               const pons_rng *draws, const loader_part *part, int64_t n,
                               pons_error *err)
{
    const int *e = m->settings.extent;
    pons_sample sample = { .size = sizeof sample, .extent = { e[0], e[1], e[2] },
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
    pons_patch patch = { .size = sizeof patch, .extent = { e[0], e[1], e[2] },
                         .channels = m->channels, .label_channels = m->label_channels };
    patch_place place = { &m->settings, *draws };
    int64_t box[3], start[3];

    if (augment_plan(&m->augment, draws, &sample, b->records, err) != PONS_OK)
        return err->status;
    patch_box(&sample, box);
    place.draws.stream = stream_hash("data.patch");
    if (patch_find(packed, &place, box, start, err) != PONS_OK)
        return err->status;
    if (m->settings.layout != NULL)
        return tell_sample(m, b, packed, draws, &sample, start, part, n, err);
    patch.image = part_at(m, part, PATCH_IMAGE, n);
    patch.label = part_at(m, part, PATCH_TARGET, n);
    return cut_and_change(m, b, packed, &sample, start, &patch, err);
}

pons_status patch_make(const patch_maker *m, patch_bench *b, int64_t epoch, int rank,
                       const loader_part *part, int64_t first, pons_error *err)
{
    pons_error cause = PONS_ERROR_INIT, lost = PONS_ERROR_INIT;
    cache_hold hold;

    if (cache_hold_begin(m->held, rank, &hold, err) != PONS_OK)
        return err->status;
    for (int n = 0; n < m->settings.per_case && cause.status == PONS_OK; n++) {
        pons_rng draws = { .seed = m->settings.seed, .epoch = (uint64_t)epoch,
                           .case_rank = (uint64_t)rank, .sample = (uint64_t)n };
        make_sample(m, b, hold.packed, &draws, part, first + n, &cause);
    }
    if (packed_case_check(hold.packed, &lost) != PONS_OK)
        cause = lost;
    cache_hold_end(&hold);
    if (cause.status == PONS_OK)
        return PONS_OK;
    return pons_fail(err, cause.status, "case '%s': %s",
                     cache_dataset(m->held)->cases[rank].id, cause.text);
}
