/*
 * layout_nnunet.c - raw folders of nnU-Net v2: dataset.json, imagesTr and labelsTr.
 *
 *   "channel_names": { "0": "T1", "1": "T2" }       channels, by number ("modality" in old files)
 *   "labels": { "background": 0, "liver": 1 }       name to id
 *   "labels": { "background": 0, "whole": [1, 2], "core": [2] }, "regions_class_order": [1, 2]
 *   "file_ending": ".nii.gz"
 *   "dataset": { "CASE": { "images": ["a.nii.gz"], "label": "b.nii.gz" } }
 *
 * The images of a case are imagesTr/CASE_0000.nii.gz and so on, one file for each channel; its
 * label is labelsTr/CASE.nii.gz. 'dataset' replaces both folders, and its paths may be absolute.
 * The images of imagesTs are cases for tests.
 * Labels are regions if one of them is a list of several ids. Predictions of regions are channels,
 * so that 'regions_class_order' is checked alone. The label 'ignore' marks voxels that no loss and
 * no metric counts (class_list.h). A 'numTraining' other than the number of cases is a warning.
 * Other keys are not read.
 *
 * The folds of nnU-Net are in splits_final.json, here or in the folder of preprocessed cases. If
 * there is none, they are what nnU-Net would draw (split.h).
 */
#include "data/dataset/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/text/text.h"
#include "data/dataset/class_list.h"
#include "data/dataset/split.h"
#include "data/volume/volume.h"
#include "data/volume/volume_files.h"

#define CHANNEL_SUFFIX_SIZE 5 /* "_0000" */

/* ---- file ending ----------------------------------------------------------------------------- */

static pons_status read_ending(const layout_json *r, const char **ending, pons_error *err)
{
    const json_t *value = json_object_get(r->root, "file_ending");

    *ending = json_string_value(value);
    if (*ending == NULL)
        return layout_json_wrong_type(r, "file_ending", value, "'.nii.gz' or '.nii'", err);
    if (strcmp(*ending, ".nii.gz") != 0 && strcmp(*ending, ".nii") != 0)
        return pons_fail(err, PONS_DATA, "'%s': 'file_ending' is '%s', expected '.nii.gz' or "
                         "'.nii'", r->path, *ending);
    *ending = arena_string(r->memory, *ending);
    return PONS_OK;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static pons_status read_id(const layout_json *r, const char *field, const json_t *value, int *id,
                           pons_error *err)
{
    uint64_t whole;

    if (!json_whole(value, &whole) || whole > LABEL_ID_MAX)
        return layout_json_wrong_type(r, field, value,
                                      arena_format(r->memory, "an id from 0 to %d", LABEL_ID_MAX),
                                      err);
    *id = (int)whole;
    return PONS_OK;
}

/* An id, or a list of ids. */
static pons_status read_label(const layout_json *r, const char *name, const json_t *value,
                              data_class *out, pons_error *err)
{
    const char *field = arena_format(r->memory, "labels.%s", name);
    bool list = json_is_array(value);
    int count = list ? (int)json_array_size(value) : 1;
    int *id = arena_alloc(r->memory, ((size_t)count + 1) * sizeof *id);

    if (name[0] == '\0')
        return pons_fail(err, PONS_DATA, "'%s': 'labels' has an empty name", r->path);
    if (count == 0)
        return pons_fail(err, PONS_DATA, "'%s': '%s' is an empty list, expected ids", r->path,
                         field);
    for (int i = 0; i < count; i++) {
        const char *one = list ? arena_format(r->memory, "%s[%d]", field, i) : field;
        if (read_id(r, one, list ? json_array_get(value, (size_t)i) : value, &id[i], err)
            != PONS_OK)
            return err->status;
    }
    *out = (data_class){ arena_string(r->memory, name), count, id };
    return PONS_OK;
}

static int compare_first_ids(const void *a, const void *b)
{
    return ((const data_class *)a)->id[0] - ((const data_class *)b)->id[0];
}

/* The name of the label that has this id alone, else the id in digits. */
static const char *name_of_id(const layout_json *r, const data_class *label, int count, int id)
{
    for (int i = 0; i < count; i++) {
        if (label[i].id_count == 1 && label[i].id[0] == id)
            return label[i].name;
    }
    return arena_format(r->memory, "%d", id);
}

/* A class for each id. Background, with id 0, is the first. */
static pons_status set_classes(const layout_json *r, const data_class *label, int count,
                               pons_error *err)
{
    size_t room = 0;
    int classes = 0;
    data_class *class;

    for (int i = 0; i < count; i++)
        room += (size_t)label[i].id_count;
    class = arena_alloc(r->memory, room * sizeof *class);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < label[i].id_count; j++) {
            const int *id = &label[i].id[j];
            if (class_index_of_id(class, classes, *id) < 0)
                class[classes++] = (data_class){ name_of_id(r, label, count, *id), 1, id };
        }
    }
    qsort(class, (size_t)classes, sizeof *class, compare_first_ids);
    if (class[0].id[0] != 0)
        return pons_fail(err, PONS_DATA, "'%s': 'labels' has no id 0, expected a background",
                         r->path);
    r->out->classes = class;
    r->out->class_count = classes;
    return class_list_check(arena_format(r->memory, "labels of %s", r->path), false, class,
                            classes, PONS_DATA, err);
}

