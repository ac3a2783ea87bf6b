/*
 * layout_decathlon.c - the Medical Segmentation Decathlon's dataset.json.
 *
 *   "modality": { "0": "CT" }                       channels, by number
 *   "labels":   { "0": "background", "1": "spleen" } id to name
 *   "training": [ { "image": "./imagesTr/a.nii.gz", "label": "./labelsTr/a.nii.gz" } ]
 *   "validation": as "training"; held out where the INI file has no rule of its own
 *
 * 'image' may be a list of files, one per channel. Paths are relative to the file's folder and stay
 * in it. Anything else in the file is not read ("tensorImageSize", "numTraining" and "test" are
 * wrong in published sets).
 */
#include "data/dataset/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/json.h"
#include "base/text/shell_word.h"
#include "config/list.h"
#include "data/dataset/class_list.h"
#include "data/volume/volume_files.h"

#define JSON_SIZE_MAX ((size_t)64 << 20)

typedef struct reader {
    arena *memory;
    const char *path, *folder; /* folder ends with '/' or is empty */
    const json_value *root;
    layout_result *out;
} reader;

static const char *type_name(const json_value *value)
{
    static const char *const names[] = {
        "missing", "null", "false", "true", "a number", "a text", "a list", "an object"
    };

    return names[value == NULL ? 0 : value->type];
}

static bool is_type(const json_value *value, json_type type)
{
    return value != NULL && value->type == type;
}

static pons_status wrong_type(const reader *r, const char *field, const json_value *value,
                              const char *expected, pons_error *err)
{
    return pons_fail(err, PONS_DATA, "'%s': '%s' is %s, expected %s", r->path, field,
                     type_name(value), expected);
}

/* ---- numbered names: "modality" and "labels" ------------------------------------------------- */

typedef struct numbered {
    int number;
    const char *name;
} numbered;

static int compare_numbers(const void *a, const void *b)
{
    return ((const numbered *)a)->number - ((const numbered *)b)->number;
}

static bool number_of(const char *text, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > LABEL_ID_MAX)
        return false;
    *number = (int)value;
    return true;
}

/* {"0": "name", ...} sorted by number; numbers differ. */
static pons_status read_numbered(const reader *r, const char *field, const json_value *object,
                                 numbered **out, int *count, pons_error *err)
{
    int n = 0;

    if (!is_type(object, JSON_OBJECT) || object->count == 0)
        return wrong_type(r, field, object, "an object of numbers and names", err);
    numbered *list = arena_alloc(r->memory, (size_t)object->count * sizeof *list);
    for (const json_value *value = object->child; value != NULL; value = value->next) {
        if (!number_of(value->key, &list[n].number))
            return pons_fail(err, PONS_DATA,
                             "'%s': '%s' has the key '%s', expected a number from 0 to %d", r->path,
                             field, value->key, LABEL_ID_MAX);
        if (!is_type(value, JSON_TEXT) || value->text[0] == '\0')
            return wrong_type(r, arena_format(r->memory, "%s.%s", field, value->key), value,
                              "a name that is not empty", err);
        list[n++].name = arena_string(r->memory, value->text);
    }
    qsort(list, (size_t)n, sizeof *list, compare_numbers);
    for (int i = 1; i < n; i++) {
        if (list[i].number == list[i - 1].number)
            return pons_fail(err, PONS_DATA, "'%s': '%s' has the number %d twice", r->path, field,
                             list[i].number);
    }
    *out = list;
    *count = n;
    return PONS_OK;
}

static pons_status read_channels(const reader *r, pons_error *err)
{
    const json_value *object = json_member(r->root, "modality");
    numbered *list;
    int count;

    if (object == NULL) { /* one channel per file */
        r->out->channels = 0;
        return PONS_OK;
    }
    if (read_numbered(r, "modality", object, &list, &count, err) != PONS_OK)
        return err->status;
    const char **names = arena_alloc(r->memory, (size_t)count * sizeof *names);
    for (int i = 0; i < count; i++) {
        if (list[i].number != i)
            return pons_fail(err, PONS_DATA, "'%s': 'modality' has no channel %d, expected 0 to %d",
                             r->path, i, count - 1);
        names[i] = list[i].name;
    }
    r->out->channels = count;
    r->out->channel_names = names;
    return PONS_OK;
}

