/*
 * scale_percentiles - map the range between two percentiles linearly to another, as MONAI's
 * ScaleIntensityRangePercentiles.
 *
 * With 'above' the percentiles are those of the values above a number, such as the voxels of a head
 * whose surroundings are 0. A percentile q of n sorted values is the value at position q / 100 (n -
 * 1), linear between neighbours. Order statistics need no sorting: floats are mapped to integers of
 * the same order, which are counted by their upper and then by their lower 16 bits.
 */
#include <pons/transform.h>

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of pieces in voxels, and the number of counters. A counted piece has its own counters. */
enum { PIECE = 1 << 16, PIECE_COUNTED = 1 << 20, COUNTERS = 1 << 16 };

typedef struct scale_percentiles {
    pons_reals from, to, above;
    bool clip, relative, channel_wise;
} scale_percentiles;

static const pons_option options[] = {
    PONS_REALS(scale_percentiles, from, NULL, 0, 100, "Two percentiles of the image.",
               .count_min = 2, .count_max = 2),
    PONS_REALS(scale_percentiles, to, "0 1", -FLT_MAX, FLT_MAX, "The intensities they become.",
               .count_min = 2, .count_max = 2),
    PONS_FLAG(scale_percentiles, clip, "no", "Cut what lies outside 'to'."),
    PONS_FLAG(scale_percentiles, relative, "no",
              "The percentiles are mapped to the same percents of 'to'."),
    PONS_FLAG(scale_percentiles, channel_wise, "no", "Percentiles of each channel by itself."),
    PONS_REALS(scale_percentiles, above, "", -FLT_MAX, FLT_MAX,
               "Percentiles of the values above this one alone; all values are mapped.",
               .count_max = 1),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const scale_percentiles *s = config;

    if (s->clip && s->to.item[0] > s->to.item[1])
        return pons_option_fail(err, "to", "it falls from %g to %g, expected it to rise: 'clip' "
                                "would make all values %g\nhint: 'from' may fall instead",
                                s->to.item[0], s->to.item[1], s->to.item[1]);
    return PONS_OK;
}

/* The channels of an image that share their percentiles, and the counts of their values. */
typedef struct selection {
    const pons_volume *image;
    const pons_transform_scope *scope;
    int channel;              /* -1: all channels of the scope                                    */
    uint32_t least;           /* order of the lowest value that is counted                        */
    _Atomic int64_t *upper;   /* [COUNTERS] by the upper 16 bits of a value's order               */
    _Atomic int64_t *lower;   /* [COUNTERS] by the lower 16 bits, of values with 'below' above    */
    int64_t below;            /* upper 16 bits; -1: 'lower' is not counted yet                    */
    _Atomic bool failed;      /* out of memory                                                    */
} selection;

static bool selection_has(const selection *s, int channel)
{
    return s->channel < 0 ? pons_scope_has(s->scope, channel) : channel == s->channel;
}

static int64_t selection_count(const selection *s)
{
    int64_t count = 0;

    for (int n = 0; n < COUNTERS; n++)
        count += s->upper[n];
    return count;
}

/* The integer of a float. Integers have the order of the floats. */
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

/* The order of the lowest float above a number. */
static uint32_t order_above(double number)
{
    float nearest = (float)number;

    return order_of((double)nearest > number ? nearest : nextafterf(nearest, INFINITY));
}

/* Count a piece by the upper 16 bits, or its values with upper bits 'below' by their lower bits. */
static void count_voxels(const selection *s, int64_t first, int64_t end, uint32_t *counter)
{
    int channels = s->image->channels;

    for (int c = 0; c < channels; c++) {
        const float *x = (const float *)s->image->voxels + first * channels + c;

        if (!selection_has(s, c))
            continue;
        for (int64_t n = first; n < end; n++, x += channels) {
            uint32_t order = order_of(*x);

            if (order < s->least)
                continue;
            if (s->below < 0)
                counter[order >> 16]++;
            else if (order >> 16 == s->below)
                counter[order & 0xffff]++;
        }
    }
}

static void count_piece(void *context, int64_t first, int64_t end)
{
    selection *s = context;
    _Atomic int64_t *all = s->below < 0 ? s->upper : s->lower;
    uint32_t *counter = calloc(COUNTERS, sizeof *counter);

    if (!counter) {
        s->failed = true;
        return;
    }
    count_voxels(s, first, end, counter);
    for (int n = 0; n < COUNTERS; n++)
        if (counter[n])
            atomic_fetch_add_explicit(&all[n], counter[n], memory_order_relaxed);
    free(counter);
}

