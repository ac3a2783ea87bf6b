/*
 * terminal.h - the abilities of the terminal behind a stream, and the part of a line that fits it.
 */
#ifndef CORE_BASE_TERMINAL_H
#define CORE_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Whether 'stream' is a terminal with colours and redrawn lines: TERM is set and not "dumb". */
bool terminal_has_sequences(FILE *stream);
/* Whether this process is in the foreground of its terminal; true of any other stream. */
bool terminal_is_ours(FILE *stream);
/* Current columns of the terminal; 80 if unknown. */
int terminal_columns(FILE *stream);
/* Current rows of the terminal; 24 if unknown. */
int terminal_rows(FILE *stream);
/* Whether the locale of the environment is UTF-8: block elements are then drawn in their shape. */
bool terminal_has_utf8(void);
/*
 * Bytes at the beginning of 'text' (UTF-8) that take at most 'columns' columns. A text that does
 * not fit ends before the last ", " that does, so that no number is cut in two.
 */
size_t terminal_fit(const char *text, int columns);

#endif
