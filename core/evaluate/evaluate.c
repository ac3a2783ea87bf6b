/*
 * evaluate.c - count ids in pairs of files, sum up, print.
 */
#include "evaluate/evaluate.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/json.h"
#include "base/text/quote.h"
#include "data/dataset/class_list.h"
#include "data/nifti/nifti_read.h"
#include "data/volume/geometry.h"

pons_status evaluation_open(evaluation *e, pons_error *err)
{
    *e = (evaluation){ .memory = arena_new() };
    return e->memory != NULL ? PONS_OK : pons_fail(err, PONS_DEVICE, "out of memory");
}

void evaluation_close(evaluation *e)
{
    if (e->memory != NULL)
        arena_free(e->memory);
    free(e->cases);
    *e = (evaluation){ .memory = NULL };
}

/* ---- classes --------------------------------------------------------------------------------- */

static void note_listed(evaluation *e, const data_class *classes, int count)
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
    pons_error wrong = PONS_ERROR_INIT; /* of a command line, not of a file */
    int count;

    if (class_list_parse(e->memory, "--labels", items, &all, &count, &wrong) != PONS_OK)
        return pons_fail(err, PONS_USAGE, "%s", wrong.text);
    note_listed(e, all, count);
    kept = arena_alloc(e->memory, (size_t)count * sizeof *kept);
    for (int i = 0; i < count; i++) {
        if (class_list_find(&all[i], 1, 0) < 0)
            kept[e->class_count++] = all[i];
    }
    e->classes = kept;
    if (e->class_count == 0)
        return pons_fail(err, PONS_USAGE, "--labels names only the background");
    id_areas_make(e->memory, e->classes, e->class_count, &e->areas);
    return PONS_OK;
}

/* A label file with the ids that a class can list. */
static pons_status read_ids(const char *path, volume *out, volume_facts *facts, pons_error *err)
{
    if (volume_read_label(path, out, facts, err) == PONS_OK)
        id_areas_check(path, out, err);
    return err->status;
}