static void count_values(selection *s, int64_t below)
{
    _Atomic int64_t *all = below < 0 ? s->upper : s->lower;

    s->below = below;
    for (int n = 0; n < COUNTERS; n++)
        all[n] = 0;
    pons_parallel_for(pons_volume_count(s->image), PIECE_COUNTED, count_piece, s);
}

/* The counter of the value that has 'rank' smaller ones. *rank becomes its rank in the counter. */
static uint32_t find_rank(const _Atomic int64_t *counter, int64_t *rank)
{
    uint32_t at = 0;

    while (at < COUNTERS - 1 && *rank >= counter[at])
        *rank -= counter[at++];
    return at;
}

static float value_at_rank(selection *s, int64_t rank)
{
    uint32_t upper = find_rank(s->upper, &rank);

    if (s->below != upper)
        count_values(s, upper);
    return value_of(upper << 16 | find_rank(s->lower, &rank));
}

static double percentile(selection *s, double percent)
{
    int64_t count = selection_count(s);
    double position = percent / 100 * (double)(count - 1), below = floor(position);
    double a = value_at_rank(s, (int64_t)below);

    if (position == below)
        return a;
    return a + (position - below) * (value_at_rank(s, (int64_t)below + 1) - a);
}

/* The linear map of the values of a selection. */
typedef struct line {
    const selection *selected;
    float from, span, to_span, low;
    bool clip;
} line;

static void scale_piece(void *context, int64_t first, int64_t end)
{
    const line l = *(const line *)context;
    int channels = l.selected->image->channels;

    for (int c = 0; c < channels; c++) {
        float *x = (float *)l.selected->image->voxels + first * channels + c;

        if (!selection_has(l.selected, c))
            continue;
        for (int64_t n = first; n < end; n++, x += channels) {
            float y = l.span == 0 ? *x - l.from + l.low
                                  : (*x - l.from) / l.span * l.to_span + l.low;

            if (l.clip && l.span != 0)
                y = fminf(fmaxf(y, l.low), l.low + l.to_span);
            *x = y;
        }
    }
}

static void scale(const scale_percentiles *s, const selection *selected, double a, double b)
{
    double begin = s->to.item[0], end = s->to.item[1];

    if (s->relative) {
        double width = end - begin;
        begin = s->to.item[0] + width * s->from.item[0] / 100;
        end = s->to.item[0] + width * s->from.item[1] / 100;
    }
    pons_parallel_for(pons_volume_count(selected->image), PIECE, scale_piece,
                      &(line){ .selected = selected, .from = (float)a, .span = (float)(b - a),
                               .to_span = (float)(end - begin), .low = (float)begin,
                               .clip = s->clip });
}

static pons_status scale_selected(const scale_percentiles *s, const pons_transform_scope *scope,
                                  selection *one, pons_error *err)
{
    double a, b;

    count_values(one, -1);
    if (!one->failed && selection_count(one) == 0) {
        if (s->above.count)
            pons_transform_warn(scope, "scale_percentiles found no voxel above %g; nothing was "
                                "scaled", s->above.item[0]);
        return PONS_OK;
    }
    a = percentile(one, s->from.item[0]);
    b = percentile(one, s->from.item[1]);
    if (one->failed)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (a == b)
        pons_transform_warn(scope, "percentiles %g and %g are both %g; values are shifted only",
                            s->from.item[0], s->from.item[1], a);
    scale(s, one, a, b);
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const scale_percentiles *s = config;
    selection one = { .image = &c->image, .scope = scope, .channel = -1 };
    _Atomic int64_t *counter = malloc(2 * COUNTERS * sizeof *counter);

    if (!counter)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    one.least = s->above.count ? order_above(s->above.item[0]) : 0;
    one.upper = counter;
    one.lower = counter + COUNTERS;
    if (!s->channel_wise)
        scale_selected(s, scope, &one, err);
    for (int channel = 0; s->channel_wise && channel < c->image.channels; channel++) {
        one.channel = channel;
        if (err->status == PONS_OK && pons_scope_has(scope, channel))
            scale_selected(s, scope, &one, err);
    }
    free(counter);
    return err->status;
}

static const pons_transform_operations operations = { .check = check, .apply = apply };

PONS_TRANSFORM(scale_percentiles, "1.0", "maps the range between two percentiles to another",
               options, operations);
