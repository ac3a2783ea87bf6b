/*
 * class_ranking.c - decisions, places and ranks of probabilities.
 */
#include "metric/class_ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The probability of a class; NaN ranks below all numbers. */
static float value_at(const class_ranking *r, int image, int class)
{
    float x = r->probability[(int64_t)image * r->classes + class];

    return isnan(x) ? -INFINITY : x;
}

int class_ranking_decide(const class_ranking *r, int image)
{
    int best = 0;

    for (int c = 1; c < r->classes; c++)
        best = value_at(r, image, c) > value_at(r, image, best) ? c : best;
    return best;
}

int class_ranking_place(const class_ranking *r, int image)
{
    int label = r->label[image], place = 0;
    float own = value_at(r, image, label);

    for (int c = 0; c < r->classes; c++) {
        float x = value_at(r, image, c);
        place += x > own || (x == own && c < label);
    }
    return place;
}

void class_ranking_confusion(const class_ranking *r, int64_t *out)
{
    memset(out, 0, (size_t)r->classes * (size_t)r->classes * sizeof *out);
    for (int i = 0; i < r->count; i++)
        out[(int64_t)r->label[i] * r->classes + class_ranking_decide(r, i)]++;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

typedef struct ranked_value {
    float value;
    bool positive;
} ranked_value;

static int compare_values(const void *a, const void *b)
{
    float x = ((const ranked_value *)a)->value, y = ((const ranked_value *)b)->value;

    return (x > y) - (x < y);
}

/* The sum of the ranks of positive values; equal values share the mean of their ranks. */
static double sum_ranks(const ranked_value *v, int count)
{
    double sum = 0;

    for (int first = 0, end; first < count; first = end) {
        int positive = 0;

        for (end = first; end < count && v[end].value == v[first].value; end++)
            positive += v[end].positive;
        sum += positive * 0.5 * (first + 1.0 + end);
    }
    return sum;
}

pons_status class_ranking_auc(const class_ranking *r, int class, double *out, pons_error *err)
{
    ranked_value *v = malloc((size_t)r->count * sizeof *v + 1);
    double positives = 0;

    if (v == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the ranks of %d images", r->count);
    for (int i = 0; i < r->count; i++) {
        v[i] = (ranked_value){ value_at(r, i, class), r->label[i] == class };
        positives += v[i].positive;
    }
    qsort(v, (size_t)r->count, sizeof *v, compare_values);
    double pairs = positives * (r->count - positives);
    *out = pairs > 0 ? (sum_ranks(v, r->count) - positives * (positives + 1) / 2) / pairs : NAN;
    free(v);
    return PONS_OK;
}
