/*
 * csv_text.h - write cells of a CSV file (RFC 4180).
 */
#ifndef CORE_BASE_FILE_CSV_TEXT_H
#define CORE_BASE_FILE_CSV_TEXT_H

#include <stdio.h>

/* Write a text. Quotes surround a text with a comma, a quote or a line break. */
void csv_put_text(FILE *to, const char *text);
/* Write nine significant digits, "inf" or "-inf"; NaN leaves the cell empty. */
void csv_put_number(FILE *to, double number);

#endif
