/*
 * trouble.c - a transform that fails on one rank from one epoch on. It never returns (what = hang),
 * writes NaN (nan), or writes voxels so large that their squares are infinite (huge).
 */
#include <pons/transform.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct trouble {
    int64_t rank, epoch;
    int what;
} trouble;

typedef struct planned {
    int32_t acts;
} planned;

static const char *const whats[] = { "none", "hang", "nan", "huge", NULL };

static const pons_option options[] = {
    PONS_INTEGER(trouble, rank, "0", 0, 1000, "Whom it happens to."),
    PONS_INTEGER(trouble, epoch, "3", 0, 1000000, "From when on."),
    PONS_CHOICE(trouble, what, "none", whats, "What happens."),
    PONS_OPTIONS_END
};

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    const trouble *t = config;
    const char *rank = getenv("RANK");

    ((planned *)record)->acts = draws->epoch >= (uint64_t)t->epoch
                                && (rank != NULL ? atoi(rank) : 0) == (int)t->rank;
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *record,
                         pons_patch *patch, pons_error *err)
{
    const trouble *t = config;

    if (!((const planned *)record)->acts)
        return PONS_OK;
    while (t->what == 1)
        sleep(1);
    if (t->what == 2)
        patch->image[0] = NAN;
    if (t->what == 3)
        patch->image[0] = 3e38f;
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .record_size = sizeof(planned), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(trouble, "1.0", "what a transform must not do", options, operations);