static bool has_id(const data_class *c, int id)
{
    return class_index_of_id(c, 1, id) == 0;
}

/*
 * Warn if a region is to be painted with an id that is not its own: an id of another region, or of
 * one that is painted later. 'pons predict --label-map' paints each region with an id of its own.
 */
static void check_painted_id(const layout_json *r, const data_class *region, int count, int i,
                             int id)
{
    bool own = has_id(&region[i], id);

    for (int k = i + 1; k < count; k++)
        own = own && !has_id(&region[k], id);
    if (!own)
        layout_warning(r->out, NULL, r->path, "'%s': 'regions_class_order[%d]' paints '%s' as %d, "
                       "expected an id of it that no later region has", r->path, i, region[i].name,
                       id);
}

/* Refuse an id that no region has. */
static pons_status check_region_has(const layout_json *r, const data_class *region, int regions,
                                    int i, int id, pons_error *err)
{
    for (int k = 0; k < regions; k++)
        if (has_id(&region[k], id))
            return PONS_OK;
    return pons_fail(err, PONS_DATA, "'%s': 'regions_class_order[%d]' is %d, which no region of "
                     "'labels' has", r->path, i, id);
}

/* One id for each region: nnU-Net paints the regions over each other in this order. */
static pons_status check_class_order(const layout_json *r, const data_class *region, int regions,
                                     pons_error *err)
{
    static const char key[] = "regions_class_order";
    const json_t *order = json_object_get(r->root, key);
    int id = 0;

    if (!json_is_array(order))
        return layout_json_wrong_type(r, key, order, "a list with an id for each region", err);
    if ((int)json_array_size(order) != regions)
        return pons_fail(err, PONS_DATA, "'%s': '%s' has %zu entr%s, expected %d, one for each "
                         "region of 'labels'", r->path, key, json_array_size(order),
                         json_array_size(order) == 1 ? "y" : "ies", regions);
    for (int i = 0; i < regions; i++) {
        if (read_id(r, arena_format(r->memory, "%s[%d]", key, i), json_array_get(order, (size_t)i),
                    &id, err) != PONS_OK
            || check_region_has(r, region, regions, i, id, err) != PONS_OK)
            return err->status;
        check_painted_id(r, region, regions, i, id);
    }
    return PONS_OK;
}

