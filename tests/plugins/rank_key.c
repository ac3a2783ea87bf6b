/*
 * rank_key.c - a transform that shifts patches by a random number. An option makes the number
 * depend on the rank, which is forbidden to random transforms.
 */
#include <pons/transform.h>

#include <stdlib.h>

typedef struct rank_key {
    bool wrong;
} rank_key;

typedef struct shift {
    float by;
} shift;

static const pons_option options[] = {
    PONS_FLAG(rank_key, wrong, "no", "Put the rank into the key."), PONS_OPTIONS_END
};

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    const rank_key *k = config;
    const char *rank = getenv("RANK");
    shift *s = record;

    if (k->wrong && rank != NULL)
        draws->stream += (uint64_t)atoi(rank);
    s->by = pons_draw_uniform(draws);
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *record,
                         pons_patch *patch, pons_error *err)
{
    int64_t count = patch->extent[0] * patch->extent[1] * patch->extent[2] * patch->channels;

    for (int64_t i = 0; i < count; i++)
        patch->image[i] += ((const shift *)record)->by;
    return PONS_OK;
}

static const pons_transform_operations operations = {
    .record_size = sizeof(shift), .plan = plan, .apply_patch = apply
};

PONS_TRANSFORM(rank_key, "1.0", "shift by a random number", options, operations);
