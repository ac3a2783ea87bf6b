/*
 * layout.c - choose the layout of a dataset.
 *
 * The option 'layout' decides; 'auto' looks for the signs of each layout in 'source'. Exactly one
 * file of a folder may have them. Known layouts without a reader are recognised, so that the
 * message names them.
 */
#include "data/dataset/layout.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/file/file_kind.h"
#include "base/text/quote.h"
#include "base/text/shell_word.h"
#include "base/text/text.h"
#include "config/list.h"

/* A layout with labels of voxels can also be read for its images alone. */
enum { OF_VOXELS = 1 << TARGET_OF_VOXELS | 1 << TARGET_NONE, OF_CASE = 1 << TARGET_OF_CASE };

static const struct layout {
    const char *name;
    layout_read *reader;       /* NULL: no reader in this build                                   */
    const char *file;          /* the name of the file that tells it; NULL: any name              */
    layout_sign *is;           /* whether a file of that name tells it; NULL: it does             */
    layout_sign *is_folder;    /* whether a folder tells it; NULL: its files alone do             */
    const char *looked_for;    /* the sign in messages                                            */
    bool tests;                /* whether it may have cases for tests (dataset_settings.tests)    */
    unsigned targets;          /* bit T: the layout provides dataset_target T                     */
} layouts[] = {
    { "globs", layout_globs_read, NULL, NULL, NULL, NULL, false, OF_VOXELS },
    { "decathlon", layout_decathlon_read, "dataset.json", layout_decathlon_is, NULL,
      "dataset.json", true, OF_VOXELS },
    { "nnunet", layout_nnunet_read, "dataset.json", layout_nnunet_is, NULL, NULL, true, OF_VOXELS },
    { "datalist", layout_datalist_read, NULL, layout_datalist_is, NULL, ".json with 'training'",
      true, OF_VOXELS },
    { "csv", layout_csv_read, NULL, layout_csv_is, NULL, ".csv or .tsv with a column 'image'",
      true, OF_VOXELS | OF_CASE },
    { "brats", layout_brats_read, NULL, NULL, layout_brats_is, "names of BraTS", false, OF_VOXELS },
    { "bids", layout_bids_read, "dataset_description.json", NULL, NULL,
      "dataset_description.json", false, OF_VOXELS },
    { "idx", layout_idx_read, NULL, NULL, layout_idx_is, "files of MNIST", true, OF_CASE },
    { "folders", layout_folders_read, NULL, NULL, layout_folders_is, "folders of classes", true,
      OF_CASE },
    { "slides", layout_slides_read, NULL, NULL, NULL, NULL, false, OF_CASE },
};
enum { LAYOUT_COUNT = sizeof layouts / sizeof layouts[0] };

/* ---- the signs in a folder ------------------------------------------------------------------- */

typedef struct sign_search {
    arena *memory;
    const char *folder;
    const struct layout *only; /* NULL: all layouts                                               */
    dataset_target target;     /* target that the layout has to provide                           */
    int count;
    struct { const struct layout *layout; const char *file; } found[2]; /* the first ones         */
} sign_search;

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Whether a name is the sign of a layout, so that it is none of another. */
static bool is_fixed_name(const char *name)
{
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (layouts[i].file != NULL && strcmp(layouts[i].file, name) == 0)
            return true;
    return false;
}

/* Whether a file tells a layout; where this one was asked for, the name of the file is enough. */
static bool tells(const struct layout *l, const char *path, const char *name, bool asked)
{
    if (l->file != NULL)
        return strcmp(l->file, name) == 0 && (asked || l->is == NULL || l->is(path));
    return l->is != NULL && !is_fixed_name(name) && l->is(path);
}

static void add_sign(sign_search *s, const struct layout *l, const char *file)
{
    if (s->count < 2) {
        s->found[s->count].layout = l;
        s->found[s->count].file = file;
    }
    s->count++;
}

static bool is_searched(const sign_search *s, const struct layout *l)
{
    return s->only != NULL ? s->only == l : (l->targets >> s->target & 1) != 0;
}

static void search_file(sign_search *s, const char *name)
{
    const char *path = arena_format(s->memory, "%s/%s", s->folder, name);

    for (int i = 0; i < LAYOUT_COUNT; i++) {
        const struct layout *l = &layouts[i];
        if (is_searched(s, l) && tells(l, path, name, s->only != NULL))
            add_sign(s, l, path);
    }
}

