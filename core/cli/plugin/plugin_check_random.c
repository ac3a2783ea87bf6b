/*
 * plugin_check_random.c - check a random transform on a small patch.
 *
 * The same draws give the same record and the same bits. A zeroed record changes nothing. Voxels
 * move only if the transform declares it, and so do displacements.
 */
#include "cli/plugin/plugin_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pons/transform.h>

#include "base/random.h"
#include "plugin/plugin_status.h"

enum { SAMPLES = 64, CHANNELS = 2, GUARD = 64, VOXELS = 8 * 6 * 4 };

/* A patch with its own voxels. */
typedef struct filled {
    pons_patch patch;
    float image[VOXELS * CHANNELS];
    uint8_t label[VOXELS], valid[VOXELS];
    float scratch[3 * VOXELS], field[3 * VOXELS];
} filled;

/* The draws of one sample. */
typedef struct drawn {
    unsigned char *record;     /* malloc'ed; record_size bytes and a guard                        */
    pons_sample sample;
} drawn;

typedef struct random_trial {
    const pons_transform_operations *o;
    const void *config;
    pons_error *err;
    drawn first, second;
    bool any;                  /* some sample changed something                                   */
} random_trial;

static void fill(filled *f)
{
    f->patch = (pons_patch){ .size = sizeof f->patch, .extent = { 8, 6, 4 }, .channels = CHANNELS,
                             .label_channels = 1, .image = f->image, .label = f->label,
                             .valid = f->valid, .scratch = f->scratch };
    for (int i = 0; i < VOXELS * CHANNELS; i++) {
        uint32_t word[4];
        random_voxels(9, (uint64_t)i, word);
        f->image[i] = random_uniform(word[0]) * 4 - 2;
    }
    for (int i = 0; i < 3 * VOXELS; i++) {
        f->scratch[i] = NAN;
        f->field[i] = 0;
    }
    for (int i = 0; i < VOXELS; i++) {
        f->label[i] = (uint8_t)(i % 3);
        f->valid[i] = 1;
    }
}

/* ---- plan ------------------------------------------------------------------------------------ */

static pons_status plan(const random_trial *t, int number, drawn *out)
{
    const size_t size = t->o->record_size;
    pons_rng draws = { .seed = 1, .stream = 2, .epoch = 3, .case_rank = 4,
                       .sample = (uint64_t)number };

    memset(out->record, 0, size);
    memset(out->record + size, 0xa5, GUARD);
    out->sample = (pons_sample){ .size = sizeof out->sample, .extent = { 8, 6, 4 },
                                 .case_extent = { 12, 10, 8 },
                                 .map = { { 1, 0, 0, 0 }, { 0, 1, 0, 0 }, { 0, 0, 1, 0 } } };
    pons_status status = t->o->plan(t->config, &draws, &out->sample, out->record, t->err);
    if (plugin_status(status, "the transform", "plan", t->err) != PONS_OK)
        return t->err->status;
    for (int i = 0; i < GUARD; i++)
        if (out->record[size + (size_t)i] != 0xa5)
            return pons_fail(t->err, PONS_PLUGIN, "'plan' writes behind the %zu bytes of its "
                             "record", size);
    return PONS_OK;
}

static bool is_identity(const pons_sample *s)
{
    if (s->crop_extent[0] != 0)
        return false;
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            if (s->map[r][c] != (r == c))
                return false;
    return true;
}

/* Whether the map only mirrors and exchanges axes. */
static bool is_permutation(const pons_sample *s)
{
    if (s->crop_extent[0] != 0)
        return false;
    for (int r = 0; r < 3; r++) {
        int count = 0;
        for (int c = 0; c < 3; c++) {
            count += s->map[r][c] != 0;
            if (s->map[r][c] != 0 && fabs(s->map[r][c]) != 1)
                return false;
        }
        if (count != 1 || s->map[r][3] != 0)
            return false;
    }
    return true;
}

static double determinant(const double m[3][4])
{
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
           - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
           + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
}

