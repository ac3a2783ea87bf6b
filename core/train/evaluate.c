/*
 * evaluate.c - count ids in pairs of files, sum up, print.
 */
#include <config.h>

#include "train/evaluate.h"

#include "base/json.h"
#include "data/class_list.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

pons_status evaluation_name_classes(evaluation *e, const pons_texts *items, pons_error *err)
{
    const data_class *all;
    data_class *kept;
    pons_error wrong = PONS_ERROR_INIT; /* of a command line, not of a file */
    int count;

    if (class_list_parse(e->memory, "--labels", items, &all, &count, &wrong) != PONS_OK)
        return pons_fail(err, PONS_USAGE, "%s", wrong.text);
    e->named = true;
    kept = arena_alloc(e->memory, (size_t)count * sizeof *kept);
    for (int i = 0; i < count; i++) {
        if (class_list_find(&all[i], 1, 0) < 0)
            kept[e->class_count++] = all[i];
    }
    e->classes = kept;
    if (e->class_count == 0)
        return pons_fail(err, PONS_USAGE, "--labels names only the background");
    return PONS_OK;
}

static pons_status note_ids(const char *path, bool *seen, pons_error *err)
{
    volume v;

    memset(&v, 0, sizeof v);
    if (volume_read_label(path, &v, NULL, err) != PONS_OK)
        return err->status;
    int64_t voxels = pons_volume_count(&v);
    const int32_t *id = v.voxels;
    int64_t i = 0;
    for (; i < voxels && id[i] >= 0 && id[i] <= CLASS_ID_MAX; i++)
        seen[id[i]] = true;
    if (i < voxels)
        pons_fail(err, PONS_DATA, "'%s' holds id %d, expected 0 to %d", path, (int)id[i],
                  CLASS_ID_MAX);
    pons_volume_clear(&v);
    return err->status;
}

pons_status evaluation_find_classes(evaluation *e, int count, const char *const *label,
                                    pons_error *err)
{
    bool *seen = arena_alloc(e->memory, CLASS_ID_MAX + 1);
    data_class *classes;

    for (int i = 0; i < count; i++) {
        if (note_ids(label[i], seen, err) != PONS_OK)
            return err->status;
    }
    for (int id = 1; id <= CLASS_ID_MAX; id++)
        e->class_count += seen[id];
    classes = arena_alloc(e->memory, (size_t)e->class_count * sizeof *classes + 1);
    for (int id = 1, n = 0; id <= CLASS_ID_MAX; id++) {
        if (!seen[id])
            continue;
        int *one = arena_alloc(e->memory, sizeof *one);
        *one = id;
        classes[n++] = (data_class){ arena_format(e->memory, "%d", id), 1, one };
    }
    e->classes = classes;
    if (e->class_count == 0)
        return pons_fail(err, PONS_DATA, "the labels hold nothing but 0\nhint: --labels NAME:ID "
                         "says what was expected");
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
    c->name = arena_string(e->memory, name);
    c->count = memcpy(arena_alloc(e->memory, size + 1), count, size);
    return PONS_OK;
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

pons_status evaluation_add_ids(evaluation *e, const char *name, const volume *prediction,
                               const volume *label, pons_error *err)
{
    metric_count *count = arena_alloc(e->memory, (size_t)e->class_count * sizeof *count + 1);

    for (int c = 0; c < e->class_count; c++)
        count[c] = count_class(&e->classes[c], prediction->voxels, label->voxels,
                               pons_volume_count(label));
    return evaluation_add_counts(e, name, count, err);
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
        || volume_read_label(label, &ids, &facts_of_label, err) != PONS_OK
        || volume_grid_compare(&facts.grid, prediction, &facts_of_label.grid, label, err)
               != PONS_OK)
        goto release;
    if (!e->named)
        pons_fail(err, PONS_USAGE, "'%s' has %d channels, expected --labels to say which regions "
                  "they are\nhint: in the order of the channels, as in --labels \"WT:1,2,3 ET:3\"",
                  prediction, read.channels);
    else if (read.channels != e->class_count)
        pons_fail(err, PONS_DATA, "'%s' has %d channels, expected %d, one for each class\nhint: "
                  "--labels names the regions in the order of the channels, as in WT:1,2,3 ET:3",
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
    if (volume_read_label(prediction, &p, &facts_p, err) == PONS_OK
        && volume_read_label(label, &g, &facts_g, err) == PONS_OK
        && volume_grid_compare(&facts_p.grid, prediction, &facts_g.grid, label, err) == PONS_OK)
        evaluation_add_ids(e, name, &p, &g, err);
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
        fputc('}', to);
    }
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

void evaluation_print_table(const evaluation *e, FILE *to)
{
    int width = 4;

    for (int i = 0; i < e->case_count; i++)
        width = (int)strlen(e->cases[i].name) > width ? (int)strlen(e->cases[i].name) : width;
    for (int c = 0; c < e->class_count; c++) {
        metric_summary s;
        summarise(e, c, &s);
        fprintf(to, "%-*s  %8s  %8s   (%s)\n", width, "case", "dice", "iou", e->classes[c].name);
        for (int i = 0; i < e->case_count; i++) {
            fprintf(to, "%-*s", width, e->cases[i].name);
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
}
