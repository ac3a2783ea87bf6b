/*
 * layout_folders.c - one folder for each class, which holds its images (torchvision's ImageFolder).
 *
 *   train/CLASS/FILE, val/CLASS/FILE or valid/CLASS/FILE, test/CLASS/FILE
 *   CLASS/FILE                                           without a validation list
 *
 * 'test' is the validation list of a dataset without another one; else its cases are for tests.
 *
 * FILE may lie in folders of a class. Other files there are counted by one warning.
 *
 * A case's id is PART_CLASS_STEM, with '_' for each '/' of FILE's path below its class. Where
 * several cases would have one id, each has PART_CLASS=FILE, with the ending of the file.
 */
#include "data/dataset/layout.h"

#include <string.h>

#include "base/file/folder_list.h"
#include "base/hash/name_index.h"
#include "base/text/text.h"
#include "data/reader/volume_read.h"
#include "data/volume/volume_files.h"

/* A deeper folder is a link to one around it, or no dataset. */
enum { DEPTH_MAX = 16 };

/* The names of which a case's id is made. */
typedef struct image_place {
    const char *part;          /* "train", "val", ...; or empty                                   */
    const char *file;          /* path below the class folder                                     */
} image_place;

typedef struct folders_reader {
    const dataset_settings *settings;
    layout_result *out;
    image_place *place;        /* of each case                                                    */
    int room;
    int passed_count;          /* files of class folders whose ending is that of no image         */
    const char *first_passed;
} folders_reader;

/* A class folder in work. */
typedef struct class_folder {
    const char *part;
    const folder_entry *entry;
    bool held_out;
} class_folder;

static layout_case *new_case(folders_reader *r, image_place place)
{
    layout_result *out = r->out;

    if (out->case_count == r->room) {
        size_t n = (size_t)out->case_count, room = 2 * n + 16;
        out->cases = arena_grow(out->memory, out->cases, n * sizeof *out->cases,
                           room * sizeof *out->cases);
        r->place = arena_grow(out->memory, r->place, n * sizeof *r->place,
                              room * sizeof *r->place);
        r->room = (int)room;
    }
    r->place[out->case_count] = place;
    return &out->cases[out->case_count++];
}

/* A path as part of an id, which has no '/'. */
static const char *flat_name(arena *memory, const char *path)
{
    char *name = arena_string(memory, path);

    for (char *c = name; (c = strchr(c, '/')) != NULL;)
        *c = '_';
    return name;
}

static void add_image(folders_reader *r, const class_folder *class, const char *path)
{
    arena *memory = r->out->memory;
    const char **image = arena_alloc(memory, sizeof *image), *part = class->part;
    const image_place place = { part, path + strlen(class->entry->path) + 1 };
    layout_case *c = new_case(r, place);

    image[0] = path;
    *c = (layout_case){
        .info = { .id = arena_format(memory, "%s%s%s_%s", part, *part != '\0' ? "_" : "",
                                     class->entry->name,
                                     volume_file_stem(memory, flat_name(memory, place.file))),
                  .image_count = 1, .image = image, .class_name = class->entry->name },
        .held_out = class->held_out, .fold = -1
    };
}

static const char *full_id(const folders_reader *r, int number)
{
    const data_case *c = &r->out->cases[number].info;
    const image_place *place = &r->place[number];

    return arena_format(r->out->memory, "%s%s%s=%s", place->part,
                        *place->part != '\0' ? "_" : "", c->class_name,
                        flat_name(r->out->memory, place->file));
}

/* Give cases with one id their full ids. */
static pons_status part_ids(const folders_reader *r, pons_error *err)
{
    layout_result *out = r->out;
    bool *shared = arena_alloc(out->memory, (size_t)out->case_count * sizeof *shared + 1);
    name_index known = { NULL };

    for (int i = 0; i < out->case_count && err->status == PONS_OK; i++) {
        int first = name_index_add(&known, "", out->cases[i].info.id, i);
        if (first < 0)
            pons_fail(err, PONS_DEVICE, "out of memory");
        else if (first < i)
            shared[i] = shared[first] = true;
    }
    name_index_clear(&known);
    for (int i = 0; i < out->case_count; i++)
        if (shared[i])
            out->cases[i].info.id = full_id(r, i);
    return err->status;
}

