/*
 * network_plan.c - nnU-Net's rules for patch, levels, activations and batch.
 */
#include "plan/network_plan.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/integer.h"

/*
 * Constants of the rules: smallest edge of the deepest level, features, reference batch, edges of
 * the largest patch, and shares of a patch in the median case for the low resolution.
 */
enum { EDGE_MIN = 4, FEATURES = 32, FEATURES_MAX_3D = 320, FEATURES_MAX_2D = 512 };
enum { BATCH_3D = 2, BATCH_2D = 12, EDGE_3D = 256, EDGE_2D = 2048 };
static const double lowres_below = 0.25, lowres_step = 1.03, lowres_gain = 2;

const plan_rule plan_rules[] = {
    { "nnunet", false, { 85e6, 560e6 }, 0.05 },
    { "resenc_m", true, { 135e6, 680e6 }, 1 },
    { "resenc_l", true, { 380e6, 2.1e9 }, 1 },
    { "resenc_xl", true, { 560e6, 3.6e9 }, 1 },
    { NULL, false, { 0, 0 }, 0 }
};

const plan_rule *plan_rule_find(const char *name)
{
    for (const plan_rule *r = plan_rules; r->name != NULL; r++)
        if (strcmp(r->name, name) == 0)
            return r;
    return NULL;
}

/* ---- levels ---------------------------------------------------------------------------------- */

/* The axes of the next stride; false: no axis can be halved. */
static bool choose_axes(const network_plan *p, const double spacing[3], const double size[3],
                        bool halved[3])
{
    double lowest = INFINITY;
    int count = 0, last = 0;

    for (int a = p->first; a < 3; a++)
        if (size[a] >= 2 * EDGE_MIN)
            lowest = fmin(lowest, spacing[a]);
    for (int a = 0; a < 3; a++) {
        halved[a] = a >= p->first && size[a] >= 2 * EDGE_MIN && spacing[a] / lowest < 2;
        count += halved[a];
        last = halved[a] ? a : last;
    }
    return count > 1 || (count == 1 && size[last] >= 3 * EDGE_MIN);
}

/* An axis whose spacing is near the finest one gets kernels of 3, from this level on. */
static void widen_kernel(const network_plan *p, const double spacing[3], int kernel[3])
{
    double lowest = INFINITY;

    for (int a = p->first; a < 3; a++)
        lowest = fmin(lowest, spacing[a]);
    for (int a = p->first; a < 3; a++)
        if (spacing[a] / lowest < 2)
            kernel[a] = 3;
}

/* Set strides, kernels and divisors for a patch of 'size'. */
static void set_levels(network_plan *p, const double wanted[3])
{
    double size[3] = { wanted[0], wanted[1], wanted[2] };
    double spacing[3] = { p->spacing[0], p->spacing[1], p->spacing[2] };
    int kernel[3] = { 1, 1, 1 };
    bool halved[3];

    p->levels = 1;
    for (int a = 0; a < 3; a++) {
        p->divisor[a] = 1;
        p->stride[0][a] = 1;
    }
    while (p->levels < PLAN_LEVELS_MAX && choose_axes(p, spacing, size, halved)) {
        widen_kernel(p, spacing, kernel);
        memcpy(p->kernel[p->levels - 1], kernel, sizeof kernel);
        for (int a = 0; a < 3; a++) {
            p->stride[p->levels][a] = halved[a] ? 2 : 1;
            if (!halved[a])
                continue;
            p->divisor[a] *= 2;
            spacing[a] *= 2;
            size[a] = ceil(size[a] / 2);
        }
        p->levels++;
    }
    for (int a = 0; a < 3; a++)
        p->kernel[p->levels - 1][a] = a < p->first ? 1 : 3;
}

/* ---- activations ----------------------------------------------------------------------------- */

