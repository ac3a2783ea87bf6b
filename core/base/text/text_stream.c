/*
 * text_stream.c - a stream of the C library whose function to write appends to a growing text.
 */
#include "base/text/text_stream.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Append to the text. The library marks a stream as failed whose function writes less. */
static ssize_t append_bytes(void *cookie, const char *bytes, size_t size)
{
    text_stream *s = cookie;

    if (size >= SIZE_MAX / 2 - s->size)
        return 0;
    if (s->size + size >= s->room) {
        size_t room = 2 * (s->size + size) + 1;
        char *more = realloc(s->text, room);
        if (more == NULL)
            return 0;
        s->text = more;
        s->room = room;
    }
    memcpy(s->text + s->size, bytes, size);
    s->size += size;
    s->text[s->size] = '\0';
    return (ssize_t)size;
}

bool text_stream_open(text_stream *s)
{
    *s = (text_stream){ .text = calloc(1, 1), .room = 1 };
    if (s->text != NULL)
        s->to = fopencookie(s, "w", (cookie_io_functions_t){ .write = append_bytes });
    if (s->to != NULL)
        return true;
    free(s->text);
    s->text = NULL;
    return false;
}

bool text_stream_flush(text_stream *s)
{
    return fflush(s->to) == 0 && !ferror(s->to);
}

bool text_stream_close(text_stream *s)
{
    bool whole = s->to != NULL && text_stream_flush(s);

    if (s->to != NULL && fclose(s->to) != 0)
        whole = false;
    s->to = NULL;
    if (whole)
        return true;
    free(s->text);
    s->text = NULL;
    s->size = 0;
    return false;
}
