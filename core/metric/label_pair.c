/*
 * label_pair.c - cut the box of each class out of a pair of volumes, and measure its masks.
 *
 * One pass over the volumes finds the bounding boxes of all areas. The masks of a class are then
 * filled within the box around its areas in both volumes.
 */
#include "metric/label_pair.h"

#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"
#include "metric/label_runs.h"
#include "metric/lesions.h"
#include "metric/surface_distance.h"

/* Voxels low[axis] .. high[axis] - 1; empty if high[0] is 0. */
typedef struct area_box {
    int32_t low[3], high[3];
} area_box;

/* ---- boxes ----------------------------------------------------------------------------------- */

static void add_run(area_box *b, int64_t i, int64_t j, int64_t first, int64_t end)
{
    const int32_t low[3] = { (int32_t)i, (int32_t)j, (int32_t)first };
    const int32_t high[3] = { (int32_t)i + 1, (int32_t)j + 1, (int32_t)end };
    bool empty = b->high[0] == 0;

    for (int axis = 0; axis < 3; axis++) {
        b->low[axis] = empty ? low[axis] : (int32_t)min_i64(b->low[axis], low[axis]);
        b->high[axis] = empty ? high[axis] : (int32_t)max_i64(b->high[axis], high[axis]);
    }
}

static void join_boxes(area_box *b, const area_box *other)
{
    if (other->high[0] == 0)
        return;
    add_run(b, other->low[0], other->low[1], other->low[2], other->high[2]);
    add_run(b, other->high[0] - 1, other->high[1] - 1, other->low[2], other->high[2]);
}

/* Add the runs of equal values in a row of one channel. */
static void add_row(const volume *v, int channel, int64_t i, int64_t j, area_box *boxes)
{
    int64_t row = v->extent[2], at = (i * v->extent[1] + j) * row;

    for (int64_t k = 0, end; k < row; k = end) {
        int32_t value = label_at(v, (at + k) * v->channels + channel);

        end = label_run_end(v, channel, at + k, at + row) - at;
        add_run(&boxes[value], i, j, k, end);
    }
}

