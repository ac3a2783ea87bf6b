/*
 * slow_patch.c - a transform that delays each patch by a given time, without CPU load.
 */
#include <pons/transform.h>

#include <unistd.h>

typedef struct slow_patch {
    double seconds;
} slow_patch;

typedef struct planned {
    int32_t nothing;
} planned;

static const pons_option options[] = {
    PONS_REAL(slow_patch, seconds, "0", 0, 1, "Of a patch."),
    PONS_OPTIONS_END
};

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *record,
                         pons_patch *patch, pons_error *err)
{
    usleep((useconds_t)(1e6 * ((const slow_patch *)config)->seconds));
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .record_size = sizeof(planned), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(slow_patch, "1.0", "takes its time", options, operations);
