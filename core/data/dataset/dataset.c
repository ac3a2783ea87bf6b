/*
 * dataset.c - open a dataset: a sorted list of cases, its classes, and the validation split.
 *
 * The layout finds the files (layout.h). Here cases are sorted and duplicates refused, 'labels' of
 * the INI file replaces the layout's, and held-out cases are marked.
 */
#include "data/dataset/dataset.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/file.h"
#include "base/file/file_kind.h"
#include "base/integer.h"
#include "base/text/shell_word.h"
#include "base/text/text.h"
#include "data/dataset/case_class.h"
#include "data/dataset/class_list.h"
#include "data/dataset/layout.h"
#include "data/dataset/split.h"
#include "data/reader/volume_read.h"

enum { PICTURES_LOOKED_AT = 100 };

static int compare_cases(const void *a, const void *b)
{
    return strcmp(((const layout_case *)a)->info.id, ((const layout_case *)b)->info.id);
}

/* A file of a case, for messages. */
static const char *some_file(const data_case *c)
{
    for (int i = 0; i < c->image_count; i++)
        if (c->image[i] != NULL)
            return c->image[i];
    return c->image_count == 0 ? c->image[0] : c->label != NULL ? c->label : c->id;
}

/* Sort cases by id. The first of several cases with one id stays; the others are problems. */
static void sort_cases(dataset *d, layout_result *found, dataset_target target)
{
    data_case *cases = arena_alloc(d->memory, (size_t)found->case_count * sizeof *cases);
    int count = 0;

    if (found->case_count > 0)
        qsort(found->cases, (size_t)found->case_count, sizeof *found->cases, compare_cases);
    for (int i = 0; i < found->case_count; i++) {
        const data_case *next = &found->cases[i].info;
        if (count > 0 && strcmp(next->id, cases[count - 1].id) == 0) {
            layout_problem(found, next->id, some_file(next), "occurs twice in '%s': '%s' and '%s'",
                           found->origin, some_file(&cases[count - 1]), some_file(next));
            continue;
        }
        found->cases[count] = found->cases[i];
        cases[count] = *next;
        cases[count].rank = count;
        cases[count].label = target == TARGET_OF_VOXELS ? next->label : NULL;
        cases[count].class_index = -1;
        count++;
    }
    d->cases = cases;
    d->case_count = count;
}

/*
 * The channel count of cases with one file each: 3 if one of the first files is a coloured picture,
 * else 1. A grey picture beside a coloured one has 3 equal channels.
 */
static int count_picture_channels(const layout_result *found)
{
    int channels = 1;

    for (int i = 0; i < min_int(found->case_count, PICTURES_LOOKED_AT) && channels == 1; i++) {
        const data_case *c = &found->cases[i].info;
        pons_error ignored = PONS_ERROR_INIT;
        volume_facts facts;
        if (c->image_count == 1 && file_kind_ending(some_file(c), FILE_PICTURE) > 0
            && volume_read_facts(some_file(c), &facts, &ignored) == PONS_OK)
            channels = facts.channels;
    }
    return channels;
}

