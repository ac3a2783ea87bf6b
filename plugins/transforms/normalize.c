/*
 * normalize - subtract the mean and divide by the (biased) standard deviation, as MONAI's
 * NormalizeIntensity, or one of nnU-Net's schemes.
 *
 * MONAI: with 'nonzero' only voxels that are not 0 count and change. A deviation of 0 divides by 1.
 *
 *   zscore          (x - mean) / max(deviation, 1e-8), of each channel
 *   ct              the same with given numbers, after x was cut at 'lower' and 'upper'
 *   rescale_to_0_1  (x - min) / max(max - min, 1e-8), of each channel
 *   rgb_to_0_1      x / 255
 *   nonorm          x
 *
 * A sum adds pieces of a fixed size in order, so the number of threads changes no bit.
 */
#include "data/volume/filled_mask.h"

#include <math.h>
#include <stdlib.h>

enum { PIECE = 1 << 16, LANES = 8 };

typedef struct normalize {
    pons_reals subtrahend, divisor, lower, upper;
    bool nonzero, channel_wise, use_mask_for_norm;
    int scheme;
} normalize;

enum { SCHEME_MONAI = 0, SCHEME_ZSCORE, SCHEME_CT, SCHEME_RESCALE, SCHEME_RGB, SCHEME_NONE };
static const char *const schemes[] = {
    "monai", "zscore", "ct", "rescale_to_0_1", "rgb_to_0_1", "nonorm", NULL
};

/* nnU-Net divides by no smaller number. */
static const double DIVISOR_MIN = 1e-8;

static const pons_option options[] = {
    PONS_REALS(normalize, subtrahend, "", -FLT_MAX, FLT_MAX,
               "Subtracted instead of the mean; one number, or one per channel."),
    PONS_REALS(normalize, divisor, "", -FLT_MAX, FLT_MAX,
               "Divides instead of the deviation; one number, or one per channel."),
    PONS_FLAG(normalize, nonzero, "no", "Look at and change only voxels that are not 0."),
    PONS_FLAG(normalize, channel_wise, "no", "Mean and deviation of each channel by itself."),
    PONS_CHOICE(normalize, scheme, "monai", schemes, "MONAI's rule, or a scheme of nnU-Net."),
    PONS_FLAG(normalize, use_mask_for_norm, "no",
              "zscore: look at and change only the voxels that are not 0 in a channel, the holes "
              "among them, and labelled ones."),
    PONS_REALS(normalize, lower, "", -FLT_MAX, FLT_MAX,
               "ct: lowest intensity; one number, or one per channel."),
    PONS_REALS(normalize, upper, "", -FLT_MAX, FLT_MAX,
               "ct: highest intensity; one number, or one per channel."),
    PONS_OPTIONS_END
};

/* ---- options --------------------------------------------------------------------------------- */

/* Refuse an option that the scheme ignores. */
static pons_status refuse_option(const normalize *s, const char *name, bool given, pons_error *err)
{
    if (given)
        return pons_option_fail(err, name, "is given, but scheme = %s does not use it",
                                schemes[s->scheme]);
    return PONS_OK;
}

static pons_status require_numbers(const char *name, const pons_reals *numbers, pons_error *err)
{
    if (numbers->count == 0)
        return pons_option_fail(err, name, "is missing, expected a number for scheme = ct");
    return PONS_OK;
}

static double given(const pons_reals *numbers, int channel)
{
    return numbers->item[numbers->count > 1 ? channel : 0];
}

static pons_status check_limits(const normalize *s, pons_error *err)
{
    int count = s->lower.count > s->upper.count ? s->lower.count : s->upper.count;

    if (s->lower.count > 1 && s->upper.count > 1 && s->lower.count != s->upper.count)
        return pons_option_fail(err, "upper", "found %d numbers, expected 1 or %d as in lower",
                                s->upper.count, s->lower.count);
    for (int c = 0; c < count; c++)
        if (given(&s->lower, c) > given(&s->upper, c))
            return pons_option_fail(err, "upper", "found %g, expected at least lower, %g",
                                    given(&s->upper, c), given(&s->lower, c));
    return PONS_OK;
}

static pons_status check(const void *config, pons_error *err)
{
    const normalize *s = config;
    bool monai = s->scheme == SCHEME_MONAI, ct = s->scheme == SCHEME_CT;

    if (refuse_option(s, "nonzero", !monai && s->nonzero, err) != PONS_OK
        || refuse_option(s, "channel_wise", !monai && s->channel_wise, err) != PONS_OK
        || refuse_option(s, "use_mask_for_norm",
                         s->scheme != SCHEME_ZSCORE && s->use_mask_for_norm, err) != PONS_OK
        || refuse_option(s, "lower", !ct && s->lower.count > 0, err) != PONS_OK
        || refuse_option(s, "upper", !ct && s->upper.count > 0, err) != PONS_OK
        || refuse_option(s, "subtrahend", !monai && !ct && s->subtrahend.count > 0, err) != PONS_OK
        || refuse_option(s, "divisor", !monai && !ct && s->divisor.count > 0, err) != PONS_OK)
        return err->status;
    if (ct && require_numbers("lower", &s->lower, err) == PONS_OK
        && require_numbers("upper", &s->upper, err) == PONS_OK
        && require_numbers("subtrahend", &s->subtrahend, err) == PONS_OK
        && require_numbers("divisor", &s->divisor, err) == PONS_OK)
        check_limits(s, err);
    return err->status;
}

