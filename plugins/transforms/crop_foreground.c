/*
 * crop_foreground - crop to the box of the foreground, as MONAI's CropForeground.
 *
 * The foreground are the voxels of the image with a channel above 'above', or as nnU-Net has it
 * (select = nonzero) with a channel other than 0. The box gets a margin. A case without foreground
 * keeps its extent, and a warning says so.
 */
#include <pons/transform.h>

#include <stdatomic.h>

enum { PIECE = 1 << 16 };     /* voxels */

typedef struct crop_foreground {
    int margin[3], k_divisible[3];
    double above;
    int source, select;
    pons_integers channel_indices;
    bool allow_smaller;
} crop_foreground;

enum { SOURCE_IMAGE = 0, SOURCE_LABEL };
static const char *const sources[] = { "image", "label", NULL };
enum { SELECT_ABOVE = 0, SELECT_NONZERO };
static const char *const selections[] = { "above", "nonzero", NULL };

static const pons_option options[] = {
    PONS_AXES(crop_foreground, margin, "0", 0, 10000, "Voxels kept around the foreground."),
    PONS_AXES(crop_foreground, k_divisible, "1", 1, 10000,
              "The new extent is a multiple of this; more is taken on both sides."),
    PONS_REAL(crop_foreground, above, "0", -FLT_MAX, FLT_MAX, "Foreground is above this value."),
    PONS_CHOICE(crop_foreground, source, "image", sources, "Where foreground is looked for."),
    PONS_INTEGERS(crop_foreground, channel_indices, "", 0, 1023,
                  "Channels that are looked at, from 0; not given: all."),
    PONS_FLAG(crop_foreground, allow_smaller, "yes",
              "Cut the margin at the edge of the image; no: fill with zeros there."),
    PONS_CHOICE(crop_foreground, select, "above", selections,
                "Foreground is above the value of 'above', or is other than 0."),
    PONS_OPTIONS_END
};

static bool is_selected(const pons_volume *v, int64_t voxel, int64_t channel,
                        const crop_foreground *s)
{
    int64_t at = voxel * v->channels + channel;
    double value = v->type == PONS_U8 ? ((const uint8_t *)v->voxels)[at]
                                      : (double)((const float *)v->voxels)[at];

    return s->select == SELECT_NONZERO ? value != 0 : value > s->above;
}

/* Channels of the scope beyond those of the volume are ignored. */
static bool is_foreground(const pons_volume *v, int64_t voxel, const crop_foreground *s)
{
    const pons_integers *list = &s->channel_indices;

    for (int c = 0; list->count == 0 && c < v->channels; c++)
        if (is_selected(v, voxel, c, s))
            return true;
    for (int n = 0; n < list->count; n++)
        if (list->item[n] < v->channels && is_selected(v, voxel, list->item[n], s))
            return true;
    return false;
}

/* A search for the box of the foreground, by several threads. */
typedef struct search {
    const pons_volume *v;
    const crop_foreground *options;
    _Atomic int64_t low[3], high[3];
} search;

/* Widen [low, high) by the first and the last foreground voxel of a row along k. */
static void scan_row(const search *s, int64_t i, int64_t j, int64_t low[3], int64_t high[3])
{
    const pons_volume *v = s->v;
    int64_t n = v->extent[2], row = (i * v->extent[1] + j) * n, first = 0, last = n;
    int64_t at[3] = { i, j, 0 };

    while (first < n && !is_foreground(v, row + first, s->options))
        first++;
    if (first == n)
        return;
    while (!is_foreground(v, row + last - 1, s->options))
        last--;
    for (int a = 0; a < 3; a++) {
        int64_t begin = a == 2 ? first : at[a], end = a == 2 ? last : at[a] + 1;

        low[a] = begin < low[a] ? begin : low[a];
        high[a] = end > high[a] ? end : high[a];
    }
}

static void scan_planes(void *context, int64_t begin, int64_t end)
{
    search *s = context;
    int64_t low[3], high[3];

    for (int a = 0; a < 3; a++) {
        low[a] = s->v->extent[a];
        high[a] = 0;
    }
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < s->v->extent[1]; j++)
            scan_row(s, i, j, low, high);
    for (int a = 0; a < 3; a++) {
        int64_t least = s->low[a], most = s->high[a];

        while (low[a] < least && !atomic_compare_exchange_weak(&s->low[a], &least, low[a]))
            continue;
        while (high[a] > most && !atomic_compare_exchange_weak(&s->high[a], &most, high[a]))
            continue;
    }
}

static bool find_box(const crop_foreground *s, const pons_volume *v, int64_t low[3],
                     int64_t high[3])
{
    int64_t plane = v->extent[1] * v->extent[2];
    search all = { .v = v, .options = s,
                   .low = { v->extent[0], v->extent[1], v->extent[2] } };

    pons_parallel_for(v->extent[0], plane < PIECE ? PIECE / plane : 1, scan_planes, &all);
    for (int a = 0; a < 3; a++) {
        low[a] = all.low[a];
        high[a] = all.high[a];
    }
    return high[0] > 0;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const crop_foreground *s = config;
    const pons_volume *v = s->source == SOURCE_LABEL ? &c->label : &c->image;
    int64_t low[3], high[3], extent[3];

    if (!v->voxels)
        return pons_option_fail(err, "source", "found label, but the case has no label");
    if (!find_box(s, v, low, high)) {
        if (s->select == SELECT_NONZERO)
            pons_transform_warn(scope, "crop_foreground found only zeros; nothing was cut");
        else
            pons_transform_warn(scope, "crop_foreground found no voxel above %g; nothing was cut",
                                s->above);
        return PONS_OK;
    }
    for (int a = 0; a < 3; a++) {
        int64_t k = s->k_divisible[a], more;

        low[a] -= s->margin[a];
        high[a] += s->margin[a];
        if (s->allow_smaller) {
            low[a] = low[a] < 0 ? 0 : low[a];
            high[a] = high[a] > v->extent[a] ? v->extent[a] : high[a];
        }
        extent[a] = (high[a] - low[a] + k - 1) / k * k;
        more = extent[a] - (high[a] - low[a]);
        low[a] -= more / 2;
    }
    return pons_case_crop(c, low, extent, 0, err);
}

static const pons_transform_operations operations = { .geometric = true, .apply = apply };

PONS_TRANSFORM(crop_foreground, "1.0", "cuts to the box of the foreground", options, operations);
