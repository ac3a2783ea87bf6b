/*
 * clip - cut intensities below a lower and above an upper value.
 */
#include <pons/transform.h>

enum { PIECE = 1 << 16 };     /* voxels */

typedef struct clip {
    pons_reals lower, upper;
} clip;

static const pons_option options[] = {
    PONS_REALS(clip, lower, "", -FLT_MAX, FLT_MAX,
               "Lowest intensity; one number, or one per channel; not given: none."),
    PONS_REALS(clip, upper, "", -FLT_MAX, FLT_MAX,
               "Highest intensity; one number, or one per channel; not given: none."),
    PONS_OPTIONS_END
};

static double limit(const pons_reals *numbers, int channel, double none)
{
    return numbers->count == 0 ? none : numbers->item[numbers->count > 1 ? channel : 0];
}

static pons_status check(const void *config, pons_error *err)
{
    const clip *s = config;
    int count = s->lower.count > s->upper.count ? s->lower.count : s->upper.count;

    if (count == 0)
        return pons_option_fail(err, "lower", "neither lower nor upper is given, expected one");
    if (s->lower.count > 1 && s->upper.count > 1 && s->lower.count != s->upper.count)
        return pons_option_fail(err, "upper", "found %d numbers, expected 1 or %d as in lower",
                                s->upper.count, s->lower.count);
    for (int c = 0; c < count; c++) {
        double low = limit(&s->lower, c, -FLT_MAX), high = limit(&s->upper, c, FLT_MAX);

        if (low > high)
            return pons_option_fail(err, "upper", "found %g, expected at least lower, %g", high,
                                    low);
    }
    return PONS_OK;
}

static pons_status check_count(const char *name, const pons_reals *numbers, int channels,
                               pons_error *err)
{
    if (numbers->count > 1 && numbers->count != channels)
        return pons_option_fail(err, name, "found %d numbers, expected 1 or one for each of %d "
                                "channels", numbers->count, channels);
    return PONS_OK;
}

/* The values of one channel, between two limits. */
typedef struct channel_limits {
    float *first;
    int64_t step;
    float low, high;
} channel_limits;

/* A NaN stays one. */
static void clip_values(void *context, int64_t begin, int64_t end)
{
    const channel_limits l = *(const channel_limits *)context;
    float *x = l.first + begin * l.step;

    if (l.step == 1) {
        for (int64_t n = 0; n < end - begin; n++)
            x[n] = x[n] < l.low ? l.low : x[n] > l.high ? l.high : x[n];
        return;
    }
    for (int64_t n = begin; n < end; n++, x += l.step)
        *x = *x < l.low ? l.low : *x > l.high ? l.high : *x;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const clip *s = config;
    int channels = c->image.channels;

    if (check_count("lower", &s->lower, channels, err) != PONS_OK
        || check_count("upper", &s->upper, channels, err) != PONS_OK)
        return err->status;
    for (int n = 0; n < channels; n++) {
        channel_limits l = { (float *)c->image.voxels + n, channels,
                             (float)limit(&s->lower, n, -FLT_MAX),
                             (float)limit(&s->upper, n, FLT_MAX) };

        if (pons_scope_has(scope, n))
            pons_parallel_for(pons_volume_count(&c->image), PIECE, clip_values, &l);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = { .check = check, .apply = apply };

PONS_TRANSFORM(clip, "1.0", "cuts intensities at a lower and an upper value", options, operations);
