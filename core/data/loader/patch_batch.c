/*
 * patch_batch.c - make the patches of one case: plan the augmentation, choose the position,
 * extract, augment.
 *
 * All random numbers depend on (seed, epoch, rank of the case, sample) and on names (R5), so the
 * result does not depend on the thread or the time.
 */
#include "data/loader/patch_batch.h"

#include <stdlib.h>
#include <string.h>

#include <pons/device.h>

#include "base/integer.h"
#include "base/random.h"
#include "data/loader/device_case_layout.h"
#include "data/loader/patch_crop.h"
#include "data/loader/patch_extract.h"
#include "data/loader/sampler.h"

enum { SLAB_COUNT = 16384 }; /* image values of a slab that fit the L2 cache */

/* Two floats per voxel, or three and three displacements. */
size_t patch_scratch_size(const pipeline *steps, const int extent[3])
{
    const augment a = { .steps = steps };
    size_t voxels = (size_t)extent[0] * (size_t)extent[1] * (size_t)extent[2];
    size_t count = augment_displaces(&a) ? 6 : augment_pointwise(&a) < augment_count(&a) ? 2 : 0;

    return count * voxels * sizeof(float);
}

pons_status patch_scratch_init(const patch_batch *m, patch_scratch *b, pons_error *err)
{
    size_t size = patch_scratch_size(m->augment.steps, m->settings.extent);

    b->voxels = size > 0 ? malloc(size) : NULL;
    b->records = malloc(augment_record_size(&m->augment) + 1);
    b->numbers = malloc(PONS_SAMPLE_PARAMS_MAX * (size_t)m->channels * sizeof *b->numbers);
    if (b->records != NULL && b->numbers != NULL && (b->voxels != NULL || size == 0))
        return PONS_OK;
    return pons_fail(err, PONS_DEVICE, "out of memory");
}

void patch_scratch_clear(patch_scratch *b)
{
    free(b->records);
    free(b->numbers);
    free(b->voxels);
    *b = (patch_scratch){ NULL };
}

/*
 * Extract the patch a few planes at a time and apply the leading pointwise steps while these
 * planes are in the cache. The steps from the first one that is not pointwise are applied to the
 * whole patch.
 */
static pons_status extract_and_augment(const patch_batch *m, const patch_scratch *b,
                                       const packed_case *packed, const pons_sample *sample,
                                       const int64_t start[3], pons_patch *whole, pons_error *err)
{
    const int64_t *e = sample->extent;
    int64_t plane = e[1] * e[2], planes = SLAB_COUNT / (plane * m->channels);
    int fused = augment_pointwise(&m->augment);

    planes = max_i64(planes, 1);
    for (int64_t first = 0; first < e[0]; first += planes) {
        int64_t count = min_i64(e[0] - first, planes);
        pons_patch part = *whole;

        patch_extract(packed, sample, start, m->settings.pad, first, count, whole->image,
                      whole->label);
        part.extent[0] = count;
        part.first = first * plane;
        part.image += part.first * m->channels;
        if (part.label != NULL)
            part.label += part.first * m->label_channels;
        if (augment_apply(&m->augment, 0, fused, b->records, &part, err) != PONS_OK)
            return err->status;
    }
    return augment_apply(&m->augment, fused, augment_count(&m->augment), b->records, whole, err);
}

/* ---- parameters for a device that extracts patches ------------------------------------------- */

/* The address of sample 'n' in part 'i'. */
static void *part_at(const patch_batch *m, const loader_part *part, int i, int64_t n)
{
    return (char *)part[i].data + (size_t)n * m->parts.item[i].size;
}

/* Write the parameters of the steps for a device, in the order of the parts: numbers, then key. */
static void write_step_params(const patch_batch *m, const patch_scratch *b, const loader_part *part,
                              int64_t n)
{
    pons_sample_params params = { .size = sizeof params, .channels = m->channels,
                                  .number = b->numbers };
    int step = -1;

    for (int i = BATCH_NUMBER; i < m->parts.count; i++) {
        const batch_part *p = &m->parts.item[i];
        void *to = part_at(m, part, i, n);
        if (p->step != step) {
            step = p->step;
            memset(b->numbers, 0,
                   PONS_SAMPLE_PARAMS_MAX * (size_t)m->channels * sizeof *b->numbers);
            params.normal = false;
            params.key = 0;
            augment_sample_params(&m->augment, step, b->records, &params);
        }
        if (p->kind == BATCH_NUMBER)
            memcpy(to, b->numbers + p->number * m->channels, p->size);
        else
            memcpy(to, (const int32_t[]){ (int32_t)(uint32_t)params.key,
                                          (int32_t)(uint32_t)(params.key >> 32), params.normal },
                   p->size);
    }
}

