/*
 * dataset_mixture.c - warnings of images that differ in what a network takes for the same in all.
 */
#include "data/dataset/dataset.h"

#include <string.h>

static void add_warning(dataset_report *r, const char *text)
{
    dataset_problem *more = arena_alloc(r->memory, ((size_t)r->problem_count + 1) * sizeof *more);

    if (r->problem_count > 0)
        memcpy(more, r->problem, (size_t)r->problem_count * sizeof *more);
    more[r->problem_count++] = (dataset_problem){ .text = text, .warning = true };
    r->problem = more;
}

void dataset_report_mixtures(dataset_report *r, bool oriented, bool resampled)
{
    if (!oriented && case_geometry_orientation_count(&r->geometry) > 1)
        add_warning(r, arena_format(r->memory, "images have different orientations (%s), and no "
                                    "step 'orient' in [preprocess] turns them alike",
                                    case_geometry_orientations(r->memory, &r->geometry)));
    if (!resampled && case_geometry_spacing_varies(&r->geometry))
        add_warning(r, arena_format(r->memory, "images have different spacings (%s mm along "
                                    "left-right, back-front, feet-head), and no step 'spacing' in "
                                    "[preprocess] resamples them",
                                    case_geometry_spacings(r->memory, &r->geometry)));
}