/* Elements that the encoder's blocks of a level give. */
static double encoder_activations(const network_plan *p, int level, double voxels)
{
    static const int blocks[] = { 1, 3, 4, 6 };
    double features = (double)p->features[level];
    bool strided = false;

    if (!p->residual)
        return 2 * features * voxels;
    for (int a = 0; a < 3; a++)
        strided = strided || p->stride[level][a] != 1;
    strided = strided || (level > 0 && p->features[level] != p->features[level - 1]);
    return (2.0 * blocks[level < 4 ? level : 3] + (level == 0) + strided) * features * voxels;
}

/* Outputs of all convolutions of one patch. */
static double count_activations(const network_plan *p)
{
    int64_t edge[3] = { p->patch[0], p->patch[1], p->patch[2] };
    double total = 0;

    for (int level = 0; level < p->levels; level++) {
        double voxels = 1;
        for (int a = p->first; a < 3; a++) {
            edge[a] /= p->stride[level][a];
            voxels *= (double)edge[a];
        }
        total += encoder_activations(p, level, voxels);
        if (level < p->levels - 1) /* transposed convolution and convolutions of the decoder */
            total += (p->residual ? 2 : 3) * (double)p->features[level] * voxels;
        if (level == 0)
            total += p->heads * voxels;
    }
    return total;
}

/* Set everything that follows from a patch of 'size', which is rounded up to what levels divide. */
static void set_patch(network_plan *p, const double size[3])
{
    int64_t features_max = p->first == 0 ? FEATURES_MAX_3D : FEATURES_MAX_2D;

    set_levels(p, size);
    for (int a = 0; a < 3; a++)
        p->patch[a] = a < p->first ? 1
                      : (int64_t)ceil(size[a] / (double)p->divisor[a]) * p->divisor[a];
    for (int level = 0; level < p->levels; level++)
        p->features[level] = min_i64(features_max, (int64_t)FEATURES << level);
    p->activations = count_activations(p);
}

/* ---- patch and batch ------------------------------------------------------------------------- */

void network_plan_begin(const plan_rule *rule, const plan_geometry *g, bool flat, int heads,
                        network_plan *out)
{
    network_plan p = { .first = flat, .residual = rule->residual, .heads = heads,
                       .batch = PLAN_BATCH_MIN };
    int edge = flat ? EDGE_2D : EDGE_3D, axes = 3 - p.first;
    double density = 1, size[3] = { 1, 1, 1 };

    memcpy(p.spacing, g->spacing, sizeof p.spacing);
    memcpy(p.extent, g->extent, sizeof p.extent);
    for (int a = p.first; a < 3; a++)
        density *= 1 / p.spacing[a];
    for (int a = p.first; a < 3; a++) {
        double scale = pow(pow(edge, axes) / density, 1.0 / axes);
        size[a] = fmin(nearbyint(1 / p.spacing[a] * scale), p.extent[a]);
    }
    set_patch(&p, size);
    *out = p;
}

/* The axis on which the patch covers most of the median case; the last of equal ones. */
static int covering_axis(const network_plan *p)
{
    int axis = p->first;

    for (int a = p->first; a < 3; a++)
        if ((double)p->patch[a] / p->extent[a] >= (double)p->patch[axis] / p->extent[axis])
            axis = a;
    return axis;
}

/*
 * The patch loses the divisor that a patch smaller by its own divisor would have, so that 224
 * follows 256.
 */
bool network_plan_shrink(network_plan *p)
{
    double size[3] = { (double)p->patch[0], (double)p->patch[1], (double)p->patch[2] };
    int axis = covering_axis(p);
    network_plan less = *p;

    size[axis] -= (double)p->divisor[axis];
    if (size[axis] < EDGE_MIN)
        return false;
    set_levels(&less, size);
    size[axis] = (double)(p->patch[axis] - less.divisor[axis]);
    set_patch(p, size);
    return true;
}

static double reference_of(const plan_rule *rule, const network_plan *p)
{
    return rule->reference[p->first == 0];
}

