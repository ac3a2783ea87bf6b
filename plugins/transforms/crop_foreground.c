/*
 * crop_foreground - cut to the box of the foreground, as MONAI's CropForeground: voxels of the
 * image where any channel is above 'above', plus a margin. Without any foreground the case stays as
 * it is and a warning says so.
 */
#include <pons/transform.h>

#include <stdatomic.h>

enum { PIECE = 1 << 16 };     /* voxels */

typedef struct crop_foreground {
    int margin[3], k_divisible[3];
    double above;
    int source;
    pons_integers channel_indices;
    bool allow_smaller;
} crop_foreground;

enum { SOURCE_IMAGE = 0, SOURCE_LABEL };
static const char *const sources[] = { "image", "label", NULL };

static const pons_option options[] = {
    PONS_AXES(crop_foreground, margin, "0", 0, 10000, "Voxels kept around the foreground."),
    PONS_AXES(crop_foreground, k_divisible, "1", 1, 10000,
              "The new extent is a multiple of this; more is taken on both sides."),
    PONS_REAL(crop_foreground, above, 0, -FLT_MAX, FLT_MAX, "Foreground is above this value."),
    PONS_CHOICE(crop_foreground, source, image, sources, "Where foreground is looked for."),
    PONS_INTEGERS(crop_foreground, channel_indices, "", 0, 63,
                  "Channels that are looked at, from 0; not given: all."),
    PONS_FLAG(crop_foreground, allow_smaller, yes,
              "Cut the margin at the edge of the image; no: fill with zeros there."),
    PONS_OPTIONS_END
};

static bool is_foreground(const pons_volume *v, int64_t voxel, uint64_t channels, double above)
{
    int64_t first = voxel * v->channels;

    for (int c = 0; c < v->channels; c++) {
        if (!(channels >> c & 1))
            continue;
        if (v->type == PONS_U8 ? ((const uint8_t *)v->voxels)[first + c] > above
                               : (double)((const float *)v->voxels)[first + c] > above)
            return true;
    }
    return false;
}

/* A search for the box of the foreground, by several threads. */
typedef struct search {
    const pons_volume *v;
    uint64_t channels;
    double above;
    _Atomic int64_t low[3], high[3];
} search;

/* Widen [low, high) by a row along k: only its first and last foreground voxel matter. */
static void scan_row(const search *s, int64_t i, int64_t j, int64_t low[3], int64_t high[3])
{
    const pons_volume *v = s->v;
    int64_t n = v->extent[2], row = (i * v->extent[1] + j) * n, first = 0, last = n;
    int64_t at[3] = { i, j, 0 };

    while (first < n && !is_foreground(v, row + first, s->channels, s->above))
        first++;
    if (first == n)
        return;
    while (!is_foreground(v, row + last - 1, s->channels, s->above))
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
    search all = { .v = v, .channels = s->channel_indices.count ? 0 : UINT64_MAX,
                   .above = s->above,
                   .low = { v->extent[0], v->extent[1], v->extent[2] } };

    for (int n = 0; n < s->channel_indices.count; n++)
        all.channels |= UINT64_C(1) << s->channel_indices.item[n];
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
        return pons_fail(err, PONS_CONFIG, "crop_foreground has 'source = label', but the case has "
                         "no label");
    if (!find_box(s, v, low, high)) {
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

PONS_TRANSFORM(crop_foreground, "1.0", "cuts to the box of the foreground", options, true, NULL,
               apply)
