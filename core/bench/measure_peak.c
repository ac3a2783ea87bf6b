/*
 * measure_peak.c - measure the peak of a device before and after its kernels are timed. A
 * difference shows that the machine was busy or throttled.
 */
#include "bench/measure.h"

#include <math.h>

#include "plugin/plugin_status.h"

/* Keep the larger rate; returns the relative difference. An unknown rate does not differ. */
static double merge_rate(double *rate, double other)
{
    double most = fmax(*rate, other), least = fmin(*rate, other);

    *rate = most;
    return least > 0 ? most / least - 1 : 0;
}

static void merge_peaks(measured *out, pons_device_peak found)
{
    pons_device_peak *l = &out->limits;
    double *const rate[] = { &l->copy, &l->f32, &l->bf16, &l->fp16, &l->tf32 };
    const double other[] = { found.copy, found.f32, found.bf16, found.fp16, found.tf32 };

    for (size_t i = 0; i < sizeof rate / sizeof *rate; i++)
        out->limits_differ = fmax(out->limits_differ, merge_rate(rate[i], other[i]));
}

pons_status measure_peak(const device *d, measured *out, pons_error *err)
{
    pons_device_peak found = { 0 };

    if (d->operations->profiling.peak == NULL)
        return PONS_OK;
    if (plugin_status(d->operations->profiling.peak(d->handle, &found, err), "the device",
                      "profiling.peak", err) == PONS_OK)
        merge_peaks(out, found);
    return err->status;
}
