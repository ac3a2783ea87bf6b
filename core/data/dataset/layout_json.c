/*
 * layout_json.c - open a dataset.json, tell whose it is; objects of numbered names.
 */
#include "data/dataset/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"

#define JSON_SIZE_MAX ((size_t)64 << 20)

/* ---- open ------------------------------------------------------------------------------------ */

pons_status layout_json_parse(const char *path, json_t **out, pons_error *err)
{
    char *text;
    size_t size;

    if (file_read(path, JSON_SIZE_MAX, &text, &size, PONS_DATA, err) != PONS_OK)
        return err->status;
    pons_status status = json_parse(text, size, path, PONS_DATA, out, err);
    free(text);
    return status;
}

/* The type of a value with its article; "missing" for NULL. */
static const char *layout_json_type(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false", [JSON_NULL] = "null"
    };

    return value != NULL ? names[json_typeof(value)] : "missing";
}

pons_status layout_json_open(const dataset_settings *settings, layout_result *out, layout_json *r,
                             pons_error *err)
{
    const char *slash;

    *r = (layout_json){ .memory = out->memory, .out = out };
    r->path = folder_is_there(settings->source)
                  ? arena_format(out->memory, "%s/dataset.json", settings->source)
                  : arena_string(out->memory, settings->source);
    slash = strrchr(r->path, '/');
    r->folder = slash == NULL ? ""
                : arena_format(out->memory, "%.*s", (int)(slash + 1 - r->path), r->path);
    out->origin = r->path;
    if (layout_json_parse(r->path, &r->root, err) != PONS_OK)
        return err->status;
    if (json_is_object(r->root))
        return PONS_OK;
    pons_fail(err, PONS_DATA, "'%s' is %s, expected an object", r->path,
              layout_json_type(r->root));
    layout_json_close(r);
    return err->status;
}

void layout_json_close(layout_json *r)
{
    json_decref(r->root);
    r->root = NULL;
}

bool layout_nnunet_is(const char *path)
{
    pons_error cause = PONS_ERROR_INIT;
    json_t *root = NULL;
    bool is = layout_json_parse(path, &root, &cause) == PONS_OK
              && (json_object_get(root, "channel_names") != NULL
                  || json_object_get(root, "file_ending") != NULL);

    json_decref(root);
    return is;
}

/* A file that cannot be parsed is the Decathlon's, whose reader says why. */
bool layout_decathlon_is(const char *path)
{
    return !layout_nnunet_is(path);
}

pons_status layout_json_wrong_type(const layout_json *r, const char *field, const json_t *value,
                                   const char *expected, pons_error *err)
{
    bool empty = json_is_object(value) && strncmp(expected, "an object", 9) == 0;

    return pons_fail(err, PONS_DATA, "'%s': '%s' is %s, expected %s", r->path, field,
                     empty ? "an empty object" : layout_json_type(value), expected);
}

/* ---- numbered names -------------------------------------------------------------------------- */

static int compare_numbers(const void *a, const void *b)
{
    return ((const layout_numbered *)a)->number - ((const layout_numbered *)b)->number;
}

static bool parse_number(const char *text, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > LABEL_ID_MAX)
        return false;
    *number = (int)value;
    return true;
}

pons_status layout_json_numbered(const layout_json *r, const char *field, json_t *object,
                                 layout_numbered **out, int *count, pons_error *err)
{
    const char *key;
    json_t *value;
    int n = 0;

    if (json_object_size(object) == 0)
        return layout_json_wrong_type(r, field, object, "an object of numbers and names", err);
    layout_numbered *list = arena_alloc(r->memory, json_object_size(object) * sizeof *list);
    json_object_foreach(object, key, value) {
        if (!parse_number(key, &list[n].number))
            return pons_fail(err, PONS_DATA,
                             "'%s': '%s' has the key '%s', expected a number from 0 to %d", r->path,
                             field, key, LABEL_ID_MAX);
        if (json_string_length(value) == 0)
            return layout_json_wrong_type(r, arena_format(r->memory, "%s.%s", field, key), value,
                                          "a name that is not empty", err);
        list[n++].name = arena_string(r->memory, json_string_value(value));
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

pons_status layout_json_channels(const layout_json *r, const char *field, pons_error *err)
{
    layout_numbered *list;
    int count;

    if (layout_json_numbered(r, field, json_object_get(r->root, field), &list, &count, err)
        != PONS_OK)
        return err->status;
    const char **names = arena_alloc(r->memory, (size_t)count * sizeof *names);
    for (int i = 0; i < count; i++) {
        if (list[i].number != i)
            return pons_fail(err, PONS_DATA, "'%s': '%s' has no channel %d, expected 0 to %d",
                             r->path, field, i, count - 1);
        names[i] = list[i].name;
    }
    r->out->channels = count;
    r->out->channel_names = names;
    return PONS_OK;
}
