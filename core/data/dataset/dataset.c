/*
 * dataset.c - from [data] to a sorted manifest, the meaning of its labels, and the split.
 *
 * Layouts find the files (layout.h); here their cases are sorted and checked for duplicates, the
 * INI's labels win over the layout's, and the held-out cases are marked.
 */
#include "data/dataset/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/shell_word.h"
#include "data/dataset/class_list.h"
#include "data/dataset/layout.h"
#include "data/dataset/split.h"

static int compare_cases(const void *a, const void *b)
{
    return strcmp(((const layout_case *)a)->info.id, ((const layout_case *)b)->info.id);
}

/* Of several cases of one name the first stays. */
static void sort_cases(dataset *d, layout_result *found)
{
    data_case *cases = arena_alloc(d->memory, (size_t)found->case_count * sizeof *cases);
    int count = 0;

    if (found->case_count > 0)
        qsort(found->cases, (size_t)found->case_count, sizeof *found->cases, compare_cases);
    for (int i = 0; i < found->case_count; i++) {
        const data_case *next = &found->cases[i].info;
        if (count > 0 && strcmp(next->id, cases[count - 1].id) == 0) {
            layout_problem(found, next->id, next->image[0], "occurs twice in '%s': '%s' and '%s'",
                           found->origin, cases[count - 1].image[0], next->image[0]);
            continue;
        }
        found->cases[count] = found->cases[i];
        cases[count] = *next;
        cases[count].rank = count;
        count++;
    }
    d->cases = cases;
    d->case_count = count;
}

/* Problems are kept for the caller, or end the run with the first of them. */
static pons_status take_problems(dataset *d, const dataset_settings *s,
                                 const layout_result *found, pons_error *err)
{
    char file[sizeof err->text];

    if (s->keep_problems) {
        d->problem = found->problem;
        d->problem_count = found->problem_count;
        return PONS_OK;
    }
    if (found->problem_count == 0)
        return PONS_OK;
    shell_word_bare(file, sizeof file, s->file != NULL ? s->file : "FILE.ini");
    return dataset_problems_fail(
        found->problem, found->problem_count,
        arena_format(d->memory, "\nhint: pons data check %s lists them all", file), err);
}

