/*
 * predict_back.c - from the preprocessed grid to that of the file (R28).
 */
#include <config.h>

#include "train/predict_parts.h"

#include "data/class_list.h"
#include "train/components.h"

#include <stdlib.h>
#include <string.h>

/* Classes decided on the preprocessed grid, brought back by nearest neighbour. */
static pons_status decide_then_back(const experiment *e, const volume *probabilities,
                                    const volume_grid *grid, volume *out, pons_error *err)
{
    int channels = e->regions || e->task.classes == 1 ? e->task.classes : 1;
    int64_t start[3], extent[3];
    volume v;

    memset(&v, 0, sizeof v);
    if (pons_volume_init(&v, PONS_U8, channels, probabilities->extent, err) != PONS_OK)
        return err->status;
    volume_place(&v, probabilities);
    const float *p = probabilities->voxels;
    uint8_t *to = v.voxels;
    int64_t voxels = pons_volume_count(&v);
    for (int64_t i = 0; i < voxels; i++, p += e->task.classes) {
        int best = 0;
        for (int c = 0; c < e->task.classes; c++) {
            if (channels > 1 || e->task.classes == 1)
                to[i * channels + c] = p[c] > 0.5f;
            else
                best = p[c] > p[best] ? c : best;
        }
        if (channels == 1 && e->task.classes > 1)
            to[i] = (uint8_t)best;
    }
    /* A rim of background, so that what lies outside the inside box becomes background. */
    for (int a = 0; a < 3; a++) {
        start[a] = v.inside_start[a];
        extent[a] = v.inside_extent[a];
    }
    if (pons_volume_crop(&v, start, extent, 0, err) == PONS_OK
        && pons_volume_crop(&v, (int64_t[3]){ -1, -1, -1 },
                            (int64_t[3]){ extent[0] + 2, extent[1] + 2, extent[2] + 2 }, 0, err)
           == PONS_OK)
        pons_volume_resample(&v, grid->affine, grid->extent, err);
    if (err->status == PONS_OK)
        *out = v;
    else
        pons_volume_clear(&v);
    return err->status;
}

/* The names were checked when the experiment was opened. */
static pons_status keep_largest(const experiment *e, volume *v, pons_error *err)
{
    const pons_texts *names = &e->sections.predict.keep_largest;
    bool channels = v->channels > 1 || e->regions || e->task.classes == 1;

    for (int i = 0; i < names->count; i++) {
        int class = class_list_named(e->classes, e->class_count, names->item[i]);
        uint8_t *labels = (uint8_t *)v->voxels + (channels ? class : 0);
        if (keep_largest_component(labels, v->channels, v->extent,
                                   channels ? 1 : (uint8_t)class, 0, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

pons_status predict_bring_back(const experiment *e, const volume *probabilities,
                               const volume *logits, bool want_probabilities, predict_result *out,
                               pons_error *err)
{
    bool channels = e->regions || e->task.classes == 1;

    if (e->sections.predict.resample == 1)
        decide_then_back(e, probabilities, &out->grid, &out->classes, err);
    else
        volume_bring_back(probabilities, &out->grid,
                          channels ? VOLUME_BACK_REGIONS : VOLUME_BACK_CLASSES, 0, &out->classes,
                          err);
    if (err->status != PONS_OK || keep_largest(e, &out->classes, err) != PONS_OK)
        return err->status;
    if (logits != NULL && volume_bring_back(logits, &out->grid, VOLUME_BACK_VALUES, 0, &out->logits,
                                            err) != PONS_OK)
        return err->status;
    if (want_probabilities)
        volume_bring_back(probabilities, &out->grid, VOLUME_BACK_VALUES, channels ? 0 : 1,
                          &out->probabilities, err);
    return err->status;
}