static pons_status search_folder(sign_search *s, pons_error *err)
{
    struct dirent **entry = NULL;
    int count = scandir(s->folder, &entry, is_shown, alphasort);

    if (count < 0)
        return pons_fail(err, errno_status(errno, PONS_DATA), "cannot read folder '%s': %s",
                         s->folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        search_file(s, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    for (int i = 0; i < LAYOUT_COUNT; i++) {
        const struct layout *l = &layouts[i];
        if (l->is_folder != NULL && is_searched(s, l)
            && (s->only == l || l->is_folder(s->folder)))
            add_sign(s, l, s->folder);
    }
    return PONS_OK;
}

static pons_status refuse_second(const sign_search *s, pons_error *err)
{
    const char *file = s->found[1].file, *layout = s->found[1].layout->name;
    size_t size = 4 * strlen(file) + 32;
    char *word = arena_alloc(s->memory, size);
    bool named = strcmp(file, s->folder) == 0; /* no file makes the choice, but the layout does */

    shell_word_bare(word, size, named ? arena_format(s->memory, "data.layout=%s", layout)
                                      : arena_format(s->memory, "data.source=%s", file));
    return pons_fail(err, PONS_CONFIG, "'%s' has %d datasets: %s by '%s' and %s by '%s', expected "
                     "one\nhint: --set %.1000s chooses %s", s->folder, s->count,
                     s->found[0].layout->name, s->found[0].file, layout, file, word,
                     named ? "that layout" : "a file");
}

/* Every sign that was looked for, as in "dataset.json, no .json with 'training'". */
static const char *signs_text(const sign_search *s)
{
    const char *text = NULL;

    for (int i = 0; i < LAYOUT_COUNT; i++) {
        const char *sign = layouts[i].looked_for;
        if (sign == NULL || !is_searched(s, &layouts[i]))
            continue;
        text = text == NULL ? sign : arena_format(s->memory, "%s, no %s", text, sign);
    }
    return text != NULL ? text : "sign of it";
}

/* A --set value as one word of a shell. */
static const char *set_word(const sign_search *s, const char *key, const char *value)
{
    size_t size = 4 * strlen(value) + 3;

    return arena_format(s->memory, "--set %s=%s", key,
                        shell_word(arena_alloc(s->memory, size), size, value));
}

/* The flags of patterns for files below the folder: a list of images, and one of labels. */
static const char *pattern_flags(const sign_search *s)
{
    const char *image = arena_format(s->memory, "%.500s/*/ct.nii.gz", s->folder);
    const char *label = arena_format(s->memory, "%.500s/*/seg.nii.gz", s->folder);

    return arena_format(s->memory, "%s %s",
                        set_word(s, "data.image", list_join(s->memory, 1, &image)),
                        set_word(s, "data.label", list_single(s->memory, label)));
}

/* 'predicts': the cases need no labels, and no INI file names them. */
static pons_status refuse_none(const sign_search *s, bool predicts, pons_error *err)
{
    if (file_kind_refuse_folder(s->folder, FILE_VOLUME, err) != PONS_OK)
        return err->status;
    if (predicts)
        return pons_fail(err, PONS_DATA, "folder '%s' has no volume, no %s\n"
                         "hint: a pattern such as '%.1000s/*/t1.nii.gz' names volumes in folders "
                         "below it", s->folder, signs_text(s), s->folder);
    if (s->target == TARGET_OF_CASE)
        return pons_fail(err, PONS_DATA, "folder '%s' has no %s", s->folder, signs_text(s));
    return pons_fail(err, PONS_DATA, "folder '%s' has no %s\nhint: 'image' and 'label' with * in "
                     "them name files without one, as in: pons init %.2000s -o FILE.ini",
                     s->folder, signs_text(s), pattern_flags(s));
}

/* ---- the layout of a source ------------------------------------------------------------------ */

static const struct layout *layout_named(const char *name)
{
    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (strcmp(layouts[i].name, name) == 0)
            return &layouts[i];
    return NULL;
}

bool layout_lists_cases(const char *path)
{
    return text_ends_with(path, ".json") || text_ends_with(path, ".csv")
           || text_ends_with(path, ".tsv") || idx_file_is(path, 3);
}

/* A single file: the signs of a layout; a .json without any is a dataset.json of another name. */
static const struct layout *file_layout(const char *path, pons_error *err)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;

    for (int i = 0; i < LAYOUT_COUNT; i++)
        if (tells(&layouts[i], path, name, false))
            return &layouts[i];
    if (idx_file_is(path, 3))
        return layout_named("idx");
    if (text_ends_with(path, ".json"))
        return layout_named(layout_nnunet_is(path) ? "nnunet" : "decathlon");
    if (text_ends_with(path, ".csv") || text_ends_with(path, ".tsv"))
        return layout_named("csv");
    pons_fail(err, PONS_DATA, "'%s' is no dataset, expected a folder with a dataset.json or a "
              ".json, .csv or .tsv file", path);
    return NULL;
}

/* The layout of 'source', which is 'only' unless that is NULL, and the file that tells it. */
static const struct layout *source_layout(arena *memory, const dataset_settings *settings,
                                          const struct layout *only, const char **file,
                                          pons_error *err)
{
    const char *source = settings->source;
    sign_search s = { .memory = memory, .folder = source, .only = only,
                      .target = settings->target };
    struct stat facts;

    if (stat(source, &facts) != 0) {
        pons_fail(err, errno_status(errno, PONS_DATA), "cannot find the dataset '%s' of [data] "
                  "source: %s", source, strerror(errno));
        return NULL;
    }
    *file = arena_string(memory, source);
    if (!S_ISDIR(facts.st_mode))
        return only != NULL ? only : file_layout(source, err);
    /* The reader of such a layout says itself what a folder lacks. */
    if (only != NULL && (only->file != NULL || only->is_folder != NULL))
        return only;
    if (search_folder(&s, err) != PONS_OK)
        return NULL;
    if (s.count != 1) {
        if (s.count == 0)
            refuse_none(&s, settings->labels_optional && settings->every_case, err);
        else
            refuse_second(&s, err);
        return NULL;
    }
    *file = s.found[0].file;
    return s.found[0].layout;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static pons_status check_names(const dataset_settings *s, pons_error *err)
{
    if (s->source != NULL && s->image.count > 0)
        return pons_fail(err, PONS_CONFIG,
                         "'source' and 'image' are both given, expected one of them");
    if (s->source != NULL && s->label != NULL)
        return pons_fail(err, PONS_CONFIG,
                         "'source' and 'label' are both given, expected one of them");
    if (s->source == NULL && s->image.count == 0)
        return pons_fail(err, PONS_CONFIG, "neither 'source' nor 'image' is given");
    return PONS_OK;
}

/* Refuse a layout that does not provide the target of the task. */
static pons_status check_target(const dataset_settings *s, const struct layout *l, pons_error *err)
{
    if ((l->targets >> s->target & 1) != 0 || (s->labels_optional && s->target == TARGET_OF_CASE))
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, s->target == TARGET_OF_CASE
                     ? "layout '%s' has no class of each image, expected folders, idx, csv or "
                       "slides"
                     : "layout '%s' has no labels of voxels\nhint: --set "
                       "experiment.task=classification", l->name);
}

/* Refuse endings that a layout other than bids would ignore. */
static pons_status check_suffixes(const dataset_settings *s, const struct layout *l,
                                  pons_error *err)
{
    const pons_texts *images = &s->image_suffix;
    bool image = images->count > 1 || (images->count == 1 && strcmp(images->item[0], "T1w") != 0);

    if (l->reader != layout_bids_read
        && (image || (s->label_suffix != NULL && strcmp(s->label_suffix, "dseg") != 0)))
        return pons_fail(err, PONS_CONFIG, "'%s' is given for the layout '%s', expected the layout "
                         "bids", image ? "image_suffix" : "label_suffix", l->name);
    return PONS_OK;
}

/* The option of slides that is given; NULL: none. */
static const char *slide_option(const slide_settings *s)
{
    const struct { bool given; const char *name; } option[] = {
        { s->files != NULL, "slides" }, { s->validation != NULL, "slide_validation" },
        { s->level != 0, "slide_level" },
        { s->extent != 0 && s->extent != SLIDE_PATCH_USUAL, "slide_patch" },
        { s->grid > 1, "slide_grid" }, { s->region != 0, "slide_region" },
        { s->corner, "slide_position" },
    };

    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (option[i].given)
            return option[i].name;
    return NULL;
}

/* Refuse options of slides that another layout would ignore. */
static pons_status check_slides(const dataset_settings *s, const struct layout *l, pons_error *err)
{
    const char *given = slide_option(&s->slide);

    if (l->reader == layout_slides_read || given == NULL)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "'%s' is given for the layout '%s', expected the layout "
                     "slides", given, l->name);
}

