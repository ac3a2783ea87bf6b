/*
 * random_number.c - draw a number for a patch or for each of its channels, and apply it to values.
 */
#include "random_number.h"

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
    int channels = patch->channels;

    if (!record->wanted)
        return PONS_OK;
    if (!channel_wise && pons_scope_has_all(scope, channels)) {
        use(patch->image, voxels * channels, 1, number_of(ends, record, 0));
        return PONS_OK;
    }
    for (int c = 0; c < channels; c++)
        if (pons_scope_has(scope, c))
            use(patch->image + c, voxels, channels,
                number_of(ends, record, channel_wise ? c : 0));
    return PONS_OK;
}

void random_number_params(const pons_reals *ends, bool channel_wise,
                          const pons_transform_scope *scope, const random_record *record,
                          float unchanged, pons_sample_params *out)
{
    for (int c = 0; c < out->channels; c++) {
        bool changed = record->wanted && pons_scope_has(scope, c);

        out->number[c] = changed ? number_of(ends, record, channel_wise ? c : 0) : unchanged;
    }
}