/* Keep the problems for the caller (keep_problems), or fail with the first. */
static pons_status handle_problems(dataset *d, const dataset_settings *s,
                                   const layout_result *found, pons_error *err)
{
    const char *checked = s->file != NULL ? s->file
                          : s->source != NULL && folder_is_there(s->source) ? s->source : NULL;
    const char *hint = "";
    char word[sizeof err->text];

    if (s->keep_problems) {
        d->problem = found->problem;
        d->problem_count = found->problem_count;
        return PONS_OK;
    }
    if (found->problem_count == 0)
        return PONS_OK;
    if (checked != NULL)
        hint = arena_format(d->memory, "\nhint: pons data check %s lists them all",
                            shell_word_bare(word, sizeof word, checked));
    return dataset_problems_fail(found->problem, found->problem_count, hint, err);
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

/* Classes of a dataset with 'regions' alone: one per label id, and background for all other ids. */
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
            if (class_index_of_id(classes, count, *id) < 0)
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
            if (class_index_of_id(d->classes, d->class_count, id) < 0)
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
    if (s->regions.count > 0 && class_list_parse(d->memory, "regions", &s->regions,
                                                 CLASS_COUNT_MAX, &d->regions, &d->region_count,
                                                 err) != PONS_OK)
        return err->status;
    if (s->label_table != NULL) {
        if (class_list_read_table(d->memory, s->label_table, &d->classes, &d->class_count, err)
            != PONS_OK)
            return err->status;
    } else if (s->labels.count > 0) {
        if (class_list_parse(d->memory, "labels", &s->labels, CLASS_COUNT_MAX, &d->classes,
                             &d->class_count, err) != PONS_OK)
            return err->status;
    } else if (found->class_count > 0) {
        d->classes = found->classes;
        d->class_count = found->class_count;
        if (d->region_count == 0) {
            d->regions = found->regions;
            d->region_count = found->region_count;
        }
    } else if (d->region_count > 0) {
        classes_of_regions(d);
    } else if (!s->labels_optional) {
        return pons_fail(err, PONS_CONFIG,
                         "'labels' is not given in [data] and '%s' does not say what the ids mean\n"
                         "hint: as in --set \"data.labels=background:0 spleen:1\"", found->origin);
    }
    if (class_list_map(d->memory, &s->map, &d->classes, d->class_count, err) != PONS_OK
        || class_list_map(d->memory, &s->map, &d->regions, d->region_count, err) != PONS_OK
        || class_list_take_ignored(d->memory, &d->classes, &d->class_count, &d->ignored, err)
               != PONS_OK)
        return err->status;
    return check_regions(d, err);
}

/* ---- split ----------------------------------------------------------------------------------- */

/* Remove the cases that belong to neither part, and renumber the others. */
static void remove_unused(dataset *d, split_part *part)
{
    data_case *cases = arena_alloc(d->memory, (size_t)d->case_count * sizeof *cases);
    int count = 0;

    for (int i = 0; i < d->case_count; i++) {
        if (part[i] == SPLIT_NEITHER)
            continue;
        part[count] = part[i];
        cases[count] = d->cases[i];
        cases[count].rank = count;
        count++;
    }
    d->unused_count += d->case_count - count;
    d->cases = cases;
    d->case_count = count;
}

static void list_split(dataset *d, const split_part *part)
{
    int *training = arena_alloc(d->memory, (size_t)d->case_count * sizeof *training);
    int *validation = arena_alloc(d->memory, (size_t)d->case_count * sizeof *validation);

    for (int i = 0; i < d->case_count; i++) {
        if (part[i] == SPLIT_VALIDATION)
            validation[d->validation_count++] = i;
        else
            training[d->training_count++] = i;
    }
    d->training = training;
    d->validation = validation;
}

/* Mark the parts by the rule of the INI file. */
static pons_status mark_by_rule(dataset *d, const dataset_settings *s, split_part *part,
                                pons_error *err)
{
    const split_rule rule = { s->validation != NULL ? s->validation : "0.2", s->seed, s->fold };

    if (split_mark(&rule, d->case_count, d->cases, part, err) == PONS_OK)
        return PONS_OK;
    if (d->problem_count == 0)
        return err->status;
    /* the rule may name a case that was left out */
    memset(part, 0, (size_t)d->case_count * sizeof *part);
    *err = (pons_error)PONS_ERROR_INIT;
    return PONS_OK;
}

/* Hold out the validation list of the layout. */
static pons_status mark_by_list(const dataset *d, const dataset_settings *s,
                                const layout_result *found, split_part *part, pons_error *err)
{
    if (s->fold != NULL)
        return pons_fail(err, PONS_CONFIG, "'fold' is %lld, but '%s' has a validation list of its "
                         "own", (long long)*s->fold, found->origin);
    for (int i = 0; i < d->case_count; i++) /* found->cases is sorted like d->cases */
        part[i] = found->cases[i].held_out ? SPLIT_VALIDATION : SPLIT_TRAINING;
    return PONS_OK;
}