static pons_status read_labels(const reader *r, pons_error *err)
{
    const json_value *object = json_member(r->root, "labels");
    numbered *list;
    int count;

    if (object == NULL) /* the INI file says it, or dataset_open complains */
        return PONS_OK;
    if (read_numbered(r, "labels", object, &list, &count, err) != PONS_OK)
        return err->status;
    data_class *classes = arena_alloc(r->memory, (size_t)count * sizeof *classes);
    for (int i = 0; i < count; i++) {
        int *id = arena_alloc(r->memory, sizeof *id);
        *id = list[i].number;
        classes[i] = (data_class){ list[i].name, 1, id };
    }
    r->out->classes = classes;
    r->out->class_count = count;
    return class_list_check(arena_format(r->memory, "labels of %s", r->path), false, classes,
                            count, PONS_DATA, err);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* A relative path that stays in the folder. */
static bool path_is_inside(const char *path)
{
    if (path[0] == '/' || path[0] == '\0')
        return false;
    for (const char *part = path; ; part++) {
        size_t size = strcspn(part, "/");
        if (size == 2 && memcmp(part, "..", 2) == 0)
            return false;
        part += size;
        if (*part == '\0')
            return true;
    }
}

static pons_status read_path(const reader *r, const char *field, const json_value *value,
                             const char **path, pons_error *err)
{
    const char *text;

    if (!is_type(value, JSON_TEXT))
        return wrong_type(r, field, value, "a path", err);
    text = value->text;
    if (!path_is_inside(text))
        return pons_fail(err, PONS_DATA, "'%s': '%s' is '%s', expected a path inside the folder of "
                         "the dataset", r->path, field, text);
    while (strncmp(text, "./", 2) == 0)
        text += 2;
    *path = arena_format(r->memory, "%s%s", r->folder, text);
    return PONS_OK;
}

static pons_status read_images(const reader *r, const char *field, const json_value *value,
                               data_case *c, pons_error *err)
{
    bool list = is_type(value, JSON_LIST);
    const json_value *next = list ? value->child : NULL;
    int count = list ? value->count : 1;

    if (count == 0)
        return pons_fail(err, PONS_DATA, "'%s': '%s' is an empty list, expected a path for each "
                         "channel", r->path, field);
    if (count > 1 && r->out->channels != 0 && count != r->out->channels)
        return pons_fail(err, PONS_DATA, "'%s': '%s' has %d files, expected %d as in 'modality'",
                         r->path, field, count, r->out->channels);
    const char **image = arena_alloc(r->memory, (size_t)count * sizeof *image);
    for (int i = 0; i < count; i++, next = list ? next->next : NULL) {
        const json_value *one = list ? next : value;
        const char *name = list ? arena_format(r->memory, "%s[%d]", field, i) : field;
        if (read_path(r, name, one, &image[i], err) != PONS_OK)
            return err->status;
    }
    c->image = image;
    c->image_count = count;
    return PONS_OK;
}

/* The stem of the first image without the suffix of channel 0. */
static const char *case_id(arena *memory, const char *image)
{
    const char *stem = volume_file_stem(memory, image);
    size_t size = strlen(stem);

    if (size > 5 && strcmp(stem + size - 5, "_0000") == 0)
        stem = arena_format(memory, "%.*s", (int)(size - 5), stem);
    return stem;
}

static bool is_hidden(const char *path)
{
    const char *slash = strrchr(path, '/');

    return (slash != NULL ? slash + 1 : path)[0] == '.';
}

/* The image of an item and with it the case's id; *listed: it is one of the cases. */
static pons_status read_head(const reader *r, const char *field, const json_value *item,
                             data_case *c, bool *listed, pons_error *err)
{
    *listed = false;
    if (!is_type(item, JSON_OBJECT))
        return wrong_type(r, field, item, "an object with 'image' and 'label'", err);
    if (read_images(r, arena_format(r->memory, "%s.image", field), json_member(item, "image"),
                    c, err) != PONS_OK)
        return err->status;
    c->id = case_id(r->memory, c->image[0]);
    *listed = !is_hidden(c->image[0]);
    return *listed ? layout_check_id(c->id, c->image[0], err) : PONS_OK;
}

/* One entry of a list; what is wrong with it is noted, and the next one is read. */
static void read_item(const reader *r, const char *field, const json_value *item, bool held)
{
    pons_error cause = PONS_ERROR_INIT;
    data_case c = { .id = NULL };
    const json_value *label;
    bool listed;

    if (read_head(r, field, item, &c, &listed, &cause) != PONS_OK) {
        layout_problem(r->out, NULL, r->path, "%s", cause.text);
        return;
    }
    label = listed ? json_member(item, "label") : NULL;
    if (!listed || (label == NULL && held)) /* published lists hold images to be predicted */
        return;
    if (read_path(r, arena_format(r->memory, "%s.label", field), label, &c.label, &cause)
        != PONS_OK) {
        layout_problem(r->out, c.id, r->path, "%s", cause.text);
        c.incomplete = true;
    }
    r->out->cases[r->out->case_count++] = (layout_case){ c, held };
    r->out->holds_out = r->out->holds_out || held;
}

static pons_status read_cases(const reader *r, pons_error *err)
{
    const json_value *list[] = { json_member(r->root, "training"),
                             json_member(r->root, "validation") };
    static const char *const field[] = { "training", "validation" };
    size_t count = 0;

    for (int l = 0; l < 2; l++) {
        if (!is_type(list[l], JSON_LIST) && (l == 0 || list[l] != NULL))
            return wrong_type(r, field[l], list[l], "a list of cases", err);
        count += list[l] != NULL ? (size_t)list[l]->count : 0;
    }
    r->out->cases = arena_alloc(r->memory, (count + 1) * sizeof *r->out->cases);
    for (int l = 0; l < 2; l++) {
        const json_value *item = list[l] != NULL ? list[l]->child : NULL;
        for (int i = 0; item != NULL; i++, item = item->next)
            read_item(r, arena_format(r->memory, "%s[%d]", field[l], i), item, l == 1);
    }
    if (r->out->case_count == 0 && r->out->problem_count == 0)
        return pons_fail(err, PONS_DATA, "'%s': 'training' has no case", r->path);
    return PONS_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* One pattern a channel, with the folder, so that it means the same in any file. */
static const char *image_patterns(const reader *r, const char *ending)
{
    const json_value *names = json_member(r->root, "channel_names");
    int count = names->count > 0 ? names->count : 1;
    const char **pattern = arena_alloc(r->memory, (size_t)(count + 1) * sizeof *pattern);

    for (int i = 0; i < count; i++)
        pattern[i] = arena_format(r->memory, "%simagesTr/*_%04d%s", r->folder, i, ending);
    return list_join(r->memory, count, pattern);
}

/* " --set 'key=value'" */
static const char *set_key(arena *memory, const char *key, const char *value)
{
    const char *text = arena_format(memory, "%s=%s", key, value);
    size_t size = 4 * strlen(text) + 3; /* an apostrophe becomes four characters */

    return arena_format(memory, " --set %s", shell_word(arena_alloc(memory, size), size, text));
}

/* The key 'labels', or "" where a class has no id of its own or a name that needs thought. */
static const char *set_labels(const reader *r)
{
    const json_value *labels = json_member(r->root, "labels");
    const char *text = "", *between = "";
    uint64_t id;

    if (!is_type(labels, JSON_OBJECT))
        return "";
    for (const json_value *v = labels->child; v != NULL; v = v->next) {
        if (!json_whole(v, &id) || v->key[strcspn(v->key, " \t\r\n,:;\"'")] != '\0')
            return "";
        text = arena_format(r->memory, "%s%s%s:%llu", text, between, v->key,
                            (unsigned long long)id);
        between = " ";
    }
    return set_key(r->memory, "data.labels", text);
}

static pons_status refuse_nnunet(const reader *r, pons_error *err)
{
    const char *ending = json_member(r->root, "file_ending")->text;
    const char *image, *label;

    if (ending == NULL)
        ending = ".nii.gz";
    image = set_key(r->memory, "data.image", image_patterns(r, ending));
    label = arena_format(r->memory, "%slabelsTr/*%s", r->folder, ending);
    label = set_key(r->memory, "data.label", list_single(r->memory, label));
    return pons_fail(err, PONS_CONFIG, "'nnunet' is not in this build, and '%s' has that layout\n"
                     "hint: its files are read with --set data.source=%s%s%.1000s", r->path, image,
                     label, set_labels(r));
}

static pons_status refuse_relatives(const reader *r, pons_error *err)
{
    if (!is_type(r->root, JSON_OBJECT))
        return pons_fail(err, PONS_DATA, "'%s' is %s, expected an object", r->path,
                         type_name(r->root));
    if (json_member(r->root, "channel_names") != NULL &&
        json_member(r->root, "file_ending") != NULL)
        return refuse_nnunet(r, err);
    return PONS_OK;
}

static pons_status parse(const char *path, json_document *out, pons_error *err)
{
    char *text;
    size_t size;

    if (file_read(path, JSON_SIZE_MAX, &text, &size, PONS_DATA, err) != PONS_OK)
        return err->status;
    pons_status status = json_parse(text, size, path, PONS_DATA, out, err);
    free(text);
    return status;
}

pons_status layout_decathlon_read(const dataset_settings *settings, layout_result *out,
                                  pons_error *err)
{
    reader r = { .memory = out->memory, .out = out };
    json_document document;
    const char *slash;

    r.path = folder_is_there(settings->source)
                 ? arena_format(out->memory, "%s/dataset.json", settings->source)
                 : arena_string(out->memory, settings->source);
    slash = strrchr(r.path, '/');
    r.folder = slash == NULL ? ""
               : arena_format(out->memory, "%.*s", (int)(slash + 1 - r.path), r.path);
    out->origin = r.path;
    if (parse(r.path, &document, err) != PONS_OK)
        return err->status;
    r.root = document.root;
    pons_status status = refuse_relatives(&r, err);
    if (status == PONS_OK)
        status = read_channels(&r, err);
    if (status == PONS_OK)
        status = read_labels(&r, err);
    if (status == PONS_OK)
        status = read_cases(&r, err);
    if (status == PONS_OK && out->channels == 0 && out->case_count > 0)
        out->channels = out->cases[0].info.image_count;
    json_free(&document);
    return status;
}
