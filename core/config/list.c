/*
 * list.c - split and join the items of a list value. Items are separated by blanks. An item with
 * blanks is in double quotes, in which "" is one quote. A joined list splits into the same items.
 * In a file ' ;' begins a comment, except in quotes.
 */
#include "config/list.h"

#include <stdbool.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Copy the quoted item at 'from'. Returns its end; NULL: the quote does not end, or is empty. */
static const char *take_quoted(const char *from, char *to)
{
    const char *begin = to;

    for (from++; *from != '\0'; *to++ = *from++) {
        if (*from != '"')
            continue;
        if (from[1] != '"') {
            *to = '\0';
            return to > begin && (from[1] == '\0' || is_blank(from[1])) ? from + 1 : NULL;
        }
        from++;
    }
    return NULL;
}

static const char *take_plain(const char *from, char *to)
{
    while (*from != '\0' && !is_blank(*from))
        *to++ = *from++;
    *to = '\0';
    return from;
}

/* The end of the quoted item at 'from'; NULL if it does not end before 'end'. */
static const char *behind_quoted(const char *from, const char *end)
{
    for (from++; from < end; from++) {
        if (*from != '"')
            continue;
        if (from + 1 == end || from[1] != '"')
            return from + 1;
        from++;
    }
    return NULL;
}

const char *list_comment(const char *value, const char *end)
{
    const char *behind;

    for (const char *p = value; p < end; p++) {
        if (*p == '"' && (p == value || is_blank(p[-1]))
            && (behind = behind_quoted(p, end)) != NULL)
            p = behind - 1;
        else if (is_blank(*p) && p + 1 < end && p[1] == ';')
            return p;
    }
    return end;
}

char **list_split(arena *memory, const char *value, int *count)
{
    char **item = arena_alloc(memory, (strlen(value) / 2 + 2) * sizeof *item);
    char *to = arena_alloc(memory, strlen(value) + 2);
    const char *at = value + strspn(value, " \t");

    for (*count = 0; *at != '\0'; at += strspn(at, " \t")) {
        item[(*count)++] = to;
        at = *at == '"' ? take_quoted(at, to) : take_plain(at, to);
        if (at == NULL)
            return NULL;
        to += strlen(to) + 1;
    }
    return item;
}

static const char *quote_item(arena *memory, const char *item)
{
    char *text, *to;

    if (item[strcspn(item, " \t")] == '\0' && item[0] != '"')
        return item;
    text = to = arena_alloc(memory, 2 * strlen(item) + 3);
    *to++ = '"';
    for (; *item != '\0'; *to++ = *item++)
        if (*item == '"')
            *to++ = '"';
    *to++ = '"';
    *to = '\0';
    return text;
}

const char *list_single(arena *memory, const char *path)
{
    const char *end = path + strlen(path);

    return *path != '"' && list_comment(path, end) == end ? path : quote_item(memory, path);
}

const char *list_join(arena *memory, int count, const char *const *item)
{
    size_t size = 1;
    char *text, *to;

    for (int i = 0; i < count; i++)
        size += 2 * strlen(item[i]) + 3;
    text = to = arena_alloc(memory, size);
    *to = '\0';
    for (int i = 0; i < count; i++) {
        if (i > 0)
            *to++ = ' ';
        to = stpcpy(to, quote_item(memory, item[i]));
    }
    return text;
}
