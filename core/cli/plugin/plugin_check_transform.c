/*
 * plugin_check_transform.c - check a deterministic transform on a small generated case, with one
 * thread and with several.
 *
 * Channel 0 of the image is a linear function of the position in millimetres, which linear
 * interpolation keeps. So the value of a voxel must agree with its position after the transform.
 * Classes are slabs of that value, so the check also finds a label that moved unlike the image.
 */
#include "cli/plugin/plugin_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pons/transform.h>

#include "base/random.h"
#include "base/thread/parallel.h"
#include "data/case/case_read.h"
#include "data/transform/case_check.h"
#include "plugin/plugin_status.h"

enum { CHANNELS = 2, CLASSES = 3, THREADS = 7 };

/* The extent spans several pieces of most loops over voxels. */
static const int64_t extent[3] = { 53, 41, 40 };
static const double slope[3] = { 1, 2, 3 }; /* per millimetre */
static const double origin = 40;            /* the value at the middle of the case */

/* An affine with permuted axes, one of them reversed, and three spacings. */
static const double affine[3][4] = {
    { 0, 1.5, 0, -12 }, { -1.25, 0, 0, 40 }, { 0, 0, 2, 7 }
};

/* ---- the case -------------------------------------------------------------------------------- */

static void place_of(const double to_mm[3][4], const int64_t at[3], double mm[3])
{
    for (int r = 0; r < 3; r++)
        mm[r] = to_mm[r][0] * (double)at[0] + to_mm[r][1] * (double)at[1]
                + to_mm[r][2] * (double)at[2] + to_mm[r][3];
}

static double value_at(const double mm[3])
{
    double middle[3], value = origin;
    const int64_t half[3] = { extent[0] / 2, extent[1] / 2, extent[2] / 2 };

    place_of(affine, half, middle);
    for (int r = 0; r < 3; r++)
        value += slope[r] * (mm[r] - middle[r]);
    return value;
}

/* The class of a value. Each class is a slab of 20. */
static int class_at(double value)
{
    return value < origin - 10 ? 0 : value < origin + 10 ? 1 : 2;
}

static float noise(int64_t i)
{
    uint32_t word[4];

    random_voxels(5, (uint64_t)i, word);
    return random_uniform(word[0]) + 1;
}

static pons_status make_case(pons_case *c, pons_error *err)
{
    int64_t at[3], voxel = 0;
    double mm[3];

    *c = (pons_case){ .size = sizeof *c, .name = "check" };
    if (pons_volume_init(&c->image, PONS_F32, CHANNELS, extent, err) != PONS_OK
        || pons_volume_init(&c->label, PONS_U8, 1, extent, err) != PONS_OK
        || pons_volume_init(&c->valid, PONS_U8, 1, extent, err) != PONS_OK) {
        case_clear(c);
        return err->status;
    }
    for (int v = 0; v < 3; v++)
        memcpy((v == 0 ? &c->image : v == 1 ? &c->label : &c->valid)->affine, affine,
               sizeof affine);
    for (at[0] = 0; at[0] < extent[0]; at[0]++)
        for (at[1] = 0; at[1] < extent[1]; at[1]++)
            for (at[2] = 0; at[2] < extent[2]; at[2]++, voxel++) {
                place_of(affine, at, mm);
                ((float *)c->image.voxels)[voxel * CHANNELS] = (float)value_at(mm);
                ((float *)c->image.voxels)[voxel * CHANNELS + 1] = noise(voxel);
                ((uint8_t *)c->label.voxels)[voxel] = (uint8_t)class_at(value_at(mm));
                ((uint8_t *)c->valid.voxels)[voxel] = 1;
            }
    return PONS_OK;
}

/* ---- checks of every result ------------------------------------------------------------------ */