/* Add the images of a class in a folder and those below it. */
static pons_status read_images(folders_reader *r, const class_folder *class, const char *folder,
                               int depth, pons_error *err)
{
    folder_entry *entry;
    int count;

    if (depth > DEPTH_MAX)
        return pons_fail(err, PONS_DATA, "'%s' is more than %d folders below its class: links "
                         "that form a circle?", folder, DEPTH_MAX);
    if (folder_list(r->out->memory, folder, &entry, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        if (entry[i].folder)
            read_images(r, class, entry[i].path, depth + 1, err);
        else if (volume_file_has_suffix(entry[i].name))
            add_image(r, class, entry[i].path);
        else if (r->passed_count++ == 0)
            r->first_passed = entry[i].path;
    }
    return err->status;
}

/* Add the images of a class; a folder without any is a problem. */
static pons_status read_class(folders_reader *r, const class_folder *class, pons_error *err)
{
    const char *path = class->entry->path;
    int before = r->out->case_count;

    if (read_images(r, class, path, 0, err) == PONS_OK && r->out->case_count == before)
        layout_problem(r->out, NULL, path, "class folder '%s' has no image", path);
    return err->status;
}

static pons_status read_classes(folders_reader *r, const char *part, const char *folder,
                                bool held_out, pons_error *err)
{
    folder_entry *entry;
    int count;

    if (folder_list(r->out->memory, folder, &entry, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count && err->status == PONS_OK; i++)
        if (entry[i].folder)
            read_class(r, &(class_folder){ part, &entry[i], held_out }, err);
    return err->status;
}

/* The folder of one of 'words' in 'entry'; NULL: there is none. */
static const folder_entry *find_part(const folder_entry *entry, int count,
                                     const char *const words[3])
{
    for (int w = 0; w < 3 && words[w] != NULL; w++)
        for (int i = 0; i < count; i++)
            if (entry[i].folder && strcmp(entry[i].name, words[w]) == 0)
                return &entry[i];
    return NULL;
}

static const char *const train_words[3] = { "train", NULL };
static const char *const validation_words[3] = { "val", "valid", "validation" };
static const char *const test_words[3] = { "test", NULL };

/* Read the cases for tests alone, or those for training and the validation list if it is used. */
static pons_status read_parts(folders_reader *r, const folder_entry *entry, int count,
                              pons_error *err)
{
    const dataset_settings *s = r->settings;
    const folder_entry *train = find_part(entry, count, train_words);
    const folder_entry *held = find_part(entry, count, validation_words);
    const folder_entry *test = find_part(entry, count, test_words);
    bool own = s->validation == NULL || strcmp(s->validation, "own") == 0;

    r->out->lists_tests = test != NULL;
    if (held == NULL && own)
        held = test;
    if (s->tests)
        return test == NULL ? PONS_OK : read_classes(r, test->name, test->path, false, err);
    if (read_classes(r, train->name, train->path, false, err) != PONS_OK || held == NULL)
        return err->status;
    r->out->holds_out = own;
    return read_classes(r, held->name, held->path, true, err);
}

static bool is_image(const folder_entry *entry)
{
    return !entry->folder && volume_file_has_suffix(entry->name);
}

/* Whether a folder is that of a part or of a class. */
static bool is_part_or_class(const folder_entry *entry)
{
    return entry->folder && (find_part(entry, 1, train_words) != NULL
                             || folder_has(entry->path, is_image));
}

bool layout_folders_is(const char *folder)
{
    return folder_has(folder, is_part_or_class);
}

/* Name the first of the files that are no images by their endings. */
static void warn_passed(const folders_reader *r)
{
    int more = r->passed_count - 1;

    if (more == 0)
        layout_warning(r->out, NULL, r->first_passed, "'%s' is left out: its ending is that of no "
                       "image", r->first_passed);
    else if (more > 0)
        layout_warning(r->out, NULL, r->first_passed, "'%s' and %d more file%s are left out: their "
                       "endings are those of no image", r->first_passed, more, text_plural(more));
}

/* The channels of the first image that can be read. */
static int count_channels(const layout_result *out)
{
    pons_error ignored = PONS_ERROR_INIT;
    volume_facts facts;

    for (int i = 0; i < out->case_count; i++)
        if (volume_read_facts(out->cases[i].info.image[0], &facts, &ignored) == PONS_OK)
            return facts.channels;
    return 1;
}

pons_status layout_folders_read(const dataset_settings *settings, layout_result *out,
                                pons_error *err)
{
    folders_reader r = { .settings = settings, .out = out };
    folder_entry *entry;
    int count;

    if (folder_list(out->memory, settings->source, &entry, &count, err) != PONS_OK)
        return err->status;
    out->origin = arena_string(out->memory, settings->source);
    if (find_part(entry, count, train_words) != NULL)
        read_parts(&r, entry, count, err);
    else
        read_classes(&r, "", settings->source, false, err);
    if (err->status != PONS_OK || part_ids(&r, err) != PONS_OK)
        return err->status;
    if (out->case_count == 0 && out->problem_count == 0)
        return pons_fail(err, PONS_DATA, "'%s' has no folder of a class with images, expected "
                         "train/CLASS/* or CLASS/*", settings->source);
    warn_passed(&r);
    out->channels = count_channels(out);
    return PONS_OK;
}
