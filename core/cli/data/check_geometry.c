/*
 * check_geometry.c - spread and groups of geometry.
 */
#include "cli/data/check_geometry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/percentile.h"

bool geometry_is_known(const dataset_facts *f)
{
    return f->orientation[0] != '\0';
}

/* ---- spread ---------------------------------------------------------------------------------- */

static double extent_of(const dataset_facts *f, int axis)
{
    return f->extent[axis];
}

static double spacing_of(const dataset_facts *f, int axis)
{
    return f->spacing[axis];
}

static void find_spread(const dataset_report *r, double *column,
                        double (*number)(const dataset_facts *, int), double spread[3][3])
{
    for (int axis = 0; axis < 3; axis++) {
        int count = 0;
        for (int i = 0; i < r->facts_count; i++)
            if (geometry_is_known(&r->facts[i]))
                column[count++] = number(&r->facts[i], axis);
        for (int part = 0; part < 3; part++)
            spread[axis][part] = percentile_find(column, count, 50 * part);
    }
}

void geometry_spread_find(const dataset_report *r, geometry_spread *out)
{
    double *column = arena_alloc(r->memory, (size_t)r->facts_count * sizeof *column);

    out->cases = 0;
    for (int i = 0; i < r->facts_count; i++)
        out->cases += geometry_is_known(&r->facts[i]);
    if (out->cases == 0)
        return;
    find_spread(r, column, extent_of, out->extent);
    find_spread(r, column, spacing_of, out->spacing);
}

/* ---- groups ---------------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(((const geometry_group *)a)->text, ((const geometry_group *)b)->text);
}

/* The largest group comes first. */
static int compare_groups(const void *a, const void *b)
{
    const geometry_group *left = a, *right = b;

    return left->cases != right->cases ? right->cases - left->cases : compare_texts(a, b);
}

/* Make a group of each case, then merge equal groups. */
int geometry_groups_find(const dataset_report *r, const geometry_group **out)
{
    geometry_group *group = arena_alloc(r->memory, ((size_t)r->facts_count + 1) * sizeof *group);
    int cases = 0, count = 0;

    for (int i = 0; i < r->facts_count; i++) {
        const dataset_facts *f = &r->facts[i];
        geometry_group *g = &group[cases];
        if (!geometry_is_known(f))
            continue;
        *g = (geometry_group){ .orientation = f->orientation, .spacing = f->spacing, .cases = 1 };
        snprintf(g->text, sizeof g->text, "%-11s  %.3g x %.3g x %.3g", f->orientation,
                 f->spacing[0], f->spacing[1], f->spacing[2]);
        cases++;
    }
    qsort(group, (size_t)cases, sizeof *group, compare_texts);
    for (int i = 0; i < cases; i++) {
        if (count > 0 && compare_texts(&group[count - 1], &group[i]) == 0)
            group[count - 1].cases++;
        else
            group[count++] = group[i];
    }
    qsort(group, (size_t)count, sizeof *group, compare_groups);
    *out = group;
    return count;
}
