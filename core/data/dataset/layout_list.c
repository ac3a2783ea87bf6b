/*
 * layout_list.c - the common part of layouts that list files (layout.h).
 *
 * A wrong entry is a problem of the result, and the next entry is read.
 */
#include "data/dataset/layout.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash/name_index.h"
#include "data/reader/volume_read.h"
#include "data/volume/volume_files.h"

/* ---- entries --------------------------------------------------------------------------------- */

void layout_list_init(layout_list *l, const char *path, size_t room, layout_result *out)
{
    l->out = out;
    l->count = 0;
    layout_list_begin(l, path, room);
}

void layout_list_begin(layout_list *l, const char *path, size_t room)
{
    const char *slash = strrchr(path, '/');
    size_t used = (size_t)l->count;

    l->path = path;
    l->folder = slash == NULL ? ""
                : arena_format(l->out->memory, "%.*s", (int)(slash + 1 - path), path);
    l->entry = arena_grow(l->out->memory, l->entry, used * sizeof *l->entry,
                          (used + room + 1) * sizeof *l->entry);
    l->out->origin = path;
}

const char *layout_list_file(layout_list *l, const char *where, const char *text, data_case *c)
{
    struct stat facts;
    const char *path;

    while (strncmp(text, "./", 2) == 0)
        text += 2;
    path = arena_format(l->out->memory, "%s%s", text[0] == '/' ? "" : l->folder, text);
    if (stat(path, &facts) != 0) {
        layout_problem(l->out, NULL, l->path, "'%s' %s: cannot find '%s': %s", l->path, where,
                       path, strerror(errno));
        c->incomplete = true;
    }
    return path;
}

void layout_list_add(layout_list *l, const list_entry *entry)
{
    l->entry[l->count++] = *entry;
    l->out->holds_out = l->out->holds_out || entry->found.held_out;
    l->out->has_folds = l->out->has_folds || entry->found.fold >= 0;
}

/* "'cases.csv' row 3" */
static const char *place_of(const layout_list *l, int number)
{
    const list_entry *e = &l->entry[number];

    return arena_format(l->out->memory, "'%s' %s", e->path != NULL ? e->path : l->path, e->place);
}

static data_case *entry_case(layout_list *l, int number)
{
    return &l->entry[number].found.info;
}

/* ---- duplicates ------------------------------------------------------------------------------ */

static const char *first_image(const data_case *c)
{
    return c->image[0];
}

static const char *case_name(const data_case *c)
{
    return c->id;
}

/* Remove every entry whose key an earlier one has. 'what' is the key's name in the message. */
static pons_status remove_duplicates(layout_list *l, const char *(*key_of)(const data_case *),
                                     const char *what, pons_error *err)
{
    name_index keys = { NULL };
    int kept = 0;

    for (int i = 0; i < l->count; i++) {
        const char *key = key_of(entry_case(l, i));
        int earlier = name_index_add(&keys, "", key, kept);
        if (earlier < 0) {
            name_index_clear(&keys);
            return pons_fail(err, PONS_DEVICE, "out of memory");
        }
        if (earlier < kept)
            layout_problem(l->out, NULL, l->path, "%s: %s '%s' is also in %s", place_of(l, i), what,
                           key, l->entry[i].path == l->entry[earlier].path
                                    ? l->entry[earlier].place : place_of(l, earlier));
        else
            l->entry[kept++] = l->entry[i];
    }
    l->count = kept;
    name_index_clear(&keys);
    return PONS_OK;
}

/* ---- case ids -------------------------------------------------------------------------------- */

const char *layout_image_stem(arena *memory, const char *image)
{
    const char *stem = volume_file_stem(memory, image);
    size_t size = strlen(stem);

    if (size > 5 && strcmp(stem + size - 5, "_0000") == 0)
        stem = arena_format(memory, "%.*s", (int)(size - 5), stem);
    return stem;
}

