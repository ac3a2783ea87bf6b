/*
 * quote.h - text from outside (names of files and tensors, values, words of another library) within
 * a line of ours: line breaks and other control characters are written as \n, \t, \x1b.
 *
 * The only line breaks that stay are those of the format itself, and those of the argument of a
 * '%s' with which the format ends: there stands a message that is passed on, whose own arguments
 * were quoted when it was made. Text from outside at that place is printed by '%.1000s'.
 */
#ifndef CORE_BASE_TEXT_QUOTE_H
#define CORE_BASE_TEXT_QUOTE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* As vsnprintf; what does not fit is cut. */
void quote_format(char *out, size_t size, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));
/* A whole message: its line breaks stay. */
void quote_message(char *out, size_t size, const char *text);
/* As fprintf. */
void quote_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
