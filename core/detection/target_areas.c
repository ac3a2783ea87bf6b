/*
 * target_areas.c - grow a mask by a distance, fill its holes, and measure the areas.
 */
#include "detection/target_areas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metric/connected_components.h"
#include "metric/voxel_distance.h"

enum { OUTSIDE = 1, INSIDE = 2, REACHED = 4 };

/* ---- grow ------------------------------------------------------------------------------------ */

/* Make points outside that are nearer than grow / 2 points inside. */
static pons_status grow_mask(uint8_t *bits, const int64_t extent[2], const target_rule *r,
                             pons_error *err)
{
    const voxel_box box = { { 1, extent[0], extent[1] }, { 1, r->spacing[0], r->spacing[1] },
                            bits };
    int64_t count = voxel_box_count(&box, OUTSIDE), at = 0;
    double *distance = malloc((size_t)(count + 1) * sizeof *distance);

    if (distance == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %lld distances", (long long)count);
    if (voxel_distance_compute(&box, OUTSIDE, INSIDE, distance, err) == PONS_OK)
        for (int64_t i = 0; i < extent[0] * extent[1]; i++)
            if (bits[i] == OUTSIDE && distance[at++] < r->grow / 2)
                bits[i] = INSIDE;
    free(distance);
    return err->status;
}

/* ---- holes ----------------------------------------------------------------------------------- */

typedef struct flood {
    uint8_t *bits;
    int64_t rows, columns;
    int64_t count, *open;         /* points whose neighbours are still to be looked at            */
} flood;

static void reach(flood *f, int64_t row, int64_t column)
{
    int64_t at = row * f->columns + column;

    if (row < 0 || row >= f->rows || column < 0 || column >= f->columns || f->bits[at] != OUTSIDE)
        return;
    f->bits[at] = REACHED;
    f->open[f->count++] = at;
}

/* Reach the points outside from the border by steps along rows and columns. */
static void flood_outside(flood *f)
{
    for (int64_t i = 0; i < f->rows; i++) {
        reach(f, i, 0);
        reach(f, i, f->columns - 1);
    }
    for (int64_t k = 0; k < f->columns; k++) {
        reach(f, 0, k);
        reach(f, f->rows - 1, k);
    }
    while (f->count > 0) {
        int64_t at = f->open[--f->count], row = at / f->columns, column = at % f->columns;

        reach(f, row - 1, column);
        reach(f, row + 1, column);
        reach(f, row, column - 1);
        reach(f, row, column + 1);
    }
}

static pons_status fill_holes(uint8_t *bits, const int64_t extent[2], pons_error *err)
{
    int64_t points = extent[0] * extent[1];
    flood f = { bits, extent[0], extent[1], 0, malloc((size_t)points * sizeof *f.open) };

    if (f.open == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %lld points", (long long)points);
    flood_outside(&f);
    for (int64_t i = 0; i < points; i++)
        bits[i] = bits[i] == REACHED ? OUTSIDE : INSIDE;
    free(f.open);
    return PONS_OK;
}

/* ---- lengths --------------------------------------------------------------------------------- */

typedef struct moments {
    double count, sum[2], square[2], product;
} moments;

/* The length of the major axis; coordinates are in the unit of the spacing. */
static double length_of(const moments *m)
{
    double y = m->sum[0] / m->count, x = m->sum[1] / m->count;
    double yy = m->square[0] / m->count - y * y, xx = m->square[1] / m->count - x * x;
    double xy = m->product / m->count - x * y;
    double largest = (yy + xx) / 2 + hypot((yy - xx) / 2, xy);

    return 4 * sqrt(fmax(largest, 0));
}

/* Coordinates are taken from the first point of each area, which keeps the sums small. */
static void sum_moments(const target_areas *t, const int64_t extent[2], const target_rule *r,
                        int64_t *first, moments *m)
{
    for (int32_t n = 0; n < t->count; n++)
        first[n] = -1;
    for (int64_t i = 0; i < extent[0] * extent[1]; i++) {
        int32_t n = t->id[i] - 1;

        if (n < 0)
            continue;
        first[n] = first[n] < 0 ? i : first[n];
        double y = (double)(i / extent[1] - first[n] / extent[1]) * r->spacing[0];
        double x = (double)(i % extent[1] - first[n] % extent[1]) * r->spacing[1];
        m[n].count++;
        m[n].sum[0] += y;
        m[n].sum[1] += x;
        m[n].square[0] += y * y;
        m[n].square[1] += x * x;
        m[n].product += x * y;
    }
}

static pons_status exclude_small(const int64_t extent[2], const target_rule *r, target_areas *t,
                                 pons_error *err)
{
    size_t count = (size_t)t->count + 1;
    moments *m = calloc(count, sizeof *m);
    int64_t *first = malloc(count * sizeof *first);

    t->excluded = calloc(count, sizeof *t->excluded);
    if (m == NULL || first == NULL || t->excluded == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for %d targets", t->count);
    else {
        sum_moments(t, extent, r, first, m);
        for (int32_t n = 0; n < t->count; n++)
            t->excluded[n] = length_of(&m[n]) < r->grow + r->isolated;
    }
    free(first);
    free(m);
    return err->status;
}

/* ---- areas ----------------------------------------------------------------------------------- */

static pons_status find_areas(uint8_t *bits, const int64_t extent[2], const target_rule *rule,
                              target_areas *out, pons_error *err)
{
    const int64_t box[3] = { 1, extent[0], extent[1] };

    if (memchr(bits, INSIDE, (size_t)(extent[0] * extent[1])) != NULL
        && (grow_mask(bits, extent, rule, err) != PONS_OK
            || fill_holes(bits, extent, err) != PONS_OK))
        return err->status;
    if (connected_components_label(bits, box, INSIDE, out->id, &out->count, err) != PONS_OK)
        return err->status;
    return exclude_small(extent, rule, out, err);
}

pons_status target_areas_find(const uint8_t *mask, const int64_t extent[2],
                              const target_rule *rule, target_areas *out, pons_error *err)
{
    size_t points = (size_t)(extent[0] * extent[1]);
    uint8_t *bits = malloc(points);

    *out = (target_areas){ .id = malloc(points * sizeof *out->id) };
    if (bits == NULL || out->id == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for a mask of %zu points", points);
    else {
        for (size_t i = 0; i < points; i++)
            bits[i] = mask[i] != 0 ? INSIDE : OUTSIDE;
        find_areas(bits, extent, rule, out, err);
    }
    free(bits);
    if (err->status != PONS_OK)
        target_areas_clear(out);
    return err->status;
}

void target_areas_clear(target_areas *t)
{
    free(t->id);
    free(t->excluded);
    *t = (target_areas){ 0 };
}
