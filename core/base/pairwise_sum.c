/*
 * pairwise_sum.c - R2's sum over buffers, one block of elements at a time.
 */
#include "base/pairwise_sum.h"

#include <string.h>

static int power_below(int n)
{
    int p = 1;

    while (2 * p < n)
        p *= 2;
    return p;
}

static void sum_floats(void *const *buffer, int n, int64_t at, int count, float *out)
{
    float right[PAIRWISE_SUM_TILE];
    int p;

    if (n == 1) {
        memcpy(out, (const float *)buffer[0] + at, (size_t)count * sizeof *out);
        return;
    }
    p = power_below(n);
    sum_floats(buffer, p, at, count, out);
    sum_floats(buffer + p, n - p, at, count, right);
    for (int i = 0; i < count; i++)
        out[i] += right[i];
}

static void sum_doubles(void *const *buffer, int n, int64_t at, int count, double *out)
{
    double right[PAIRWISE_SUM_TILE];
    int p;

    if (n == 1) {
        memcpy(out, (const double *)buffer[0] + at, (size_t)count * sizeof *out);
        return;
    }
    p = power_below(n);
    sum_doubles(buffer, p, at, count, out);
    sum_doubles(buffer + p, n - p, at, count, right);
    for (int i = 0; i < count; i++)
        out[i] += right[i];
}

void pairwise_sum(void *const *buffer, int n, bool wide, int64_t at, int count, void *out)
{
    if (wide)
        sum_doubles(buffer, n, at, count, out);
    else
        sum_floats(buffer, n, at, count, out);
}