/* Regions are all labels but background and 'ignore'. */
static pons_status set_regions(const layout_json *r, const data_class *label, int count,
                               pons_error *err)
{
    data_class *region = arena_alloc(r->memory, (size_t)count * sizeof *region);
    int regions = 0;

    for (int i = 0; i < count; i++) {
        if (strcmp(label[i].name, "ignore") == 0)
            continue;
        if (label[i].id_count > 1 || label[i].id[0] != 0)
            region[regions++] = label[i];
    }
    r->out->regions = region;
    r->out->region_count = regions;
    if (class_list_check(arena_format(r->memory, "labels of %s", r->path), true, region, regions,
                         PONS_DATA, err) != PONS_OK)
        return err->status;
    return check_class_order(r, region, regions, err);
}

/* Ids of single labels differ. */
static pons_status check_single_ids(const layout_json *r, const data_class *label, int count,
                                    pons_error *err)
{
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i && label[i].id_count == 1; j++) {
            if (label[j].id_count == 1 && label[j].id[0] == label[i].id[0])
                return pons_fail(err, PONS_DATA, "'%s': 'labels' gives id %d to '%s' and to '%s'",
                                 r->path, label[i].id[0], label[j].name, label[i].name);
        }
    }
    return PONS_OK;
}

/* Check that no other label has the id of 'ignore'. nnU-Net expects it to be the largest. */
static pons_status check_ignore(const layout_json *r, const data_class *label, int count,
                                pons_error *err)
{
    int at = class_index_of_name(label, count, "ignore"), largest = 0;

    if (at < 0)
        return PONS_OK;
    if (label[at].id_count > 1 || label[at].id[0] == 0)
        return pons_fail(err, PONS_DATA, "'%s': 'labels.ignore' is %s, expected one id above 0",
                         r->path, label[at].id_count > 1 ? "a list" : "0");
    for (int i = 0; i < count; i++) {
        if (i != at && class_index_of_id(&label[i], 1, label[at].id[0]) == 0)
            return pons_fail(err, PONS_DATA, "'%s': 'labels' gives id %d to '%s' and to '%s'",
                             r->path, label[at].id[0], label[i].name, label[at].name);
        for (int j = 0; j < label[i].id_count; j++)
            largest = label[i].id[j] > largest ? label[i].id[j] : largest;
    }
    if (label[at].id[0] < largest)
        layout_warning(r->out, NULL, r->path, "'%s': 'labels.ignore' is %d, expected an id above "
                       "%d, the largest, as nnU-Net does", r->path, label[at].id[0], largest);
    return PONS_OK;
}

static pons_status read_labels(const layout_json *r, pons_error *err)
{
    json_t *object = json_object_get(r->root, "labels"), *value;
    int count = 0;
    bool regions = false;
    const char *name;

    if (json_object_size(object) == 0)
        return layout_json_wrong_type(r, "labels", object, "an object of names and ids", err);
    if (json_object_size(object) > CLASS_COUNT_MAX)
        return pons_fail(err, PONS_DATA, "'%s': 'labels' has %zu entries, expected at most %d",
                         r->path, json_object_size(object), CLASS_COUNT_MAX);
    data_class *label = arena_alloc(r->memory, json_object_size(object) * sizeof *label);
    json_object_foreach(object, name, value) {
        if (read_label(r, name, value, &label[count], err) != PONS_OK)
            return err->status;
        regions = regions || label[count].id_count > 1;
        count++;
    }
    if (check_ignore(r, label, count, err) != PONS_OK
        || check_single_ids(r, label, count, err) != PONS_OK
        || set_classes(r, label, count, err) != PONS_OK)
        return err->status;
    return regions ? set_regions(r, label, count, err) : PONS_OK;
}

/* ---- cases of the folders -------------------------------------------------------------------- */

typedef struct channel_file {
    const char *id, *path;
    int channel;               /* -1: a label                                                     */
} channel_file;

static int compare_files(const void *a, const void *b)
{
    const channel_file *left = a, *right = b;
    int order = strcmp(left->id, right->id);

    return order != 0 ? order : left->channel - right->channel;
}

