/*
 * list.c - lists of words and paths as one value: items are separated by blanks, and an item that
 * holds blanks stands in double quotes, in which "" is one quote. What is written reads back equal.
 * In a file ' ;' begins a comment, but not within quotes.
 */
#include "config/list.h"

#include <stdbool.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The item in quotes at 'from'; returns what is behind it, NULL: it does not end, or is empty. */
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

/* Behind the closing quote of the item in quotes at 'from'; NULL: there is none before 'end'. */
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

static const char *quoted(arena *memory, const char *item)
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

    return *path != '"' && list_comment(path, end) == end ? path : quoted(memory, path);
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
        to = stpcpy(to, quoted(memory, item[i]));
    }
    return text;
}
