/*
 * channel_draws.c - draw numbers for each channel of a patch, and compute statistics of channels.
 */
#include "channel_draws.h"

#include <math.h>

#include "base/avx2_clone.h"

enum { LANES = 16, NORMAL_QUAD = 1 << 20 };

void channel_draws_plan(double probability, pons_rng *draws, channel_draws *out)
{
    out->wanted = (double)pons_draw_uniform(draws) < probability;
    out->key = pons_draw_key(draws);
}

float channel_draws_uniform(const channel_draws *r, int channel, int which)
{
    float u[4];

    pons_voxel_uniform(r->key, (uint64_t)channel * 2 + (uint64_t)which / 4, u);
    return u[which % 4];
}

float channel_draws_normal(const channel_draws *r, int channel)
{
    float normal[4];

    pons_voxel_normal(r->key, (uint64_t)NORMAL_QUAD + (uint64_t)channel, normal);
    return normal[0];
}

bool channel_draws_has(const channel_draws *r, const pons_transform_scope *scope, int channel,
                       double probability)
{
    return r->wanted && pons_scope_has(scope, channel)
           && (double)channel_draws_uniform(r, channel, 0) < probability;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

pons_status range_check(const char *name, const pons_reals *range, pons_error *err)
{
    if (range->count < 2 || range->item[0] <= range->item[1])
        return PONS_OK;
    return pons_option_fail(err, name, "found %g before %g, expected the lower end first",
                            range->item[0], range->item[1]);
}

double range_at(const pons_reals *range, double share)
{
    return range->item[0] + (range->item[1] - range->item[0]) * share;
}

double range_around_one(const pons_reals *range, double share)
{
    double low = range->item[0], high = range->item[1];

    if (low >= 1 || high <= 1)
        return range_at(range, share);
    return share < 0.5 ? low + (1 - low) * 2 * share : 1 + (high - 1) * (2 * share - 1);
}

/* ---- statistics ------------------------------------------------------------------------------ */

value_stats value_stats_none(float origin)
{
    return (value_stats){ .origin = (double)origin, .low = INFINITY, .high = -INFINITY };
}

/* Sums and limits of one lane. */
typedef struct lanes {
    double sum[LANES], square[LANES];
    float low[LANES], high[LANES];
} lanes;

/* Returns the number of values that were added, a multiple of LANES. */
typedef int64_t add_blocks(lanes *sums, const float *x, int64_t count, int64_t step, double origin);

AVX2_BODY int64_t add_blocks_body(lanes *sums, const float *x, int64_t count, int64_t step,
                                  double origin)
{
    lanes l = *sums;
    int64_t n = 0;

    for (; n + LANES <= count; n += LANES)
        for (int i = 0; i < LANES; i++) {
            float value = x[(n + i) * step];
            double d = (double)value - origin;

            l.sum[i] += d;
            l.square[i] += d * d;
            l.low[i] = value < l.low[i] ? value : l.low[i];
            l.high[i] = value > l.high[i] ? value : l.high[i];
        }
    *sums = l;
    return n;
}

AVX2_BODY int64_t add_blocks_steps(lanes *sums, const float *x, int64_t count, int64_t step,
                                   double origin)
{
    return step == 1 ? add_blocks_body(sums, x, count, 1, origin)
                     : add_blocks_body(sums, x, count, step, origin);
}

AVX2_CLONE int64_t add_blocks_avx2(lanes *sums, const float *x, int64_t count, int64_t step,
                                   double origin)
{
    return add_blocks_steps(sums, x, count, step, origin);
}

static int64_t add_blocks_plain(lanes *sums, const float *x, int64_t count, int64_t step,
                                double origin)
{
    return add_blocks_steps(sums, x, count, step, origin);
}

void value_stats_add(value_stats *s, const float *x, int64_t count, int64_t step)
{
    add_blocks *add = AVX2_CHOOSE(add_blocks_avx2, add_blocks_plain);
    lanes l = { .sum = { 0 } };
    int64_t n;

    for (int i = 0; i < LANES; i++) {
        l.low[i] = s->low;
        l.high[i] = s->high;
    }
    for (n = add(&l, x, count, step, s->origin); n < count; n++) {
        float value = x[n * step];
        double d = (double)value - s->origin;

        s->sum += d;
        s->square += d * d;
        s->low = fminf(s->low, value);
        s->high = fmaxf(s->high, value);
    }
    for (int i = 0; i < LANES; i++) {
        s->sum += l.sum[i];
        s->square += l.square[i];
        s->low = fminf(s->low, l.low[i]);
        s->high = fmaxf(s->high, l.high[i]);
    }
    s->count += count;
}

double value_stats_mean(const value_stats *s)
{
    return s->count > 0 ? s->origin + s->sum / (double)s->count : 0;
}

double value_stats_deviation(const value_stats *s)
{
    double n = (double)s->count;

    return n > 1 ? sqrt(fmax(0, s->square - s->sum * s->sum / n) / (n - 1)) : 0;
}

void channel_scale(float *x, int64_t count, int64_t step, float centre, float factor, float term)
{
    if (step == 1)
        for (int64_t n = 0; n < count; n++)
            x[n] = (x[n] - centre) * factor + term;
    else
        for (int64_t n = 0; n < count; n++)
            x[n * step] = (x[n * step] - centre) * factor + term;
}
