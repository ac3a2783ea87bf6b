/*
 * intensity_statistics.c - sort the foreground of a case, keep its quantiles, and join cases.
 */
#include "plan/intensity_statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS, PASSES = 3 };

/* ---- one case -------------------------------------------------------------------------------- */

/* Map a float to an integer that compares as the float does. */
static uint32_t key_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits & UINT32_C(0x80000000) ? ~bits : bits | UINT32_C(0x80000000);
}

static float value_of(uint32_t key)
{
    uint32_t bits = key & UINT32_C(0x80000000) ? key & ~UINT32_C(0x80000000) : ~key;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* One pass of a radix sort, by the digit at 'shift'. */
static void sort_keys_by_digit(const uint32_t *from, uint32_t *to, int64_t count, int shift)
{
    int64_t start[DIGITS + 1] = { 0 };

    for (int64_t i = 0; i < count; i++)
        start[(from[i] >> shift & (DIGITS - 1)) + 1]++;
    for (int d = 0; d < DIGITS; d++)
        start[d + 1] += start[d];
    for (int64_t i = 0; i < count; i++)
        to[start[from[i] >> shift & (DIGITS - 1)]++] = from[i];
}

/* Sort ascending. Values are finite. */
static bool sort_values(float *values, int64_t count)
{
    uint32_t *key = calloc(2 * (size_t)count, sizeof *key), *other = key + count;

    if (key == NULL)
        return false;
    for (int64_t i = 0; i < count; i++)
        key[i] = key_of(values[i]);
    for (int pass = 0; pass < PASSES; pass++)
        sort_keys_by_digit(pass % 2 ? other : key, pass % 2 ? key : other, count,
                           pass * DIGIT_BITS);
    for (int64_t i = 0; i < count; i++)
        values[i] = value_of(other[i]);
    free(key);
    return true;
}

static void set_moments(const float *values, int64_t count, intensity_sample *out)
{
    double sum = 0, squares = 0;

    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    out->mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++)
        squares += (values[i] - out->mean) * (values[i] - out->mean);
    out->variance = squares / (double)count;
}

pons_status intensity_sample_make(float *values, int64_t voxels, int64_t limit,
                                  intensity_sample *out, pons_error *err)
{
    intensity_sample s = { .voxels = voxels, .count = voxels < limit ? voxels : limit };

    *out = (intensity_sample){ .voxels = 0 };
    if (voxels == 0)
        return PONS_OK;
    s.value = malloc((size_t)s.count * sizeof *s.value);
    if (s.value == NULL || !sort_values(values, voxels)) {
        free(s.value);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    set_moments(values, voxels, &s);
    s.min = values[0];
    s.max = values[voxels - 1];
    for (int64_t i = 0; i < s.count; i++)
        s.value[i] = values[(int64_t)(((double)i + 0.5) * (double)voxels / (double)s.count)];
    *out = s;
    return PONS_OK;
}

void intensity_sample_clear(intensity_sample *s)
{
    free(s->value);
    *s = (intensity_sample){ .voxels = 0 };
}

/* ---- all cases ------------------------------------------------------------------------------- */

typedef struct weighted_value {
    uint32_t key;             /* of the value                                                     */
    int rank;                 /* of the case, which gives the weight                              */
} weighted_value;

/* Sort by value; values that are equal stay in order, and zeros of both signs are equal. */
static void sort_weighted(weighted_value *list, weighted_value *other, int64_t count)
{
    for (int shift = 0; shift < PASSES * DIGIT_BITS; shift += DIGIT_BITS) {
        int64_t start[DIGITS + 1] = { 0 };

        for (int64_t i = 0; i < count; i++)
            start[(list[i].key >> shift & (DIGITS - 1)) + 1]++;
        for (int d = 0; d < DIGITS; d++)
            start[d + 1] += start[d];
        for (int64_t i = 0; i < count; i++)
            other[start[list[i].key >> shift & (DIGITS - 1)]++] = list[i];
        weighted_value *kept = list;
        list = other;
        other = kept;
    }
}

/* The smallest value that has at least 'share' of the weight at or below it. */
static double quantile(const weighted_value *list, const double *weight, int64_t count,
                       double total, double share)
{
    double below = 0;
    int64_t i = 0;

    for (; i < count - 1; i++) {
        below += weight[list[i].rank];
        if (below >= share * total)
            break;
    }
    return value_of(list[i].key);
}

/* Mean, deviation and range; the number of cases with foreground. */
static int join_moments(const intensity_sample *sample, int count, int stride,
                        intensity_statistics *out)
{
    double within = 0, between = 0;
    int cases = 0;

    for (int i = 0; i < count; i++) {
        const intensity_sample *s = &sample[i * stride];
        if (s->voxels == 0)
            continue;
        out->min = cases == 0 || s->min < out->min ? s->min : out->min;
        out->max = cases == 0 || s->max > out->max ? s->max : out->max;
        out->mean += s->mean;
        within += s->variance;
        cases++;
    }
    if (cases == 0)
        return 0;
    out->mean /= cases;
    for (int i = 0; i < count; i++) {
        const intensity_sample *s = &sample[i * stride];
        if (s->voxels > 0)
            between += (s->mean - out->mean) * (s->mean - out->mean);
    }
    out->std = sqrt((within + between) / cases);
    return cases;
}

pons_status intensity_statistics_make(const intensity_sample *sample, int count, int stride,
                                      intensity_statistics *out, pons_error *err)
{
    intensity_statistics s = { .mean = 0 };
    int cases = join_moments(sample, count, stride, &s);
    double *weight = malloc(((size_t)count + 1) * sizeof *weight);
    weighted_value *list;
    int64_t total = 0, used = 0;

    for (int i = 0; i < count; i++)
        total += sample[i * stride].count;
    list = malloc((size_t)(2 * total + 1) * sizeof *list);
    for (int i = 0; i < count && list != NULL && weight != NULL; i++) {
        const intensity_sample *from = &sample[i * stride];
        weight[i] = from->count > 0 ? 1.0 / (double)from->count : 0;
        for (int64_t n = 0; n < from->count; n++)
            list[used++] = (weighted_value){ key_of(from->value[n] + 0.0F), i };
    }
    if (list == NULL || weight == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    else
        sort_weighted(list, list + total, total);
    if (err->status == PONS_OK && cases > 0) {
        const weighted_value *sorted = PASSES % 2 ? list + total : list;
        s.low = quantile(sorted, weight, total, cases, 0.005);
        s.median = quantile(sorted, weight, total, cases, 0.5);
        s.high = quantile(sorted, weight, total, cases, 0.995);
    }
    free(list);
    free(weight);
    if (err->status == PONS_OK)
        *out = s;
    return err->status;
}
