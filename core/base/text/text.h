/*
 * text.h - numbers from text, whatever the locale, and the nearest name to a misspelt one.
 */
#ifndef CORE_BASE_TEXT_TEXT_H
#define CORE_BASE_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of 'text' is one finite decimal number, with nothing before or behind it. */
bool text_real(const char *text, double *value);
/* Likewise an integer, at least INT64_MIN and at most INT64_MAX. */
bool text_integer(const char *text, int64_t *value);
/* "4096", "4KiB", "4MiB", "4GiB", "1TiB", also with a decimal point: "1.5GiB". */
bool text_size(const char *text, int64_t *size);

/* "scan.nii.gz" ends with ".gz". */
bool text_ends_with(const char *text, const char *end);

/* Edits (insert, delete, replace, swap neighbours) that turn a into b. */
int text_distance(const char *a, const char *b);

/* The name that 'wrong' was probably meant to be; fed one candidate after the other. */
typedef struct text_guess {
    const char *wrong, *best; /* best: NULL when no candidate is near enough                      */
    int distance;
} text_guess;

text_guess text_guess_for(const char *wrong);
void text_guess_try(text_guess *g, const char *candidate);

#endif
