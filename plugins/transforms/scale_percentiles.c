/*
 * scale_percentiles - map the range between two percentiles linearly to another, as MONAI's
 * ScaleIntensityRangePercentiles. A percentile q of n sorted values is the value at position
 * q / 100 (n - 1), linear between neighbours.
 *
 * Order statistics are found without sorting: floats in their integer order, counted by the upper
 * and then by the lower 16 bits.
 */
#include <pons/transform.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct scale_percentiles {
    pons_reals from, to;
    bool clip, relative, channel_wise;
} scale_percentiles;

static const pons_option options[] = {
    PONS_REALS(scale_percentiles, from, NULL, 0, 100, "Two percentiles of the image."),
    PONS_REALS(scale_percentiles, to, "0 1", -FLT_MAX, FLT_MAX, "The intensities they become."),
    PONS_FLAG(scale_percentiles, clip, no, "Cut what lies outside 'to'."),
    PONS_FLAG(scale_percentiles, relative, no,
              "The percentiles are mapped to the same percents of 'to'."),
    PONS_FLAG(scale_percentiles, channel_wise, no, "Percentiles of each channel by itself."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const scale_percentiles *s = config;

    if (s->from.count != 2)
        return pons_fail(err, PONS_CONFIG, "'from' has %d numbers, expected 2", s->from.count);
    if (s->to.count != 2)
        return pons_fail(err, PONS_CONFIG, "'to' has %d numbers, expected 2", s->to.count);
    if (s->clip && s->to.item[0] > s->to.item[1])
        return pons_fail(err, PONS_CONFIG, "'to' falls from %g to %g, expected it to rise: 'clip' "
                         "would make all values %g\nhint: 'from' may fall instead",
                         s->to.item[0], s->to.item[1], s->to.item[1]);
    return PONS_OK;
}

/* The channels of an image that are looked at together. */
typedef struct selection {
    const pons_volume *image;
    uint64_t channels;
} selection;

/* Integers in the order of the floats. */
static uint32_t order_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static float value_of(uint32_t order)
{
    uint32_t bits = order & 0x80000000u ? order & 0x7fffffffu : ~order;
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Count values by 16 bits of their order: the upper ones, or the lower ones below 'upper'. */
static void count_values(const selection *s, bool lower, uint32_t upper, int64_t *counter)
{
    int64_t count = pons_volume_count(s->image);
    int channels = s->image->channels;

    memset(counter, 0, 65536 * sizeof *counter);
    for (int c = 0; c < channels; c++) {
        const float *x = (const float *)s->image->voxels + c;

        if (!(s->channels >> c & 1))
            continue;
        for (int64_t n = 0; n < count; n++, x += channels) {
            uint32_t order = order_of(*x);

            if (!lower)
                counter[order >> 16]++;
            else if (order >> 16 == upper)
                counter[order & 0xffff]++;
        }
    }
}

/* The place of the value with 'rank' smaller ones before it; *rank becomes the rest there. */
static uint32_t find_rank(const int64_t *counter, int64_t *rank)
{
    uint32_t at = 0;

    while (at < 65535 && *rank >= counter[at])
        *rank -= counter[at++];
    return at;
}

static float value_at_rank(const selection *s, int64_t rank, int64_t *counter)
{
    uint32_t upper;

    count_values(s, false, 0, counter);
    upper = find_rank(counter, &rank);
    count_values(s, true, upper, counter);
    return value_of(upper << 16 | find_rank(counter, &rank));
}

static double percentile(const selection *s, double percent, int64_t *counter)
{
    int64_t count = pons_volume_count(s->image) * __builtin_popcountll(s->channels);
    double position = percent / 100 * (double)(count - 1), below = floor(position);
    double a = value_at_rank(s, (int64_t)below, counter);

    if (position == below)
        return a;
    return a + (position - below) * (value_at_rank(s, (int64_t)below + 1, counter) - a);
}

static void scale(const scale_percentiles *s, const selection *selected, double a, double b)
{
    double begin = s->to.item[0], end = s->to.item[1];
    float low, to_span, from = (float)a, span = (float)(b - a);
    int64_t count = pons_volume_count(selected->image);
    int channels = selected->image->channels;

    if (s->relative) {
        double width = end - begin;
        begin = s->to.item[0] + width * s->from.item[0] / 100;
        end = s->to.item[0] + width * s->from.item[1] / 100;
    }
    low = (float)begin;
    to_span = (float)(end - begin);
    for (int c = 0; c < channels; c++) {
        float *x = (float *)selected->image->voxels + c;

        if (!(selected->channels >> c & 1))
            continue;
        for (int64_t n = 0; n < count; n++, x += channels) {
            float y = span == 0 ? *x - from + low : (*x - from) / span * to_span + low;

            if (s->clip && span != 0)
                y = fminf(fmaxf(y, low), low + to_span);
            *x = y;
        }
    }
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const scale_percentiles *s = config;
    uint64_t all = c->image.channels < 64 ? (UINT64_C(1) << c->image.channels) - 1 : UINT64_MAX;
    uint64_t channels = scope->channels & all;
    int64_t *counter = malloc(65536 * sizeof *counter);

    if (!counter)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    while (channels) {
        selection one = { &c->image, s->channel_wise ? channels & -channels : channels };
        double a = percentile(&one, s->from.item[0], counter);
        double b = percentile(&one, s->from.item[1], counter);

        if (a == b)
            pons_transform_warn(scope, "percentiles %g and %g are both %g; values are shifted "
                                "only", s->from.item[0], s->from.item[1], a);
        scale(s, &one, a, b);
        channels &= ~one.channels;
    }
    free(counter);
    return PONS_OK;
}

PONS_TRANSFORM(scale_percentiles, "1.0", "maps the range between two percentiles to another",
               options, false, check, apply)