static pons_status check_count(const char *name, const pons_reals *numbers, int channels,
                               pons_error *err)
{
    if (numbers->count > 1 && numbers->count != channels)
        return pons_option_fail(err, name, "found %d numbers, expected 1 or one for each of %d "
                                "channels", numbers->count, channels);
    return PONS_OK;
}

static pons_status check_counts(const normalize *s, int channels, pons_error *err)
{
    if (check_count("subtrahend", &s->subtrahend, channels, err) == PONS_OK
        && check_count("divisor", &s->divisor, channels, err) == PONS_OK
        && check_count("lower", &s->lower, channels, err) == PONS_OK)
        check_count("upper", &s->upper, channels, err);
    return err->status;
}

/* ---- mean and deviation ---------------------------------------------------------------------- */

/* The sum of f(x) = (x - centre)^power over the selected voxels, and their number. */
typedef struct part {
    double sum;
    int64_t selected;
} part;

/* The channels that share mean and deviation. */
typedef struct group {
    pons_volume *v;
    const pons_transform_scope *scope;
    int channel;              /* -1: all channels of the scope                                    */
    bool nonzero;
    const uint8_t *mask;      /* the voxels that count and change; NULL: all                      */
    double centre;
    int power;
    part *piece;              /* one for each piece                                               */
    float mean, deviation;
} group;

static bool group_has(const group *g, int channel)
{
    return g->channel < 0 ? pons_scope_has(g->scope, channel) : channel == g->channel;
}

/* 'mask' is that of the first voxel. */
static void add_masked(const group *g, const float *x, const uint8_t *mask, int64_t count, part *p)
{
    for (int64_t n = 0; n < count; n++, x += g->v->channels) {
        double d = mask[n] ? (double)*x - g->centre : 0;

        p->sum += g->power == 1 ? d : d * d;
        p->selected += mask[n];
    }
}

static void add_voxels(const group *g, const float *x, int count, double lane[LANES], part *p)
{
    for (int l = 0; l < count; l++) {
        float value = x[l * g->v->channels];
        bool taken = !g->nonzero || value != 0;
        double d = taken ? (double)value - g->centre : 0;

        lane[l] += g->power == 1 ? d : d * d;
        p->selected += taken;
    }
}

static void sum_piece(void *context, int64_t first, int64_t end)
{
    const group *g = context;
    int channels = g->v->channels;
    part p = { 0, 0 };

    for (int c = 0; c < channels; c++) {
        const float *x = (const float *)g->v->voxels + c;
        double lane[LANES] = { 0 };
        int64_t n = first;

        if (!group_has(g, c))
            continue;
        if (g->mask) {
            add_masked(g, x + first * channels, g->mask + first, end - first, &p);
            continue;
        }
        for (; n + LANES <= end; n += LANES)
            add_voxels(g, x + n * channels, LANES, lane, &p);
        add_voxels(g, x + n * channels, (int)(end - n), lane, &p);
        for (int l = 0; l < LANES; l++)
            p.sum += lane[l];
    }
    g->piece[first / PIECE] = p;
}

static part sum_over(group *g, double centre, int power)
{
    int64_t count = pons_volume_count(g->v);
    part all = { 0, 0 };

    g->centre = centre;
    g->power = power;
    pons_parallel_for(count, PIECE, sum_piece, g);
    for (int64_t n = 0; n < (count + PIECE - 1) / PIECE; n++) {
        all.sum += g->piece[n].sum;
        all.selected += g->piece[n].selected;
    }
    return all;
}

static void change_piece(void *context, int64_t first, int64_t end)
{
    const group *g = context;
    int channels = g->v->channels;

    for (int c = 0; c < channels; c++) {
        float *x = (float *)g->v->voxels + first * channels + c;

        if (!group_has(g, c))
            continue;
        for (int64_t n = first; n < end; n++, x += channels)
            if ((!g->nonzero || *x != 0) && (!g->mask || g->mask[n]))
                *x = (*x - g->mean) / g->deviation;
    }
}

