/*
 * scale_range - map one range of intensities linearly to another, as MONAI's ScaleIntensityRange.
 *
 *   y = (x - a) / (b - a) (d - c) + c        with from = a b and to = c d
 *
 * 'clip' clips y at c and d. If a = b, values are shifted to x - a + c and not clipped.
 */
#include <pons/transform.h>

#include <math.h>

enum { PIECE = 1 << 16 };     /* voxels */

typedef struct scale_range {
    pons_reals from, to;
    bool clip;
} scale_range;

static const pons_option options[] = {
    PONS_REALS(scale_range, from, NULL, -FLT_MAX, FLT_MAX, "Two intensities of the image.",
               .count_min = 2, .count_max = 2),
    PONS_REALS(scale_range, to, "", -FLT_MAX, FLT_MAX,
               "The two intensities they become; not given: 0 and 1, which clip needs.",
               .count_min = 2, .count_max = 2),
    PONS_FLAG(scale_range, clip, "no", "Cut what lies outside 'to'."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const scale_range *s = config;

    if (s->clip && s->to.count == 2 && s->to.item[0] > s->to.item[1])
        return pons_option_fail(err, "to", "it falls from %g to %g, expected it to rise: 'clip' "
                                "would make all values %g\nhint: 'from' may fall instead",
                                s->to.item[0], s->to.item[1], s->to.item[1]);
    return PONS_OK;
}

/* The map of a value: (x - from) / span * to_span + low, between 'least' and 'most'. */
typedef struct line {
    float from, span, to_span, low, least, most;
} line;

static line line_of(const scale_range *s)
{
    double begin = s->to.count ? s->to.item[0] : 0, end = s->to.count ? s->to.item[1] : 1;
    line l = { .from = (float)s->from.item[0], .span = (float)(s->from.item[1] - s->from.item[0]),
               .to_span = (float)(end - begin), .low = (float)begin,
               .least = s->clip ? (float)begin : -INFINITY,
               .most = s->clip ? (float)end : INFINITY };

    if (l.span == 0) { /* a shift only */
        l.span = l.to_span = 1;
        l.least = -INFINITY;
        l.most = INFINITY;
    }
    return l;
}

static inline float value_on(const line *l, float x)
{
    float y = (x - l->from) / l->span * l->to_span + l->low;

    y = y < l->least ? l->least : y;
    return y > l->most ? l->most : y;
}

/* A map and the channels that it changes. */
typedef struct scaling {
    line line;
    const pons_volume *v;
    const pons_transform_scope *scope;
} scaling;

static void scale_all(const line *given, float *x, int64_t count)
{
    const line l = *given;

    for (int64_t n = 0; n < count; n++)
        x[n] = value_on(&l, x[n]);
}

static void scale_channel(const line *l, float *x, int64_t count, int channels)
{
    for (int64_t n = 0; n < count; n++)
        x[n * channels] = value_on(l, x[n * channels]);
}

static void scale_piece(void *context, int64_t first, int64_t end)
{
    const scaling *s = context;
    int channels = s->v->channels;
    float *x = (float *)s->v->voxels + first * channels;

    if (pons_scope_has_all(s->scope, channels))
        scale_all(&s->line, x, (end - first) * channels);
    else
        for (int channel = 0; channel < channels; channel++)
            if (pons_scope_has(s->scope, channel))
                scale_channel(&s->line, x + channel, end - first, channels);
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const scale_range *s = config;

    if (s->from.item[0] == s->from.item[1])
        pons_transform_warn(scope, "'from' is the empty range %g to %g; values are shifted only",
                            s->from.item[0], s->from.item[1]);
    pons_parallel_for(pons_volume_count(&c->image), PIECE, scale_piece,
                      &(scaling){ line_of(s), &c->image, scope });
    return PONS_OK;
}

static const pons_transform_operations operations = { .check = check, .apply = apply };

PONS_TRANSFORM(scale_range, "1.0", "maps a range of intensities to another", options, operations);
