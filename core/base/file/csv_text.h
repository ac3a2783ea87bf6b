/*
 * csv_text.h - write a cell of a CSV file (RFC 4180).
 */
#ifndef CORE_BASE_FILE_CSV_TEXT_H
#define CORE_BASE_FILE_CSV_TEXT_H

#include <stdio.h>

/* Write a text. Quotes surround a text with a comma, a quote or a line break. */
void csv_put_text(FILE *to, const char *text);

#endif