/* Hold out a fold of the layout. */
static pons_status mark_by_fold(const dataset *d, const dataset_settings *s,
                                const layout_result *found, split_part *part, pons_error *err)
{
    int first = INT_MAX, last = -1, count = 0;

    for (int i = 0; i < d->case_count; i++) {
        int fold = found->cases[i].fold;
        first = fold >= 0 && fold < first ? fold : first;
        last = fold > last ? fold : last;
    }
    for (int i = 0; i < d->case_count; i++) {
        if (found->cases[i].fold != (s->fold != NULL ? *s->fold : first))
            continue;
        part[i] = SPLIT_VALIDATION;
        count++;
    }
    if (count == 0 && s->fold != NULL)
        return pons_fail(err, PONS_CONFIG, "'fold' is %lld, but '%s' has no case of it, expected a "
                         "fold of %d to %d", (long long)*s->fold, found->origin, first, last);
    return PONS_OK;
}

/* Hold out a fold of the splits file that lies beside the cases, or of those that are drawn. */
static pons_status mark_by_own_rule(dataset *d, const dataset_settings *s, split_part *part,
                                    pons_error *err)
{
    dataset_settings own = *s;

    own.validation = d->own_rule;
    return mark_by_rule(d, &own, part, err);
}

/* Whether [data] validation names the splits file that lies beside the cases. */
static bool names_splits(const dataset_settings *s, const layout_result *found)
{
    struct stat named, there;

    return s->validation != NULL && strncmp(s->validation, "file:", 5) == 0
           && stat(s->validation + 5, &named) == 0 && stat(found->splits, &there) == 0
           && named.st_dev == there.st_dev && named.st_ino == there.st_ino;
}

