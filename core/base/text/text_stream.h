/*
 * text_stream.h - a stream that keeps what is printed in memory.
 *
 * A stream of the C library's open_memstream may drop text without an error when memory is short:
 * fprintf alone reports it. Here the error stays until the stream is closed.
 */
#ifndef CORE_BASE_TEXT_TEXT_STREAM_H
#define CORE_BASE_TEXT_TEXT_STREAM_H

#include <stdbool.h>
#include <stdio.h>

typedef struct text_stream {
    FILE *to;    /* NULL: it is not open                                                          */
    char *text;  /* what was printed until the last flush, and a terminating 0                    */
    size_t size; /* bytes of 'text' without that 0                                                */
    size_t room;
} text_stream;

/* False without memory. An open stream refers to *s, which must not move. */
bool text_stream_open(text_stream *s);
/* Bring 'text' up to date; false: something printed is missing. */
bool text_stream_flush(text_stream *s);
/*
 * Close a stream that is open. The caller frees s->text, to which all was printed. False, and NULL:
 * something is missing, or the stream was not opened.
 */
bool text_stream_close(text_stream *s);

#endif