/* Split "CASE_0000" into id and channel. */
static bool split_stem(arena *memory, const char *stem, channel_file *out)
{
    size_t size = strlen(stem), digits;

    if (size <= CHANNEL_SUFFIX_SIZE || stem[size - CHANNEL_SUFFIX_SIZE] != '_')
        return false;
    stem += size - CHANNEL_SUFFIX_SIZE;
    digits = strspn(stem + 1, "0123456789");
    if (digits != CHANNEL_SUFFIX_SIZE - 1)
        return false;
    out->channel = (int)strtol(stem + 1, NULL, 10);
    stem -= size - CHANNEL_SUFFIX_SIZE;
    out->id = arena_format(memory, "%.*s", (int)(size - CHANNEL_SUFFIX_SIZE), stem);
    return true;
}

/* The folders of the cases for training, or of those for tests. */
typedef struct raw_folders {
    const dataset_settings *settings;
    const layout_json *json;
    const char *ending;
    const char *images, *labels; /* labels NULL: none                                             */
} raw_folders;

/* Add the volumes of a folder to the list; a wrong name is a problem. */
static pons_status list_folder(const raw_folders *f, const char *name, channel_file **list,
                               int *count, pons_error *err)
{
    const layout_json *r = f->json;
    const char *ending = f->ending;
    bool labels = name == f->labels;
    volume_file *file;
    int files;

    if (volume_files_list(r->memory, arena_format(r->memory, "%s%s", r->folder, name), &file,
                          &files, err) != PONS_OK)
        return err->status;
    channel_file *all = arena_alloc(r->memory, ((size_t)*count + (size_t)files) * sizeof *all);
    if (*count > 0)
        memcpy(all, *list, (size_t)*count * sizeof *all);
    for (int i = 0; i < files; i++) {
        channel_file *next = &all[*count];
        pons_error cause = PONS_ERROR_INIT;
        *next = (channel_file){ file[i].stem, file[i].path, -1 };
        if (!text_ends_with(file[i].path, ending)
            || (strcmp(ending, ".nii") == 0 && text_ends_with(file[i].path, ".nii.gz")))
            layout_problem(r->out, NULL, file[i].path, "'%s' does not end in '%s', expected the "
                           "'file_ending' of '%s'", file[i].path, ending, r->path);
        else if (!labels && !split_stem(r->memory, file[i].stem, next))
            layout_problem(r->out, NULL, file[i].path, "'%s' has no channel, expected a name like "
                           "CASE_0000%s", file[i].path, ending);
        else if (layout_check_id(next->id, file[i].path, &cause) != PONS_OK)
            layout_problem(r->out, NULL, file[i].path, "%s", cause.text);
        else
            (*count)++;
    }
    *list = all;
    return PONS_OK;
}

/* Channel 'channel' is missing, or the label if it is -1. */
static void note_missing(const raw_folders *f, const channel_file *beside, int channel)
{
    const layout_json *r = f->json;
    const char *expected
        = channel < 0 ? arena_format(r->memory, "%s%s/%s%s", r->folder, f->labels, beside->id,
                                     f->ending)
                      : arena_format(r->memory, "%s%s/%s_%04d%s", r->folder, f->images, beside->id,
                                     channel, f->ending);

    layout_problem(r->out, beside->id, beside->path, "found '%s', expected '%s' beside it",
                   beside->path, expected);
}

/* The case of 'count' files with one id, in the order label, channel 0, channel 1. */
static data_case make_case(const raw_folders *f, const channel_file *file, int count)
{
    const layout_json *r = f->json;
    int channels = r->out->channels, at = file[0].channel < 0;
    const char **image = arena_alloc(r->memory, (size_t)channels * sizeof *image);
    data_case c = { .id = file[0].id, .image = image, .label = at > 0 ? file[0].path : NULL };

    for (int i = 0; i < channels; i++) {
        const char *path = at < count && file[at].channel == i ? file[at++].path : NULL;
        if (!layout_add_channel(f->settings, path, image, &c))
            note_missing(f, &file[0], i);
    }
    for (; at < count; at++)
        layout_problem(r->out, c.id, file[at].path, "'%s' is channel %d, expected 0 to %d as in "
                       "'%s'", file[at].path, file[at].channel, channels - 1, r->path);
    if (c.label == NULL && f->labels != NULL) {
        c.incomplete = true;
        note_missing(f, &file[0], -1);
    }
    if (c.image_count == 0)
        image[0] = file[0].path; /* the file of messages */
    return c;
}

