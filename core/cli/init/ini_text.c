/*
 * ini_text.c - collect the lines of an INI file, open them as a configuration, write them.
 */
#include "cli/init/ini_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "config/list.h"

enum { LINE_LIMIT = 1000, COMMENT_COLUMN = 34 };

static bool same_section(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Insert a line at 'place'. */
static void insert_line(ini_text *t, int place, ini_line line)
{
    if (t->count == t->room) {
        size_t room = 2 * (size_t)t->room + 64;
        ini_line *more = arena_alloc(t->memory, room * sizeof *more);
        if (t->count > 0)
            memcpy(more, t->line, (size_t)t->count * sizeof *more);
        t->line = more;
        t->room = (int)room;
    }
    memmove(&t->line[place + 1], &t->line[place], (size_t)(t->count - place) * sizeof *t->line);
    t->line[place] = line;
    t->count++;
}

void ini_text_put(ini_text *t, const char *section, const char *key, const char *comment,
                  const char *format, ...)
{
    va_list list;

    va_start(list, format);
    insert_line(t, t->count, (ini_line){ section, key, arena_vformat(t->memory, format, list),
                                         comment });
    va_end(list);
}

void ini_text_comment(ini_text *t, const char *section, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    insert_line(t, t->count, (ini_line){ section, NULL, NULL,
                                         arena_vformat(t->memory, format, list) });
    va_end(list);
}

/* config_open reports what is wrong. */
void ini_text_set(ini_text *t, const char *assignment)
{
    int place = t->count;
    config_line set;

    if (!config_divide_set(t->memory, assignment, &set))
        return;
    for (int i = 0; i < t->count; i++) {
        if (!same_section(t->line[i].section, set.section))
            continue;
        place = i + 1;
        if (t->line[i].key == NULL || strcmp(t->line[i].key, set.key) != 0)
            continue;
        t->line[i].value = set.value;
        t->line[i].comment = NULL;
        return;
    }
    insert_line(t, place, (ini_line){ set.section, set.key, set.value, NULL });
}

pons_status ini_text_open(const ini_text *t, config **out, pons_error *err)
{
    const char **set = arena_alloc(t->memory, ((size_t)t->count + 1) * sizeof *set);
    int count = 0;

    for (int i = 0; i < t->count; i++)
        if (t->line[i].key != NULL)
            set[count++] = arena_format(t->memory, "%s.%s=%s", t->line[i].section,
                                        t->line[i].key, t->line[i].value);
    return config_open(NULL, count, set, out, err);
}

/* A value must read back as it is. */
static pons_status check_line(const ini_line *l, pons_error *err)
{
    const char *end = l->value + strlen(l->value);
    bool plain = list_comment(l->value, end) == end;

    for (const char *c = l->value; *c != '\0'; c++)
        plain = plain && (unsigned char)*c >= 32 && *c != 127;
    if (!plain)
        return pons_fail(err, PONS_DATA, "[%s] %s = '%s' cannot stand in an INI file, expected no "
                         "blank before ';' and no control character", l->section, l->key,
                         l->value);
    if (strlen(l->key) + strlen(l->value) + 3 > LINE_LIMIT)
        return pons_fail(err, PONS_DATA, "[%s] %s has %zu characters, expected at most %d",
                         l->section, l->key, strlen(l->value), LINE_LIMIT - 100);
    return PONS_OK;
}

static void print_line(FILE *to, const ini_line *l)
{
    int width;

    if (l->key == NULL) {
        fprintf(to, "; %s\n", l->comment);
        return;
    }
    width = fprintf(to, "%s = %s", l->key, l->value);
    if (l->comment != NULL && width + (int)strlen(l->comment) + 4 < LINE_LIMIT)
        fprintf(to, "%*s ; %s", width < COMMENT_COLUMN ? COMMENT_COLUMN - width : 0, "",
                l->comment);
    fprintf(to, "\n");
}

pons_status ini_text_write(const ini_text *t, const char *path, pons_error *err)
{
    const char *section = NULL;
    safe_file f;

    for (int i = 0; i < t->count; i++)
        if (t->line[i].key != NULL && check_line(&t->line[i], err) != PONS_OK)
            return err->status;
    if (safe_file_open(&f, path, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < t->count; i++) {
        if (!same_section(section, t->line[i].section)) {
            section = t->line[i].section;
            fprintf(f.file, "\n[%s]\n", section);
        }
        print_line(f.file, &t->line[i]);
    }
    return safe_file_commit(&f, err);
}
