/*
 * quote.h - escape text from outside in our messages: names of files and tensors, values, messages
 * of other libraries. Line breaks and other control characters become \n, \t, \x1b.
 *
 * Two kinds of line breaks stay: those of the format itself, and those of the argument of a '%s'
 * that ends the format. That argument is a complete message, whose own arguments were escaped when
 * it was made. Text from outside at that position is printed with '%.1000s'.
 */
#ifndef CORE_BASE_TEXT_QUOTE_H
#define CORE_BASE_TEXT_QUOTE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* As vsnprintf. A text that is too long is cut. */
void quote_format(char *out, size_t size, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));
/* Escape a complete message; its line breaks stay. */
void quote_message(char *out, size_t size, const char *text);
/* As fprintf. */
void quote_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