static pons_status read_folders(const raw_folders *f, pons_error *err)
{
    const layout_json *r = f->json;
    channel_file *list = NULL;
    int count = 0;

    if (list_folder(f, f->images, &list, &count, err) != PONS_OK
        || (f->labels != NULL && list_folder(f, f->labels, &list, &count, err) != PONS_OK))
        return err->status;
    if (count > 0)
        qsort(list, (size_t)count, sizeof *list, compare_files);
    r->out->cases = arena_alloc(r->memory, ((size_t)count + 1) * sizeof *r->out->cases);
    for (int first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && strcmp(list[end].id, list[first].id) == 0; end++)
            ;
        r->out->cases[r->out->case_count++].info = make_case(f, &list[first], end - first);
    }
    return PONS_OK;
}

/* Count the cases of imagesTs, whose files are sorted. */
static void count_tests(const layout_json *r)
{
    channel_file last = { "", NULL, -1 }, next;
    pons_error ignored = PONS_ERROR_INIT;
    const char *folder = arena_format(r->memory, "%simagesTs", r->folder);
    volume_file *file;
    int count = 0;

    if (folder_is_there(folder)
        && volume_files_list(r->memory, folder, &file, &count, &ignored) != PONS_OK)
        count = 0;
    for (int i = 0; i < count; i++) {
        if (!split_stem(r->memory, file[i].stem, &next))
            continue;
        r->out->unused_count += strcmp(next.id, last.id) != 0;
        last = next;
    }
    r->out->lists_tests = r->out->unused_count > 0;
}

/* ---- cases of "dataset" ---------------------------------------------------------------------- */

static pons_status read_path(const layout_json *r, const char *field, const json_t *value,
                             const char **path, pons_error *err)
{
    const char *text = json_string_value(value);
    struct stat facts;

    if (text == NULL || *text == '\0')
        return layout_json_wrong_type(r, field, value, "a path", err);
    while (strncmp(text, "./", 2) == 0)
        text += 2;
    *path = arena_format(r->memory, "%s%s", text[0] == '/' ? "" : r->folder, text);
    if (stat(*path, &facts) != 0)
        return pons_fail(err, errno_status(errno, PONS_DATA), "'%s': '%s': cannot find '%s': %s",
                         r->path, field, *path, strerror(errno));
    return PONS_OK;
}

static pons_status read_images(const layout_json *r, const char *field, const json_t *value,
                               data_case *c, pons_error *err)
{
    int count = (int)json_array_size(value);

    if (!json_is_array(value))
        return layout_json_wrong_type(r, field, value, "a list with a path for each channel", err);
    if (count != r->out->channels)
        return pons_fail(err, PONS_DATA, "'%s': '%s' has %d file%s, expected %d as in "
                         "'channel_names'", r->path, field, count, count == 1 ? "" : "s",
                         r->out->channels);
    const char **image = arena_alloc(r->memory, (size_t)count * sizeof *image);
    for (int i = 0; i < count; i++) {
        if (read_path(r, arena_format(r->memory, "%s[%d]", field, i),
                      json_array_get(value, (size_t)i), &image[i], err) != PONS_OK)
            return err->status;
    }
    c->image = image;
    c->image_count = count;
    return PONS_OK;
}

