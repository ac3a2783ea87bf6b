/*
 * map_peaks.c - visit the values above the threshold once, from the largest to the smallest.
 */
#include "detection/map_peaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

static int compare_peaks(const void *a, const void *b)
{
    const map_peak *x = a, *y = b;

    if (x->probability != y->probability)
        return x->probability < y->probability ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

/* List the values above the threshold, in falling order. */
static pons_status list_values(const float *map, int64_t count, float threshold, peak_list *out,
                               pons_error *err)
{
    int64_t found = 0;

    for (int64_t i = 0; i < count; i++) {
        if (isnan(map[i]))
            return pons_fail(err, PONS_DATA, "value %lld of the map is NaN, expected a probability",
                             (long long)i);
        found += map[i] > threshold;
    }
    *out = (peak_list){ .item = malloc((size_t)(found + 1) * sizeof *out->item) };
    if (out->item == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %lld values of a map",
                         (long long)found);
    for (int64_t i = 0; i < count; i++)
        if (map[i] > threshold)
            out->item[out->count++] = (map_peak){ i, map[i] };
    qsort(out->item, (size_t)out->count, sizeof *out->item, compare_peaks);
    return PONS_OK;
}

static void suppress_box(bool *suppressed, const int64_t extent[2], int64_t at, int box)
{
    int64_t row = at / extent[1] - box / 2, column = at % extent[1] - box / 2;
    int64_t left = max_i64(column, 0), right = min_i64(column + box, extent[1]);

    for (int64_t y = max_i64(row, 0); y < min_i64(row + box, extent[0]); y++)
        memset(suppressed + y * extent[1] + left, true, (size_t)(right - left) * sizeof(bool));
}

pons_status map_peaks_find(const float *map, const int64_t extent[2], float threshold, int box,
                           peak_list *out, pons_error *err)
{
    int64_t count = extent[0] * extent[1], kept = 0;
    bool *suppressed = calloc((size_t)count + 1, sizeof *suppressed);

    *out = (peak_list){ 0 };
    if (suppressed == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a map of %lld values", (long long)count);
    else if (list_values(map, count, threshold, out, err) == PONS_OK) {
        for (int64_t i = 0; i < out->count; i++) {
            if (suppressed[out->item[i].at])
                continue;
            suppress_box(suppressed, extent, out->item[i].at, box);
            out->item[kept++] = out->item[i];
        }
        out->count = kept;
    }
    free(suppressed);
    return err->status;
}

void peak_list_clear(peak_list *l)
{
    free(l->item);
    *l = (peak_list){ 0 };
}