static void normalize_group(const normalize *s, group *g)
{
    bool zscore = s->scheme == SCHEME_ZSCORE;
    part all = sum_over(g, 0, 1);
    double count = (double)all.selected, mean = all.sum / count, deviation;

    if (!all.selected)
        return;
    deviation = s->divisor.count ? given(&s->divisor, g->channel)
                                 : sqrt(sum_over(g, mean, 2).sum / count);
    g->mean = (float)(s->subtrahend.count ? given(&s->subtrahend, g->channel) : mean);
    g->deviation = zscore ? (float)fmax(deviation, DIVISOR_MIN)
                          : deviation == 0 ? 1 : (float)deviation;
    pons_parallel_for(pons_volume_count(g->v), PIECE, change_piece, g);
}

static void normalize_groups(const normalize *s, group *g)
{
    bool single = s->channel_wise || s->scheme == SCHEME_ZSCORE || s->subtrahend.count > 1
                  || s->divisor.count > 1;

    if (!single)
        normalize_group(s, g);
    for (g->channel = 0; single && g->channel < g->v->channels; g->channel++)
        if (pons_scope_has(g->scope, g->channel))
            normalize_group(s, g);
}

/* Add the labelled voxels to a mask; 255 is no label. */
static void add_labelled(const pons_volume *label, uint8_t *mask)
{
    int64_t count = label->voxels ? pons_volume_count(label) : 0;
    const uint8_t *x = label->voxels;

    for (int64_t n = 0; n < count; n++)
        for (int c = 0; c < label->channels; c++, x++)
            mask[n] |= *x != 0 && *x != 255;
}

static pons_status normalize_by_mean(const normalize *s, const pons_transform_scope *scope,
                                     pons_case *c, pons_error *err)
{
    uint8_t *mask = NULL;
    group g = { .v = &c->image, .scope = scope, .channel = -1, .nonzero = s->nonzero };

    if (s->use_mask_for_norm && filled_mask_make(&c->image, &mask, err) != PONS_OK)
        return err->status;
    if (mask)
        add_labelled(&c->label, mask);
    g.mask = mask;
    g.piece = malloc((size_t)(pons_volume_count(&c->image) / PIECE + 1) * sizeof *g.piece);
    if (g.piece)
        normalize_groups(s, &g);
    else
        pons_fail(err, PONS_DEVICE, "out of memory");
    free(g.piece);
    free(mask);
    return err->status;
}

/* ---- given limits ---------------------------------------------------------------------------- */

/* x becomes (x cut at 'low' and 'high' - subtrahend) / divisor. */
typedef struct channel_map {
    float *first;
    int64_t step;
    float low, high, subtrahend, divisor;
} channel_map;

/* A NaN stays one. */
static void map_values(void *context, int64_t begin, int64_t end)
{
    const channel_map m = *(const channel_map *)context;
    float *x = m.first + begin * m.step;

    for (int64_t n = begin; n < end; n++, x += m.step) {
        float cut = *x < m.low ? m.low : *x > m.high ? m.high : *x;

        *x = (cut - m.subtrahend) / m.divisor;
    }
}

/* The least and the largest value of a channel. */
static void find_limits(const pons_volume *v, int channel, float *low, float *high)
{
    const float *x = (const float *)v->voxels + channel;
    int64_t count = pons_volume_count(v);

    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t n = 0; n < count; n++, x += v->channels) {
        *low = *x < *low ? *x : *low;
        *high = *x > *high ? *x : *high;
    }
}

static pons_status map_channel(const normalize *s, pons_volume *v, int channel, pons_error *err)
{
    channel_map m = { (float *)v->voxels + channel, v->channels, -INFINITY, INFINITY, 0, 1 };
    float low, high;

    if (s->scheme == SCHEME_CT) {
        m.low = (float)given(&s->lower, channel);
        m.high = (float)given(&s->upper, channel);
        m.subtrahend = (float)given(&s->subtrahend, channel);
        m.divisor = (float)fmax(given(&s->divisor, channel), DIVISOR_MIN);
    } else {
        find_limits(v, channel, &low, &high);
        if (s->scheme == SCHEME_RGB && (low < 0 || high > 255))
            return pons_option_fail(err, "scheme", "is rgb_to_0_1, but channel %d has the values "
                                    "%g to %g, expected 0 to 255", channel, low, high);
        m.subtrahend = s->scheme == SCHEME_RGB ? 0 : low;
        m.divisor = s->scheme == SCHEME_RGB ? 255 : (float)fmax(high - low, DIVISOR_MIN);
    }
    pons_parallel_for(pons_volume_count(v), PIECE, map_values, &m);
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const normalize *s = config;

    if (check_counts(s, c->image.channels, err) != PONS_OK || s->scheme == SCHEME_NONE)
        return err->status;
    if (s->scheme == SCHEME_MONAI || s->scheme == SCHEME_ZSCORE)
        return normalize_by_mean(s, scope, c, err);
    for (int n = 0; n < c->image.channels && err->status == PONS_OK; n++)
        if (pons_scope_has(scope, n))
            map_channel(s, &c->image, n, err);
    return err->status;
}

static const pons_transform_operations operations = { .check = check, .apply = apply };

PONS_TRANSFORM(normalize, "1.0", "zero mean and unit deviation", options, operations);