static pons_status note_ids(const char *path, bool *seen, pons_error *err)
{
    volume v;
    volume_facts facts;

    if (volume_read_facts(path, &facts, err) != PONS_OK || facts.channels > 1)
        return err->status;
    memset(&v, 0, sizeof v);
    if (read_ids(path, &v, NULL, err) == PONS_OK) {
        const int32_t *id = v.voxels;
        for (int64_t i = 0; i < pons_volume_count(&v); i++)
            seen[id[i]] = true;
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
        if (note_ids(file[i], seen, err) != PONS_OK)
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
    id_areas_make(e->memory, e->classes, e->class_count, &e->areas);
    return PONS_OK;
}

/* ---- cases ----------------------------------------------------------------------------------- */

pons_status evaluation_add_counts(evaluation *e, const char *name, const metric_count *count,
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
    size_t size = (size_t)e->class_count * sizeof *count;
    evaluated_case *c = &e->cases[e->case_count++];
    *c = (evaluated_case){ .name = arena_string(e->memory, name) };
    c->count = memcpy(arena_alloc(e->memory, size + 1), count, size);
    return PONS_OK;
}

/* Ids of a prediction that no class lists, to the case that was added last. */
static pons_status add_unlisted(evaluation *e, const volume *prediction, pons_error *err)
{
    evaluated_case *c = &e->cases[e->case_count - 1];
    int64_t *voxels = calloc(LABEL_ID_MAX + 1, sizeof *voxels);
    const int32_t *id = prediction->voxels;
    unlisted_id *list;
    int count = 0;

    if (voxels == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int64_t i = 0; i < pons_volume_count(prediction); i++)
        count += !e->listed[id[i]] && voxels[id[i]]++ == 0;
    list = arena_alloc(e->memory, (size_t)count * sizeof *list + 1);
    for (int n = 0; n <= LABEL_ID_MAX; n++)
        if (voxels[n] > 0)
            list[c->unlisted_count++] = (unlisted_id){ n, voxels[n] };
    c->unlisted = list;
    free(voxels);
    return PONS_OK;
}

/* Each id belongs to one class at most. */
static void count_areas(const evaluation *e, const volume *prediction, const volume *label,
                        metric_count *out)
{
    const int32_t *p = prediction->voxels, *g = label->voxels, *area = e->areas.of;

    for (int64_t i = 0; i < pons_volume_count(label); i++) {
        int32_t a = area[p[i]], b = area[g[i]];

        if (a > 0)
            out[a - 1].prediction++;
        if (b > 0)
            out[b - 1].label++;
        if (a > 0 && a == b)
            out[a - 1].both++;
    }
}

static metric_count count_class(const data_class *c, const int32_t *prediction,
                                const int32_t *label, int64_t voxels)
{
    metric_count count = { 0, 0, 0 };

    for (int64_t i = 0; i < voxels; i++) {
        bool p = false, g = false;
        for (int j = 0; j < c->id_count; j++) {
            p = p || prediction[i] == c->id[j];
            g = g || label[i] == c->id[j];
        }
        count.prediction += p;
        count.label += g;
        count.both += p && g;
    }
    return count;
}

/* Two label volumes (I32, ids that were checked) on one grid. */
static pons_status add_ids(evaluation *e, const char *name, const volume *prediction,
                           const volume *label, pons_error *err)
{
    metric_count *count = arena_alloc(e->memory, (size_t)e->class_count * sizeof *count + 1);

    if (e->areas.disjoint)
        count_areas(e, prediction, label, count);
    for (int c = 0; c < e->class_count && !e->areas.disjoint; c++)
        count[c] = count_class(&e->classes[c], prediction->voxels, label->voxels,
                               pons_volume_count(label));
    if (evaluation_add_counts(e, name, count, err) == PONS_OK && e->listed != NULL)
        add_unlisted(e, prediction, err);
    return err->status;
}

/* 'from' as U8 with a channel for each class: what is above one half, or the class's ids. */
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
            else
                in[c] = class_list_find(&e->classes[c], 1, ((const int32_t *)from->voxels)[i]) >= 0;
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
        || read_ids(label, &ids, &facts_of_label, err) != PONS_OK
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

static pons_status add_regions(evaluation *e, const char *name, const char *prediction,
                               const char *label, pons_error *err)
{
    metric_count *count = arena_alloc(e->memory, (size_t)e->class_count * sizeof *count + 1);
    volume p, g;

    memset(&p, 0, sizeof p);
    memset(&g, 0, sizeof g);
    if (evaluation_read_regions(e, prediction, label, &p, &g, err) == PONS_OK) {
        for (int64_t i = 0; i < pons_volume_count(&g) * g.channels; i++) {
            bool in = ((const uint8_t *)p.voxels)[i], truth = ((const uint8_t *)g.voxels)[i];

            count[i % g.channels].prediction += in;
            count[i % g.channels].label += truth;
            count[i % g.channels].both += in && truth;
        }
        evaluation_add_counts(e, name, count, err);
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
    if (volume_read_facts(prediction, &facts_p, err) != PONS_OK)
        return err->status;
    if (facts_p.channels > 1)
        return add_regions(e, name, prediction, label, err);
    if (read_ids(prediction, &p, &facts_p, err) == PONS_OK
        && read_ids(label, &g, &facts_g, err) == PONS_OK
        && volume_grid_compare(&facts_p.grid, prediction, &facts_g.grid, label, err) == PONS_OK)
        add_ids(e, name, &p, &g, err);
    pons_volume_clear(&p);
    pons_volume_clear(&g);
    return err->status;
}

/* ---- print ----------------------------------------------------------------------------------- */

static void summarise(const evaluation *e, int class, metric_summary *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < e->case_count; i++)
        metric_summary_add(out, e->cases[i].count[class]);
}

static void put_case(const evaluation *e, const evaluated_case *c, FILE *to)
{
    fputs("{\"case\":", to);
    json_put_text(to, c->name);
    fputs(",\"classes\":{", to);
    for (int i = 0; i < e->class_count; i++) {
        fputs(i > 0 ? "," : "", to);
        json_put_text(to, e->classes[i].name);
        for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
            fprintf(to, "%s\"%s\":", kind > 0 ? "," : ":{", metric_names[kind]);
            json_put_number(to, metric_value((metric_kind)kind, c->count[i]));
        }
        fprintf(to, ",\"voxels\":{\"prediction\":%" PRId64 ",\"label\":%" PRId64 "}}",
                c->count[i].prediction, c->count[i].label);
    }
    fputs("},\"unlisted\":{", to);
    for (int i = 0; i < c->unlisted_count; i++)
        fprintf(to, "%s\"%d\":%" PRId64, i > 0 ? "," : "", c->unlisted[i].id,
                c->unlisted[i].voxels);
    fputs("}}", to);
}