static pons_status check_voxels(const pons_case *c, pons_error *err)
{
    const float *x = c->image.voxels;
    const uint8_t *label = c->label.voxels, *valid = c->valid.voxels;

    for (int64_t v = 0; v < pons_volume_count(&c->image); v++) {
        for (int k = 0; k < CHANNELS; k++)
            if (!isfinite(x[v * CHANNELS + k]))
                return pons_fail(err, PONS_PLUGIN, "voxel %lld of the image is not finite",
                                 (long long)v);
        if (label[v] >= CLASSES || valid[v] > 1)
            return pons_fail(err, PONS_PLUGIN, "the label has class %d and valid %d at voxel %lld, "
                             "expected one of the classes 0 to %d and 0 or 1", label[v], valid[v],
                             (long long)v, CLASSES - 1);
    }
    return PONS_OK;
}

static bool volumes_equal(const pons_volume *a, const pons_volume *b)
{
    return memcmp(a->extent, b->extent, sizeof a->extent) == 0
           && memcmp(a->affine, b->affine, sizeof a->affine) == 0
           && memcmp(a->inside_start, b->inside_start, sizeof a->inside_start) == 0
           && memcmp(a->inside_extent, b->inside_extent, sizeof a->inside_extent) == 0
           && memcmp(a->voxels, b->voxels, pons_volume_size(a)) == 0;
}

const pons_transform_scope plugin_check_all = { .size = sizeof(pons_transform_scope) };
const pons_transform_scope plugin_check_second = {
    .size = sizeof(pons_transform_scope), .word_count = 1, .channels = &(const uint64_t){ 2 }
};

/* ---- values alone ---------------------------------------------------------------------------- */