static pons_status write_sample_params(const patch_batch *m, const patch_scratch *b,
                                       const packed_case *packed, const pons_rng *draws,
                                       const pons_sample *sample, const int64_t start[3],
                                       const loader_part *part, int64_t n, pons_error *err)
{
    device_case_offsets at = device_case_layout_find(m->settings.layout, (int)draws->case_rank);
    int32_t *image = part_at(m, part, BATCH_IMAGE, n), *target = part_at(m, part, BATCH_TARGET, n);

    image[PONS_PATCH_VALUES] = at.values;
    image[PONS_PATCH_TABLE] = at.table;
    image[PONS_PATCH_CODE_SIZE] = at.code_size;
    target[PONS_PATCH_VALUES] = at.target;
    target[PONS_PATCH_TABLE] = target[PONS_PATCH_CODE_SIZE] = 0;
    if (!patch_extract_offsets(packed, sample, start, m->settings.pad,
                               image + PONS_PATCH_COORDINATES, target + PONS_PATCH_COORDINATES))
        return pons_fail(err, PONS_CONFIG, "a step of [augment] turns a patch by other than "
                         "quarters, which [data] cache = device cannot do\n"
                         "hint: --set data.cache=memory");
    write_step_params(m, b, part, n);
    return PONS_OK;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Let the steps fill the field of displacements behind the scratch memory. */
static pons_status displace(const patch_batch *m, const patch_scratch *b, pons_sample *sample,
                            pons_error *err)
{
    const int64_t *e = sample->extent;
    int64_t voxels = e[0] * e[1] * e[2];
    pons_displacement d = { .size = sizeof d, .extent = { e[0], e[1], e[2] },
                            .field = b->voxels + 3 * voxels, .scratch = b->voxels };

    if (!augment_displaces(&m->augment))
        return pons_fail(err, PONS_PLUGIN, "a step of [augment] displaces voxels without "
                         "'displace'");
    memset(d.field, 0, 3 * (size_t)voxels * sizeof *d.field);
    sample->displacement = d.field;
    return augment_displace(&m->augment, b->records, &d, err);
}

/*
 * The case that the patch is read from, and the position there: the case itself, or what a step of
 * [augment] cuts out of it, which 'cut' holds.
 */
static pons_status find_source(const packed_case **source, sampler_input *sampler,
                               const pons_sample *sample, packed_case *cut, int64_t start[3],
                               pons_error *err)
{
    int64_t box[3];

    patch_extract_box(sample, box);
    if (sample->crop_extent[0] == 0)
        return sampler_choose(*source, sampler, box, start, err);
    if (patch_crop(*source, sample, box, cut, err) != PONS_OK)
        return err->status;
    *source = cut;
    memset(start, 0, 3 * sizeof *start);
    return PONS_OK;
}

static pons_status make_sample(const patch_batch *m, patch_scratch *b, const packed_case *packed,
                               const pons_rng *draws, const loader_part *part, int micro_batch,
                               int64_t n, pons_error *err)
{
    const int *e = m->settings.extent;
    pons_sample sample = { .size = sizeof sample, .extent = { e[0], e[1], e[2] },
                           .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
    pons_patch patch = { .size = sizeof patch, .extent = { e[0], e[1], e[2] },
                         .channels = m->channels, .label_channels = m->label_channels,
                         .scratch = b->voxels };
    const loader_settings *s = &m->settings;
    sampler_input sampler = { s, (int64_t)micro_batch * s->batch * s->per_case + n, *draws };
    packed_case cut = { .codes = NULL };
    int64_t start[3];

    memcpy(sample.case_extent, packed->image.extent, sizeof sample.case_extent);
    if (augment_plan(&m->augment, draws, &sample, b->records, err) != PONS_OK)
        return err->status;
    sampler.draws.stream = random_stream_hash("data.patch");
    if (find_source(&packed, &sampler, &sample, &cut, start, err) != PONS_OK)
        return err->status;
    if (m->settings.layout != NULL)
        return write_sample_params(m, b, packed, draws, &sample, start, part, n, err);
    patch.image = part_at(m, part, BATCH_IMAGE, n);
    if (s->target == TARGET_OF_CASE)
        *(int32_t *)part_at(m, part, BATCH_TARGET, n)
            = cache_dataset(m->cases)->cases[draws->case_rank].class_index;
    else
        patch.label = part_at(m, part, BATCH_TARGET, n);
    if (!sample.displaced || displace(m, b, &sample, err) == PONS_OK)
        extract_and_augment(m, b, packed, &sample, start, &patch, err);
    packed_case_clear(&cut);
    return err->status;
}

pons_status patch_batch_make(const patch_batch *m, patch_scratch *b, const patch_job *job,
                             const loader_part *part, pons_error *err)
{
    pons_error cause = PONS_ERROR_INIT, lost = PONS_ERROR_INIT;
    cache_pin pin;

    if (cache_pin_begin(m->cases, job->rank, &pin, err) != PONS_OK)
        return err->status;
    for (int n = 0; n < m->settings.per_case && cause.status == PONS_OK; n++) {
        pons_rng draws = { .seed = m->settings.seed, .epoch = (uint64_t)job->epoch,
                           .case_rank = (uint64_t)job->rank, .sample = (uint64_t)n };
        make_sample(m, b, pin.packed, &draws, part, job->micro_batch, job->first + n, &cause);
    }
    if (packed_case_check(pin.packed, &lost) != PONS_OK)
        cause = lost;
    cache_pin_end(&pin);
    if (cause.status == PONS_OK)
        return PONS_OK;
    return pons_fail(err, cause.status, "case '%s': %s",
                     cache_dataset(m->cases)->cases[job->rank].id, cause.text);
}
