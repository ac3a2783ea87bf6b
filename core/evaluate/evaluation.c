/*
 * evaluation.c - classes and cases of an evaluation: count voxels, and score pairs of files.
 */
#include "evaluate/evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "data/dataset/class_list.h"
#include "data/reader/volume_read.h"
#include "data/volume/geometry.h"
#include "metric/label_runs.h"

pons_status evaluation_open(evaluation *e, pons_error *err)
{
    *e = (evaluation){ .memory = arena_new(), .tolerance = 1,
                       .metrics = 1u << METRIC_DICE | 1u << METRIC_IOU };
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        e->column[kind] = (metric_kind)kind;
    return e->memory != NULL ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory");
}

void evaluation_close(evaluation *e)
{
    if (e->memory != NULL)
        arena_free(e->memory);
    free(e->cases);
    *e = (evaluation){ .memory = NULL };
}

void evaluation_add_metric(evaluation *e, metric_kind kind)
{
    int end = 0, at = 0;

    if (metric_set_has(e->metrics, kind))
        return;
    for (int i = 0; i < METRIC_KIND_COUNT; i++)
        end += metric_set_has(e->metrics, (metric_kind)i);
    while (e->column[at] != kind)
        at++;
    memmove(&e->column[end + 1], &e->column[end], (size_t)(at - end) * sizeof e->column[0]);
    e->column[end] = kind;
    e->metrics |= (metric_set)1 << kind;
}

/* ---- classes --------------------------------------------------------------------------------- */

static void mark_listed(evaluation *e, const data_class *classes, int count)
{
    bool *listed = arena_alloc(e->memory, LABEL_ID_MAX + 1);

    listed[0] = true;
    for (int c = 0; c < count; c++)
        for (int i = 0; i < classes[c].id_count; i++)
            listed[classes[c].id[i]] = true;
    e->listed = listed;
}

pons_status evaluation_name_classes(evaluation *e, const pons_texts *items, pons_error *err)
{
    const data_class *all;
    data_class *kept;
    pons_error wrong = PONS_ERROR_INIT; /* errors of --labels are usage errors */
    int count;

    if (class_list_parse(e->memory, "--labels", items, CLASS_COUNT_MAX, &all, &count, &wrong)
        != PONS_OK)
        return pons_fail(err, PONS_USAGE, "%s", wrong.text);
    mark_listed(e, all, count);
    kept = arena_alloc(e->memory, (size_t)count * sizeof *kept);
    for (int i = 0; i < count; i++) {
        if (strcmp(all[i].name, "ignore") == 0)
            e->ignored = &all[i];
        else if (class_index_of_id(&all[i], 1, 0) < 0)
            kept[e->class_count++] = all[i];
    }
    e->classes = kept;
    if (e->class_count == 0)
        return pons_fail(err, PONS_USAGE, "--labels names only the background");
    id_partition_make(e->memory, e->classes, e->class_count, &e->areas);
    return PONS_OK;
}

/* Read a label file, U8 or I32, and check that its ids are in the range of classes. */
static pons_status read_label_ids(const char *path, volume *out, volume_facts *facts,
                                  pons_error *err)
{
    if (volume_read_label_compact(path, out, facts, err) == PONS_OK)
        id_partition_check_ids(path, out, err);
    return err->status;
}

static pons_status mark_ids(const char *path, bool *seen, pons_error *err)
{
    volume v;
    volume_facts facts;

    if (volume_read_label_facts(path, &facts, err) != PONS_OK || facts.channels > 1)
        return err->status;
    memset(&v, 0, sizeof v);
    if (read_label_ids(path, &v, NULL, err) == PONS_OK) {
        int64_t voxels = pons_volume_count(&v);
        for (int64_t i = 0; i < voxels; i = label_run_end(&v, 0, i, voxels))
            seen[label_at(&v, i)] = true;
    }
    pons_volume_clear(&v);
    return err->status;
}

pons_status evaluation_find_classes(evaluation *e, int count, const char *const *file,
                                    pons_error *err)
{
    bool *seen = arena_alloc(e->memory, LABEL_ID_MAX + 1);
    data_class *classes;

    for (int i = 0; i < count; i++) {
        if (mark_ids(file[i], seen, err) != PONS_OK)
            return err->status;
    }
    for (int id = 1; id <= LABEL_ID_MAX; id++)
        e->class_count += seen[id];
    classes = arena_alloc(e->memory, (size_t)e->class_count * sizeof *classes + 1);
    for (int id = 1, n = 0; id <= LABEL_ID_MAX; id++) {
        if (!seen[id])
            continue;
        int *one = arena_alloc(e->memory, sizeof *one);
        *one = id;
        classes[n++] = (data_class){ arena_format(e->memory, "%d", id), 1, one };
    }
    e->classes = classes;
    if (e->class_count == 0)
        return pons_fail(err, PONS_DATA, "labels and predictions hold nothing but 0\nhint: "
                         "--labels NAME:ID says what was expected");
    id_partition_make(e->memory, e->classes, e->class_count, &e->areas);
    return PONS_OK;
}

