/*
 * restore_grid.c - resample a prediction from the preprocessed grid to the file's (R28), a slab of
 * planes at a time.
 *
 * A slab keeps the last plane of the previous one in front, since points between both depend on
 * it. No other part of the preprocessed grid is in memory, unless classes are decided on it
 * ([predict] resample = labels).
 */
#include "infer/infer_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"
#include "data/dataset/class_list.h"
#include "data/volume/inverse_resample.h"
#include "infer/activation.h"
#include "metric/connected_components.h"

/* voxels of a parallel task; floats of a tile that fits the L1 cache */
enum { PIECE = 1 << 14, TILE = 1 << 12 };

/* Planes of probabilities or logits: [1 + planes][H][W][classes]. */
typedef struct slab {
    float *values;
    int64_t planes;           /* capacity, without the plane in front                             */
} slab;

struct restore_grid {
    const experiment *experiment;
    predict_outputs outputs;
    inverse_resample *inverse;
    volume from;              /* no voxels                                                        */
    volume decided;           /* on the preprocessed grid; empty: decided on the file's grid      */
    slab probabilities, logits;
    int64_t last;             /* planes of the previous slab                                      */
    predict_result result;
};

/* ---- open ------------------------------------------------------------------------------------ */

/* True if the result has one 0/1 channel for each class, instead of class indices. */
static bool is_regions(const experiment *e)
{
    return e->regions || e->task.classes == 1;
}

/* True if logits are resampled in place of probabilities, and activated afterwards. */
static bool is_late(const experiment *e)
{
    return e->sections.predict.resample == RESAMPLE_LOGITS;
}

static inverse_resample_kind resample_kind_of(const experiment *e)
{
    if (!is_regions(e))
        return INVERSE_RESAMPLE_CLASSES;
    return is_late(e) && e->activation == PONS_ACTIVATION_SIGMOID ? INVERSE_RESAMPLE_LOGITS
                                                                  : INVERSE_RESAMPLE_REGIONS;
}

/* Voxels outside the inside box have the probability 1 of the first class, and 0 of a region. */
static pons_status start_probabilities(restore_grid *b, pons_error *err)
{
    const experiment *e = b->experiment;
    float first = is_regions(e) ? 0 : 1, rest = 0;

    if (is_late(e) && e->activation == PONS_ACTIVATION_SIGMOID)
        first = rest = -INFINITY;
    else if (is_late(e) && e->activation == PONS_ACTIVATION_SOFTMAX)
        first = FLT_MAX;
    return inverse_resample_start(b->inverse, INVERSE_RESAMPLE_VALUES, first, rest,
                                  &b->result.probabilities, err);
}

/* Choose the axis across slices by the spacing of [predict], or the preprocessed image's. */
static void separate_slices(restore_grid *b)
{
    const predict_options *p = &b->experiment->sections.predict;
    bool spaced = p->spacing[0] > 0 || p->spacing[1] > 0 || p->spacing[2] > 0;
    double old[3], file[3];

    if (!is_late(b->experiment) || !inverse_resample_spacing(b->inverse, file))
        return;
    pons_volume_spacing(&b->from, old);
    for (int a = 0; a < 3 && spaced; a++)
        old[a] = p->spacing[a] > 0 ? p->spacing[a] : file[a];
    inverse_resample_separate(b->inverse, pons_slice_axis((pons_slices)p->separate_slices, old,
                                                          file));
}

static pons_status start_volumes(restore_grid *b, pons_error *err)
{
    const experiment *e = b->experiment;

    if (e->sections.predict.resample != RESAMPLE_LABELS) {
        inverse_resample_start(b->inverse, resample_kind_of(e), 0, 0, &b->result.classes, err);
    } else if (pons_volume_init(&b->decided, PONS_U8, activation_decision_count(e), b->from.extent,
                                err)
               == PONS_OK) {
        volume_copy_position(&b->decided, &b->from);
    }
    if (err->status == PONS_OK && b->outputs.logits)
        inverse_resample_start(b->inverse, INVERSE_RESAMPLE_VALUES, 0, 0, &b->result.logits, err);
    if (err->status == PONS_OK && b->outputs.probabilities)
        start_probabilities(b, err);
    separate_slices(b);
    return err->status;
}

