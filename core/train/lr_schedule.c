/*
 * lr_schedule.c - warm-up is the core's; the curve after it a plugin's.
 */
#include "train/lr_schedule.h"

double lr_schedule_rate(const schedule *s, int64_t t)
{
    double m = s->multiplier;

    if (t < s->warmup)
        return s->lr * (m + (1 - m) * (double)t / (double)s->warmup);
    return s->lr * s->operations->factor(s->options, (double)(t - s->warmup),
                                         (double)(s->total - s->warmup));
}