/* Whether two stems are equal; *one: whether all are. */
static pons_status compare_stems(layout_list *l, bool *repeated, bool *one, pons_error *err)
{
    name_index stems = { NULL };

    *repeated = false;
    *one = l->count > 1;
    for (int i = 0; i < l->count; i++) {
        const char *stem = layout_image_stem(l->out->memory, first_image(entry_case(l, i)));
        int earlier = name_index_add(&stems, "", stem, i);
        if (earlier < 0) {
            name_index_clear(&stems);
            return pons_fail(err, PONS_DEVICE, "out of memory");
        }
        *repeated = *repeated || earlier != i;
        *one = *one && earlier == 0;
    }
    name_index_clear(&stems);
    return PONS_OK;
}

/* The bytes of the folders with which the paths of all first images begin. */
static size_t common_folders(layout_list *l)
{
    const char *first = first_image(entry_case(l, 0));
    size_t size = strlen(first);

    for (int i = 1; i < l->count; i++) {
        const char *other = first_image(entry_case(l, i));
        size_t same = 0;
        while (same < size && other[same] == first[same])
            same++;
        size = same;
    }
    while (size > 0 && first[size - 1] != '/')
        size--;
    return size;
}

/* The folders of the path behind 'common', and the stem unless all images have the same. */
static const char *path_name(arena *memory, const char *image, size_t common, bool one)
{
    const char *slash = strrchr(image, '/');
    char *name;

    if (slash < image + common)
        return layout_image_stem(memory, image);
    name = one ? arena_format(memory, "%.*s", (int)(slash - image - (long)common), image + common)
               : arena_format(memory, "%.*s%s", (int)(slash + 1 - image - (long)common),
                              image + common, layout_image_stem(memory, image));
    for (char *c = name; *c != '\0'; c++)
        if (*c == '/')
            *c = '_';
    return name;
}

static pons_status name_cases(layout_list *l, pons_error *err)
{
    size_t common = l->count > 0 ? common_folders(l) : 0;
    bool repeated, one;
    int kept = 0;

    if (compare_stems(l, &repeated, &one, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < l->count; i++) {
        pons_error cause = PONS_ERROR_INIT;
        data_case *c = entry_case(l, i);
        if (c->id == NULL)
            c->id = repeated ? path_name(l->out->memory, c->image[0], common, one)
                             : layout_image_stem(l->out->memory, c->image[0]);
        if (layout_check_id(c->id, c->image[0], &cause) == PONS_OK)
            l->entry[kept++] = l->entry[i];
        else
            layout_problem(l->out, NULL, l->path, "%s: %s", place_of(l, i), cause.text);
    }
    l->count = kept;
    return PONS_OK;
}

/* ---- channels -------------------------------------------------------------------------------- */

/* All cases have as many image files as the first; a single file tells its own channels. */
static void count_channels(layout_list *l)
{
    pons_error ignored = PONS_ERROR_INIT;
    const data_case *first = entry_case(l, 0);
    volume_facts facts;

    for (int i = 1; i < l->count; i++) {
        data_case *c = entry_case(l, i);
        if (c->image_count == first->image_count)
            continue;
        layout_problem(l->out, c->id, l->path, "%s: %d image file%s, but %s has %d", place_of(l, i),
                       c->image_count, c->image_count == 1 ? "" : "s", l->entry[0].place,
                       first->image_count);
        c->incomplete = true;
    }
    if (l->out->channels > 0)
        return;
    l->out->channels = first->image_count;
    for (int i = 0; i < l->count && first->image_count == 1; i++) {
        const data_case *c = entry_case(l, i);
        if (c->incomplete || volume_read_facts(c->image[0], &facts, &ignored) != PONS_OK)
            continue;
        l->out->channels = facts.channels;
        return;
    }
}

pons_status layout_list_finish(layout_list *l, pons_error *err)
{
    layout_result *out = l->out;

    if (remove_duplicates(l, first_image, "image", err) != PONS_OK || name_cases(l, err) != PONS_OK
        || remove_duplicates(l, case_name, "case", err) != PONS_OK)
        return err->status;
    if (l->count == 0 && out->problem_count == 0)
        return pons_fail(err, PONS_DATA, "'%s' lists no case for %s", l->path,
                         l->tests ? "tests" : "training or validation");
    if (l->count > 0)
        count_channels(l);
    out->cases = arena_alloc(out->memory, ((size_t)l->count + 1) * sizeof *out->cases);
    out->case_count = l->count;
    for (int i = 0; i < l->count; i++)
        out->cases[i] = l->entry[i].found;
    return PONS_OK;
}
