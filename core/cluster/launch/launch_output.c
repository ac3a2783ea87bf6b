/*
 * launch_output.c - print lines of several ranks without mixing them.
 */
#include "cluster/launch/launch_internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Number of last lines to print of a rank that ended without a message. */
enum { TAIL_LINES = 10 };

static void write_line(launch_output *s)
{
    fprintf(s->to, "[%d] %.*s\n", s->rank, (int)s->line_size, s->line);
    s->line_size = 0;
}

static void take_lines(launch_output *s, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\n' || s->line_size == sizeof s->line)
            write_line(s);
        if (text[i] != '\n')
            s->line[s->line_size++] = text[i];
    }
    fflush(s->to);
}

static void take_tail(launch_output *s, const char *text, size_t size)
{
    if (size >= sizeof s->tail) {
        text += size - sizeof s->tail;
        size = sizeof s->tail;
    }
    if (s->tail_size + size > sizeof s->tail) {
        size_t lost = s->tail_size + size - sizeof s->tail;
        memmove(s->tail, s->tail + lost, s->tail_size - lost);
        s->tail_size -= lost;
    }
    memcpy(s->tail + s->tail_size, text, size);
    s->tail_size += size;
}

/* One read per call, so that a rank that never stops writing does not block the launcher. */
void launch_output_read(launch_output *s)
{
    char text[65536];
    ssize_t size = s->file < 0 ? -1 : read(s->file, text, sizeof text);

    if (size > 0 && s->to != NULL)
        take_lines(s, text, (size_t)size);
    else if (size > 0)
        take_tail(s, text, (size_t)size);
    else if (s->file >= 0 && (size == 0 || (errno != EAGAIN && errno != EINTR)))
        launch_output_close(s);
}

void launch_output_close(launch_output *s)
{
    if (s->file < 0)
        return;
    if (s->to != NULL && s->line_size > 0)
        write_line(s);
    close(s->file);
    s->file = -1;
}

/* Offset of the last TAIL_LINES lines. */
static size_t tail_begin(const launch_output *s)
{
    size_t at = s->tail_size;
    int lines = 0;

    if (at > 0 && s->tail[at - 1] == '\n')
        at--;
    while (at > 0 && !(s->tail[at - 1] == '\n' && ++lines == TAIL_LINES))
        at--;
    return at;
}

void launch_output_print_tail(const launch_output *s, FILE *to)
{
    const char *next = s->tail + tail_begin(s), *end = s->tail + s->tail_size;

    while (next < end) {
        const char *line = next;
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t size = (size_t)((stop != NULL ? stop : end) - line);
        fprintf(to, "[%d] %.*s\n", s->rank, (int)size, line);
        next = line + size + 1;
    }
}
