/*
 * froc.c - sort detections into hits and misses, and read the curve of all images.
 */
#include "detection/froc.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

const double froc_at[FROC_POINTS] = { 0.25, 0.5, 1, 2, 4, 8 };

/* ---- images ---------------------------------------------------------------------------------- */

static pons_status make_room(float **list, int64_t count, int64_t *room, int64_t more,
                             pons_error *err)
{
    int64_t wanted = count + more;
    float *larger;

    if (wanted <= *room)
        return PONS_OK;
    wanted = max_i64(wanted, 2 * *room);
    larger = realloc(*list, (size_t)wanted * sizeof *larger);
    if (larger == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %lld detections", (long long)wanted);
    *list = larger;
    *room = wanted;
    return PONS_OK;
}

pons_status froc_add(froc_sums *s, const target_areas *targets, const peak_list *found,
                     pons_error *err)
{
    float *hit;

    if (make_room(&s->miss, s->miss_count, &s->miss_room, found->count, err) != PONS_OK
        || make_room(&s->hit, s->hit_count, &s->hit_room, targets->count, err) != PONS_OK)
        return err->status;
    hit = s->hit + s->hit_count;
    for (int32_t t = 0; t < targets->count; t++) {
        hit[t] = 0;
        s->targets += !targets->excluded[t];
    }
    for (int64_t i = 0; i < found->count; i++) {
        const map_peak *d = &found->item[i];
        int32_t target = targets->id[d->at];

        if (target == 0)
            s->miss[s->miss_count++] = d->probability;
        else if (!targets->excluded[target - 1] && d->probability > hit[target - 1])
            hit[target - 1] = d->probability;
    }
    s->hit_count += targets->count;
    s->images++;
    return PONS_OK;
}

void froc_sums_clear(froc_sums *s)
{
    free(s->miss);
    free(s->hit);
    *s = (froc_sums){ 0 };
}

/* ---- curve ----------------------------------------------------------------------------------- */

static int compare_probabilities(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* The number of values of an ascending list that are at least 'threshold', from index 'from' on. */
static int64_t count_from(const float *list, int64_t count, int64_t *from, float threshold)
{
    while (*from < count && list[*from] < threshold)
        (*from)++;
    return count - *from;
}

/* Write a point for each threshold but the first; 'all' is ascending. */
static void put_points(const froc_sums *s, const float *miss, const float *hit, const float *all,
                       froc_curve *out)
{
    int64_t at_miss = 0, at_hit = 0;

    for (int64_t i = 1; i < s->miss_count + s->hit_count; i++) {
        if (all[i] == all[i - 1])
            continue;
        out->false_positives[out->count] = (double)count_from(miss, s->miss_count, &at_miss, all[i])
                                           / s->images;
        out->sensitivity[out->count++] = (double)count_from(hit, s->hit_count, &at_hit, all[i])
                                         / (double)s->targets;
    }
    out->false_positives[out->count] = 0;
    out->sensitivity[out->count++] = 0;
}

static void copy_floats(float *to, const float *from, int64_t count)
{
    if (count > 0)
        memcpy(to, from, (size_t)count * sizeof *to);
}

pons_status froc_curve_make(const froc_sums *s, froc_curve *out, pons_error *err)
{
    int64_t m = s->miss_count, h = s->hit_count;
    float *sorted;

    *out = (froc_curve){ 0 };
    if (s->targets == 0)
        return pons_fail(err, PONS_DATA, "froc: none of %d images has a target", s->images);
    sorted = malloc((size_t)(2 * (m + h)) * sizeof *sorted);
    out->false_positives = malloc((size_t)(m + h + 1) * sizeof *out->false_positives);
    out->sensitivity = malloc((size_t)(m + h + 1) * sizeof *out->sensitivity);
    if (sorted == NULL || out->false_positives == NULL || out->sensitivity == NULL) {
        free(sorted);
        return pons_fail(err, PONS_DEVICE, "out of memory for %lld detections", (long long)(m + h));
    }
    copy_floats(sorted, s->miss, m);
    copy_floats(sorted + m, s->hit, h);
    copy_floats(sorted + m + h, sorted, m + h);
    qsort(sorted, (size_t)m, sizeof *sorted, compare_probabilities);
    qsort(sorted + m, (size_t)h, sizeof *sorted, compare_probabilities);
    qsort(sorted + m + h, (size_t)(m + h), sizeof *sorted, compare_probabilities);
    put_points(s, sorted, sorted + m, sorted + m + h, out);
    free(sorted);
    return PONS_OK;
}

/* Points are in falling order of false positives; of points with equal ones the first counts. */
double froc_curve_sensitivity(const froc_curve *c, double false_positives)
{
    int64_t i = 0;

    while (i < c->count - 1 && c->false_positives[i] > false_positives)
        i++;
    if (i == 0 || c->false_positives[i] > false_positives)
        return c->sensitivity[i];
    double x = c->false_positives[i], rise = c->sensitivity[i - 1] - c->sensitivity[i];
    return c->sensitivity[i]
           + rise * (false_positives - x) / (c->false_positives[i - 1] - x);
}

double froc_curve_score(const froc_curve *c)
{
    double sum = 0;

    for (int i = 0; i < FROC_POINTS; i++)
        sum += froc_curve_sensitivity(c, froc_at[i]);
    return sum / FROC_POINTS;
}

void froc_curve_clear(froc_curve *c)
{
    free(c->false_positives);
    free(c->sensitivity);
    *c = (froc_curve){ 0 };
}