void evaluation_share_classes(evaluation *e, const evaluation *from)
{
    e->class_count = from->class_count;
    e->classes = from->classes;
    e->listed = from->listed;
    e->areas = from->areas;
}

/* ---- cases ----------------------------------------------------------------------------------- */

pons_status evaluation_add_scores(evaluation *e, const char *name, const class_score *score,
                                  pons_error *err)
{
    if (e->case_count == e->room) {
        int room = 2 * e->room + 16;
        evaluated_case *more = realloc(e->cases, (size_t)room * sizeof *more);
        if (more == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory");
        e->cases = more;
        e->room = room;
    }
    size_t size = (size_t)e->class_count * sizeof *score;
    evaluated_case *c = &e->cases[e->case_count++];
    *c = (evaluated_case){ .name = arena_string(e->memory, name) };
    c->score = memcpy(arena_alloc(e->memory, size + 1), score, size);
    for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
        c->mean[kind] = metric_mean_of_classes(score, e->class_count, (metric_kind)kind);
    return PONS_OK;
}

pons_status evaluation_score_masks(const evaluation *e, const volume *prediction,
                                   const volume *label, const class_areas *areas, int area_count,
                                   class_score *score, pons_error *err)
{
    label_pair p = { .prediction = prediction, .label = label, .area_count = area_count,
                     .class_count = e->class_count, .classes = areas };

    pons_volume_spacing(label, p.spacing);
    for (int axis = 0; axis < 3; axis++)
        p.spacing[axis] = e->spacing[axis] > 0 ? e->spacing[axis] : p.spacing[axis];
    return label_pair_score(&p, e->metrics, e->tolerance, score, err);
}

/* List the prediction's ids that no class lists. */
static pons_status list_unlisted(const evaluation *e, const volume *prediction,
                                 const unlisted_id **out, int *count, pons_error *err)
{
    int64_t *voxels = calloc(LABEL_ID_MAX + 1, sizeof *voxels);
    int64_t count_all = pons_volume_count(prediction);
    int found = 0, put = 0;

    if (voxels == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int64_t i = 0, end; i < count_all; i = end) {
        int32_t id = label_at(prediction, i);

        end = label_run_end(prediction, 0, i, count_all);
        found += !e->listed[id] && voxels[id] == 0;
        voxels[id] += e->listed[id] ? 0 : end - i;
    }
    unlisted_id *list = arena_alloc(e->memory, (size_t)found * sizeof *list + 1);
    for (int n = 0; n <= LABEL_ID_MAX; n++)
        if (voxels[n] > 0)
            list[put++] = (unlisted_id){ n, voxels[n] };
    *out = list;
    *count = found;
    free(voxels);
    return PONS_OK;
}

static label_scan scan_of(const volume *prediction, const volume *label)
{
    return (label_scan){ .prediction = prediction, .label = label,
                         .end = pons_volume_count(label) };
}

/* Count disjoint classes: each id belongs to at most one. */
static void count_disjoint(const evaluation *e, const volume *prediction, const volume *label,
                           metric_count *out)
{
    label_scan scan = scan_of(prediction, label);
    label_run run;

    while (label_scan_next(&scan, &run)) {
        int32_t a = e->areas.of[run.prediction], b = e->areas.of[run.label];
        int64_t count = run.end - run.first;

        if (a > 0)
            out[a - 1].prediction += count;
        if (b > 0)
            out[b - 1].label += count;
        if (a > 0 && a == b)
            out[a - 1].both += count;
    }
}

static metric_count count_class(const data_class *c, const volume *prediction, const volume *label)
{
    metric_count count = { .prediction = 0 };
    label_scan scan = scan_of(prediction, label);
    label_run run;

    while (label_scan_next(&scan, &run)) {
        bool p = class_index_of_id(c, 1, run.prediction) >= 0;
        bool g = class_index_of_id(c, 1, run.label) >= 0;
        int64_t voxels = run.end - run.first;

        count.prediction += p ? voxels : 0;
        count.label += g ? voxels : 0;
        count.both += p && g ? voxels : 0;
    }
    return count;
}

/* The ids of each class; in volumes of regions the value 1 of each class's channel. */
static const class_areas *list_areas(const evaluation *e, bool regions)
{
    static const int32_t region = 1;
    class_areas *list = arena_alloc(e->memory, (size_t)e->class_count * sizeof *list + 1);

    for (int c = 0; c < e->class_count; c++)
        list[c] = regions ? (class_areas){ 1, &region }
                          : (class_areas){ e->classes[c].id_count, e->classes[c].id };
    return list;
}

static bool is_ignored(const evaluation *e, int32_t id)
{
    return e->ignored != NULL && class_index_of_id(e->ignored, 1, id) >= 0;
}

static void clear_voxels(volume *v, int64_t first, int64_t end)
{
    size_t size = v->type == PONS_U8 ? sizeof(uint8_t) : sizeof(int32_t);

    memset((char *)v->voxels + (size_t)first * size, 0, (size_t)(end - first) * size);
}

/* Make both volumes background where the label is ignored; the number of these voxels. */
static int64_t clear_ignored_ids(const evaluation *e, volume *prediction, volume *label)
{
    int64_t cleared = 0, count = e->ignored != NULL ? pons_volume_count(label) : 0;

    for (int64_t v = 0, end; v < count; v = end) {
        end = label_run_end(label, 0, v, count);
        if (!is_ignored(e, label_at(label, v)))
            continue;
        clear_voxels(prediction, v, end);
        clear_voxels(label, v, end);
        cleared += end - v;
    }
    return cleared;
}

/* Score two label volumes (checked ids) on one grid. */
static pons_status add_ids(evaluation *e, const char *name, volume *prediction, volume *label,
                           pons_error *err)
{
    metric_count *count = arena_alloc(e->memory, (size_t)e->class_count * sizeof *count + 1);
    class_score *score = arena_alloc(e->memory, (size_t)e->class_count * sizeof *score + 1);
    int64_t voxels = pons_volume_count(label), ignored = clear_ignored_ids(e, prediction, label);

    if (e->areas.disjoint)
        count_disjoint(e, prediction, label, count);
    for (int c = 0; c < e->class_count; c++) {
        if (!e->areas.disjoint)
            count[c] = count_class(&e->classes[c], prediction, label);
        count[c].voxels = voxels - ignored;
        score[c] = class_score_of_counts(count[c]);
    }
    const unlisted_id *unlisted = NULL;
    int unlisted_count = 0;
    if (e->listed != NULL
        && list_unlisted(e, prediction, &unlisted, &unlisted_count, err) != PONS_OK)
        return err->status;
    if (evaluation_score_masks(e, prediction, label, list_areas(e, false), LABEL_ID_MAX + 1, score,
                               err) == PONS_OK
        && evaluation_add_scores(e, name, score, err) == PONS_OK) {
        e->cases[e->case_count - 1].unlisted = unlisted;
        e->cases[e->case_count - 1].unlisted_count = unlisted_count;
    }
    return err->status;
}

/*
 * Make U8 regions, a channel for each class: values above 0.5, or ids of the class. All channels
 * of an ignored id are TARGET_IGNORED.
 */
static pons_status regions_of(const evaluation *e, const volume *from, volume *to, pons_error *err)
{
    if (pons_volume_init(to, PONS_U8, e->class_count, from->extent, err) != PONS_OK)
        return err->status;
    memcpy(to->affine, from->affine, sizeof to->affine);
    for (int64_t i = 0; i < pons_volume_count(from); i++) {
        uint8_t *in = (uint8_t *)to->voxels + i * to->channels;

        for (int c = 0; c < to->channels; c++) {
            if (from->type == PONS_F32)
                in[c] = ((const float *)from->voxels)[i * from->channels + c] > 0.5f;
            else if (is_ignored(e, label_at(from, i)))
                in[c] = TARGET_IGNORED;
            else
                in[c] = class_index_of_id(&e->classes[c], 1, label_at(from, i)) >= 0;
        }
    }
    return PONS_OK;
}

pons_status evaluation_read_regions(const evaluation *e, const char *prediction, const char *label,
                                    volume *p, volume *g, pons_error *err)
{
    volume read, ids;
    volume_facts facts, facts_of_label;

    memset(&read, 0, sizeof read);
    memset(&ids, 0, sizeof ids);
    if (volume_read_image(prediction, &read, &facts, err) != PONS_OK
        || read_label_ids(label, &ids, &facts_of_label, err) != PONS_OK
        || volume_grid_compare(&facts.grid, prediction, &facts_of_label.grid, label, err)
               != PONS_OK)
        goto release;
    if (e->listed == NULL)
        pons_fail(err, PONS_USAGE, "'%s' has %d channels, expected --labels to say which regions "
                  "they are\nhint: in the order of the channels, as in --labels \"WT:1,2,3 ET:3\"",
                  prediction, read.channels);
    else if (read.channels != e->class_count)
        pons_fail(err, PONS_DATA, "'%s' has %d channels, expected %d, one for each class\nhint: "
                  "in the order of the channels, as in --labels \"WT:1,2,3 ET:3\"",
                  prediction, read.channels, e->class_count);
    else if (regions_of(e, &read, p, err) == PONS_OK)
        regions_of(e, &ids, g, err);
release:
    pons_volume_clear(&read);
    pons_volume_clear(&ids);
    return err->status;
}

/* Replace volumes of ids (I32) by the numbers of their classes, or by a channel for each class. */
static pons_status mark_classes(const evaluation *e, volume *ids, pons_error *err)
{
    volume regions;

    if (e->areas.disjoint) {
        id_partition_apply(&e->areas, ids);
        return PONS_OK;
    }
    memset(&regions, 0, sizeof regions);
    if (regions_of(e, ids, &regions, err) != PONS_OK)
        return err->status;
    pons_volume_clear(ids);
    *ids = regions;
    return PONS_OK;
}

static pons_status read_ids_wide(const char *path, volume *out, pons_error *err)
{
    if (volume_read_label(path, out, NULL, err) == PONS_OK)
        id_partition_check_ids(path, out, err);
    return err->status;
}

pons_status evaluation_read_marks(const evaluation *e, const char *prediction, const char *label,
                                  volume *p, volume *g, pons_error *err)
{
    volume_facts facts;

    if (volume_read_label_facts(prediction, &facts, err) != PONS_OK)
        return err->status;
    if (facts.channels > 1) {
        if (evaluation_read_regions(e, prediction, label, p, g, err) == PONS_OK)
            metric_clear_ignored(p->voxels, g->voxels, pons_volume_count(g), g->channels,
                                 TARGET_IGNORED);
        return err->status;
    }
    if (read_ids_wide(prediction, p, err) != PONS_OK || read_ids_wide(label, g, err) != PONS_OK)
        return err->status;
    clear_ignored_ids(e, p, g);
    if (mark_classes(e, p, err) == PONS_OK)
        mark_classes(e, g, err);
    return err->status;
}

static pons_status add_regions(evaluation *e, const char *name, const char *prediction,
                               const char *label, pons_error *err)
{
    metric_count *count = arena_alloc(e->memory, (size_t)e->class_count * sizeof *count + 1);
    class_score *score = arena_alloc(e->memory, (size_t)e->class_count * sizeof *score + 1);
    volume p, g;

    memset(&p, 0, sizeof p);
    memset(&g, 0, sizeof g);
    if (evaluation_read_regions(e, prediction, label, &p, &g, err) == PONS_OK) {
        int64_t ignored = metric_clear_ignored(p.voxels, g.voxels, pons_volume_count(&g),
                                               g.channels, TARGET_IGNORED);
        metric_count_regions(p.voxels, g.voxels, pons_volume_count(&g), e->class_count, count);
        metric_count_drop(count, e->class_count, true, ignored);
        for (int c = 0; c < e->class_count; c++)
            score[c] = class_score_of_counts(count[c]);
        if (evaluation_score_masks(e, &p, &g, list_areas(e, true), 2, score, err) == PONS_OK)
            evaluation_add_scores(e, name, score, err);
    }
    pons_volume_clear(&p);
    pons_volume_clear(&g);
    return err->status;
}

pons_status evaluation_add_files(evaluation *e, const char *name, const char *prediction,
                                 const char *label, pons_error *err)
{
    volume p, g;
    volume_facts facts_p, facts_g;

    memset(&p, 0, sizeof p);
    memset(&g, 0, sizeof g);
    if (volume_read_label_facts(prediction, &facts_p, err) != PONS_OK)
        return err->status;
    if (facts_p.channels > 1)
        return add_regions(e, name, prediction, label, err);
    if (read_label_ids(prediction, &p, &facts_p, err) == PONS_OK
        && read_label_ids(label, &g, &facts_g, err) == PONS_OK
        && volume_grid_compare(&facts_p.grid, prediction, &facts_g.grid, label, err) == PONS_OK)
        add_ids(e, name, &p, &g, err);
    pons_volume_clear(&p);
    pons_volume_clear(&g);
    return err->status;
}
