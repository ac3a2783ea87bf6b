/*
 * network_plan_geometry.c - the target spacing, the order of axes and the median extent.
 *
 * Rules and ties are nnU-Net's, which numbers axes k j i.
 */
#include <math.h>
#include <stdlib.h>

#include "plan/network_plan.h"
#include "plan/percentile.h"

static double percentile_spacing(const case_statistics *cases, int count, int axis,
                                 double percent, double *number)
{
    for (int i = 0; i < count; i++)
        number[i] = cases[i].spacing[2 - axis];
    return percentile_find(number, count, percent);
}

/* The first axis with the largest spacing. */
static int coarsest_axis(const double spacing[3])
{
    int axis = 0;

    for (int a = 1; a < 3; a++)
        if (spacing[a] > spacing[axis])
            axis = a;
    return axis;
}

/* Axes k j i: the target spacing. */
static void find_spacing(const case_statistics *cases, int count, double spacing[3],
                         double *number)
{
    double extent[3], finer, shortest;
    int axis, others[2];

    for (int a = 0; a < 3; a++) {
        spacing[a] = percentile_spacing(cases, count, a, 50, number);
        for (int i = 0; i < count; i++)
            number[i] = (double)cases[i].cropped[2 - a];
        extent[a] = percentile_find(number, count, 50);
    }
    axis = coarsest_axis(spacing);
    others[0] = axis == 0;
    others[1] = axis == 2 ? 1 : 2;
    finer = fmax(spacing[others[0]], spacing[others[1]]);
    shortest = fmin(extent[others[0]], extent[others[1]]);
    if (spacing[axis] <= 3 * finer || 3 * extent[axis] >= shortest)
        return;
    spacing[axis] = percentile_spacing(cases, count, axis, 10, number);
    if (spacing[axis] < finer)
        spacing[axis] = finer + 1e-5;
}

static double median_extent(const case_statistics *cases, int count, int axis, double spacing,
                            double *number)
{
    for (int i = 0; i < count; i++)
        number[i] = nearbyint(cases[i].spacing[2 - axis] / spacing
                              * (double)cases[i].cropped[2 - axis]);
    return percentile_find(number, count, 50);
}

pons_status plan_geometry_make(const case_statistics *cases, int count, plan_geometry *out,
                               pons_error *err)
{
    double spacing[3], *number = malloc((size_t)count * sizeof *number);
    int place = 1, coarsest;

    if (number == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    find_spacing(cases, count, spacing, number);
    coarsest = coarsest_axis(spacing);
    for (int a = 0; a < 3; a++) {
        int to = a == coarsest ? 0 : place++;
        out->axis[to] = 2 - a;
        out->spacing[to] = spacing[a];
        out->extent[to] = median_extent(cases, count, a, spacing[a], number);
    }
    free(number);
    return PONS_OK;
}

bool plan_geometry_is_3d(const plan_geometry *g)
{
    return g->extent[0] != 1;
}
