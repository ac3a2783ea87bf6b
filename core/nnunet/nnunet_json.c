/*
 * nnunet_json.c - members of an object, with one line for the first that is not as expected.
 */
#include "nnunet/nnunet_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/text/text.h"

enum { FILE_LIMIT = 64 << 20, SHOWN = 200 };

/*
 * The text with null in place of NaN and Infinity, which Python's json writes for numbers that are
 * not finite. A byte becomes at most two.
 */
static pons_status replace_not_finite(char **text, size_t *size, pons_error *err)
{
    static const char *const words[] = { "NaN", "-Infinity", "Infinity" };
    char *out = malloc(*size * 2 + 1), *to = out;
    bool quoted = false;

    if (out == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %zu bytes of JSON", *size);
    for (const char *from = *text, *end = *text + *size; from < end;) {
        const char *with = NULL;

        for (int i = 0; i < 3 && !quoted && with == NULL; i++)
            if (strncmp(from, words[i], strlen(words[i])) == 0)
                with = words[i];
        if (with != NULL) {
            from += strlen(with);
            to = stpcpy(to, "null");
            continue;
        }
        quoted ^= *from == '"';
        if (quoted && *from == '\\' && from + 1 < end)
            *to++ = *from++;
        *to++ = *from++;
    }
    *to = '\0';
    free(*text);
    *text = out;
    *size = (size_t)(to - out);
    return PONS_OK;
}

pons_status nnunet_json_read(nnunet_json *out, arena *memory, const char *path, json_t **root,
                             pons_error *err)
{
    char *text = NULL;
    size_t size = 0;

    *root = NULL;
    if (file_read(path, FILE_LIMIT, &text, &size, PONS_CONFIG, err) != PONS_OK)
        return err->status;
    if (replace_not_finite(&text, &size, err) == PONS_OK)
        json_parse(text, size, path, PONS_DATA, root, err);
    free(text);
    if (err->status == PONS_OK && !json_is_object(*root))
        pons_fail(err, PONS_DATA, "'%s' holds a list, expected an object", path);
    *out = (nnunet_json){ memory, arena_string(memory, path), "", *root, err };
    return err->status;
}

/* The keys from the root to a member. */
static const char *path_of(const nnunet_json *j, const char *key)
{
    return j->path[0] == '\0' ? key : arena_format(j->memory, "%s.%s", j->path, key);
}

bool nnunet_json_has(const nnunet_json *j, const char *key)
{
    const json_t *value = json_object_get(j->object, key);

    return value != NULL && !json_is_null(value);
}

const json_t *nnunet_json_member(const nnunet_json *j, const char *key)
{
    const json_t *value = json_object_get(j->object, key);

    if (value == NULL)
        pons_fail(j->err, PONS_CONFIG, "'%s': key '%s' is missing", j->where, path_of(j, key));
    return value;
}

void nnunet_json_refuse(const nnunet_json *j, const char *key, const char *expected)
{
    const json_t *value = json_object_get(j->object, key);
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);

    pons_fail(j->err, PONS_CONFIG, "'%s': %s: found %.*s%s, expected %s", j->where,
              path_of(j, key), SHOWN, text != NULL ? text : "nothing",
              text != NULL && strlen(text) > SHOWN ? "..." : "", expected);
    free(text);
}

nnunet_json nnunet_json_object(const nnunet_json *j, const char *key)
{
    nnunet_json out = *j;

    out.object = nnunet_json_member(j, key);
    out.path = path_of(j, key);
    if (out.object != NULL && !json_is_object(out.object))
        nnunet_json_refuse(j, key, "an object");
    return out;
}

const char *nnunet_json_text(const nnunet_json *j, const char *key)
{
    const json_t *value = nnunet_json_member(j, key);

    if (value != NULL && !json_is_string(value))
        nnunet_json_refuse(j, key, "a text");
    return json_string_value(value);
}

bool nnunet_json_flag(const nnunet_json *j, const char *key)
{
    const json_t *value = nnunet_json_member(j, key);

    if (value != NULL && !json_is_boolean(value))
        nnunet_json_refuse(j, key, "true or false");
    return json_is_true(value);
}

int nnunet_json_integer(const nnunet_json *j, const char *key, int low, int high)
{
    const json_t *value = nnunet_json_member(j, key);
    json_int_t number = json_integer_value(value);

    if (value == NULL || (json_is_integer(value) && number >= low && number <= high))
        return (int)number;
    nnunet_json_refuse(j, key, arena_format(j->memory, "a whole number from %d to %d", low, high));
    return low;
}

void nnunet_json_numbers(const nnunet_json *j, const char *key, int count, double *out)
{
    const json_t *list = nnunet_json_member(j, key);
    bool good = json_is_array(list) && (int)json_array_size(list) == count;

    for (int i = 0; i < count && good; i++) {
        const json_t *item = json_array_get(list, (size_t)i);
        out[i] = json_number_value(item);
        good = json_is_number(item) && isfinite(out[i]);
    }
    if (list != NULL && !good)
        nnunet_json_refuse(j, key, arena_format(j->memory, "a list of %d number%s", count,
                                                text_plural(count)));
}

/* A name with quotes, as JSON has it; NULL: null. */
static const char *quoted(const nnunet_json *j, const char *name)
{
    return name != NULL ? arena_format(j->memory, "\"%s\"", name) : "null";
}

void nnunet_json_expect(const nnunet_json *j, const char *key, const char *one, const char *other)
{
    const json_t *value = json_object_get(j->object, key);
    const char *found = json_string_value(value);

    if (value != NULL && !json_is_null(value) ? found != NULL && ((one && !strcmp(found, one))
                                                   || (other && !strcmp(found, other)))
                                              : one == NULL || other == NULL)
        return;
    if (value == NULL)
        nnunet_json_member(j, key);
    else
        nnunet_json_refuse(j, key, one == other || other == NULL ? quoted(j, one)
                           : arena_format(j->memory, "%s or %s", quoted(j, one),
                                          quoted(j, other)));
}

void nnunet_json_refuse_unknown(const nnunet_json *j, const char *const *known)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)j->object, key, value) {
        int i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL) {
            pons_fail(j->err, PONS_CONFIG, "'%s': unknown key '%s'", j->where, path_of(j, key));
            return;
        }
    }
}
