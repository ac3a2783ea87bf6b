/*
 * evaluation_interval.c - intervals of an evaluation's means by the bootstrap.
 */
#include "evaluate/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_order.h"
#include "base/random.h"

enum { SAMPLES = 2000 };

/* Count the times that each case is in a sample, which has draws of its own. */
static void draw_cases(uint64_t stream, int sample, int count, int *times)
{
    uint32_t word[4] = { 0 };

    memset(times, 0, (size_t)count * sizeof *times);
    for (int i = 0; i < count; i++) {
        if (i % 4 == 0)
            random_data(0, stream, 0, 0, (uint64_t)sample, (uint64_t)i / 4, word);
        times[(uint64_t)word[i % 4] * (uint64_t)count >> 32]++;
    }
}

/* The mean over the sample of a class's values, or of the cases' means if class is class_count. */
static double sample_mean(const evaluation *e, const int *times, int class, int kind)
{
    double sum = 0, count = 0;

    for (int i = 0; i < e->case_count; i++) {
        const evaluated_case *c = &e->cases[i];
        double value = class < e->class_count ? c->score[class].value[kind] : c->mean[kind];

        if (times[i] == 0 || isnan(value))
            continue;
        sum += times[i] * value;
        count += times[i];
    }
    return count > 0 ? sum / count : NAN;
}

/* Put a metric's means of a sample: out[class * row], and behind the classes the mean over them. */
static void put_means(const evaluation *e, const int *times, int kind, int64_t row, double *out)
{
    double sum = 0;
    int defined = 0;

    for (int class = 0; class < e->class_count; class++) {
        double mean = sample_mean(e, times, class, kind);
        out[class * row] = mean;
        sum += isnan(mean) ? 0 : mean;
        defined += !isnan(mean);
    }
    if (metric_facts[kind].source == METRIC_OF_CASE)
        out[e->class_count * row] = sample_mean(e, times, e->class_count, kind);
    else
        out[e->class_count * row] = defined > 0 ? sum / defined : NAN;
}

static double percentile(const double *sorted, int count, double share)
{
    double at = share * (count - 1);
    int below = (int)at, above = below + 1 < count ? below + 1 : below;

    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

static mean_interval interval_of(double *mean)
{
    int count = 0;

    for (int i = 0; i < SAMPLES; i++)
        if (!isnan(mean[i]))
            mean[count++] = mean[i];
    if (count == 0)
        return (mean_interval){ NAN, NAN };
    qsort(mean, (size_t)count, sizeof *mean, order_doubles);
    return (mean_interval){ percentile(mean, count, 0.025), percentile(mean, count, 0.975) };
}

pons_status evaluation_intervals(const evaluation *e, mean_interval *out, pons_error *err)
{
    const uint64_t stream = random_stream_hash("evaluate.bootstrap");
    const int64_t row = (int64_t)METRIC_KIND_COUNT * SAMPLES;
    const int64_t columns = ((int64_t)e->class_count + 1) * METRIC_KIND_COUNT;
    double *mean = malloc((size_t)columns * SAMPLES * sizeof *mean);
    int *times = calloc((size_t)e->case_count + 1, sizeof *times);

    if (mean == NULL || times == NULL) {
        free(mean);
        free(times);
        return pons_fail(err, PONS_DEVICE, "out of memory for intervals of %d classes",
                         e->class_count);
    }
    for (int64_t i = 0; i < columns * SAMPLES; i++)
        mean[i] = NAN;
    for (int sample = 0; sample < SAMPLES; sample++) {
        draw_cases(stream, sample, e->case_count, times);
        for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
            if (metric_set_has(e->metrics, (metric_kind)kind))
                put_means(e, times, kind, row, mean + kind * SAMPLES + sample);
    }
    for (int64_t i = 0; i < columns; i++)
        out[i] = interval_of(mean + i * SAMPLES);
    free(mean);
    free(times);
    return PONS_OK;
}
