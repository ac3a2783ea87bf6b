/*
 * class_list.c - parse and check 'labels', 'regions' and 'map', and tables of labels.
 */
#include "data/dataset/class_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/table_file.h"
#include "base/hash/name_index.h"
#include "base/text/text.h"

/* Ids of one entry while it is parsed. */
typedef struct id_items {
    int *id;
    int count, room;
    int rest;                  /* the smallest id of 'rest' (0) or '*' (1); -1: neither           */
} id_items;

static void append_id(arena *memory, id_items *l, int id)
{
    if (l->count == l->room) {
        int *more = arena_alloc(memory, (size_t)(l->room = 2 * l->room + 8) * sizeof *more);
        if (l->count > 0)
            memcpy(more, l->id, (size_t)l->count * sizeof *more);
        l->id = more;
    }
    l->id[l->count++] = id;
}

/* Parse one label id; *text is set behind it. */
static bool label_id_parse(const char **text, int *id)
{
    int value = 0, digits = 0;

    for (; **text >= '0' && **text <= '9'; (*text)++, digits++) {
        if (value > LABEL_ID_MAX / 10)
            return false;
        value = value * 10 + (**text - '0');
    }
    *id = value;
    return digits > 0 && value <= LABEL_ID_MAX;
}

/* Parse "3", "1-3", "rest" or "*" up to ',' or the end; *text is set behind the comma. */
static bool id_item_parse(arena *memory, const char **text, id_items *out)
{
    size_t size = strcspn(*text, ",");
    bool rest = size == 4 && memcmp(*text, "rest", 4) == 0, star = size == 1 && **text == '*';
    const char *end = *text + size;
    int first, last;

    if (rest || star) {
        if (out->rest >= 0)
            return false;
        out->rest = star;
        *text = end;
    } else {
        if (!label_id_parse(text, &first))
            return false;
        last = first;
        if (**text == '-' && ((*text)++, !label_id_parse(text, &last) || last < first))
            return false;
        for (int id = first; id <= last; id++)
            append_id(memory, out, id);
    }
    if (*text != end)
        return false;
    *text += **text == ',';
    return *end == '\0' || end[1] != '\0';
}

static pons_status class_parse(arena *memory, const char *key, const char *item, data_class *out,
                               int *rest, pons_error *err)
{
    const char *colon = strchr(item, ':');
    id_items ids = { .rest = -1 };

    if (colon == NULL || colon == item || colon[1] == '\0')
        return pons_fail(err, PONS_CONFIG, "'%s' holds '%s', expected NAME:ID or NAME:ID,ID", key,
                         item);
    for (const char *at = colon + 1; *at != '\0'; ) {
        if (!id_item_parse(memory, &at, &ids))
            return pons_fail(err, PONS_CONFIG,
                             "'%s' holds '%s', expected ids from 0 to %d joined by commas", key,
                             item, LABEL_ID_MAX);
    }
    char *name = arena_string(memory, item);
    name[colon - item] = '\0';
    *out = (data_class){ name, ids.count, ids.id };
    *rest = ids.rest;
    return PONS_OK;
}

/* Add to list[at] every id from 'rest' on that no class has. */
static pons_status add_rest(arena *memory, const char *key, data_class *list, int count, int at,
                            int rest, pons_error *err)
{
    bool *listed = arena_alloc(memory, LABEL_ID_MAX + 1);
    int *ids = arena_alloc(memory, (LABEL_ID_MAX + 1 + (size_t)list[at].id_count) * sizeof *ids);
    int n = list[at].id_count;

    if (n > 0)
        memcpy(ids, list[at].id, (size_t)n * sizeof *ids);
    for (int c = 0; c < count; c++)
        for (int i = 0; i < list[c].id_count; i++)
            listed[list[c].id[i]] = true;
    for (int id = rest; id <= LABEL_ID_MAX; id++)
        if (!listed[id])
            ids[n++] = id;
    if (n == list[at].id_count)
        return pons_fail(err, PONS_CONFIG, "'%s' gives the rest to '%s', but lists every id", key,
                         list[at].name);
    list[at] = (data_class){ list[at].name, n, ids };
    return PONS_OK;
}