static pons_status check_unmoved(const pons_case *before, const pons_case *after,
                                 const pons_transform_scope *scope, pons_error *err)
{
    const float *x = before->image.voxels, *y = after->image.voxels;

    if (!volumes_equal(&before->label, &after->label)
        || !volumes_equal(&before->valid, &after->valid)
        || memcmp(before->image.affine, after->image.affine, sizeof before->image.affine) != 0)
        return pons_fail(err, PONS_PLUGIN, "it moves or changes more than the image's values, "
                         "which only a transform with 'geometric' may");
    for (int64_t i = 0; i < pons_volume_count(&before->image) * CHANNELS; i++)
        if (!pons_scope_has(scope, (int)(i % CHANNELS)) && memcmp(&x[i], &y[i], sizeof *x) != 0)
            return pons_fail(err, PONS_PLUGIN, "it changes channel %lld, which 'channels' leaves "
                             "out", (long long)(i % CHANNELS));
    return PONS_OK;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Whether a position lies inside the original case, where no voxel is repeated or filled. */
static bool is_among(const double mm[3])
{
    /* The inverse of 'affine', whose rows have one entry each. */
    const double at[3] = { (mm[1] - affine[1][3]) / affine[1][0],
                           (mm[0] - affine[0][3]) / affine[0][1],
                           (mm[2] - affine[2][3]) / affine[2][2] };

    for (int a = 0; a < 3; a++)
        if (at[a] < -1e-6 || at[a] > (double)(extent[a] - 1) + 1e-6)
            return false;
    return true;
}

static bool is_inside(const pons_volume *v, const int64_t at[3])
{
    for (int a = 0; a < 3; a++)
        if (at[a] < v->inside_start[a] || at[a] >= v->inside_start[a] + v->inside_extent[a])
            return false;
    return true;
}

/* Compare a voxel's value with its position. A label may be half a voxel off. */
static pons_status check_position(const pons_case *c, const int64_t at[3], int64_t voxel,
                                  pons_error *err)
{
    /* The change of the value over half a voxel of the case along each axis. */
    static const double reach = (1.5 * 1 + 1.25 * 2 + 2 * 3) / 2 + 1e-6;
    const double found = ((const float *)c->image.voxels)[voxel * CHANNELS];
    const int label = ((const uint8_t *)c->label.voxels)[voxel];
    double mm[3], expected;

    place_of(c->image.affine, at, mm);
    if (!is_among(mm) || !is_inside(&c->image, at))
        return PONS_OK;
    expected = value_at(mm);
    if (fabs(found - expected) > 1e-3)
        return pons_fail(err, PONS_PLUGIN, "voxel %lld %lld %lld holds what was at another place: "
                         "%g, expected %g by the affine", (long long)at[0], (long long)at[1],
                         (long long)at[2], found, expected);
    if (label < class_at(expected - reach) || label > class_at(expected + reach))
        return pons_fail(err, PONS_PLUGIN, "the label has class %d at voxel %lld %lld %lld, "
                         "expected %d by the affine", label, (long long)at[0], (long long)at[1],
                         (long long)at[2], class_at(expected));
    return PONS_OK;
}

static pons_status check_places(const pons_case *c, pons_error *err)
{
    const int64_t *e = c->image.extent;
    int64_t at[3], voxel = 0;

    for (at[0] = 0; at[0] < e[0]; at[0]++)
        for (at[1] = 0; at[1] < e[1]; at[1]++)
            for (at[2] = 0; at[2] < e[2]; at[2]++)
                if (check_position(c, at, voxel++, err) != PONS_OK)
                    return err->status;
    return PONS_OK;
}

/* ---- the whole check ------------------------------------------------------------------------- */

static pons_status transform_case(const pons_transform_operations *o, const void *config,
                                  const pons_transform_scope *scope, int threads, pons_case *c,
                                  pons_error *err)
{
    thread_budget spare = { threads - 1 }, *before;
    pons_case was;
    pons_status status;

    if (make_case(c, err) != PONS_OK)
        return err->status;
    was = *c;
    before = thread_budget_set(&spare);
    status = o->apply(config, scope, c, err);
    thread_budget_set(before);
    if (plugin_status(status, "the transform", "apply", err) == PONS_OK
        && case_check(c, &was, err) == PONS_OK)
        check_voxels(c, err);
    return err->status;
}

/* Check that a second run gives the same result. */
static pons_status check_again(const pons_transform_operations *o, const void *config,
                               const pons_transform_scope *scope, int threads,
                               const pons_case *once, pons_error *err)
{
    pons_case again = { .size = 0 };

    if (transform_case(o, config, scope, threads, &again, err) == PONS_OK
        && (!volumes_equal(&once->image, &again.image)
            || !volumes_equal(&once->label, &again.label)
            || !volumes_equal(&once->valid, &again.valid)))
        pons_fail(err, PONS_PLUGIN, "the same case is changed otherwise %s",
                  threads == 1 ? "the second time" : "by several threads");
    case_clear(&again);
    return err->status;
}

static pons_status check_channels(const pons_transform_operations *o, const void *config,
                                  const pons_transform_scope *scope, pons_error *err)
{
    pons_case before = { .size = 0 }, once = before;

    if (make_case(&before, err) == PONS_OK
        && transform_case(o, config, scope, 1, &once, err) == PONS_OK
        && check_again(o, config, scope, 1, &once, err) == PONS_OK
        && check_again(o, config, scope, THREADS, &once, err) == PONS_OK) {
        if (o->geometric)
            check_places(&once, err);
        else
            check_unmoved(&before, &once, scope, err);
    }
    case_clear(&before);
    case_clear(&once);
    return err->status;
}

static pons_status check_deterministic(const pons_transform_operations *o, const void *config,
                                       pons_error *err)
{
    if (o->apply == NULL)
        return pons_fail(err, PONS_PLUGIN, "neither operation 'apply' nor 'plan' is there");
    if (check_channels(o, config, &plugin_check_all, err) != PONS_OK || o->geometric)
        return err->status;
    return check_channels(o, config, &plugin_check_second, err);
}

pons_status plugin_check_transform(const plugin *p, const invocation *call, pons_error *err)
{
    const pons_transform_operations *o = p->operations;
    config *values;
    void *options;
    char *used;

    if (plugin_check_quick_options(p, call, &options, &values, &used, err) != PONS_OK)
        return err->status;
    if (o->plan != NULL)
        plugin_check_random(o, options, err);
    else
        check_deterministic(o, options, err);
    config_close(values);
    free(options);
    free(used);
    return err->status;
}
