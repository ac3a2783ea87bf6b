/*
 * zoom - enlarge or shrink the content of a patch around its centre, as MONAI's RandZoom.
 *
 * A zoomed axis of n voxels would have floor(z n) voxels, of which the middle ones are kept. A zoom
 * below 1 reads the volume beyond the patch.
 */
#include "channel_draws.h"

#include <math.h>

static const char *const label_words[] = { "nearest", "linear", NULL };

typedef struct zoom {
    pons_reals min_zoom, max_zoom;
    double probability;
    int label_mode;
} zoom;

static const pons_option options[] = {
    PONS_REALS(zoom, min_zoom, "0.9", 0.01, 100,
               "Smallest factor: one number for all axes, which are zoomed alike, or three.",
               .count_min = 1, .count_max = 3),
    PONS_REALS(zoom, max_zoom, "1.1", 0.01, 100, "Largest factor, likewise.", .count_min = 1,
               .count_max = 3),
    PONS_CHOICE(zoom, label_mode, "nearest", label_words,
                "Label of a voxel: the nearest one, or the class with the largest linear weight."),
    PONS_REAL(zoom, probability, "0.1", 0, 1, "How often a patch is zoomed."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const zoom *z = config;

    if (z->min_zoom.count == 2)
        return pons_option_fail(err, "min_zoom", "found 2 numbers, expected 1 or 3");
    if (z->max_zoom.count != z->min_zoom.count)
        return pons_option_fail(err, "max_zoom", "found %d numbers, expected %d as in min_zoom",
                                z->max_zoom.count, z->min_zoom.count);
    for (int n = 0; n < z->min_zoom.count; n++)
        if (z->min_zoom.item[n] > z->max_zoom.item[n])
            return pons_option_fail(err, "max_zoom", "found %g, expected at least min_zoom, %g",
                                    z->max_zoom.item[n], z->min_zoom.item[n]);
    return PONS_OK;
}

/*
 * Row 'axis' of the map. Voxel d of the patch is voxel d + s of the zoomed axis, whose voxel edges
 * are those of the patch: it is read at (d + s + 1/2) n / m - 1/2.
 */
static void zoom_axis(double factor, int64_t n, int axis, double map[3][4])
{
    int64_t m = (int64_t)fmax(1, floor((double)n * factor));
    double ratio = (double)n / (double)m;
    double s = (double)(m > n ? m / 2 - n / 2 : -((n - m) / 2));

    map[axis][axis] = ratio;
    map[axis][3] = ratio * ((double)n / 2 + s) - (double)n / 2;
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    const zoom *z = config;
    double map[3][4] = { { 0 } }, factor = 0;
    bool wanted = (double)pons_draw_uniform(draws) < z->probability;

    for (int a = 0; a < 3; a++) {
        if (a < z->min_zoom.count)
            factor = pons_draw_range(draws, z->min_zoom.item[a], z->max_zoom.item[a]);
        zoom_axis(factor, sample->extent[a], a, map);
    }
    if (!wanted)
        return PONS_OK;
    pons_sample_compose(sample, map);
    if (z->label_mode == 1)
        sample->linear_labels = true;
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .geometric = true, .plan = plan, .resamples = true
};

PONS_TRANSFORM(zoom, "1.0", "enlarge or shrink around the centre", options, operations);
