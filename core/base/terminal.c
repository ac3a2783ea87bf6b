/*
 * terminal.c - properties of a terminal, queried for each line because a window may be resized.
 */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { USUAL_COLUMNS = 80 };

bool terminal_has_sequences(FILE *stream)
{
    const char *name = getenv("TERM");

    return isatty(fileno(stream)) && name != NULL && *name != '\0' && strcmp(name, "dumb") != 0;
}

int terminal_columns(FILE *stream)
{
    struct winsize size;

    if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return USUAL_COLUMNS;
    return size.ws_col;
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

/* Upper bound of the columns: every wide character has three or four bytes. */
static int character_columns(int size)
{
    return size < 3 ? 1 : 2;
}

size_t terminal_fit(const char *text, int columns)
{
    size_t used = 0, part = 0;

    while (text[used] != '\0') {
        int size = character_size(text + used);

        if (strncmp(text + used, ", ", 2) == 0)
            part = used;
        columns -= character_columns(size);
        if (columns < 0)
            return part > 0 ? part : used;
        used += (size_t)size;
    }
    return used;
}