static int reference_batch(const network_plan *p)
{
    return p->first == 0 ? BATCH_3D : BATCH_2D;
}

static void set_batch(const plan_rule *rule, double voxels, network_plan *p)
{
    double patch = (double)(p->patch[0] * p->patch[1] * p->patch[2]);
    double batch = nearbyint(reference_of(rule, p) / p->activations * reference_batch(p));

    p->batch = (int64_t)fmin(fmax(fmin(batch, nearbyint(voxels * rule->share / patch)),
                                  PLAN_BATCH_MIN), 65536);
}

static double median_voxels(const network_plan *p)
{
    return p->extent[0] * p->extent[1] * p->extent[2];
}

void network_plan_set_batch(const plan_rule *rule, int64_t cases, network_plan *p)
{
    set_batch(rule, median_voxels(p) * (double)cases, p);
}

/* The plain planner allows a 2D network six times the activations: two samples of twelve. */
static bool exceeds_reference(const plan_rule *rule, const network_plan *p)
{
    double samples = rule->residual ? 1 : 2.0 / reference_batch(p);

    return p->activations * samples > reference_of(rule, p);
}

void network_plan_make(const plan_rule *rule, const plan_geometry *g, bool flat, int heads,
                       int64_t cases, network_plan *out)
{
    network_plan p;

    network_plan_begin(rule, g, flat, heads, &p);
    while (exceeds_reference(rule, &p) && network_plan_shrink(&p))
        ;
    network_plan_set_batch(rule, cases, &p);
    *out = p;
}

/* ---- low resolution -------------------------------------------------------------------------- */

/* Coarsen all axes, or those that are more than twice as fine as the coarsest. */
static void coarsen(double spacing[3])
{
    double coarsest = fmax(spacing[0], fmax(spacing[1], spacing[2]));
    bool finer[3], any = false;

    for (int a = 0; a < 3; a++) {
        finer[a] = coarsest / spacing[a] > 2;
        any = any || finer[a];
    }
    for (int a = 0; a < 3; a++)
        if (finer[a] || !any)
            spacing[a] *= lowres_step;
}

bool network_plan_make_lowres(const plan_rule *rule, const network_plan *full, int64_t cases,
                              network_plan *out)
{
    double whole = median_voxels(full), voxels = whole;
    network_plan p = *full;
    plan_geometry g;

    if (full->first != 0)
        return false;
    memcpy(g.spacing, full->spacing, sizeof g.spacing);
    while ((double)(p.patch[0] * p.patch[1] * p.patch[2]) / voxels < lowres_below) {
        coarsen(g.spacing);
        voxels = 1;
        for (int a = 0; a < 3; a++) {
            double extent = full->spacing[a] / g.spacing[a] * full->extent[a];
            voxels *= extent;
            g.extent[a] = nearbyint(extent);
        }
        network_plan_make(rule, &g, false, full->heads, cases, &p);
        set_batch(rule, voxels * (double)cases, &p);
    }
    if (whole / voxels < lowres_gain)
        return false;
    *out = p;
    return true;
}

/* ---- normalisation --------------------------------------------------------------------------- */

plan_scheme plan_scheme_find(const char *name)
{
    static const struct { const char *name; plan_scheme scheme; } schemes[] = {
        { "ct", PLAN_CT }, { "nonorm", PLAN_UNCHANGED }, { "zscore", PLAN_ZSCORE },
        { "rescale_to_0_1", PLAN_RESCALE }, { "rgb_to_0_1", PLAN_RGB }
    };

    for (size_t i = 0; name != NULL && i < sizeof schemes / sizeof *schemes; i++)
        if (strcasecmp(schemes[i].name, name) == 0)
            return schemes[i].scheme;
    return PLAN_ZSCORE;
}

bool plan_masks_zscore(double cropped_share)
{
    return cropped_share < 0.75;
}
