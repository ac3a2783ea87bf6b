/*
 * normalize - subtract the mean and divide by the (biased) standard deviation, as MONAI's
 * NormalizeIntensity. With 'nonzero' only voxels that are not 0 count and change; a deviation of 0
 * divides by 1.
 */
#include <pons/transform.h>

#include <math.h>

typedef struct normalize {
    pons_reals subtrahend, divisor;
    bool nonzero, channel_wise;
} normalize;

static const pons_option options[] = {
    PONS_REALS(normalize, subtrahend, "", -FLT_MAX, FLT_MAX,
               "Subtracted instead of the mean; one number, or one per channel."),
    PONS_REALS(normalize, divisor, "", -FLT_MAX, FLT_MAX,
               "Divides instead of the deviation; one number, or one per channel."),
    PONS_FLAG(normalize, nonzero, no, "Look at and change only voxels that are not 0."),
    PONS_FLAG(normalize, channel_wise, no, "Mean and deviation of each channel by itself."),
    PONS_OPTIONS_END
};

/* Sum of f(x) = (x - centre)^power over the selected voxels of the channels, and their number. */
static double sum_over(const pons_volume *v, uint64_t channels, bool nonzero, double centre,
                       int power, int64_t *selected)
{
    int64_t count = pons_volume_count(v), taken = 0;
    double sum = 0;

    for (int c = 0; c < v->channels; c++) {
        const float *x = (const float *)v->voxels + c;

        if (!(channels >> c & 1))
            continue;
        for (int64_t n = 0; n < count; n++, x += v->channels) {
            double d = (double)*x - centre;

            if (nonzero && *x == 0)
                continue;
            sum += power == 1 ? d : d * d;
            taken++;
        }
    }
    *selected = taken;
    return sum;
}

static void change(pons_volume *v, uint64_t channels, bool nonzero, double mean, double deviation)
{
    int64_t count = pons_volume_count(v);
    float m = (float)mean, d = (float)deviation;

    for (int c = 0; c < v->channels; c++) {
        float *x = (float *)v->voxels + c;

        if (!(channels >> c & 1))
            continue;
        for (int64_t n = 0; n < count; n++, x += v->channels)
            if (!nonzero || *x != 0)
                *x = (*x - m) / d;
    }
}

static double given(const pons_reals *numbers, int channel)
{
    return numbers->item[numbers->count > 1 ? channel : 0];
}

static void normalize_group(const normalize *s, pons_volume *v, uint64_t channels)
{
    int first = __builtin_ctzll(channels);
    double mean, deviation;
    int64_t count;
    double sum = sum_over(v, channels, s->nonzero, 0, 1, &count);

    if (!count)
        return;
    mean = s->subtrahend.count ? given(&s->subtrahend, first) : sum / (double)count;
    if (s->divisor.count)
        deviation = given(&s->divisor, first);
    else
        deviation = sqrt(sum_over(v, channels, s->nonzero, sum / (double)count, 2, &count) /
                         (double)count);
    change(v, channels, s->nonzero, mean, deviation == 0 ? 1 : deviation);
}

static pons_status check_count(const char *name, const pons_reals *numbers, int channels,
                               pons_error *err)
{
    if (numbers->count > 1 && numbers->count != channels)
        return pons_fail(err, PONS_CONFIG, "'%s' has %d numbers, expected 1 or one for each of %d "
                         "channels", name, numbers->count, channels);
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const normalize *s = config;
    int count = c->image.channels;
    uint64_t channels = scope->channels & (count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX);
    bool single = s->channel_wise || s->subtrahend.count > 1 || s->divisor.count > 1;
    pons_status status = check_count("subtrahend", &s->subtrahend, count, err);

    if (!status)
        status = check_count("divisor", &s->divisor, count, err);
    while (!status && channels) {
        uint64_t group = single ? channels & -channels : channels;

        normalize_group(s, &c->image, group);
        channels &= ~group;
    }
    return status;
}

PONS_TRANSFORM(normalize, "1.0", "zero mean and unit deviation", options, false, NULL, apply)