/* "auto, globs, decathlon or datalist": the values of 'layout' in this build. */
static const char *layout_words(arena *memory)
{
    const char *text = "auto", *last = NULL;

    for (int i = 0; i < LAYOUT_COUNT; i++) {
        if (layouts[i].reader == NULL)
            continue;
        if (last != NULL)
            text = arena_format(memory, "%s, %s", text, last);
        last = layouts[i].name;
    }
    return arena_format(memory, "%s or %s", text, last);
}

pons_status layout_choose(arena *memory, const dataset_settings *s, layout_choice *out,
                          pons_error *err)
{
    bool automatic = s->layout == NULL || strcmp(s->layout, "auto") == 0;
    const struct layout *l = NULL;

    if (check_names(s, err) != PONS_OK)
        return err->status;
    if (!automatic && (l = layout_named(s->layout)) == NULL)
        return pons_fail(err, PONS_CONFIG, "'layout' is '%s', expected %s", s->layout,
                         layout_words(memory));
    if (l != NULL && l->reader == NULL)
        return pons_fail(err, PONS_CONFIG, "'%s' is not in this build", l->name);
    if (l != NULL && (s->source == NULL) != (l->reader == layout_globs_read))
        return pons_fail(err, PONS_CONFIG, "layout '%s' needs '%s'", l->name,
                         s->source == NULL ? "source" : "image");
    out->file = s->image.count > 0 ? s->image.item[0] : NULL;
    l = s->source == NULL ? layout_named("globs")
                          : source_layout(memory, s, l, &out->file, err);
    if (l == NULL)
        return err->status;
    if (l->reader == NULL)
        return pons_fail(err, PONS_CONFIG, "'%s' is not in this build", l->name);
    if (check_suffixes(s, l, err) != PONS_OK || check_slides(s, l, err) != PONS_OK
        || check_target(s, l, err) != PONS_OK)
        return err->status;
    out->name = l->name;
    out->reader = l->reader;
    out->recognised = automatic;
    out->tests = l->tests;
    return PONS_OK;
}