/* Find the boxes [channel][area] of both volumes. */
static void find_boxes(const label_pair *p, area_box *boxes)
{
    const volume *const both[2] = { p->prediction, p->label };

    for (int n = 0; n < 2; n++)
        for (int64_t i = 0; i < both[n]->extent[0]; i++)
            for (int64_t j = 0; j < both[n]->extent[1]; j++)
                for (int c = 0; c < both[n]->channels; c++)
                    add_row(both[n], c, i, j, boxes + (int64_t)c * p->area_count);
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* The masks of a class that are filled. */
typedef struct filling {
    const label_pair *pair;
    const uint8_t *member;    /* [area] whether the class holds it                                */
    int channel;
    const area_box *box;
    int64_t extent[3];
    uint8_t *masks;
} filling;

static void fill_row(const filling *f, int64_t first, uint8_t *out)
{
    label_scan scan = { .prediction = f->pair->prediction, .label = f->pair->label,
                        .channel = f->channel, .at = first, .end = first + f->extent[2] };
    label_run run;

    while (label_scan_next(&scan, &run))
        memset(out + (run.first - first), f->member[run.prediction] * MASK_PREDICTION
                                          | f->member[run.label] * MASK_LABEL,
               (size_t)(run.end - run.first));
}

static void fill_planes(void *context, int64_t first, int64_t end)
{
    const filling *f = context;
    const int64_t *whole = f->pair->label->extent;
    uint8_t *out = f->masks + first * f->extent[1] * f->extent[2];

    for (int64_t i = first; i < end; i++)
        for (int64_t j = 0; j < f->extent[1]; j++, out += f->extent[2])
            fill_row(f, ((i + f->box->low[0]) * whole[1] + j + f->box->low[1]) * whole[2]
                        + f->box->low[2], out);
}

static void put_values(const double value[METRIC_KIND_COUNT], metric_set set, class_score *out)
{
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        if (metric_set_has(set, (metric_kind)kind))
            out->value[kind] = value[kind];
}

static pons_status score_surfaces(const voxel_box *masks, metric_set set, double tolerance,
                                  class_score *out, pons_error *err)
{
    surface_values v;

    if (set == 0 || surface_distance_compute(masks, tolerance, &v, err) != PONS_OK)
        return err->status;
    put_values((double[METRIC_KIND_COUNT]){ [METRIC_HD] = v.hd, [METRIC_HD95] = v.hd95,
                                            [METRIC_ASD] = v.asd, [METRIC_NSD] = v.nsd }, set, out);
    return PONS_OK;
}

static pons_status score_lesions(const voxel_box *masks, metric_set set, class_score *out,
                                 pons_error *err)
{
    lesion_values v;

    if (set == 0 || lesions_count(masks->bits, masks->extent, &v, err) != PONS_OK)
        return err->status;
    put_values((double[METRIC_KIND_COUNT]){ [METRIC_LESIONS_FOUND] = v.found,
                                            [METRIC_LESIONS_MISSED] = v.missed,
                                            [METRIC_LESIONS_FALSE] = v.false_ones,
                                            [METRIC_LESION_F1] = v.f1 }, set, out);
    return PONS_OK;
}

static pons_status score_masks(const label_pair *p, metric_set set, double tolerance,
                               filling *f, class_score *out, pons_error *err)
{
    for (int axis = 0; axis < 3; axis++)
        f->extent[axis] = f->box->high[axis] - f->box->low[axis];
    int64_t plane = f->extent[1] * f->extent[2];
    f->masks = huge_pages_alloc((size_t)(f->extent[0] * plane) + 1);
    if (f->masks == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the masks of a class");
    parallel_run(f->extent[0], parallel_piece(plane), fill_planes, f);
    voxel_box masks = { .bits = f->masks };
    memcpy(masks.extent, f->extent, sizeof masks.extent);
    memcpy(masks.spacing, p->spacing, sizeof masks.spacing);
    if (score_lesions(&masks, metric_set_from(set, METRIC_OF_LESIONS), out, err) == PONS_OK)
        score_surfaces(&masks, metric_set_from(set, METRIC_OF_SURFACES), tolerance, out, err);
    free(f->masks);
    return err->status;
}

static pons_status score_class(const label_pair *p, metric_set set, double tolerance, int class,
                               const area_box *boxes, uint8_t *member, class_score *out,
                               pons_error *err)
{
    const class_areas *c = &p->classes[class];
    int channel = p->label->channels > 1 ? class : 0;
    area_box box = { { 0 }, { 0 } };
    filling f = { .pair = p, .member = member, .channel = channel, .box = &box };

    for (int n = 0; n < c->count; n++) {
        member[c->area[n]] = 1;
        join_boxes(&box, &boxes[(int64_t)channel * p->area_count + c->area[n]]);
    }
    score_masks(p, set, tolerance, &f, out, err);
    for (int n = 0; n < c->count; n++)
        member[c->area[n]] = 0;
    return err->status;
}

pons_status label_pair_score(const label_pair *p, metric_set set, double tolerance,
                             class_score *out, pons_error *err)
{
    if ((metric_set_from(set, METRIC_OF_SURFACES) | metric_set_from(set, METRIC_OF_LESIONS)) == 0)
        return PONS_OK;
    area_box *boxes = calloc((size_t)p->label->channels * (size_t)p->area_count, sizeof *boxes);
    uint8_t *member = calloc((size_t)p->area_count, 1);
    if (boxes == NULL || member == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for the boxes of classes");
    } else {
        find_boxes(p, boxes);
        for (int c = 0; c < p->class_count && err->status == PONS_OK; c++)
            score_class(p, set, tolerance, c, boxes, member, &out[c], err);
    }
    free(member);
    free(boxes);
    return err->status;
}
