/*
 * config_location.c - the file and line that a message is about. Plugins and data readers see
 * values but no file. Their message quotes the key, and their caller adds the location.
 */
#include "config/config_internal.h"

#include <string.h>

enum { NAME_LIMIT = 128 };

const char *config_location(config *c, const char *section, const char *key)
{
    const char *where = key != NULL ? config_origin(c, section, key) : NULL, *dot;

    if (where != NULL)
        return where;
    for (const section_line *s = c->section; s != NULL; s = s->next)
        if (strcmp(s->name, section) == 0)
            return arena_format(c->arena, "%s:%d", s->file, s->line);
    dot = strchr(section, '.');
    if (dot != NULL)
        where = config_origin(c, arena_format(c->arena, "%.*s", (int)(dot - section), section),
                              "steps");
    if (where != NULL)
        return where;
    return c->file != NULL ? c->file : "--set";
}

static bool begins_with_place(const config *c, const char *text)
{
    if (strncmp(text, "--set: ", 7) == 0 || strncmp(text, "default: ", 9) == 0)
        return true;
    for (const section_line *s = c->section; s != NULL; s = s->next) {
        size_t size = strlen(s->file);
        if (strncmp(text, s->file, size) == 0 && text[size] == ':')
            return true;
    }
    return false;
}

/* The key that 'word' names as 'KEY' or 'KIND.KEY'; NULL if [section] has none of that name. */
static const char *known_key(const config *c, const char *section, const char *word, size_t size)
{
    char name[NAME_LIMIT];
    const pons_option *row;
    const char *key;

    if (size >= sizeof name)
        return NULL;
    memcpy(name, word, size);
    name[size] = '\0';
    key = strrchr(name, '.') != NULL ? strrchr(name, '.') + 1 : name;
    row = config_known_option(c, section, key);
    return row != NULL ? row->name : NULL;
}

/* The key that a text begins with, as pons_option_fail writes it: "key: ..."; NULL: none. */
static const char *leading_key(const config *c, const char *section, const char *text)
{
    size_t size = strcspn(text, ": ");

    return text[size] == ':' ? known_key(c, section, text, size) : NULL;
}

/* The first key of [section] that the text quotes; NULL: none. */
static const char *quoted_key(const config *c, const char *section, const char *text)
{
    for (const char *open = strchr(text, '\''); open != NULL; open = strchr(open + 1, '\'')) {
        const char *key = known_key(c, section, open + 1, strcspn(open + 1, "'"));
        if (key != NULL)
            return key;
    }
    return NULL;
}

/* Copy the section of "[section] key ..." and return its end; NULL if the text begins otherwise. */
static const char *behind_head(const char *text, char section[NAME_LIMIT])
{
    size_t size = strcspn(text, "]");

    if (text[0] != '[' || text[size] != ']' || size > NAME_LIMIT)
        return NULL;
    memcpy(section, text + 1, size - 1);
    section[size - 1] = '\0';
    return text + size + 1 + strspn(text + size + 1, " ");
}

pons_status config_location_add(config *c, const char *section, const char *key, pons_error *err)
{
    char named[NAME_LIMIT];
    const char *text, *behind, *found, *leading;
    pons_status status;

    if (err == NULL || (err->status != PONS_CONFIG && err->status != PONS_DATA)
        || begins_with_place(c, err->text))
        return err != NULL ? err->status : PONS_OK;
    status = err->status;
    text = arena_string(c->arena, err->text);
    behind = behind_head(text, named);
    if (behind == NULL && status == PONS_DATA) /* the message is about a data file */
        return status;
    if (behind != NULL)
        section = named;
    if (section == NULL)
        return err->status;
    leading = behind == NULL ? leading_key(c, section, text) : NULL;
    found = behind != NULL ? known_key(c, section, behind, strcspn(behind, " :")) : leading;
    if (found == NULL)
        found = quoted_key(c, section, text);
    if (found != NULL)
        key = found;
    *err = (pons_error)PONS_ERROR_INIT;
    if (behind != NULL)
        return pons_fail(err, status, "%s: %s", config_location(c, section, key), text);
    if (leading != NULL)
        return pons_fail(err, status, "%s: [%s] %s", config_location(c, section, key), section,
                         text);
    return pons_fail(err, PONS_CONFIG, "%s: [%s]%s%s: %s", config_location(c, section, key),
                     section, key != NULL ? " " : "", key != NULL ? key : "", text);
}
