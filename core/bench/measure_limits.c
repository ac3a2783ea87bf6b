/*
 * measure_limits.c - what the device reaches, asked for before its kernels are timed and after: a
 * machine that was busy or slowed down for one of them gives other numbers, which is told.
 */
#include "bench/measure.h"

#include <math.h>

#include "plugin/plugin_status.h"

/*
 * Both into the larger one; by how much that is larger. A rate that is not known differs from none.
 */
static double join(double *rate, double other)
{
    double most = fmax(*rate, other), least = fmin(*rate, other);

    *rate = most;
    return least > 0 ? most / least - 1 : 0;
}

static void join_limits(measured *out, pons_device_peak found)
{
    pons_device_peak *l = &out->limits;
    double *const rate[] = { &l->copy, &l->f32, &l->bf16, &l->fp16, &l->tf32 };
    const double other[] = { found.copy, found.f32, found.bf16, found.fp16, found.tf32 };

    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
        out->limits_differ = fmax(out->limits_differ, join(rate[i], other[i]));
}

pons_status measure_limits(const device *d, measured *out, pons_error *err)
{
    pons_device_peak found = { 0 };

    if (d->operations->profiling.peak == NULL)
        return PONS_OK;
    if (plugin_answer(d->operations->profiling.peak(d->handle, &found, err), "the device",
                      "profiling.peak", err) == PONS_OK)
        join_limits(out, found);
    return err->status;
}
