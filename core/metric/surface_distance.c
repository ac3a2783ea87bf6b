/*
 * surface_distance.c - extract boundaries, measure them against each other, reduce.
 */
#include "metric/surface_distance.h"

#include <math.h>
#include <stdlib.h>

#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"

/* ---- boundaries ------------------------------------------------------------------------------ */

typedef struct extraction {
    const voxel_box *masks;
    const uint8_t *outside; /* a row of zeros                                                     */
    uint8_t *boundary;
} extraction;

/* Bits of a row's voxels that a neighbour lacks; both masks at once. */
static void extract_row(const uint8_t *row, const uint8_t *const neighbour[4], int64_t extent,
                        uint8_t *out)
{
    const uint8_t *a = neighbour[0], *b = neighbour[1], *c = neighbour[2], *d = neighbour[3];

    out[0] = row[0];
    for (int64_t k = 1; k < extent - 1; k++)
        out[k] = (uint8_t)(row[k] & ~(row[k - 1] & row[k + 1] & a[k] & b[k] & c[k] & d[k]));
    out[extent - 1] = row[extent - 1];
}

static void extract_planes(void *context, int64_t first, int64_t end)
{
    const extraction *e = context;
    const int64_t *extent = e->masks->extent;
    int64_t row = extent[2], plane = extent[1] * row;

    for (int64_t i = first; i < end; i++) {
        for (int64_t j = 0; j < extent[1]; j++) {
            const uint8_t *at = e->masks->bits + i * plane + j * row;
            const uint8_t *const neighbour[4] = {
                j > 0 ? at - row : e->outside, j + 1 < extent[1] ? at + row : e->outside,
                i > 0 ? at - plane : e->outside, i + 1 < extent[0] ? at + plane : e->outside
            };

            extract_row(at, neighbour, row, e->boundary + i * plane + j * row);
        }
    }
}

/* ---- reductions ------------------------------------------------------------------------------ */

static void swap_values(double *a, double *b)
{
    double kept = *a;

    *a = *b;
    *b = kept;
}

/* Move the value of rank 'at' there, smaller ones before it (Hoare's selection). */
static void select_rank(double *value, int64_t count, int64_t at)
{
    int64_t first = 0, last = count - 1;

    while (first < last) {
        double pivot = value[first + (last - first) / 2];
        int64_t i = first, k = last;

        while (i <= k) {
            while (value[i] < pivot)
                i++;
            while (value[k] > pivot)
                k--;
            if (i <= k)
                swap_values(&value[i++], &value[k--]);
        }
        if (at <= k)
            last = k;
        else if (at >= i)
            first = i;
        else
            return;
    }
}

/* The 95th percentile; the order of the values changes. */
static double percentile_95(double *value, int64_t count)
{
    double rank = 0.95 * (double)(count - 1);
    int64_t below = (int64_t)rank;

    select_rank(value, count, below);
    double low = value[below], high = INFINITY;
    for (int64_t n = below + 1; n < count; n++)
        high = value[n] < high ? value[n] : high;
    return below + 1 < count ? low + (rank - (double)below) * (high - low) : low;
}

typedef struct reduction {
    double sum, largest, percentile;
    int64_t count, within;
} reduction;

static reduction reduce_distances(double *distance, int64_t count, double tolerance)
{
    reduction r = { .count = count };
    double limit = tolerance * (1 + 1e-6);

    for (int64_t n = 0; n < count; n++) {
        r.sum += distance[n];
        r.largest = distance[n] > r.largest ? distance[n] : r.largest;
        r.within += distance[n] <= limit;
    }
    r.percentile = percentile_95(distance, count);
    return r;
}

/* ---- distances ------------------------------------------------------------------------------- */

static pons_status measure_boundary(const voxel_box *boundary, uint8_t from, uint8_t to,
                                    double tolerance, reduction *out, pons_error *err)
{
    int64_t count = voxel_box_count(boundary, from);
    double *distance = malloc((size_t)count * sizeof *distance);

    if (distance == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for distances of surfaces");
    if (voxel_distance_compute(boundary, from, to, distance, err) == PONS_OK)
        *out = reduce_distances(distance, count, tolerance);
    free(distance);
    return err->status;
}

static pons_status measure_both(const voxel_box *boundary, double tolerance, surface_values *out,
                                pons_error *err)
{
    reduction a, b;

    if (measure_boundary(boundary, MASK_PREDICTION, MASK_LABEL, tolerance, &a, err) != PONS_OK
        || measure_boundary(boundary, MASK_LABEL, MASK_PREDICTION, tolerance, &b, err) != PONS_OK)
        return err->status;
    *out = (surface_values){
        .hd = fmax(a.largest, b.largest), .hd95 = fmax(a.percentile, b.percentile),
        .asd = (a.sum + b.sum) / (double)(a.count + b.count),
        .nsd = (double)(a.within + b.within) / (double)(a.count + b.count)
    };
    return PONS_OK;
}

pons_status surface_distance_compute(const voxel_box *masks, double tolerance,
                                     surface_values *out, pons_error *err)
{
    const int64_t *extent = masks->extent;
    bool p = voxel_box_count(masks, MASK_PREDICTION) > 0;
    bool g = voxel_box_count(masks, MASK_LABEL) > 0;

    if (!p || !g) {
        *out = (surface_values){ NAN, NAN, NAN, p || g ? 0 : NAN };
        return PONS_OK;
    }
    voxel_box boundary = *masks;
    uint8_t *bits = huge_pages_alloc((size_t)(extent[0] * extent[1] * extent[2]));
    uint8_t *outside = calloc((size_t)extent[2], 1);
    if (bits == NULL || outside == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for surfaces");
    } else {
        extraction e = { masks, outside, bits };
        parallel_run(extent[0], parallel_piece(extent[1] * extent[2]), extract_planes, &e);
        boundary.bits = bits;
        measure_both(&boundary, tolerance, out, err);
    }
    free(outside);
    free(bits);
    return err->status;
}
