/*
 * terminal.h - what the terminal behind a stream can show, and how much of a line it has room for.
 */
#ifndef CORE_BASE_TERMINAL_H
#define CORE_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Colours and lines that are redrawn: a terminal that TERM names and does not call dumb. */
bool terminal_has_sequences(FILE *stream);
/* Columns of the terminal at this moment; 80 where it does not say. */
int terminal_columns(FILE *stream);
/*
 * Bytes at the beginning of 'text' (UTF-8) that take at most so many columns. A text that does not
 * fit ends before the last ", " that does, so that no number is cut in two.
 */
size_t terminal_fit(const char *text, int columns);

#endif