static pons_status check_crop(const random_trial *t, const pons_sample *s, int number)
{
    if ((s->crop_extent[0] != 0) != t->o->crops)
        return pons_fail(t->err, PONS_PLUGIN, "sample %d has %s crop, but the transform %s 'crops'",
                         number, t->o->crops ? "no" : "a", t->o->crops ? "has" : "lacks");
    for (int a = 0; a < 3 && t->o->crops; a++)
        if (s->crop_start[a] < 0 || s->crop_extent[a] < 1
            || s->crop_start[a] + s->crop_extent[a] > s->case_extent[a])
            return pons_fail(t->err, PONS_PLUGIN, "sample %d cuts %lld voxels from voxel %lld of "
                             "axis %d, expected a box in the %lld voxels of the case", number,
                             (long long)s->crop_extent[a], (long long)s->crop_start[a], a,
                             (long long)s->case_extent[a]);
    return PONS_OK;
}

static pons_status check_plan(random_trial *t, int number)
{
    const pons_sample *s = &t->first.sample;
    double volume;

    if (plan(t, number, &t->first) != PONS_OK || plan(t, number, &t->second) != PONS_OK)
        return t->err->status;
    if (memcmp(t->first.record, t->second.record, t->o->record_size) != 0
        || memcmp(s, &t->second.sample, sizeof *s) != 0)
        return pons_fail(t->err, PONS_PLUGIN, "sample %d is planned otherwise with the same draws",
                         number);
    volume = fabs(determinant(s->map));
    if (!isfinite(volume) || volume < 1e-6)
        return pons_fail(t->err, PONS_PLUGIN, "sample %d: the map has determinant %g, expected one "
                         "that can be turned back", number, volume);
    if (s->displaced && t->o->displace == NULL)
        return pons_fail(t->err, PONS_PLUGIN, "sample %d is displaced, but there is no operation "
                         "'displace'", number);
    if (!t->o->resamples && (s->displaced || !is_permutation(s)))
        return pons_fail(t->err, PONS_PLUGIN, "sample %d is moved by other than quarters, which "
                         "only a transform with 'resamples' may", number);
    if (check_crop(t, s, number) != PONS_OK)
        return t->err->status;
    if (!t->o->geometric && (s->displaced || !is_identity(s)))
        return pons_fail(t->err, PONS_PLUGIN, "sample %d is moved, which only a transform with "
                         "'geometric' may", number);
    t->any = t->any || !is_identity(s);
    return PONS_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static pons_status apply(const random_trial *t, const void *record,
                         const pons_transform_scope *scope, pons_patch *patch)
{
    return plugin_status(t->o->apply_patch(t->config, scope, record, patch, t->err),
                         "the transform", "apply_patch", t->err);
}

static pons_status check_zero(const random_trial *t, const filled *before, filled *after)
{
    memset(t->second.record, 0, t->o->record_size);
    fill(after);
    if (apply(t, t->second.record, &plugin_check_all, &after->patch) != PONS_OK)
        return t->err->status;
    if (memcmp(before->image, after->image, sizeof before->image) != 0
        || memcmp(before->label, after->label, sizeof before->label) != 0)
        return pons_fail(t->err, PONS_PLUGIN, "a zeroed record changes the patch");
    return PONS_OK;
}

static pons_status check_kept(const random_trial *t, const filled *before, const filled *after,
                              const pons_transform_scope *scope)
{
    for (int i = 0; i < VOXELS * CHANNELS; i++) {
        if (!isfinite(after->image[i]))
            return pons_fail(t->err, PONS_PLUGIN, "voxel %d of the patch is not finite",
                             i / CHANNELS);
        if (!t->o->geometric && !pons_scope_has(scope, i % CHANNELS)
            && before->image[i] != after->image[i])
            return pons_fail(t->err, PONS_PLUGIN, "it changes channel %d, which 'channels' leaves "
                             "out", i % CHANNELS);
    }
    for (int i = 0; i < VOXELS; i++) {
        if (after->label[i] > 2)
            return pons_fail(t->err, PONS_PLUGIN, "the label has class %d, expected 0 to 2",
                             after->label[i]);
        if (!t->o->geometric && before->label[i] != after->label[i])
            return pons_fail(t->err, PONS_PLUGIN, "it changes the label, which only a transform "
                             "with 'geometric' may");
    }
    return PONS_OK;
}

/* Apply the transform to parts of planes, the last part first. */
static pons_status apply_parts(const random_trial *t, const pons_transform_scope *scope, filled *f)
{
    for (int64_t first = 6; first >= 0; first -= 2) {
        pons_patch part = f->patch;
        part.extent[0] = 2;
        part.first = first * 6 * 4;
        part.image += part.first * CHANNELS;
        part.label += part.first;
        part.valid += part.first;
        if (apply(t, t->first.record, scope, &part) != PONS_OK)
            return t->err->status;
    }
    return PONS_OK;
}

static pons_status check_apply(random_trial *t, const pons_transform_scope *scope,
                               const filled *before, filled *once, filled *again)
{
    fill(once);
    fill(again);
    if (apply(t, t->first.record, scope, &once->patch) != PONS_OK
        || (t->o->pointwise ? apply_parts(t, scope, again)
                            : apply(t, t->first.record, scope, &again->patch)) != PONS_OK)
        return t->err->status;
    if (memcmp(once->image, again->image, sizeof once->image) != 0
        || memcmp(once->label, again->label, sizeof once->label) != 0)
        return pons_fail(t->err, PONS_PLUGIN, "the same record gives another patch %s",
                         t->o->pointwise ? "in parts" : "the second time");
    t->any = t->any || memcmp(before->image, once->image, sizeof once->image) != 0
             || memcmp(before->label, once->label, sizeof once->label) != 0;
    return check_kept(t, before, once, scope);
}

/* ---- displacements --------------------------------------------------------------------------- */

static pons_status displace(const random_trial *t, const void *record, filled *f)
{
    pons_displacement d = { .size = sizeof d, .extent = { 8, 6, 4 }, .field = f->field,
                            .scratch = f->scratch };

    fill(f);
    return plugin_status(t->o->displace(t->config, record, &d, t->err), "the transform",
                         "displace", t->err);
}

static pons_status check_displacement(random_trial *t, filled *once, filled *again)
{
    bool any = false;

    if (displace(t, t->first.record, once) != PONS_OK
        || displace(t, t->first.record, again) != PONS_OK)
        return t->err->status;
    if (memcmp(once->field, again->field, sizeof once->field) != 0)
        return pons_fail(t->err, PONS_PLUGIN, "the same record displaces voxels otherwise the "
                         "second time");
    for (int i = 0; i < 3 * VOXELS; i++) {
        if (!isfinite(once->field[i]))
            return pons_fail(t->err, PONS_PLUGIN, "a displacement of voxel %d is not finite",
                             i % VOXELS);
        any = any || once->field[i] != 0;
    }
    if (any && !t->first.sample.displaced)
        return pons_fail(t->err, PONS_PLUGIN, "'displace' moves voxels, but 'plan' has not set "
                         "'displaced'");
    t->any = t->any || any;
    return PONS_OK;
}

/* ---- all samples ----------------------------------------------------------------------------- */

static pons_status check_samples(random_trial *t, filled *f)
{
    fill(&f[0]);
    if (t->o->apply_patch != NULL && check_zero(t, &f[0], &f[1]) != PONS_OK)
        return t->err->status;
    for (int number = 0; number < SAMPLES; number++) {
        if (check_plan(t, number) != PONS_OK)
            return t->err->status;
        if (t->o->apply_patch != NULL
            && (check_apply(t, &plugin_check_all, &f[0], &f[1], &f[2]) != PONS_OK
                || check_apply(t, &plugin_check_second, &f[0], &f[1], &f[2]) != PONS_OK))
            return t->err->status;
        if (t->o->displace != NULL && check_displacement(t, &f[1], &f[2]) != PONS_OK)
            return t->err->status;
    }
    if (!t->any)
        return pons_fail(t->err, PONS_PLUGIN, "%d samples were neither moved nor changed\n"
                         "hint: --set transform.KEY=VALUE gives it options under which it does "
                         "something", SAMPLES);
    return PONS_OK;
}

pons_status plugin_check_random(const pons_transform_operations *o, const void *config,
                                pons_error *err)
{
    random_trial t = { .o = o, .config = config, .err = err };
    filled *patches = malloc(3 * sizeof *patches);

    t.first.record = malloc(o->record_size + GUARD);
    t.second.record = malloc(o->record_size + GUARD);
    if (patches == NULL || t.first.record == NULL || t.second.record == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory");
    else
        check_samples(&t, patches);
    free(t.first.record);
    free(t.second.record);
    free(patches);
    return err->status;
}