pons_status dataset_problems_fail(const dataset_problem *first, int count, const char *hint,
                                  pons_error *err)
{
    char numbers[64] = "";
    const char *id = first->case_id;

    if (count > 1)
        snprintf(numbers, sizeof numbers, "%d problems, the first: ", count);
    if (count > 1 && *hint != '\0')
        return pons_fail(err, PONS_DATA, "%s%s%s%s%.*s%s", numbers, id != NULL ? "case '" : "",
                         id != NULL ? id : "", id != NULL ? "': " : "",
                         (int)strcspn(first->text, "\n"), first->text, hint);
    return pons_fail(err, PONS_DATA, "%s%s%s%s%s", numbers, id != NULL ? "case '" : "",
                     id != NULL ? id : "", id != NULL ? "': " : "", first->text);
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Classes for a file of regions alone: what is in none is background. */
static void classes_of_regions(dataset *d)
{
    int count = 1;
    data_class *classes;

    for (int i = 0; i < d->region_count; i++)
        count += d->regions[i].id_count;
    classes = arena_alloc(d->memory, (size_t)count * sizeof *classes);
    classes[0] = (data_class){ "background", 1, arena_alloc(d->memory, sizeof(int)) };
    count = 1;
    for (int i = 0; i < d->region_count; i++) {
        for (int j = 0; j < d->regions[i].id_count; j++) {
            const int *id = &d->regions[i].id[j];
            if (class_list_find(classes, count, *id) < 0)
                classes[count++] = (data_class){ arena_format(d->memory, "%d", *id), 1, id };
        }
    }
    d->classes = classes;
    d->class_count = count;
}

static pons_status check_regions(const dataset *d, pons_error *err)
{
    for (int i = 0; i < d->region_count; i++) {
        for (int j = 0; j < d->regions[i].id_count; j++) {
            int id = d->regions[i].id[j];
            if (class_list_find(d->classes, d->class_count, id) < 0)
                return pons_fail(err, PONS_CONFIG,
                                 "'regions' gives '%s' the id %d, which no class has",
                                 d->regions[i].name, id);
        }
    }
    return PONS_OK;
}

static pons_status read_classes(dataset *d, const dataset_settings *s, const layout_result *found,
                                pons_error *err)
{
    if (s->regions.count > 0 && class_list_parse(d->memory, "regions", &s->regions, &d->regions,
                                                 &d->region_count, err) != PONS_OK)
        return err->status;
    if (s->labels.count > 0) {
        if (class_list_parse(d->memory, "labels", &s->labels, &d->classes, &d->class_count,
                             err) != PONS_OK)
            return err->status;
    } else if (found->class_count > 0) {
        d->classes = found->classes;
        d->class_count = found->class_count;
    } else if (d->region_count > 0) {
        classes_of_regions(d);
    } else if (!s->labels_optional) {
        return pons_fail(err, PONS_CONFIG,
                         "'labels' is not given in [data] and '%s' does not say what the ids mean\n"
                         "hint: as in --set \"data.labels=background:0 spleen:1\"", found->origin);
    }
    return check_regions(d, err);
}

/* ---- split ----------------------------------------------------------------------------------- */

static void list_split(dataset *d, const bool *held)
{
    int *training = arena_alloc(d->memory, (size_t)d->case_count * sizeof *training);
    int *validation = arena_alloc(d->memory, (size_t)d->case_count * sizeof *validation);

    for (int i = 0; i < d->case_count; i++) {
        if (held[i])
            validation[d->validation_count++] = i;
        else
            training[d->training_count++] = i;
    }
    d->training = training;
    d->validation = validation;
}

static pons_status split_cases(dataset *d, const dataset_settings *s, const layout_result *found,
                               pons_error *err)
{
    bool *held = arena_alloc(d->memory, (size_t)d->case_count * sizeof *held);
    pons_status status = PONS_OK;

    if (s->every_case) {
        status = PONS_OK;
    } else if (s->validation == NULL && found->holds_out) {
        for (int i = 0; i < d->case_count; i++)
            held[i] = found->cases[i].held; /* sorted with the cases */
    } else {
        status = split_mark(s->validation != NULL ? s->validation : "0.2", s->seed, d->case_count,
                            d->cases, held, err);
        if (status != PONS_OK && d->problem_count > 0) { /* cases it names may be left out */
            memset(held, 0, (size_t)d->case_count * sizeof *held);
            *err = (pons_error)PONS_ERROR_INIT;
            status = PONS_OK;
        }
    }
    if (status == PONS_OK)
        list_split(d, held);
    if (status == PONS_OK && d->training_count == 0 && d->problem_count == 0)
        status = pons_fail(err, PONS_DATA, "'%s' has no training case", found->origin);
    return status;
}

/* ---- open ------------------------------------------------------------------------------------ */

pons_status dataset_open(const dataset_settings *settings, dataset **out, pons_error *err)
{
    layout_read *reader;
    arena *memory;
    dataset *d;

    memory = arena_new();
    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    d = arena_alloc(memory, sizeof *d);
    d->memory = memory;
    layout_result found = { .memory = memory };
    pons_status status = layout_choose(settings, &d->layout, &reader, err);
    if (status == PONS_OK)
        status = reader(settings, &found, err);
    if (status == PONS_OK)
        sort_cases(d, &found);
    if (status == PONS_OK)
        status = take_problems(d, settings, &found, err);
    if (status == PONS_OK)
        status = read_classes(d, settings, &found, err);
    if (status == PONS_OK)
        status = split_cases(d, settings, &found, err);
    if (status != PONS_OK) {
        arena_free(memory);
        return status;
    }
    d->origin = found.origin;
    d->channels = found.channels;
    d->channel_names = found.channel_names;
    *out = d;
    return PONS_OK;
}

void dataset_close(dataset *d)
{
    if (d != NULL)
        arena_free(d->memory);
}

void dataset_task(const dataset *d, pons_task *task)
{
    bool regions = d->region_count > 0;
    const data_class *list = regions ? d->regions : d->classes;
    int count = regions ? d->region_count : d->class_count;
    const char **names = arena_alloc(d->memory, (size_t)count * sizeof *names);

    for (int i = 0; i < count; i++)
        names[i] = list[i].name;
    task->channels = d->channels;
    task->classes = count;
    task->class_names = names;
    task->channel_names = d->channel_names;
    task->target = regions ? PONS_TARGET_REGIONS : PONS_TARGET_LABELS;
}

int dataset_target_channels(const dataset *d)
{
    return d->region_count > 0 ? d->region_count : 1;
}