/* Check that no id occurs twice in a class, or in two classes unless they share ids. */
static pons_status check_label_ids(const char *key, const data_class *classes, int count,
                                   bool shared, pons_status kind, pons_error *err)
{
    int *owner = calloc(LABEL_ID_MAX + 1, sizeof *owner); /* class index + 1 */

    if (owner == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (int c = 0; c < count && err->status == PONS_OK; c++) {
        for (int i = 0; i < classes[c].id_count && err->status == PONS_OK; i++) {
            int *other = &owner[classes[c].id[i]];
            if (*other == c + 1 || (*other != 0 && !shared))
                pons_fail(err, kind, "'%s' gives id %d to '%s' and to '%s'", key,
                          classes[c].id[i], classes[*other - 1].name, classes[c].name);
            *other = c + 1;
        }
    }
    free(owner);
    return err->status;
}

/* Check that no name occurs twice. */
static pons_status check_names(const char *key, const data_class *classes, int count,
                               pons_status kind, pons_error *err)
{
    name_index known = { NULL };

    for (int i = 0; i < count && err->status == PONS_OK; i++) {
        int first = name_index_add(&known, "", classes[i].name, i);

        if (first < 0)
            pons_fail(err, PONS_DEVICE, "out of memory");
        else if (first < i)
            pons_fail(err, kind, "'%s' names '%s' twice", key, classes[i].name);
    }
    name_index_clear(&known);
    return err->status;
}

static pons_status check_list(const char *key, bool shared, const data_class *classes, int count,
                              int most, pons_status kind, pons_error *err)
{
    if (!shared && count < 2)
        return pons_fail(err, kind,
                         "'%s' has %d entr%s, expected a background and at least one class", key,
                         count, count == 1 ? "y" : "ies");
    if (count > most)
        return pons_fail(err, kind, "'%s' has %d entries, expected at most %d", key, count, most);
    if (check_names(key, classes, count, kind, err) != PONS_OK)
        return err->status;
    return check_label_ids(key, classes, count, shared, kind, err);
}

pons_status class_list_check(const char *key, bool shared, const data_class *classes, int count,
                             pons_status kind, pons_error *err)
{
    return check_list(key, shared, classes, count, CLASS_COUNT_MAX, kind, err);
}

pons_status class_list_parse(arena *memory, const char *key, const pons_texts *items, int most,
                             const data_class **classes, int *count, pons_error *err)
{
    data_class *list = arena_alloc(memory, (size_t)items->count * sizeof *list);
    bool shared = strcmp(key, "labels") != 0, rests = strcmp(key, "regions") != 0;
    int with_rest = -1, lowest = -1;

    for (int i = 0; i < items->count; i++) {
        int rest = -1;
        if (class_parse(memory, key, items->item[i], &list[i], &rest, err) != PONS_OK)
            return err->status;
        if (rest < 0)
            continue;
        if (!rests || with_rest >= 0)
            return pons_fail(err, PONS_CONFIG, "'%s' holds '%s', expected %s", key,
                             items->item[i], !rests ? "ids, since only 'labels' has a rest"
                                                    : "one entry with rest or *");
        with_rest = i;
        lowest = rest;
    }
    if (check_list(key, shared, list, items->count, most, PONS_CONFIG, err) != PONS_OK)
        return err->status;
    if (with_rest >= 0
        && add_rest(memory, key, list, items->count, with_rest, lowest, err) != PONS_OK)
        return err->status;
    *classes = list;
    *count = items->count;
    return PONS_OK;
}

const char *class_ids_text(arena *memory, const data_class *c)
{
    const char *text = "";

    for (int i = 0, end; i < c->id_count; i = end) {
        for (end = i + 1; end < c->id_count && c->id[end] == c->id[end - 1] + 1; end++)
            ;
        end = end - i > 2 ? end : i + 1;
        text = arena_format(memory, "%s%s%d", text, i > 0 ? "," : "", c->id[i]);
        if (end - i > 1)
            text = arena_format(memory, "%s-%d", text, c->id[end - 1]);
    }
    return text;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static pons_status table_id(const table_file *t, const csv_row *row, int column, int most,
                            int *id, pons_error *err)
{
    int64_t value;

    if (!text_integer(row->cell[column], &value) || value < 0 || value > most)
        return pons_fail(err, PONS_DATA, "'%s' line %d: found '%s' in the column '%s', expected a "
                         "number from 0 to %d", t->path, row->line, row->cell[column],
                         t->column[column], most);
    *id = (int)value;
    return PONS_OK;
}

/* Add the row of an id to its class, list[index]. */
static pons_status add_table_row(arena *memory, const table_file *t, const csv_row *row,
                                 int name, id_items *ids, data_class *list, pons_error *err)
{
    int original = table_file_column(t, "original"), new = table_file_column(t, "new");
    int id, index;

    if (table_id(t, row, original, LABEL_ID_MAX, &id, err) != PONS_OK
        || table_id(t, row, new, CLASS_COUNT_MAX - 1, &index, err) != PONS_OK)
        return err->status;
    const char *given = name >= 0 ? row->cell[name] : index == 0 ? "background"
                        : arena_format(memory, "class_%d", index);
    if (given[0] == '\0')
        return pons_fail(err, PONS_DATA, "'%s' line %d: the class %d has no name", t->path,
                         row->line, index);
    if (list[index].name != NULL && strcmp(list[index].name, given) != 0)
        return pons_fail(err, PONS_DATA, "'%s' line %d: found the name '%s' of class %d, expected "
                         "'%s' as above", t->path, row->line, given, index, list[index].name);
    append_id(memory, &ids[index], id);
    list[index] = (data_class){ given, ids[index].count, ids[index].id };
    return PONS_OK;
}

pons_status class_list_read_table(arena *memory, const char *path, const data_class **classes,
                                  int *count, pons_error *err)
{
    table_file t;
    int name, n = 0;

    if (table_file_read(memory, path, &t, err) != PONS_OK)
        return err->status;
    if (table_file_column(&t, "original") < 0 || table_file_column(&t, "new") < 0)
        return pons_fail(err, PONS_DATA, "'%s' has no column '%s', expected 'original' and 'new'",
                         t.path, table_file_column(&t, "original") < 0 ? "original" : "new");
    name = table_file_column(&t, "name");
    id_items *ids = arena_alloc(memory, CLASS_COUNT_MAX * sizeof *ids);
    data_class *list = arena_alloc(memory, CLASS_COUNT_MAX * sizeof *list);
    for (int i = 0; i < t.row_count; i++)
        if (add_table_row(memory, &t, &t.row[i], name, ids, list, err) != PONS_OK)
            return err->status;
    for (int c = 0; c < CLASS_COUNT_MAX; c++) {
        if (list[c].name == NULL)
            continue;
        if (c != n)
            return pons_fail(err, PONS_DATA, "'%s' has no row for class %d but one for class %d, "
                             "expected every class from 0", t.path, n, c);
        n++;
    }
    *classes = list;
    *count = n;
    return class_list_check(arena_format(memory, "labels of %s", t.path), false, list, n, PONS_DATA,
                            err);
}

/* ---- map ------------------------------------------------------------------------------------- */

/* Parse "4:3" into the table of what each id is read as. */
static pons_status map_parse(const char *item, int *to, pons_error *err)
{
    const char *at = item;
    int from, id;

    if (!label_id_parse(&at, &from) || *at++ != ':' || !label_id_parse(&at, &id) || *at != '\0')
        return pons_fail(err, PONS_CONFIG, "'map' holds '%s', expected ID:ID with ids from 0 to %d",
                         item, LABEL_ID_MAX);
    if (to[from] != from)
        return pons_fail(err, PONS_CONFIG, "'map' gives id %d to %d and to %d", from, to[from], id);
    to[from] = id;
    return PONS_OK;
}

/* The ids that are read as one of the class: its own first, then those that the map adds. */
static pons_status map_class(arena *memory, const int *to, data_class *c, pons_error *err)
{
    bool *listed = arena_alloc(memory, LABEL_ID_MAX + 1);
    id_items ids = { .rest = -1 };

    for (int i = 0; i < c->id_count; i++)
        listed[c->id[i]] = true;
    for (int i = 0; i < c->id_count; i++)
        if (listed[to[c->id[i]]])
            append_id(memory, &ids, c->id[i]);
    for (int id = 0; id <= LABEL_ID_MAX; id++)
        if (!listed[id] && listed[to[id]])
            append_id(memory, &ids, id);
    if (ids.count == 0)
        return pons_fail(err, PONS_CONFIG, "'map' leaves '%s:%s' without an id", c->name,
                         class_ids_text(memory, c));
    *c = (data_class){ c->name, ids.count, ids.id };
    return PONS_OK;
}

pons_status class_list_map(arena *memory, const pons_texts *items, const data_class **classes,
                           int count, pons_error *err)
{
    int *to = arena_alloc(memory, (LABEL_ID_MAX + 1) * sizeof *to);
    data_class *list = arena_alloc(memory, (size_t)count * sizeof *list + 1);

    if (items->count == 0 || count == 0)
        return PONS_OK;
    for (int id = 0; id <= LABEL_ID_MAX; id++)
        to[id] = id;
    for (int i = 0; i < items->count; i++)
        if (map_parse(items->item[i], to, err) != PONS_OK)
            return err->status;
    for (int c = 0; c < count; c++) {
        list[c] = (*classes)[c];
        if (map_class(memory, to, &list[c], err) != PONS_OK)
            return err->status;
    }
    *classes = list;
    return PONS_OK;
}

/* ---- look-up and checks ---------------------------------------------------------------------- */

pons_status class_list_take_ignored(arena *memory, const data_class **classes, int *count,
                                    const data_class **ignored, pons_error *err)
{
    int at = class_index_of_name(*classes, *count, "ignore");
    data_class *rest;

    *ignored = NULL;
    if (at < 0)
        return PONS_OK;
    if (at == 0 || *count < 3)
        return pons_fail(err, PONS_CONFIG, "'labels' has 'ignore' as %s, expected it behind a "
                         "background and at least one class",
                         at == 0 ? "the first entry" : "one of two entries");
    *ignored = &(*classes)[at];
    rest = arena_alloc(memory, (size_t)*count * sizeof *rest);
    for (int i = 0, n = 0; i < *count; i++) {
        if (i != at)
            rest[n++] = (*classes)[i];
    }
    *classes = rest;
    *count -= 1;
    return PONS_OK;
}

static bool class_has(const data_class *c, int id)
{
    for (int i = 0; i < c->id_count; i++) {
        if (c->id[i] == id)
            return true;
    }
    return false;
}

int class_index_of_id(const data_class *classes, int count, int id)
{
    for (int i = 0; i < count; i++) {
        if (class_has(&classes[i], id))
            return i;
    }
    return -1;
}

int class_index_of_name(const data_class *classes, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(classes[i].name, name) == 0)
            return i;
    }
    return -1;
}

pons_status class_list_check_names(const char *key, const pons_texts *names,
                                   const data_class *classes, int count, pons_error *err)
{
    for (int i = 0; i < names->count; i++) {
        text_guess guess = text_guess_for(names->item[i]);
        if (class_index_of_name(classes, count, names->item[i]) >= 0)
            continue;
        for (int c = 0; c < count; c++)
            text_guess_try(&guess, classes[c].name);
        return pons_fail(err, PONS_CONFIG, "%s: there is no class '%s'%s%s%s", key, names->item[i],
                         guess.best != NULL ? "; did you mean '" : "",
                         guess.best != NULL ? guess.best : "", guess.best != NULL ? "'?" : "");
    }
    return PONS_OK;
}

const char *class_list_missing_text(arena *memory, const dataset *d, int number)
{
    const data_class *c = &(d->region_count > 0 ? d->regions : d->classes)[number];

    return arena_format(memory, "no case contains '%s:%s', which '%s' lists", c->name,
                        class_ids_text(memory, c),
                        d->region_count > 0 ? "regions" : "labels");
}
