/*
 * split_file.c - read the file of 'validation = file:F' (split.h).
 *
 * Every name is a case, and none occurs twice.
 */
#include "data/dataset/split.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/file/json.h"

#define SPLIT_SIZE_MAX ((size_t)64 << 20)

typedef struct split_list {
    const char *path;
    int case_count;
    const data_case *cases;
    split_part *part;
    bool *named;               /* cases that the file has named                                   */
} split_list;

static int compare_id(const void *id, const void *one)
{
    return strcmp(id, ((const data_case *)one)->id);
}

/* Give a case its part. 'place' is the line or list that names it. */
static pons_status assign_part(const split_list *s, const char *place, const char *id,
                               split_part part, pons_error *err)
{
    const data_case *found = s->case_count == 0 ? NULL
                             : bsearch(id, s->cases, (size_t)s->case_count, sizeof *s->cases,
                                       compare_id);

    if (found == NULL)
        return pons_fail(err, PONS_DATA, "'%s' %s: '%s' is no case of the dataset, which has '%s' "
                         "and so on", s->path, place, id,
                         s->case_count > 0 ? s->cases[0].id : "");
    if (s->named[found->rank])
        return pons_fail(err, PONS_DATA, "'%s' %s: '%s' is named twice", s->path, place, id);
    s->named[found->rank] = true;
    s->part[found->rank] = part;
    return PONS_OK;
}

/* ---- a name a line --------------------------------------------------------------------------- */

static char *trim_line(char *line)
{
    size_t size;

    line += strspn(line, " \t");
    size = strlen(line);
    while (size > 0 && strchr(" \t\r", line[size - 1]) != NULL)
        size--;
    line[size] = '\0';
    return line;
}

static pons_status read_names(const split_list *s, char *text, pons_error *err)
{
    char place[32];
    int count = 0;

    for (int number = 1; text != NULL; number++) {
        char *end = strchr(text, '\n'), *line = text;
        text = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
        line = trim_line(line);
        if (*line == '\0')
            continue;
        snprintf(place, sizeof place, "line %d", number);
        if (assign_part(s, place, line, SPLIT_VALIDATION, err) != PONS_OK)
            return err->status;
        count++;
    }
    if (count == 0)
        return pons_fail(err, PONS_DATA, "'%s' names no case, expected one a line", s->path);
    if (count == s->case_count)
        return pons_fail(err, PONS_DATA, "'%s' names all %d cases, expected fewer held out than "
                         "there are", s->path, count);
    return PONS_OK;
}

/* ---- splits_final.json ----------------------------------------------------------------------- */

static pons_status read_part(const split_list *s, const json_t *split, int64_t fold,
                             const char *key, split_part part, pons_error *err)
{
    const json_t *list = json_object_get(split, key), *item;
    char place[64];
    size_t i;

    if (!json_is_array(list))
        return pons_fail(err, PONS_DATA, "'%s': '[%lld].%s' is %s, expected a list of case names",
                         s->path, (long long)fold, key, list == NULL ? "missing" : "no list");
    json_array_foreach(list, i, item) {
        snprintf(place, sizeof place, "'[%lld].%s[%zu]'", (long long)fold, key, i);
        if (!json_is_string(item))
            return pons_fail(err, PONS_DATA, "'%s' %s is no text, expected a case name", s->path,
                             place);
        if (assign_part(s, place, json_string_value(item), part, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

static pons_status read_folds(const split_list *s, const json_t *folds, int64_t fold,
                              pons_error *err)
{
    int64_t count = (int64_t)json_array_size(folds);

    if (!json_is_array(folds) || count == 0)
        return pons_fail(err, PONS_DATA, "'%s' is %s, expected a list with an object of 'train' "
                         "and 'val' for each fold", s->path,
                         json_is_array(folds) ? "an empty list" : "an object");
    if (fold >= count)
        return pons_fail(err, PONS_CONFIG, "'fold' is %lld, but '%s' has %lld fold%s, expected 0 "
                         "to %lld", (long long)fold, s->path, (long long)count,
                         count == 1 ? "" : "s", (long long)count - 1);
    const json_t *split = json_array_get(folds, (size_t)fold);
    for (int i = 0; i < s->case_count; i++)
        s->part[i] = SPLIT_NEITHER;
    if (read_part(s, split, fold, "train", SPLIT_TRAINING, err) != PONS_OK)
        return err->status;
    return read_part(s, split, fold, "val", SPLIT_VALIDATION, err);
}

static pons_status parse_folds(const split_list *s, const char *text, size_t size, int64_t fold,
                               pons_error *err)
{
    json_t *folds;

    if (json_parse(text, size, s->path, PONS_DATA, &folds, err) != PONS_OK)
        return err->status;
    pons_status status = read_folds(s, folds, fold, err);
    json_decref(folds);
    return status;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool is_json(const char *text)
{
    char first = text[strspn(text, " \t\r\n")];

    return first == '[' || first == '{';
}

static pons_status read_text(const split_list *s, char *text, size_t size, const int64_t *fold,
                             pons_error *err)
{
    size_t mark = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* byte order mark              */

    if (strlen(text) != size)
        return pons_fail(err, PONS_DATA, "'%s' has a zero byte, expected a text file of case names "
                         "or JSON", s->path);
    if (is_json(text + mark))
        return parse_folds(s, text + mark, size - mark, fold != NULL ? *fold : 0, err);
    if (fold != NULL)
        return pons_fail(err, PONS_CONFIG, "'fold' is %lld, but '%s' is a single list of case "
                         "names, expected JSON with a list of folds", (long long)*fold, s->path);
    return read_names(s, text + mark, err);
}

pons_status split_file_mark(const char *path, const int64_t *fold, int case_count,
                            const data_case *cases, split_part *part, pons_error *err)
{
    split_list s = { path, case_count, cases, part, NULL };
    pons_status status;
    char *text;
    size_t size;

    if (file_read(path, SPLIT_SIZE_MAX, &text, &size, PONS_DATA, err) != PONS_OK)
        return err->status;
    s.named = calloc((size_t)case_count + 1, sizeof *s.named);
    status = s.named == NULL ? pons_fail(err, PONS_DEVICE, "out of memory")
                             : read_text(&s, text, size, fold, err);
    free(s.named);
    free(text);
    return status;
}
