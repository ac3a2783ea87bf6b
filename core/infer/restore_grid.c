/*
 * restore_grid.c - from the preprocessed grid to that of the file (R28), a slab of planes at a
 * time.
 *
 * A slab keeps the last plane of the one before it in front, since points between the two lie
 * between their voxels. Nothing else of the preprocessed grid is held, but for classes that are
 * decided there ([predict] resample = labels).
 */
#include "infer/infer_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"
#include "data/dataset/class_list.h"
#include "data/volume/inverse_resample.h"
#include "infer/activation.h"
#include "metric/connected_components.h"

enum { PIECE = 1 << 14, TILE = 1 << 12 }; /* voxels that a thread takes; numbers in its cache     */

/* Planes of one quantity: [1 + planes][H][W][classes]. */
typedef struct slab {
    float *values;
    int64_t planes;           /* that there is room for, beside the first                         */
} slab;

struct predict_back {
    const experiment *experiment;
    predict_wish wish;
    volume_back *way;
    volume from;              /* no voxels                                                        */
    volume decided;           /* on the preprocessed grid; empty: decided on the file's           */
    slab probabilities, logits;
    int64_t last;             /* planes of the last slab                                          */
    predict_result result;
};

/* ---- open ------------------------------------------------------------------------------------ */

/* A channel of 0 and 1 each, instead of one of class indices. */
static bool is_regions(const experiment *e)
{
    return e->regions || e->task.classes == 1;
}

static volume_back_kind kind_of(const experiment *e)
{
    return is_regions(e) ? VOLUME_BACK_REGIONS : VOLUME_BACK_CLASSES;
}

static pons_status start(predict_back *b, pons_error *err)
{
    const experiment *e = b->experiment;

    if (e->sections.predict.resample == 0) {
        volume_back_start(b->way, kind_of(e), 0, &b->result.classes, err);
    } else if (pons_volume_init(&b->decided, PONS_U8, logits_decisions(e), b->from.extent, err)
               == PONS_OK) {
        volume_place(&b->decided, &b->from);
    }
    if (err->status == PONS_OK && b->wish.logits)
        volume_back_start(b->way, VOLUME_BACK_VALUES, 0, &b->result.logits, err);
    if (err->status == PONS_OK && b->wish.probabilities)
        volume_back_start(b->way, VOLUME_BACK_VALUES, is_regions(e) ? 0 : 1,
                          &b->result.probabilities, err);
    return err->status;
}

