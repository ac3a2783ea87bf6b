/*
 * config_location.c - the file and line of what a message is about. Plugins and readers of data
 * see values and no file; their message names the key in quotes, and who asked them puts the place
 * before it.
 */
#include "config/config_internal.h"

#include <string.h>

enum { NAME_LIMIT = 128 };

const char *config_place(config *c, const char *section, const char *key)
{
    const char *where = key != NULL ? config_where(c, section, key) : NULL, *dot;

    if (where != NULL)
        return where;
    for (const section_line *s = c->section; s != NULL; s = s->next)
        if (strcmp(s->name, section) == 0)
            return arena_format(c->arena, "%s:%d", s->file, s->line);
    dot = strchr(section, '.');
    if (dot != NULL)
        where = config_where(c, arena_format(c->arena, "%.*s", (int)(dot - section), section),
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

/* 'word' may be 'KEY' or 'PLUGIN-KIND.KEY'. */
static const char *known_key(const config *c, const char *section, const char *word, size_t size)
{
    char name[NAME_LIMIT];
    const char *key;

    if (size >= sizeof name)
        return NULL;
    memcpy(name, word, size);
    name[size] = '\0';
    key = strrchr(name, '.') != NULL ? strrchr(name, '.') + 1 : name;
    for (const known_section *k = c->known; k != NULL; k = k->next)
        for (const pons_option *o = k->options; strcmp(k->name, section) == 0 && o != NULL
                                                && o->name != NULL; o++)
            if (strcmp(o->name, key) == 0)
                return o->name;
    return NULL;
}

/* The first key of [section] that the text has in quotes. */
static const char *quoted_key(const config *c, const char *section, const char *text)
{
    for (const char *open = strchr(text, '\''); open != NULL; open = strchr(open + 1, '\'')) {
        const char *key = known_key(c, section, open + 1, strcspn(open + 1, "'"));
        if (key != NULL)
            return key;
    }
    return NULL;
}

/* "[section] key ...": copies the section; returns what is behind it, NULL: no such begin. */
static const char *behind_head(const char *text, char section[NAME_LIMIT])
{
    size_t size = strcspn(text, "]");

    if (text[0] != '[' || text[size] != ']' || size > NAME_LIMIT)
        return NULL;
    memcpy(section, text + 1, size - 1);
    section[size - 1] = '\0';
    return text + size + 1 + strspn(text + size + 1, " ");
}

pons_status config_blame(config *c, const char *section, const char *key, pons_error *err)
{
    char named[NAME_LIMIT];
    const char *text, *behind, *found;
    pons_status status;

    if (err == NULL || (err->status != PONS_CONFIG && err->status != PONS_DATA)
        || begins_with_place(c, err->text))
        return err != NULL ? err->status : PONS_OK;
    status = err->status;
    text = arena_string(c->arena, err->text);
    behind = behind_head(text, named);
    if (behind == NULL && status == PONS_DATA) /* it names a file */
        return status;
    if (behind != NULL)
        section = named;
    if (section == NULL)
        return err->status;
    found = behind != NULL ? known_key(c, section, behind, strcspn(behind, " :")) : NULL;
    if (found == NULL)
        found = quoted_key(c, section, text);
    if (found != NULL)
        key = found;
    *err = (pons_error)PONS_ERROR_INIT;
    if (behind != NULL)
        return pons_fail(err, status, "%s: %s", config_place(c, section, key), text);
    return pons_fail(err, PONS_CONFIG, "%s: [%s]%s%s: %s", config_place(c, section, key), section,
                     key != NULL ? " " : "", key != NULL ? key : "", text);
}
