/*
 * rotate90 - turn a patch by 1 to max_k quarters in the plane of two axes, as MONAI's RandRotate90.
 *
 * The box in the case has the extents of the two axes exchanged, so the patch keeps its own extent.
 */
#include <pons/transform.h>

typedef struct rotate90 {
    pons_integers axes;
    double probability;
    int64_t max_k;
} rotate90;

static const pons_option options[] = {
    PONS_INTEGERS(rotate90, axes, "0 1", 0, 2, "The two axes of the plane, 0 1 2 = i j k.",
                  .count_min = 2, .count_max = 2),
    PONS_REAL(rotate90, probability, "0.1", 0, 1, "How often a patch is turned."),
    PONS_INTEGER(rotate90, max_k, "3", 1, 3, "Most quarters; from 1 to max_k are equally likely."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const rotate90 *r = config;

    if (r->axes.item[0] == r->axes.item[1])
        return pons_option_fail(err, "axes", "found %d twice, expected two different ones",
                                (int)r->axes.item[0]);
    return PONS_OK;
}

/* Turn by one quarter from axis a to axis b: out[i, j] = in[j, n - 1 - i]. */
static void turn(pons_sample *sample, int a, int b)
{
    double map[3][4] = { { 0 } };

    map[3 - a - b][3 - a - b] = 1;
    map[a][b] = 1;
    map[b][a] = -1;
    pons_sample_compose(sample, map);
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    const rotate90 *r = config;
    bool wanted = (double)pons_draw_uniform(draws) < r->probability;
    int64_t quarters = 1 + pons_draw_index(draws, r->max_k);

    for (int64_t k = 0; wanted && k < quarters; k++)
        turn(sample, (int)r->axes.item[0], (int)r->axes.item[1]);
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .geometric = true, .plan = plan
};

PONS_TRANSFORM(rotate90, "1.0", "turn by quarters in a plane", options, operations);