pons_status predict_back_open(const experiment *e, const predict_wish *wish, const volume *from,
                              const volume_grid *grid, predict_back **out, pons_error *err)
{
    predict_back *b = calloc(1, sizeof *b);

    if (b == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    b->experiment = e;
    b->wish = *wish;
    b->from = *from;
    b->from.voxels = NULL;
    b->result.grid = *grid;
    if (volume_back_open(from, grid, &b->way, err) != PONS_OK || start(b, err) != PONS_OK) {
        predict_back_close(b);
        return err->status;
    }
    *out = b;
    return PONS_OK;
}

void predict_back_close(predict_back *b)
{
    if (b == NULL)
        return;
    volume_back_close(b->way);
    pons_volume_clear(&b->decided);
    pons_volume_clear(&b->result.classes);
    pons_volume_clear(&b->result.logits);
    pons_volume_clear(&b->result.probabilities);
    free(b->probabilities.values);
    free(b->logits.values);
    free(b);
}

/* ---- planes ---------------------------------------------------------------------------------- */

static int64_t plane_size(const predict_back *b)
{
    return b->from.extent[1] * b->from.extent[2] * b->from.channels;
}

/* Room for planes; the last one of those before goes in front. */
static pons_status slab_turn(const predict_back *b, slab *s, int64_t planes, pons_error *err)
{
    int64_t size = plane_size(b);
    float *values = s->values;

    if (s->planes < planes) {
        values = pages_alloc((size_t)((1 + planes) * size) * sizeof *values);
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

typedef struct filling {
    const predict_back *b;
    int64_t first;            /* voxel that is the loop's 0                                       */
    void (*fill)(void *context, int64_t at, int64_t count, float *probabilities, float *logits);
    void *context;
    float *probabilities, *logits; /* of 'first'; NULL: no logits                                 */
} filling;

static void fill_piece(void *context, int64_t first, int64_t end)
{
    const filling *f = context;
    const predict_back *b = f->b;
    int64_t classes = b->from.channels, tile = classes < TILE ? TILE / classes : 1;

    for (int64_t at = first; at < end; at += tile) {
        int64_t count = end - at < tile ? end - at : tile;
        float *p = f->probabilities + at * classes;

        f->fill(f->context, f->first + at, count, p,
                f->logits != NULL ? f->logits + at * classes : NULL);
        if (b->decided.voxels != NULL)
            activated_decide(b->experiment, p, count, (uint8_t *)b->decided.voxels
                             + (f->first + at) * b->decided.channels);
    }
}

pons_status predict_back_planes(predict_back *b, int64_t first, int64_t end,
                                void (*fill)(void *context, int64_t at, int64_t count,
                                             float *probabilities, float *logits),
                                void *context, pons_error *err)
{
    int64_t voxels = b->from.extent[1] * b->from.extent[2], size = plane_size(b);
    filling f = { .b = b, .first = first * voxels, .fill = fill, .context = context };
    int64_t before = first > 0 ? size : 0; /* what stands in front */

    if (slab_turn(b, &b->probabilities, end - first, err) != PONS_OK
        || (b->wish.logits && slab_turn(b, &b->logits, end - first, err) != PONS_OK))
        return err->status;
    b->last = end - first;
    f.probabilities = b->probabilities.values + size;
    f.logits = b->wish.logits ? b->logits.values + size : NULL;
    parallel_run((end - first) * voxels, PIECE, fill_piece, &f);
    if (b->result.classes.voxels != NULL)
        volume_back_planes(b->way, kind_of(b->experiment), f.probabilities - before, first, end,
                           &b->result.classes);
    if (b->wish.logits)
        volume_back_planes(b->way, VOLUME_BACK_VALUES, f.logits - before, first, end,
                           &b->result.logits);
    if (b->wish.probabilities)
        volume_back_planes(b->way, VOLUME_BACK_VALUES, f.probabilities - before, first, end,
                           &b->result.probabilities);
    return PONS_OK;
}

/* ---- finish ---------------------------------------------------------------------------------- */

/* Classes decided on the preprocessed grid, brought back by nearest neighbour. */
static pons_status decided_back(predict_back *b, pons_error *err)
{
    volume *v = &b->decided;
    int64_t start[3], extent[3];

    /* A rim of background, so that what lies outside the inside box becomes background. */
    for (int a = 0; a < 3; a++) {
        start[a] = v->inside_start[a];
        extent[a] = v->inside_extent[a];
    }
    if (pons_volume_crop(v, start, extent, 0, err) != PONS_OK
        || pons_volume_crop(v, (int64_t[3]){ -1, -1, -1 },
                            (int64_t[3]){ extent[0] + 2, extent[1] + 2, extent[2] + 2 }, 0, err)
           != PONS_OK
        || pons_volume_resample(v, b->result.grid.affine, b->result.grid.extent, err) != PONS_OK)
        return err->status;
    b->result.classes = *v;
    memset(v, 0, sizeof *v);
    return PONS_OK;
}

/* The names were checked when the experiment was opened. */
static pons_status keep_largest(const experiment *e, volume *v, pons_error *err)
{
    const pons_texts *names = &e->sections.predict.keep_largest;
    bool channels = v->channels > 1 || is_regions(e);

    for (int i = 0; i < names->count; i++) {
        int class = class_list_named(e->classes, e->class_count, names->item[i]);
        uint8_t *labels = (uint8_t *)v->voxels + (channels ? class : 0);
        if (keep_largest_component(labels, v->channels, v->extent,
                                   channels ? 1 : (uint8_t)class, 0, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

pons_status predict_back_finish(predict_back *b, predict_result *out, pons_error *err)
{
    if ((b->decided.voxels != NULL && decided_back(b, err) != PONS_OK)
        || keep_largest(b->experiment, &b->result.classes, err) != PONS_OK)
        return err->status;
    *out = b->result;
    memset(&b->result, 0, sizeof b->result);
    return PONS_OK;
}
