/*
 * evaluate_slides.c - find the mask of each map.
 */
#include "cli/evaluate/evaluate_slides.h"

#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/folder_list.h"
#include "base/text/text.h"
#include "data/volume/volume_files.h"

typedef struct slide_files {
    int count;
    const char **stem, **path;
} slide_files;

static bool is_map(const char *name)
{
    return text_ends_with(name, ".tif") || text_ends_with(name, ".tiff");
}

/* The name of a mask may end in _mask, as CAMELYON's do. */
static const char *stem_of(arena *memory, const char *path, bool mask)
{
    const char *stem = volume_file_stem(memory, path);
    size_t size = strlen(stem), end = strlen("_mask");

    return mask && size > end && text_ends_with(stem, "_mask")
           ? arena_format(memory, "%.*s", (int)(size - end), stem) : stem;
}

/* List masks, or maps, beside which pictures may lie. */
static pons_status list_files(arena *memory, const char *folder, bool masks, slide_files *out,
                              pons_error *err)
{
    folder_entry *entry;
    int count;

    *out = (slide_files){ 0 };
    if (folder_list(memory, folder, &entry, &count, err) != PONS_OK)
        return err->status;
    out->stem = arena_alloc(memory, (size_t)count * sizeof *out->stem + 1);
    out->path = arena_alloc(memory, (size_t)count * sizeof *out->path + 1);
    for (int i = 0; i < count; i++)
        if (!entry[i].folder && (masks || is_map(entry[i].name))) {
            out->stem[out->count] = stem_of(memory, entry[i].path, masks);
            out->path[out->count++] = entry[i].path;
        }
    if (out->count == 0)
        return pons_fail(err, PONS_DATA, "'%s' holds no %s", folder,
                         masks ? "mask" : "map, expected a file .tif or .tiff for each slide");
    return PONS_OK;
}

/* The index of the file with a stem; -1: none. */
static int find_stem(const slide_files *f, const char *stem)
{
    int i = 0;

    while (i < f->count && strcmp(f->stem[i], stem) != 0)
        i++;
    return i < f->count ? i : -1;
}

static pons_status add_folders(const evaluate_slides *s, slide_detection *d, pons_error *err)
{
    slide_files maps, masks;

    if (list_files(d->memory, s->prediction, false, &maps, err) != PONS_OK
        || list_files(d->memory, s->label, true, &masks, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < masks.count; i++)
        if (find_stem(&maps, masks.stem[i]) < 0)
            return pons_fail(err, PONS_DATA, "'%s' has no map of that name in '%s'", masks.path[i],
                             s->prediction);
    for (int i = 0; i < maps.count && err->status == PONS_OK; i++) {
        int mask = find_stem(&masks, maps.stem[i]);
        if (mask < 0 && !s->normal)
            return pons_fail(err, PONS_DATA, "'%s' has no mask of that name in '%s'\nhint: "
                             "--normal takes a slide without a mask as one without lesions",
                             maps.path[i], s->label);
        slide_detection_add(d, maps.stem[i], maps.path[i], mask >= 0 ? masks.path[mask] : NULL,
                            err);
    }
    return err->status;
}

static pons_status add_slides(const evaluate_slides *s, slide_detection *d, pons_error *err)
{
    if (folder_is_there(s->prediction) != folder_is_there(s->label))
        return pons_fail(err, PONS_USAGE, "--prediction and --label: expected two files or two "
                         "folders");
    if (folder_is_there(s->label))
        return add_folders(s, d, err);
    return slide_detection_add(d, volume_file_stem(d->memory, s->prediction), s->prediction,
                               s->label, err);
}

pons_status evaluate_slides_run(const evaluate_slides *s, arena *memory, pons_error *err)
{
    slide_detection d = { .memory = memory, .rule = s->rule };

    if (add_slides(s, &d, err) == PONS_OK && slide_detection_finish(&d, err) == PONS_OK
        && (s->csv == NULL || slide_detection_write_csv(&d, s->csv, err) == PONS_OK))
        (s->json ? slide_detection_print_json : slide_detection_print_table)(&d, stdout);
    slide_detection_clear(&d);
    return err->status;
}
