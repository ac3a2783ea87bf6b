/*
 * coarse_dropout - fill random boxes, or all but them, as MONAI's RandCoarseDropout.
 *
 * Without 'fill_value' each voxel gets a random number between the smallest and the largest value
 * of its channel.
 */
#include "coarse_dropout.h"

#include "channel_draws.h"

typedef struct coarse_dropout {
    int64_t holes, max_holes;
    int spatial_size[3];
    pons_integers max_spatial_size;
    pons_reals fill_value;
    bool dropout_holes;
    double probability;
} coarse_dropout;

static const pons_option options[] = {
    PONS_INTEGER(coarse_dropout, holes, "1", 1, DROPOUT_BOXES_MAX,
                 "Number of boxes, or the smallest number."),
    PONS_INTEGER(coarse_dropout, max_holes, "0", 0, DROPOUT_BOXES_MAX,
                 "Largest number of boxes; 0: always 'holes'."),
    PONS_AXES(coarse_dropout, spatial_size, NULL, 1, 100000,
              "Extent of a box in voxels, or the smallest extent."),
    PONS_INTEGERS(coarse_dropout, max_spatial_size, "", 1, 100000,
                  "Largest extent of a box, one number or three; not given: always spatial_size.",
                  .count_max = 3),
    PONS_FLAG(coarse_dropout, dropout_holes, "yes",
              "Fill the boxes; no: fill what is outside of them."),
    PONS_REALS(coarse_dropout, fill_value, "", -FLT_MAX, FLT_MAX,
               "Value of filled voxels, or ends of its range; not given: between the limits of the "
               "channel.", .count_max = 2),
    PONS_REAL(coarse_dropout, probability, "0.1", 0, 1, "How often a patch is changed."),
    PONS_OPTIONS_END
};

static int64_t largest_extent(const coarse_dropout *s, int axis)
{
    const pons_integers *most = &s->max_spatial_size;

    return most->count == 0 ? s->spatial_size[axis] : most->item[most->count == 3 ? axis : 0];
}

static pons_status check(const void *config, pons_error *err)
{
    const coarse_dropout *s = config;

    if (s->max_holes > 0 && s->max_holes < s->holes)
        return pons_option_fail(err, "max_holes", "found %d, expected 0 or at least holes, %d",
                                (int)s->max_holes, (int)s->holes);
    if (s->max_spatial_size.count == 2)
        return pons_option_fail(err, "max_spatial_size", "found 2 numbers, expected 1 or 3");
    for (int a = 0; a < 3; a++)
        if (largest_extent(s, a) < s->spatial_size[a])
            return pons_option_fail(err, "max_spatial_size", "found %d along %c, expected at least "
                                    "spatial_size, %d", (int)largest_extent(s, a), "ijk"[a],
                                    s->spatial_size[a]);
    return range_check("fill_value", &s->fill_value, err);
}

static void draw_box(const coarse_dropout *s, pons_rng *draws, const int64_t extent[3],
                     dropout_box *box)
{
    for (int a = 0; a < 3; a++) {
        int64_t least = s->spatial_size[a];
        int64_t size = least + pons_draw_index(draws, largest_extent(s, a) - least + 1);

        size = size < extent[a] ? size : extent[a];
        box->extent[a] = (int32_t)size;
        box->start[a] = (int32_t)pons_draw_index(draws, extent[a] - size + 1);
    }
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *out,
                        pons_error *err)
{
    const coarse_dropout *s = config;
    dropout_record *r = out;
    bool wanted = (double)pons_draw_uniform(draws) < s->probability;
    int64_t more = s->max_holes > 0 ? pons_draw_index(draws, s->max_holes - s->holes + 1) : 0;

    r->key = pons_draw_key(draws);
    if (!wanted)
        return PONS_OK;
    r->count = (int32_t)(s->holes + more);
    for (int n = 0; n < r->count; n++)
        draw_box(s, draws, sample->extent, &r->box[n]);
    return PONS_OK;
}

/* The values that fill a channel. */
typedef struct filling {
    const dropout_record *record;
    pons_patch *patch;
    int channel;
    bool constant;
    float low, high;
} filling;

static filling filling_of(const coarse_dropout *s, const dropout_record *r, pons_patch *patch,
                          int channel)
{
    filling f = { .record = r, .patch = patch, .channel = channel,
                  .constant = s->fill_value.count == 1 };
    int64_t voxels = patch->extent[0] * patch->extent[1] * patch->extent[2];

    if (s->fill_value.count > 0) {
        f.low = (float)s->fill_value.item[0];
        f.high = (float)s->fill_value.item[s->fill_value.count - 1];
    } else {
        value_stats limits = value_stats_none(0);

        value_stats_add(&limits, patch->image + channel, voxels, patch->channels);
        f.low = limits.low;
        f.high = limits.high;
    }
    return f;
}

/* Fill 'count' voxels from 'voxel' on. */
static void fill_voxels(const filling *f, int64_t voxel, int64_t count)
{
    for (int64_t n = voxel; n < voxel + count; n++) {
        uint64_t at = (uint64_t)(n * f->patch->channels + f->channel);
        float u[4] = { 0 };

        if (!f->constant)
            pons_voxel_uniform(f->record->key, at / 4, u);
        f->patch->image[at] = f->low + (f->high - f->low) * u[at % 4];
    }
}

static void fill_box(const filling *f, const dropout_box *box)
{
    const int64_t *e = f->patch->extent;

    for (int i = 0; i < box->extent[0]; i++)
        for (int j = 0; j < box->extent[1]; j++)
            fill_voxels(f, ((box->start[0] + i) * e[1] + box->start[1] + j) * e[2] + box->start[2],
                        box->extent[2]);
}

static bool box_has(const dropout_box *box, const int64_t at[3])
{
    for (int a = 0; a < 3; a++)
        if (at[a] < box->start[a] || at[a] >= box->start[a] + box->extent[a])
            return false;
    return true;
}

static void fill_outside(const filling *f)
{
    const int64_t *e = f->patch->extent;

    for (int64_t i = 0; i < e[0]; i++)
        for (int64_t j = 0; j < e[1]; j++)
            for (int64_t k = 0; k < e[2]; k++) {
                bool in = false;

                for (int n = 0; n < f->record->count && !in; n++)
                    in = box_has(&f->record->box[n], (const int64_t[]){ i, j, k });
                if (!in)
                    fill_voxels(f, (i * e[1] + j) * e[2] + k, 1);
            }
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *planned,
                         pons_patch *patch, pons_error *err)
{
    const coarse_dropout *s = config;
    const dropout_record *r = planned;

    for (int c = 0; c < patch->channels && r->count > 0; c++) {
        filling f;

        if (!pons_scope_has(scope, c))
            continue;
        f = filling_of(s, r, patch, c);
        if (!s->dropout_holes)
            fill_outside(&f);
        for (int n = 0; n < r->count && s->dropout_holes; n++)
            fill_box(&f, &r->box[n]);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .record_size = sizeof(dropout_record), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(coarse_dropout, "1.0", "fill random boxes", options, operations);
