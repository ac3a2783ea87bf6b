/*
 * slide_detection.c - the detections and targets of slides, one after another.
 */
#include "evaluate/slide_detection.h"

#include <stdlib.h>
#include <string.h>

#include "data/slide/map_file.h"
#include "detection/slide_mask.h"

/* ---- maps ------------------------------------------------------------------------------------ */

/* The index of the class in a map; of several one must be named. -1: an error. */
static int class_of(const slide_detection_rule *r, const char *path, const map_facts *f,
                    pons_error *err)
{
    if (f->class_count == 1)
        return 0;
    for (int c = 0; r->class != NULL && f->name != NULL && c < f->class_count; c++)
        if (strcmp(f->name[c], r->class->name) == 0)
            return c;
    if (r->class != NULL)
        pons_fail(err, PONS_DATA, "map '%s' has no class '%s' among its %d", path, r->class->name,
                  f->class_count);
    else
        pons_fail(err, PONS_DATA, "map '%s' has %d classes, expected one\nhint: --labels NAME:ID "
                  "names the class of the lesions, and their id in masks", path, f->class_count);
    return -1;
}

/* Move the values of one class to the front. */
static void keep_class(map_file *m, int class)
{
    int64_t points = m->facts.rows * m->facts.columns;

    for (int64_t i = 0; i < points; i++)
        m->values[i] = m->values[i * m->facts.class_count + class];
}

/* Set the distance of points. */
static pons_status find_spacing(const slide_detection_rule *r, const char *path,
                                const map_facts *f, double out[2], pons_error *err)
{
    for (int a = 0; a < 2; a++)
        out[a] = r->micrometres[a] > 0 ? r->micrometres[a] : f->micrometres[a];
    if (out[0] > 0 && out[1] > 0)
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "map '%s' does not say the distance of its points\nhint: "
                     "--spacing gives it in millimetres, as in --spacing 1,0.016,0.016 for 16 "
                     "micrometres along rows and columns", path);
}

/* ---- slides ---------------------------------------------------------------------------------- */

static bool is_lesion(const data_class *class, uint8_t id)
{
    if (class == NULL)
        return id > 0;
    for (int i = 0; i < class->id_count; i++)
        if (class->id[i] == id)
            return true;
    return false;
}

/* Find the targets of a mask; without one there are none. */
static pons_status find_targets(const slide_detection_rule *r, const map_file *m,
                                const char *mask, const double spacing[2], target_areas *out,
                                pons_error *err)
{
    const int64_t extent[2] = { m->facts.rows, m->facts.columns };
    const target_rule rule = { { spacing[0], spacing[1] }, r->grow, r->isolated };
    uint8_t *ids = calloc((size_t)(extent[0] * extent[1]), 1);

    if (ids == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for the mask of a slide%s%s",
                         mask != NULL ? ": " : "", mask != NULL ? mask : "");
    if (mask == NULL || slide_mask_read(mask, extent, m->facts.step, ids, err) == PONS_OK) {
        for (int64_t i = 0; i < extent[0] * extent[1]; i++)
            ids[i] = is_lesion(r->class, ids[i]);
        target_areas_find(ids, extent, &rule, out, err);
    }
    free(ids);
    return err->status;
}

static pons_status find_peaks(const slide_detection *d, const char *path, const map_file *m,
                              peak_list *out, pons_error *err)
{
    const int64_t extent[2] = { m->facts.rows, m->facts.columns };
    pons_error problem = PONS_ERROR_INIT;

    if (map_peaks_find(m->values, extent, (float)d->rule.threshold, d->rule.box, out, &problem)
        != PONS_OK)
        pons_fail(err, problem.status, "map '%s': %s", path, problem.text);
    return err->status;
}

static void note_case(slide_detection *d, const char *name, const map_facts *f,
                      const target_areas *t, const peak_list *found)
{
    double step[2] = { f->step[0] > 0 ? f->step[0] : 1, f->step[1] > 0 ? f->step[1] : 1 };
    slide_case *c;

    if (d->count == d->room) {
        size_t room = 2 * (size_t)d->room + 64;
        d->item = arena_grow(d->memory, d->item, (size_t)d->count * sizeof *d->item,
                             room * sizeof *d->item);
        d->room = (int)room;
    }
    c = &d->item[d->count++];
    *c = (slide_case){ .name = arena_string(d->memory, name), .finding_count = found->count };
    c->finding = arena_alloc(d->memory, (size_t)found->count * sizeof *c->finding + 1);
    for (int32_t n = 0; n < t->count; n++)
        *(t->excluded[n] ? &c->excluded : &c->targets) += 1;
    for (int64_t i = 0; i < found->count; i++) {
        int64_t at = found->item[i].at;
        int32_t target = t->id[at];

        c->finding[i] = (slide_finding){
            .row = ((double)(at / f->columns) + 0.5) * step[0],
            .column = ((double)(at % f->columns) + 0.5) * step[1],
            .probability = found->item[i].probability, .target = target,
            .excluded = target > 0 && t->excluded[target - 1]
        };
    }
}

static pons_status add_map(slide_detection *d, const char *name, map_file *m, const char *path,
                           const char *mask, pons_error *err)
{
    int class = class_of(&d->rule, path, &m->facts, err);
    target_areas targets = { 0 };
    peak_list found = { 0 };
    double spacing[2];

    if (class < 0 || find_spacing(&d->rule, path, &m->facts, spacing, err) != PONS_OK)
        return err->status;
    keep_class(m, class);
    if (find_targets(&d->rule, m, mask, spacing, &targets, err) == PONS_OK
        && find_peaks(d, path, m, &found, err) == PONS_OK
        && froc_add(&d->sums, &targets, &found, err) == PONS_OK)
        note_case(d, name, &m->facts, &targets, &found);
    target_areas_clear(&targets);
    peak_list_clear(&found);
    return err->status;
}

pons_status slide_detection_add(slide_detection *d, const char *name, const char *map,
                                const char *mask, pons_error *err)
{
    map_file m;

    if (map_file_read(map, &m, err) == PONS_OK)
        add_map(d, name, &m, map, mask, err);
    map_file_clear(&m);
    return err->status;
}

pons_status slide_detection_finish(slide_detection *d, pons_error *err)
{
    int64_t small = 0;

    for (int i = 0; i < d->count; i++)
        small += d->item[i].excluded;
    if (d->sums.targets == 0 && small > 0)
        return pons_fail(err, PONS_DATA, "none of %lld lesions counts: all are shorter than %g "
                         "micrometres, --itc-diameter and --grow-distance together",
                         (long long)small, d->rule.isolated + d->rule.grow);
    return froc_curve_make(&d->sums, &d->curve, err);
}

void slide_detection_clear(slide_detection *d)
{
    froc_sums_clear(&d->sums);
    froc_curve_clear(&d->curve);
}