void evaluation_print_json(const evaluation *e, FILE *to)
{
    fputs("{\"cases\":[", to);
    for (int i = 0; i < e->case_count; i++) {
        fputs(i > 0 ? "," : "", to);
        put_case(e, &e->cases[i], to);
    }
    fputs("],\"summary\":{", to);
    for (int i = 0; i < e->class_count; i++) {
        metric_summary s;
        summarise(e, i, &s);
        fputs(i > 0 ? "," : "", to);
        json_put_text(to, e->classes[i].name);
        for (int kind = 0; kind < METRIC_KIND_COUNT; kind++) {
            fprintf(to, "%s\"%s\":{\"mean\":", kind > 0 ? "," : ":{", metric_names[kind]);
            json_put_number(to, metric_summary_mean(&s, (metric_kind)kind));
            fprintf(to, ",\"defined\":%" PRId64 ",\"empty\":%" PRId64 ",\"missed\":%" PRId64
                    ",\"false_alarms\":%" PRId64 "}", s.defined, s.empty, s.missed, s.false_alarms);
        }
        fputc('}', to);
    }
    fputs("},\"definition\":{\"background\":false,\"grid\":\"file\"}}\n", to);
}

static void print_value(FILE *to, double value)
{
    if (isfinite(value))
        fprintf(to, "  %8.4f", value);
    else
        fprintf(to, "  %8s", "-");
}

/* Print the ids that no class lists, summed over all cases. */
static void print_unlisted(const evaluation *e, FILE *to)
{
    enum { SHOWN_MAX = 8 };
    int64_t *voxels = arena_alloc(e->memory, (LABEL_ID_MAX + 1) * sizeof *voxels);
    int count = 0;

    for (int i = 0; i < e->case_count; i++) {
        const evaluated_case *c = &e->cases[i];
        for (int n = 0; n < c->unlisted_count; n++)
            voxels[c->unlisted[n].id] += c->unlisted[n].voxels;
    }
    for (int id = 0; id <= LABEL_ID_MAX; id++) {
        if (voxels[id] > 0 && count++ < SHOWN_MAX)
            fprintf(to, "%sid %d (%" PRId64 " voxel%s)",
                    count == 1 ? "not counted, since --labels does not list it: " : ", ", id,
                    voxels[id], voxels[id] == 1 ? "" : "s");
    }
    if (count > SHOWN_MAX)
        fprintf(to, " and %d more ids", count - SHOWN_MAX);
    fputs(count > 0 ? "\n" : "", to);
}

void evaluation_print_table(const evaluation *e, FILE *to)
{
    int width = 4;

    for (int i = 0; i < e->case_count; i++)
        width = (int)strlen(e->cases[i].name) > width ? (int)strlen(e->cases[i].name) : width;
    for (int c = 0; c < e->class_count; c++) {
        metric_summary s;
        summarise(e, c, &s);
        quote_print(to, "%-*s  %8s  %8s   (%s)\n", width, "case", "dice", "iou",
                    e->classes[c].name);
        for (int i = 0; i < e->case_count; i++) {
            quote_print(to, "%-*.4000s", width, e->cases[i].name);
            for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
                print_value(to, metric_value((metric_kind)kind, e->cases[i].count[c]));
            fputc('\n', to);
        }
        fprintf(to, "%-*s", width, "mean");
        for (int kind = 0; kind < METRIC_KIND_COUNT; kind++)
            print_value(to, metric_summary_mean(&s, (metric_kind)kind));
        fprintf(to, "   defined %" PRId64 ", empty %" PRId64 ", missed %" PRId64
                ", false alarms %" PRId64 "\n", s.defined, s.empty, s.missed, s.false_alarms);
    }
    print_unlisted(e, to);
}