static pons_status split_cases(dataset *d, const dataset_settings *s, const layout_result *found,
                               pons_error *err)
{
    split_part *part = arena_alloc(d->memory, (size_t)d->case_count * sizeof *part);
    bool own = s->validation != NULL && strcmp(s->validation, "own") == 0;
    pons_status status = PONS_OK;

    bool listed = found->holds_out || found->has_folds;
    d->own_rule = found->own_rule;
    d->own_split = (own && found->own_rule != NULL) || ((own || s->validation == NULL) && listed);
    if (!d->own_split && !s->every_case && found->splits != NULL && !names_splits(s, found))
        d->spare_splits = found->splits;
    if (s->every_case)
        status = PONS_OK;
    else if (own && !d->own_split)
        status = pons_fail(err, PONS_CONFIG, "'validation' is 'own', but '%s' has no validation "
                           "list and no folds%s", found->origin,
                           text_ends_with(found->origin, "dataset.json")
                           ? "\nhint: splits_final.json of nnUNet_preprocessed, put beside it, "
                             "has the folds of nnU-Net" : "");
    else if (!d->own_split)
        status = mark_by_rule(d, s, part, err);
    else if (!listed)
        status = mark_by_own_rule(d, s, part, err);
    else if (found->holds_out)
        status = mark_by_list(d, s, found, part, err);
    else
        status = mark_by_fold(d, s, found, part, err);
    if (status == PONS_OK) {
        remove_unused(d, part);
        list_split(d, part);
    }
    if (status == PONS_OK && d->training_count == 0 && d->problem_count == 0)
        status = pons_fail(err, PONS_DATA, "'%s' has no training case", found->origin);
    return status;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* Set the number of channels and their names: those of the settings, else the layout's. */
static pons_status name_channels(dataset *d, const dataset_settings *s, const layout_result *found,
                                 pons_error *err)
{
    int count = s->channels.count;
    const char **name = arena_alloc(d->memory, (size_t)count * sizeof *name + 1);

    d->channels = found->channels == 1 ? count_picture_channels(found) : found->channels;
    d->channel_names = count > 0 ? name : found->channel_names;
    for (int i = 0; i < count; i++)
        name[i] = arena_string(d->memory, s->channels.item[i]);
    if (count > 0 && count != d->channels)
        return pons_fail(err, PONS_CONFIG, "[data] channels has %d name%s, expected %d, one for "
                         "each channel", count, text_plural(count), d->channels);
    return PONS_OK;
}

pons_status dataset_open(const dataset_settings *settings, dataset **out, pons_error *err)
{
    layout_choice choice;
    arena *memory;
    dataset *d;

    memory = arena_new();
    if (memory == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    d = arena_alloc(memory, sizeof *d);
    d->memory = memory;
    layout_result found = { .memory = memory };
    pons_status status = layout_choose(memory, settings, &choice, err);
    if (status == PONS_OK) {
        found.origin = choice.file;
        d->layout = choice.name;
        d->target = settings->target;
        d->layout_recognised = choice.recognised;
        status = settings->tests && !choice.tests
                     ? pons_fail(err, PONS_CONFIG, "layout '%s' has no cases for tests, expected "
                                 "decathlon, nnunet, datalist, csv, idx or folders", choice.name)
                     : choice.reader(settings, &found, err);
        d->unused_count = found.unused_count;
        d->lists_tests = found.lists_tests;
    }
    if (status == PONS_OK)
        sort_cases(d, &found, settings->target);
    if (status == PONS_OK && settings->target == TARGET_OF_CASE)
        status = case_class_resolve(settings, &found, d, err);
    if (status == PONS_OK)
        status = handle_problems(d, settings, &found, err);
    if (status == PONS_OK && settings->target == TARGET_OF_VOXELS)
        status = read_classes(d, settings, &found, err);
    if (status == PONS_OK)
        status = split_cases(d, settings, &found, err);
    if (status == PONS_OK)
        status = name_channels(d, settings, &found, err);
    if (status != PONS_OK) {
        slide_pool_free(found.slides);
        arena_free(memory);
        return status;
    }
    d->slides = found.slides;
    d->origin = found.origin;
    d->sign = arena_string(memory, found.sign != NULL ? found.sign : choice.file);
    d->recognised = found.recognised;
    d->warning = found.warning;
    d->warning_count = found.warning_count;
    *out = d;
    return PONS_OK;
}

const char *dataset_layout_text(const dataset *d)
{
    return arena_format(d->memory, "layout: %s, %s '%s'%s%s", d->layout,
                        d->layout_recognised ? "by" : "as given, of",
                        d->layout_recognised ? d->sign : d->origin,
                        d->recognised != NULL ? ": " : "",
                        d->recognised != NULL ? d->recognised : "");
}

void dataset_close(dataset *d)
{
    if (d == NULL)
        return;
    slide_pool_free(d->slides);
    arena_free(d->memory);
}

static int compare_ranks(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

bool dataset_trains_on(const dataset *d, int rank)
{
    return d->training_count > 0
           && bsearch(&rank, d->training, (size_t)d->training_count, sizeof rank, compare_ranks)
                  != NULL;
}

pipeline_cases dataset_step_cases(const dataset *d, int rank)
{
    return dataset_trains_on(d, rank) ? PIPELINE_TRAINING : PIPELINE_VALIDATION;
}

void dataset_log(const dataset *d, logger *l)
{
    const dataset_problem *first = d->warning;
    char numbers[64] = "";

    if (l == NULL)
        return;
    log_line(l, "%.4000s", dataset_layout_text(d));
    if (d->spare_splits != NULL)
        log_line(l, "'%.4000s' has folds of nnU-Net, which are not used; [data] validation = own "
                 "uses them, with fold = K", d->spare_splits);
    if (d->warning_count > 1)
        snprintf(numbers, sizeof numbers, "%d warnings of the cases, the first: ",
                 d->warning_count);
    if (d->warning_count > 0 && first->case_id != NULL)
        log_warning(l, "%scase '%s': %s", numbers, first->case_id, first->text);
    else if (d->warning_count > 0)
        log_warning(l, "%s%s", numbers, first->text);
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
