/*
 * layout_folders.c - one folder for each class, which holds its images (torchvision's ImageFolder).
 *
 *   train/CLASS/FILE, val/CLASS/FILE or valid/CLASS/FILE, test/CLASS/FILE
 *   CLASS/FILE                                           without a validation list
 *
 * 'test' is the validation list of a dataset without another one; else its cases are for tests.
 *
 * A case's id is PART_CLASS_STEM. Where several cases would have one id, each has PART_CLASS=FILE,
 * with the ending of the file.
 */
#include "data/dataset/layout.h"

#include <string.h>

#include "base/file/folder_list.h"
#include "base/hash/name_index.h"
#include "data/reader/volume_read.h"
#include "data/volume/volume_files.h"

typedef struct folders_reader {
    const dataset_settings *settings;
    layout_result *out;
    const char **part;         /* of each case: "train", "val", ...; or empty                     */
    int room;
} folders_reader;

static layout_case *new_case(folders_reader *r, const char *part)
{
    layout_result *out = r->out;

    if (out->case_count == r->room) {
        size_t n = (size_t)out->case_count, room = 2 * n + 16;
        out->cases = arena_grow(out->memory, out->cases, n * sizeof *out->cases,
                           room * sizeof *out->cases);
        r->part = arena_grow(out->memory, r->part, n * sizeof *r->part, room * sizeof *r->part);
        r->room = (int)room;
    }
    r->part[out->case_count] = part;
    return &out->cases[out->case_count++];
}

static void add_image(folders_reader *r, const char *part, const char *class,
                      const folder_entry *file, bool held_out)
{
    arena *memory = r->out->memory;
    const char **image = arena_alloc(memory, sizeof *image);
    layout_case *c = new_case(r, part);

    image[0] = file->path;
    *c = (layout_case){
        .info = { .id = arena_format(memory, "%s%s%s_%s", part, *part != '\0' ? "_" : "", class,
                                     volume_file_stem(memory, file->path)),
                  .image_count = 1, .image = image, .class_name = class },
        .held_out = held_out, .fold = -1
    };
}

static const char *full_id(const folders_reader *r, int number)
{
    const data_case *c = &r->out->cases[number].info;
    const char *part = r->part[number];

    return arena_format(r->out->memory, "%s%s%s=%s", part, *part != '\0' ? "_" : "", c->class_name,
                        strrchr(c->image[0], '/') + 1);
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

/* Add the images of a class; a folder without any is a problem. */
static pons_status read_class(folders_reader *r, const char *part, const folder_entry *class,
                              bool held_out, pons_error *err)
{
    folder_entry *file;
    int count, images = 0;

    if (folder_list(r->out->memory, class->path, &file, &count, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < count; i++) {
        if (file[i].folder || !volume_file_has_suffix(file[i].name))
            continue;
        add_image(r, part, class->name, &file[i], held_out);
        images++;
    }
    if (images == 0)
        layout_problem(r->out, NULL, class->path, "class folder '%s' has no image", class->path);
    return PONS_OK;
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
            read_class(r, part, &entry[i], held_out, err);
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
    out->channels = count_channels(out);
    return PONS_OK;
}
