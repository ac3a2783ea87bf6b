/*
 * random_number.c - draw a number for a patch or for each of its channels, and hand it to values.
 */
#include "random_number.h"

#define CHANNELS_MAX 64

pons_status random_number_check(const pons_reals *ends, const char *key, pons_error *err)
{
    if (ends->count < 1 || ends->count > 2)
        return pons_fail(err, PONS_CONFIG, "%s: found %d numbers, expected one or two", key,
                         ends->count);
    return PONS_OK;
}

pons_status random_number_plan(double probability, pons_rng *draws, random_record *out)
{
    out->wanted = (double)pons_draw_uniform(draws) < probability;
    out->key = pons_draw_key(draws);
    return PONS_OK;
}

static float number_of(const pons_reals *ends, const random_record *r, int which)
{
    double first = ends->item[0], low = ends->count == 2 ? first : -first;
    double high = ends->count == 2 ? ends->item[1] : first;
    float u[4];

    pons_voxel_uniform(r->key, (uint64_t)which / 4, u);
    return (float)(low + (high - low) * (double)u[which % 4]);
}

pons_status random_number_apply(const pons_reals *ends, bool channel_wise,
                                const pons_transform_scope *scope, const random_record *record,
                                pons_patch *patch, random_number_use *use)
{
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];
    int channels = patch->channels < CHANNELS_MAX ? patch->channels : CHANNELS_MAX;
    uint64_t all = channels < 64 ? (UINT64_C(1) << channels) - 1 : UINT64_MAX;

    if (!record->wanted)
        return PONS_OK;
    if (!channel_wise && channels == patch->channels && (scope->channels & all) == all) {
        use(patch->image, voxels * channels, 1, number_of(ends, record, 0));
        return PONS_OK;
    }
    for (int c = 0; c < channels; c++)
        if (scope->channels >> c & 1)
            use(patch->image + c, voxels, patch->channels,
                number_of(ends, record, channel_wise ? c : 0));
    return PONS_OK;
}

void random_number_tell(const pons_reals *ends, bool channel_wise,
                        const pons_transform_scope *scope, const random_record *record,
                        float unchanged, pons_sample_params *out)
{
    for (int c = 0; c < out->channels; c++) {
        bool changed = record->wanted && c < CHANNELS_MAX && scope->channels >> c & 1;

        out->number[c] = changed ? number_of(ends, record, channel_wise ? c : 0) : unchanged;
    }
}
