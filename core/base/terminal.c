/*
 * terminal.c - properties of a terminal, queried for each line because a window may be resized.
 */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { USUAL_COLUMNS = 80, USUAL_ROWS = 24 };

bool terminal_has_sequences(FILE *stream)
{
    const char *name = getenv("TERM");

    return isatty(fileno(stream)) && name != NULL && *name != '\0' && strcmp(name, "dumb") != 0;
}

bool terminal_is_ours(FILE *stream)
{
    pid_t owner = tcgetpgrp(fileno(stream));

    return owner < 0 || owner == getpgrp();
}

int terminal_columns(FILE *stream)
{
    struct winsize size;

    if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return USUAL_COLUMNS;
    return size.ws_col;
}

int terminal_rows(FILE *stream)
{
    struct winsize size;

    if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return USUAL_ROWS;
    return size.ws_row;
}

bool terminal_has_utf8(void)
{
    static const char *const variable[] = { "LC_ALL", "LC_CTYPE", "LANG" };

    for (size_t i = 0; i < sizeof variable / sizeof *variable; i++) {
        const char *name = getenv(variable[i]);

        if (name != NULL && *name != '\0')
            return strcasestr(name, "utf-8") != NULL || strcasestr(name, "utf8") != NULL;
    }
    return false;
}

/* Size of the UTF-8 character at 'text'. A byte that is not UTF-8 counts as one character. */
static int character_size(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    int size = p[0] < 0xc2 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 1;

    for (int i = 1; i < size; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 1;
    return size;
}

/* U+2580 to U+259F. */
static bool is_block_element(const char *text, int size)
{
    return size == 3 && memcmp(text, "\xe2\x96", 2) == 0 && (unsigned char)text[2] < 0xa0;
}

/* Upper bound of the columns: every wide character has three or four bytes. */
static int character_columns(const char *text, int size)
{
    return size < 3 || is_block_element(text, size) ? 1 : 2;
}

size_t terminal_fit(const char *text, int columns)
{
    size_t used = 0, part = 0;

    while (text[used] != '\0') {
        int size = character_size(text + used);

        if (strncmp(text + used, ", ", 2) == 0)
            part = used;
        columns -= character_columns(text + used, size);
        if (columns < 0)
            return part > 0 ? part : used;
        used += (size_t)size;
    }
    return used;
}
