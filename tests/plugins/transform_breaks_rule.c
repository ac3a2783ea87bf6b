/*
 * transform_breaks_rule - a transform for tests that breaks one rule of transform.h. Built as
 * random_breaks_rule it is a random one, as transform_moves_unsaid one that moves voxels without a
 * declaration.
 */
#include <pons/transform.h>

#include <math.h>
#include <string.h>
#include <time.h>

typedef struct transform_breaks_rule {
    int fault;
} transform_breaks_rule;
typedef transform_breaks_rule random_breaks_rule, transform_moves_unsaid;

#ifdef RANDOM

enum { NONE, BEHIND, PLANNED, MOVED, ZERO, CHANGING, LABEL, CHANNEL, FAR, IDLE, FLAT, BETWEEN,
       UNSAID, ASTRAY };

static const char *const faults[] = {
    "none", "behind", "planned", "moved", "zero", "changing", "label", "channel", "far", "idle",
    "flat", "between", "unsaid", "astray", NULL
};

static double calls;

static pons_status plan(const void *config, pons_rng *draws, pons_sample *sample, void *record,
                        pons_error *err)
{
    static const double half[3][4] = { { 0, 1, 0, 0 }, { 1, 0, 0, 0 }, { 0, 0, 1, 0 } };
    static const double flat[3][4] = { { 1, 0, 0, 0 }, { 0, 0, 0, 0 }, { 0, 0, 1, 0 } };
    static const double between[3][4] = { { 1, 0, 0, 0.5 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } };
    float shift = 1 + pons_draw_uniform(draws);
    int fault = ((const transform_breaks_rule *)config)->fault;

    if (fault == PLANNED)
        shift += (float)++calls;
    if (fault == MOVED)
        pons_sample_compose(sample, half);
    if (fault == FLAT)
        pons_sample_compose(sample, flat);
    if (fault == BETWEEN)
        pons_sample_compose(sample, between);
    if (fault == IDLE)
        shift = 0;
    memcpy(record, &shift, sizeof shift);
    if (fault == BEHIND)
        ((char *)record)[sizeof shift] = 1;
    return PONS_OK;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, const void *record,
                         pons_patch *patch, pons_error *err)
{
    int64_t count = patch->extent[0] * patch->extent[1] * patch->extent[2];
    int fault = ((const transform_breaks_rule *)config)->fault;
    float shift;

    memcpy(&shift, record, sizeof shift);
    shift += fault == ZERO ? 1 : fault == CHANGING && shift != 0 ? (float)++calls : 0;
    for (int64_t i = 0; i < count * patch->channels; i++)
        if (fault == CHANNEL || pons_scope_has(scope, (int)(i % patch->channels)))
            patch->image[i] += shift;
    if (fault == LABEL && shift != 0)
        patch->label[0]++;
    if (fault == FAR && shift != 0)
        patch->image[0] = INFINITY;
    return PONS_OK;
}

static pons_status displace(const void *config, const void *record, pons_displacement *out,
                            pons_error *err)
{
    int fault = ((const transform_breaks_rule *)config)->fault;

    out->field[1] += fault == ASTRAY ? NAN : fault == UNSAID ? 1 : 0;
    return PONS_OK;
}

#else

enum { NONE, AFFINE, LABEL, MASK, CHANGING, ID, CHANNEL, INSIDE, FAR, STATUS, LOST, SINGULAR,
       CHECK, HASTY };

static const char *const faults[] = {
    "none", "affine", "label", "mask", "changing", "id", "channel", "inside", "far", "status",
    "lost", "singular", "check", "hasty", NULL
};

/* Rotate by 90 degrees in the plane of i and j; the fault leaves the affine unchanged. */
static pons_status turn(pons_case *c, int fault, pons_error *err)
{
    static const int order[3] = { 1, 0, 2 };
    static const bool flip[3] = { true, false, false };
    double before[3][4];
    pons_volume *v[3] = { &c->image, &c->label, &c->valid };

    memcpy(before, c->image.affine, sizeof before);
    for (int i = 0; i < 3; i++) {
        if (v[i]->voxels == NULL || (fault == MASK && i == 2)
            || pons_volume_reorient(v[i], order, flip, err) != PONS_OK)
            continue;
        if (fault == LABEL && i == 1)
            pons_volume_reorient(v[i], (int[]){ 0, 1, 2 }, (bool[]){ true, false, false }, err);
        if (fault == AFFINE)
            memcpy(v[i]->affine, before, sizeof before);
        else
            memcpy(v[i]->affine, c->image.affine, sizeof before);
    }
    return err->status;
}

/* Pieces add a number in the order in which they finish; every second one takes longer. */
static _Atomic int finished;

static void hurry(void *context, int64_t first, int64_t end)
{
    float *x = context;

    nanosleep(&(struct timespec){ .tv_nsec = first / (end - first) % 2 == 0 ? 4000000 : 500000 },
              NULL);
    x[2 * first + 1] += (float)finished++;
}

static pons_status apply(const void *config, const pons_transform_scope *scope, pons_case *c,
                         pons_error *err)
{
    static double calls;
    int fault = ((const transform_breaks_rule *)config)->fault;
    float *x = c->image.voxels;

    if (turn(c, fault, err) != PONS_OK)
        return err->status;
    x = c->image.voxels;
    if (fault == CHANGING)
        x[1] += (float)++calls;
    finished = 0;
    if (fault == HASTY)
        pons_parallel_for(pons_volume_count(&c->image), pons_volume_count(&c->image) / 16, hurry,
                          x);
    if (fault == ID)
        ((uint8_t *)c->label.voxels)[5] = 9;
    if (fault == INSIDE)
        c->image.inside_extent[0]++;
    if (fault == FAR)
        x[0] = NAN;
    if (fault == LOST)
        pons_volume_clear(&c->label);
    for (int r = 0; fault == SINGULAR && r < 3; r++)
        c->image.affine[r][0] = c->label.affine[r][0] = c->valid.affine[r][0] = 0;
    return fault == STATUS ? PONS_DATA : PONS_OK;
}

#ifndef STIFF
static pons_status check(const void *config, pons_error *err)
{
    return ((const transform_breaks_rule *)config)->fault == CHECK ? PONS_CONFIG : PONS_OK;
}
#endif

#endif

static const pons_option options[] = {
    PONS_CHOICE(transform_breaks_rule, fault, "none", faults, "What is wrong with it."),
    PONS_OPTIONS_END
};

#if defined RANDOM
static const pons_transform_operations operations = {
    .record_size = sizeof(float), .plan = plan, .apply_patch = apply, .displace = displace
};

PONS_TRANSFORM(random_breaks_rule, "1.0", "a random transform that breaks rules", options,
               operations);
#elif defined STIFF
static const pons_transform_operations operations = { .apply = apply };

PONS_TRANSFORM(transform_moves_unsaid, "1.0", "moves voxels and does not say so", options,
               operations);
#else
static const pons_transform_operations operations = {
    .check = check, .geometric = true, .apply = apply
};

PONS_TRANSFORM(transform_breaks_rule, "1.0", "a transform that breaks rules", options,
               operations);
#endif