static pons_status read_entry(const layout_json *r, const char *id, const json_t *entry,
                              data_case *c, pons_error *err)
{
    const char *field = arena_format(r->memory, "dataset.%s", id);

    *c = (data_case){ .id = arena_string(r->memory, id) };
    if (layout_check_id(id, field, err) != PONS_OK)
        return err->status;
    if (!json_is_object(entry))
        return layout_json_wrong_type(r, field, entry, "an object with 'images' and 'label'", err);
    if (read_images(r, arena_format(r->memory, "%s.images", field),
                    json_object_get(entry, "images"), c, err) != PONS_OK)
        return err->status;
    return read_path(r, arena_format(r->memory, "%s.label", field),
                     json_object_get(entry, "label"), &c->label, err);
}

static pons_status read_map(const layout_json *r, json_t *map, pons_error *err)
{
    json_t *entry;
    const char *id;

    if (json_object_size(map) == 0)
        return layout_json_wrong_type(r, "dataset", map, "an object with an entry for each case",
                                      err);
    r->out->cases = arena_alloc(r->memory, json_object_size(map) * sizeof *r->out->cases);
    json_object_foreach(map, id, entry) {
        pons_error cause = PONS_ERROR_INIT;
        data_case c;
        if (read_entry(r, id, entry, &c, &cause) == PONS_OK)
            r->out->cases[r->out->case_count++].info = c;
        else
            layout_problem(r->out, NULL, r->path, "%s", cause.text);
    }
    return PONS_OK;
}

/* ---- beside the cases ------------------------------------------------------------------------ */

/* Compare 'numTraining' with the cases that were found, complete or not. */
static void check_training_count(const layout_json *r)
{
    const json_t *value = json_object_get(r->root, "numTraining");
    uint64_t count;

    if (json_whole(value, &count) && count != (uint64_t)r->out->case_count)
        layout_warning(r->out, NULL, r->path, "'%s': 'numTraining' is %llu, found %d case%s",
                       r->path, (unsigned long long)count, r->out->case_count,
                       text_plural(r->out->case_count));
}

/*
 * Look for splits_final.json in the folder, then under its name in nnUNet_preprocessed. Fewer cases
 * than folds cannot be drawn.
 */
static void find_splits(const layout_json *r)
{
    size_t size = strlen(r->folder), begin = size > 0 ? size - 1 : 0;
    const char *path = arena_format(r->memory, "%ssplits_final.json", r->folder);
    struct stat facts;

    while (begin > 0 && r->folder[begin - 1] != '/')
        begin--;
    if (stat(path, &facts) != 0)
        path = arena_format(r->memory, "%s../../nnUNet_preprocessed/%ssplits_final.json", r->folder,
                            r->folder + begin);
    if (stat(path, &facts) == 0) {
        r->out->splits = path;
        r->out->own_rule = arena_format(r->memory, "file:%s", path);
    } else if (r->out->case_count >= NNUNET_FOLDS) {
        r->out->own_rule = "nnunet";
    }
}

/* ---- the file -------------------------------------------------------------------------------- */

pons_status layout_nnunet_read(const dataset_settings *settings, layout_result *out,
                               pons_error *err)
{
    const char *ending = NULL;
    layout_json r;
    json_t *map;

    if (layout_json_open(settings, out, &r, err) != PONS_OK)
        return err->status;
    map = json_object_get(r.root, "dataset");
    pons_status status = layout_json_channels(
        &r, json_object_get(r.root, "channel_names") == NULL
                && json_object_get(r.root, "modality") != NULL ? "modality" : "channel_names", err);
    if (status == PONS_OK)
        status = read_ending(&r, &ending, err);
    if (status == PONS_OK && settings->labels.count == 0)
        status = read_labels(&r, err);
    const raw_folders training = { settings, &r, ending, "imagesTr", "labelsTr" };
    const raw_folders tests = { settings, &r, ending, "imagesTs", NULL };
    if (status == PONS_OK && settings->tests)
        status = read_folders(&tests, err);
    else if (status == PONS_OK)
        status = map != NULL ? read_map(&r, map, err) : read_folders(&training, err);
    if (status == PONS_OK && !settings->tests) {
        count_tests(&r);
        check_training_count(&r);
        find_splits(&r);
    }
    layout_json_close(&r);
    return status;
}
