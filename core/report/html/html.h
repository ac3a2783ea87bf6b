/*
 * html.h - pieces of an HTML page: escaped text, numbers, and pictures within the page.
 */
#ifndef CORE_REPORT_HTML_HTML_H
#define CORE_REPORT_HTML_HTML_H

#include <stddef.h>
#include <stdio.h>

/*
 * Write a text from outside, for content and for values in quotes: < > & " ' become references,
 * and control characters but tab and line break U+FFFD.
 */
void html_put_text(FILE *to, const char *text);
/* Write up to 'digits' significant digits; "-" of NaN. */
void html_put_number(FILE *to, double value, int digits);
/* Write bytes as base64 (RFC 4648). */
void html_put_base64(FILE *to, const void *data, size_t size);

#endif
