/*
 * class_list.c - read 'labels' and 'regions' and refuse what cannot be meant.
 */
#include "data/dataset/class_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"

/* One id from 'text' up to ',' or the end; *next is behind it. */
static bool id_read(const char *text, const char **next, int *id)
{
    int value = 0, digits = 0;

    for (; *text >= '0' && *text <= '9'; text++, digits++) {
        if (value > LABEL_ID_MAX / 10)
            return false;
        value = value * 10 + (*text - '0');
    }
    if (digits == 0 || value > LABEL_ID_MAX || (*text != ',' && *text != '\0'))
        return false;
    *next = *text == ',' ? text + 1 : text;
    *id = value;
    return *text == '\0' || text[1] != '\0';
}

static pons_status item_parse(arena *memory, const char *key, const char *item, data_class *out,
                              pons_error *err)
{
    const char *colon = strchr(item, ':');
    int *ids, count = 0;

    if (colon == NULL || colon == item || colon[1] == '\0')
        return pons_fail(err, PONS_CONFIG, "'%s' holds '%s', expected NAME:ID or NAME:ID,ID", key,
                         item);
    ids = arena_alloc(memory, (strlen(colon) + 1) / 2 * sizeof *ids);
    for (const char *at = colon + 1; *at != '\0'; count++) {
        if (!id_read(at, &at, &ids[count]))
            return pons_fail(err, PONS_CONFIG,
                             "'%s' holds '%s', expected ids from 0 to %d joined by commas", key,
                             item, LABEL_ID_MAX);
    }
    char *name = arena_string(memory, item);
    name[colon - item] = '\0';
    *out = (data_class){ name, count, ids };
    return PONS_OK;
}

pons_status class_list_parse(arena *memory, const char *key, const pons_texts *items,
                             const data_class **classes, int *count, pons_error *err)
{
    data_class *list = arena_alloc(memory, (size_t)items->count * sizeof *list);

    for (int i = 0; i < items->count; i++) {
        if (item_parse(memory, key, items->item[i], &list[i], err) != PONS_OK)
            return err->status;
    }
    if (class_list_check(key, strcmp(key, "labels") != 0, list, items->count, PONS_CONFIG, err) !=
        PONS_OK)
        return err->status;
    *classes = list;
    *count = items->count;
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

int class_list_find(const data_class *classes, int count, int id)
{
    for (int i = 0; i < count; i++) {
        if (class_has(&classes[i], id))
            return i;
    }
    return -1;
}

int class_list_named(const data_class *classes, int count, const char *name)
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
        if (class_list_named(classes, count, names->item[i]) >= 0)
            continue;
        for (int c = 0; c < count; c++)
            text_guess_try(&guess, classes[c].name);
        return pons_fail(err, PONS_CONFIG, "%s: there is no class '%s'%s%s%s", key, names->item[i],
                         guess.best != NULL ? "; did you mean '" : "",
                         guess.best != NULL ? guess.best : "", guess.best != NULL ? "'?" : "");
    }
    return PONS_OK;
}

/* The ids of classes[at] occur nowhere before. */
static pons_status ids_check(const char *key, const data_class *classes, int at, bool shared,
                             pons_status kind, pons_error *err)
{
    const data_class *c = &classes[at];

    for (int i = 0; i < c->id_count; i++) {
        data_class before = { c->name, i, c->id };
        int other = shared ? -1 : class_list_find(classes, at, c->id[i]);
        if (class_has(&before, c->id[i]))
            other = at;
        if (other >= 0)
            return pons_fail(err, kind, "'%s' gives id %d to '%s' and to '%s'", key,
                             c->id[i], classes[other].name, c->name);
    }
    return PONS_OK;
}

pons_status class_list_check(const char *key, bool shared, const data_class *classes, int count,
                             pons_status kind, pons_error *err)
{
    if (!shared && count < 2)
        return pons_fail(err, kind,
                         "'%s' has %d entr%s, expected a background and at least one class", key,
                         count, count == 1 ? "y" : "ies");
    if (count > CLASS_COUNT_MAX)
        return pons_fail(err, kind, "'%s' has %d entries, expected at most %d", key, count,
                         CLASS_COUNT_MAX);
    for (int i = 0; i < count; i++) {
        if (class_list_named(classes, i, classes[i].name) >= 0)
            return pons_fail(err, kind, "'%s' names '%s' twice", key, classes[i].name);
        if (ids_check(key, classes, i, shared, kind, err) != PONS_OK)
            return err->status;
    }
    return PONS_OK;
}

const char *class_list_missing(arena *memory, const dataset *d, int number)
{
    const data_class *c = &(d->region_count > 0 ? d->regions : d->classes)[number];
    const char *ids = "";

    for (int i = 0; i < c->id_count; i++)
        ids = arena_format(memory, "%s%s%d", ids, i > 0 ? "," : "", c->id[i]);
    return arena_format(memory, "no case contains '%s:%s', which '%s' lists", c->name, ids,
                        d->region_count > 0 ? "regions" : "labels");
}
