/*
 * normalize - subtract the mean and divide by the (biased) standard deviation, as MONAI's
 * NormalizeIntensity.
 *
 * With 'nonzero' only voxels that are not 0 count and change. A deviation of 0 divides by 1. A sum
 * adds pieces of a fixed size in order, so the number of threads changes no bit.
 */
#include <pons/transform.h>

#include <math.h>
#include <stdlib.h>

enum { PIECE = 1 << 16, LANES = 8 };

typedef struct normalize {
    pons_reals subtrahend, divisor;
    bool nonzero, channel_wise;
} normalize;

static const pons_option options[] = {
    PONS_REALS(normalize, subtrahend, "", -FLT_MAX, FLT_MAX,
               "Subtracted instead of the mean; one number, or one per channel."),
    PONS_REALS(normalize, divisor, "", -FLT_MAX, FLT_MAX,
               "Divides instead of the deviation; one number, or one per channel."),
    PONS_FLAG(normalize, nonzero, "no", "Look at and change only voxels that are not 0."),
    PONS_FLAG(normalize, channel_wise, "no", "Mean and deviation of each channel by itself."),
    PONS_OPTIONS_END
};

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
    double centre;
    int power;
    part *piece;              /* one for each piece                                               */
    float mean, deviation;
} group;

static bool group_has(const group *g, int channel)
{
    return g->channel < 0 ? pons_scope_has(g->scope, channel) : channel == g->channel;
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
            if (!g->nonzero || *x != 0)
                *x = (*x - g->mean) / g->deviation;
    }
}

static double given(const pons_reals *numbers, int channel)
{
    return numbers->item[numbers->count > 1 ? channel : 0];
}

static void normalize_group(const normalize *s, group *g)
{
    part all = sum_over(g, 0, 1);
    double count = (double)all.selected, mean = all.sum / count, deviation;

    if (!all.selected)
        return;
    deviation = s->divisor.count ? given(&s->divisor, g->channel)
                                 : sqrt(sum_over(g, mean, 2).sum / count);
    g->mean = (float)(s->subtrahend.count ? given(&s->subtrahend, g->channel) : mean);
    g->deviation = deviation == 0 ? 1 : (float)deviation;
    pons_parallel_for(pons_volume_count(g->v), PIECE, change_piece, g);
}

static pons_status check_count(const char *name, const pons_reals *numbers, int channels,
                               pons_error *err)
{
    if (numbers->count > 1 && numbers->count != channels)
        return pons_option_fail(err, name, "found %d numbers, expected 1 or one for each of %d "
                                "channels", numbers->count, channels);
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    const normalize *s = config;
    int count = c->image.channels;
    bool single = s->channel_wise || s->subtrahend.count > 1 || s->divisor.count > 1;
    group g = { .v = &c->image, .scope = scope, .channel = -1, .nonzero = s->nonzero };

    if (check_count("subtrahend", &s->subtrahend, count, err) != PONS_OK
        || check_count("divisor", &s->divisor, count, err) != PONS_OK)
        return err->status;
    g.piece = malloc((size_t)(pons_volume_count(&c->image) / PIECE + 1) * sizeof *g.piece);
    if (!g.piece)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (!single)
        normalize_group(s, &g);
    for (g.channel = 0; single && g.channel < count; g.channel++)
        if (pons_scope_has(scope, g.channel))
            normalize_group(s, &g);
    free(g.piece);
    return PONS_OK;
}

static const pons_transform_operations operations = { .apply = apply };

PONS_TRANSFORM(normalize, "1.0", "zero mean and unit deviation", options, operations);