/* Add a line to a list of 'count' lines. */
static void add_line(arena *memory, dataset_problem **list, int *count, int *room,
                     dataset_problem line)
{
    if (*count == *room) {
        dataset_problem *more = arena_alloc(memory, (2 * (size_t)*count + 16) * sizeof *more);
        if (*count > 0)
            memcpy(more, *list, (size_t)*count * sizeof *more);
        *list = more;
        *room = 2 * *count + 16;
    }
    (*list)[(*count)++] = line;
}

void layout_problem(layout_result *out, const char *id, const char *file, const char *format, ...)
{
    char text[sizeof ((pons_error *)NULL)->text];
    va_list list;

    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    add_line(out->memory, &out->problem, &out->problem_count, &out->problem_room,
             (dataset_problem){ id, file, arena_string(out->memory, text), false });
}

void layout_warning(layout_result *out, const char *id, const char *file, const char *format, ...)
{
    char text[sizeof ((pons_error *)NULL)->text];
    va_list list;

    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    add_line(out->memory, &out->warning, &out->warning_count, &out->warning_room,
             (dataset_problem){ id, file, arena_string(out->memory, text), true });
}

bool layout_add_channel(const dataset_settings *settings, const char *path, const char **image,
                        data_case *c)
{
    if (path == NULL && !settings->channels_optional) {
        c->incomplete = true;
        return false;
    }
    image[c->image_count++] = path;
    return true;
}

pons_status layout_check_id(const char *id, const char *file, pons_error *err)
{
    bool plain = id[0] != '\0' && strcmp(id, ".") != 0 && strcmp(id, "..") != 0;

    for (const char *c = id; *c != '\0'; c++)
        plain = plain && (unsigned char)*c >= 32 && *c != 127 && *c != '/';
    if (!plain)
        return pons_fail(err, PONS_DATA, "'%s' gives no usable case id", file);
    return PONS_OK;
}
