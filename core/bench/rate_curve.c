/*
 * rate_curve.c - the smoothing and the suggestions of fastai's lr_find.
 */
#include "bench/rate_curve.h"

#include <math.h>

#include "base/integer.h"

enum { LAST_LEFT_OUT = 5, FIRST_SHARE = 10 };

static const double share_kept = 0.98, rise_allowed = 3;

double rate_sweep_at(const rate_sweep *s, int step)
{
    return s->start * pow(s->end / s->start, (double)step / s->steps);
}

bool rate_curve_add(rate_curve *c, double rate, double loss)
{
    int i = c->count;

    if (!isfinite(loss) || i == RATE_CURVE_MAX)
        return false;
    c->average = share_kept * c->average + (1 - share_kept) * loss;
    c->rate[i] = rate;
    c->loss[i] = loss;
    c->smooth[i] = c->average / (1 - pow(share_kept, i + 1));
    c->best = i == 0 ? c->smooth[i] : fmin(c->best, c->smooth[i]);
    c->count++;
    return c->smooth[i] - c->best <= rise_allowed * fabs(c->best);
}

static double minimum_of(const rate_span *s)
{
    int least = 0;

    for (int i = 1; i < s->count; i++)
        least = s->smooth[i] < s->smooth[least] ? i : least;
    return s->rate[least] / 10;
}

static double slope_at(const rate_span *s, int i)
{
    return (s->smooth[i + 1] - s->smooth[i]) / (log(s->rate[i + 1]) - log(s->rate[i]));
}

static double steep_of(const rate_span *s)
{
    int steepest = 0;

    for (int i = 1; i + 1 < s->count; i++)
        steepest = slope_at(s, i) < slope_at(s, steepest) ? i : steepest;
    return s->rate[steepest];
}

/*
 * The longest strictly falling subsequence is of length L and ends at e. The valley is at
 * e - L + floor(L / 3) + floor(L / 6), but at least 0.
 */
static double valley_of(const rate_span *s)
{
    int length[RATE_CURVE_MAX], end = 0, begin = 0;

    for (int i = 0; i < s->count; i++) {
        length[i] = 1;
        for (int j = 0; j < i; j++)
            if (s->smooth[i] < s->smooth[j] && length[i] < length[j] + 1)
                length[i] = length[j] + 1;
        if (length[end] < length[i]) {
            end = i;
            begin = i - length[i];
        }
    }
    int fall = end - begin;
    return s->rate[max_int(begin + fall / 3 + fall / 6, 0)];
}

rate_span rate_curve_span(const rate_curve *c, int steps)
{
    int first = steps / FIRST_SHARE;

    return (rate_span){ c->count - first - LAST_LEFT_OUT, c->rate + first, c->smooth + first,
                        c->loss + first };
}

rate_suggestion rate_curve_suggest(const rate_span *s)
{
    if (s->count < 2)
        return (rate_suggestion){ NAN, NAN, NAN };
    return (rate_suggestion){ valley_of(s), steep_of(s), minimum_of(s) };
}
