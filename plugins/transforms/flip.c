/*
 * flip - mirror a patch along the named axes.
 *
 * Each axis is mirrored with 'probability', independently, as by a chain of MONAI's RandFlip. With
 * 'together' all axes are mirrored or none, as by one RandFlip with a list. The axes have no
 * default, because the user decides whether left and right may be exchanged.
 */
#include <pons/transform.h>

typedef struct flip {
    pons_integers axes;
    double probability;
    bool together;
} flip;

static const pons_option options[] = {
    PONS_INTEGERS(flip, axes, NULL, 0, 2,
                  "Axes that may be mirrored, 0 1 2 = i j k, each by itself; naming the left-right "
                  "axis exchanges left and right."),
    PONS_REAL(flip, probability, "0.1", 0, 1, "How often an axis is mirrored."),
    PONS_FLAG(flip, together, "no", "All axes are mirrored at once, or none."),
    PONS_OPTIONS_END
};

static pons_status check(const void *config, pons_error *err)
{
    const flip *f = config;
    unsigned seen = 0;

    for (int i = 0; i < f->axes.count; i++) {
        if (seen >> f->axes.item[i] & 1)
            return pons_option_fail(err, "axes", "found %d twice", (int)f->axes.item[i]);
        seen |= 1u << f->axes.item[i];
    }
    return PONS_OK;
}

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    const flip *f = config;
    bool wanted = false;

    for (int i = 0; i < f->axes.count; i++) {
        double map[3][4] = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } };
        int axis = (int)f->axes.item[i];
        if (i == 0 || !f->together)
            wanted = (double)pons_draw_uniform(draws) < f->probability;
        if (wanted)
            map[axis][axis] = -1;
        pons_sample_compose(sample, map);
    }
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .check = check, .geometric = true, .plan = plan
};

PONS_TRANSFORM(flip, "1.0", "mirror along named axes", options, operations);