pons_status restore_grid_open(const experiment *e, const predict_outputs *outputs,
                              const volume *from,
                              const volume_grid *grid, restore_grid **out, pons_error *err)
{
    restore_grid *b = calloc(1, sizeof *b);

    if (b == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    b->experiment = e;
    b->outputs = *outputs;
    b->from = *from;
    b->from.voxels = NULL;
    b->result.grid = *grid;
    if (inverse_resample_open(from, grid, &b->inverse, err) != PONS_OK
        || start_volumes(b, err) != PONS_OK) {
        restore_grid_close(b);
        return err->status;
    }
    *out = b;
    return PONS_OK;
}

void restore_grid_close(restore_grid *b)
{
    if (b == NULL)
        return;
    inverse_resample_close(b->inverse);
    pons_volume_clear(&b->decided);
    pons_volume_clear(&b->result.classes);
    pons_volume_clear(&b->result.logits);
    pons_volume_clear(&b->result.probabilities);
    free(b->probabilities.values);
    free(b->logits.values);
    free(b);
}

/* ---- planes ---------------------------------------------------------------------------------- */

static int64_t plane_size(const restore_grid *b)
{
    return b->from.extent[1] * b->from.extent[2] * b->from.channels;
}

/* Move the last plane of the previous slab to the front, and make room for 'planes' more. */
static pons_status slab_advance(const restore_grid *b, slab *s, int64_t planes, pons_error *err)
{
    int64_t size = plane_size(b);
    float *values = s->values;

    if (s->planes < planes) {
        values = huge_pages_alloc((size_t)((1 + planes) * size) * sizeof *values);
        if (values == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory for %lld planes of %d classes",
                             (long long)planes, b->from.channels);
    }
    if (b->last > 0)
        memmove(values, s->values + b->last * size, (size_t)size * sizeof *values);
    if (values != s->values) {
        free(s->values);
        *s = (slab){ values, planes };
    }
    return PONS_OK;
}

typedef struct plane_filling {
    const restore_grid *b;
    int64_t first;            /* first voxel of the parallel loop                                 */
    void (*fill)(void *context, int64_t at, int64_t count, float *probabilities, float *logits);
    void *context;
    float *probabilities, *logits; /* values of voxel 'first'; NULL: no logits                    */
} plane_filling;

static void fill_piece(void *context, int64_t first, int64_t end)
{
    const plane_filling *f = context;
    const restore_grid *b = f->b;
    int64_t classes = b->from.channels, tile = classes < TILE ? TILE / classes : 1;

    for (int64_t at = first; at < end; at += tile) {
        int64_t count = min_i64(end - at, tile);
        float *p = f->probabilities + at * classes;

        f->fill(f->context, f->first + at, count, p,
                f->logits != NULL ? f->logits + at * classes : NULL);
        if (b->decided.voxels != NULL)
            activation_decide(b->experiment, p, count, (uint8_t *)b->decided.voxels
                              + (f->first + at) * b->decided.channels);
    }
}

pons_status restore_grid_planes(restore_grid *b, int64_t first, int64_t end,
                                void (*fill)(void *context, int64_t at, int64_t count,
                                             float *probabilities, float *logits),
                                void *context, pons_error *err)
{
    int64_t voxels = b->from.extent[1] * b->from.extent[2], size = plane_size(b);
    plane_filling f = { .b = b, .first = first * voxels, .fill = fill, .context = context };
    int64_t before = first > 0 ? size : 0; /* floats of the plane in front */

    if (slab_advance(b, &b->probabilities, end - first, err) != PONS_OK
        || (b->outputs.logits && slab_advance(b, &b->logits, end - first, err) != PONS_OK))
        return err->status;
    b->last = end - first;
    f.probabilities = b->probabilities.values + size;
    f.logits = b->outputs.logits ? b->logits.values + size : NULL;
    parallel_run((end - first) * voxels, PIECE, fill_piece, &f);
    if (b->result.classes.voxels != NULL)
        inverse_resample_planes(b->inverse, resample_kind_of(b->experiment),
                                f.probabilities - before, first, end, &b->result.classes);
    if (b->outputs.logits)
        inverse_resample_planes(b->inverse, INVERSE_RESAMPLE_VALUES, f.logits - before, first, end,
                                &b->result.logits);
    if (b->outputs.probabilities)
        inverse_resample_planes(b->inverse, INVERSE_RESAMPLE_VALUES, f.probabilities - before,
                                first, end, &b->result.probabilities);
    return PONS_OK;
}

/* ---- finish ---------------------------------------------------------------------------------- */

/* Resample classes that were decided on the preprocessed grid to the nearest voxel. */
static pons_status restore_decided(restore_grid *b, pons_error *err)
{
    volume *v = &b->decided;
    int64_t start_volumes[3], extent[3];

    /* A border of background makes voxels outside the inside box background. */
    for (int a = 0; a < 3; a++) {
        start_volumes[a] = v->inside_start[a];
        extent[a] = v->inside_extent[a];
    }
    if (pons_volume_crop(v, start_volumes, extent, 0, err) != PONS_OK
        || pons_volume_crop(v, (int64_t[3]){ -1, -1, -1 },
                            (int64_t[3]){ extent[0] + 2, extent[1] + 2, extent[2] + 2 }, 0, err)
           != PONS_OK
        || pons_volume_resample(v, b->result.grid.affine, b->result.grid.extent, err) != PONS_OK)
        return err->status;
    b->result.classes = *v;
    memset(v, 0, sizeof *v);
    return PONS_OK;
}

/* Apply [predict] keep_largest, whose names experiment_open has checked. */
static pons_status keep_largest(const experiment *e, volume *v, pons_error *err)
{
    const pons_texts *names = &e->sections.predict.keep_largest;
    bool channels = v->channels > 1 || is_regions(e);

    for (int i = 0; i < names->count; i++) {
        int class = class_index_of_name(e->classes, e->class_count, names->item[i]);
        uint8_t *labels = (uint8_t *)v->voxels + (channels ? class : 0);
        if (connected_components_keep_largest(labels, v->channels, v->extent,
                                              channels ? 1 : (uint8_t)class, 0, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static void activate_piece(void *context, int64_t first, int64_t end)
{
    const restore_grid *b = context;
    const volume *v = &b->result.probabilities;

    activation_apply(b->experiment->activation, (float *)v->voxels + first * v->channels,
                     end - first, v->channels);
}

pons_status restore_grid_finish(restore_grid *b, predict_result *out, pons_error *err)
{
    if (is_late(b->experiment) && b->outputs.probabilities)
        parallel_run(pons_volume_count(&b->result.probabilities), PIECE, activate_piece, b);
    if ((b->decided.voxels != NULL && restore_decided(b, err) != PONS_OK)
        || keep_largest(b->experiment, &b->result.classes, err) != PONS_OK)
        return err->status;
    *out = b->result;
    memset(&b->result, 0, sizeof b->result);
    return PONS_OK;
}
