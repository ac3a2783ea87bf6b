/*
 * scale_range - map one range of intensities linearly to another, as MONAI's ScaleIntensityRange:
 * y = (x - a) / (b - a), then y (d - c) + c for from = a b and to = c d; clip cuts at c and d.
 */
#include <pons/transform.h>

typedef struct scale_range {
    pons_reals from, to;
    bool clip;
} scale_range;

static const pons_option options[] = {
    PONS_REALS(scale_range, from, NULL, -FLT_MAX, FLT_MAX, "Two intensities of the image."),
    PONS_REALS(scale_range, to, "", -FLT_MAX, FLT_MAX,
               "The two intensities they become; not given: 0 and 1, which clip needs."),
    PONS_FLAG(scale_range, clip, no, "Cut what lies outside 'to'."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const scale_range *s = config;

    if (s->from.count != 2)
        return pons_fail(err, PONS_CONFIG, "'from' has %d numbers, expected 2", s->from.count);
    if (s->to.count != 0 && s->to.count != 2)
        return pons_fail(err, PONS_CONFIG, "'to' has %d numbers, expected 2", s->to.count);
    return PONS_OK;
}

static float limit(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const scale_range *s = config;
    float a = (float)s->from.item[0], span = (float)(s->from.item[1] - s->from.item[0]);
    double begin = s->to.count ? s->to.item[0] : 0, end = s->to.count ? s->to.item[1] : 1;
    float low = (float)begin, high = (float)end, to_span = (float)(end - begin);
    int64_t count = pons_volume_count(&c->image);
    int channels = c->image.channels;

    if (span == 0)
        pons_transform_warn(scope, "'from' is the empty range %g to %g; values are shifted only",
                            s->from.item[0], s->from.item[1]);
    for (int channel = 0; channel < channels; channel++) {
        float *x = (float *)c->image.voxels + channel;

        if (!(scope->channels >> channel & 1))
            continue;
        for (int64_t n = 0; n < count; n++, x += channels) {
            float y = span == 0 ? *x - a + low : (*x - a) / span * to_span + low;

            *x = s->clip ? limit(y, low, high) : y;
        }
    }
    return PONS_OK;
}

PONS_TRANSFORM(scale_range, "1.0", "maps a range of intensities to another", options, false, check,
               apply)
