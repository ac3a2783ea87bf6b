/*
 * patch_make.c - plan, place, cut and change the patches of one case.
 *
 * Everything drawn here depends on (seed, epoch, rank of the case, sample) and on names (R5), so it
 * does not matter which thread does it, or when.
 */
#include <data/patch_make.h>

#include <data/patch_cut.h>

#include <base/random.h>

#include <stdlib.h>

pons_status patch_bench_init(const patch_maker *m, patch_bench *b, pons_error *err)
{
    const int *e = m->settings.extent;
    const int64_t extent[3] = { e[0], e[1], e[2] };

    b->scratch = malloc(patch_scratch_count(extent) * sizeof *b->scratch);
    b->records = malloc(augment_record_size(&m->augment) + 1);
    if (b->scratch != NULL && b->records != NULL)
        return PONS_OK;
    patch_bench_clear(b);
    return pons_fail(err, PONS_DEVICE, "out of memory");
}

void patch_bench_clear(patch_bench *b)
{
    free(b->scratch);
    free(b->records);
    *b = (patch_bench){ NULL };
}

static pons_status make_sample(const patch_maker *m, patch_bench *b, const packed_case *packed,
                               const pons_draws *draws, float *image, uint8_t *label,
                               pons_error *err)
{
    const int *e = m->settings.extent;
    pons_sample sample = { .size = sizeof sample, .extent = { e[0], e[1], e[2] },
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
    pons_patch patch = { .size = sizeof patch, .extent = { e[0], e[1], e[2] },
                         .channels = m->channels, .label_channels = m->label_channels,
                         .image = image, .label = label };
    patch_place place = { &m->settings, *draws };
    int64_t box[3], start[3];

    if (augment_plan(&m->augment, draws, &sample, b->records, err) != PONS_OK)
        return err->status;
    patch_box(&sample, box);
    place.draws.stream = stream_hash("data.patch");
    if (patch_find(packed, &place, box, start, err) != PONS_OK)
        return err->status;
    patch_cut(packed, &sample, start, m->settings.pad, b->scratch, image, label);
    return augment_apply(&m->augment, b->records, &patch, err);
}

pons_status patch_make(const patch_maker *m, patch_bench *b, int64_t epoch, int rank, float *image,
                       uint8_t *label, pons_error *err)
{
    pons_error cause = PONS_ERROR_INIT;
    cache_hold hold;

    if (cache_hold_begin(m->held, rank, &hold, err) != PONS_OK)
        return err->status;
    for (int n = 0; n < m->settings.per_case && cause.status == PONS_OK; n++) {
        pons_draws draws = { .seed = m->settings.seed, .epoch = (uint64_t)epoch,
                             .case_rank = (uint64_t)rank, .sample = (uint64_t)n };
        make_sample(m, b, hold.packed, &draws, image + n * m->voxels * m->channels,
                    label + n * m->voxels * m->label_channels, &cause);
    }
    cache_hold_end(&hold);
    if (cause.status == PONS_OK)
        return PONS_OK;
    return pons_fail(err, cause.status, "case '%s': %s",
                     cache_dataset(m->held)->cases[rank].id, cause.text);
}
