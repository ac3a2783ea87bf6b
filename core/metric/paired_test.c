/*
 * paired_test.c - Wilcoxon's signed-rank test.
 */
#include "metric/paired_test.h"

#include <math.h>
#include <stdlib.h>

#include "base/integer.h"

enum { EXACT_MAX = 50 };

/* A magnitude, and twice its rank: mean ranks of ties are multiples of one half. */
typedef struct ranked {
    double size;
    bool positive;
    int twice;
} ranked;

static int compare_sizes(const void *a, const void *b)
{
    const ranked *x = a, *y = b;

    return x->size < y->size ? -1 : x->size > y->size;
}

/* Rank sorted magnitudes; returns the sum of t^3 - t over groups of t ties. */
static double rank_all(ranked *r, int count)
{
    double ties = 0;

    for (int i = 0, end; i < count; i = end) {
        for (end = i; end < count && r[end].size == r[i].size; end++)
            continue;
        for (int k = i; k < end; k++)
            r[k].twice = i + 1 + end;
        ties += pow(end - i, 3) - (end - i);
    }
    return ties;
}

/* The share of all choices of signs whose sum of positive ranks is at most 'twice' / 2. */
static pons_status share_below(const ranked *r, int count, int twice, double *share,
                               pons_error *err)
{
    int sums = count * (count + 1);
    double *ways = calloc((size_t)sums + 1, sizeof *ways);

    if (ways == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    ways[0] = 1;
    for (int i = 0; i < count; i++)
        for (int s = sums; s >= r[i].twice; s--)
            ways[s] += ways[s - r[i].twice];
    *share = 0;
    for (int s = 0; s <= twice; s++)
        *share += ways[s];
    *share = ldexp(*share, -count);
    free(ways);
    return PONS_OK;
}

static double normal_p(int count, double sum, double ties)
{
    double n = count, mean = n * (n + 1) / 4;
    double variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48;

    return erfc(fabs(sum - mean) / sqrt(2 * variance));
}

pons_status wilcoxon_signed_rank(int count, const double *difference, double *p, pons_error *err)
{
    ranked *r = calloc((size_t)count + 1, sizeof *r);
    int n = 0, twice = 0;

    if (r == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int i = 0; i < count; i++)
        if (difference[i] != 0)
            r[n++] = (ranked){ fabs(difference[i]), difference[i] > 0, 0 };
    qsort(r, (size_t)n, sizeof *r, compare_sizes);
    double ties = rank_all(r, n);
    for (int i = 0; i < n; i++)
        twice += r[i].positive ? r[i].twice : 0;
    if (n > EXACT_MAX) {
        *p = normal_p(n, twice / 2.0, ties);
    } else {
        share_below(r, n, min_int(twice, n * (n + 1) - twice), p, err);
        *p = fmin(1, 2 * *p);
    }
    free(r);
    return err->status;
}
