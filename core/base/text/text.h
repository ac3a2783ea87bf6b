/*
 * text.h - parse and print numbers in any locale, find the name nearest to a misspelt one, and the
 * ending of a counted noun.
 */
#ifndef CORE_BASE_TEXT_TEXT_H
#define CORE_BASE_TEXT_TEXT_H

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether all of 'text' is one finite decimal number. */
bool text_real(const char *text, double *value);
/* The same for an integer of INT64_MIN .. INT64_MAX. */
bool text_integer(const char *text, int64_t *value);
/* Parse a size such as "4096", "4KiB", "1.5GiB" or "1TiB". */
bool text_size(const char *text, int64_t *size);

/*
 * Give the calling thread the C locale, whose decimal point is that of every file. text_locale_end
 * takes the result and gives the thread its own locale back. 0: out of memory, and no change.
 */
locale_t text_locale_begin(void);
void text_locale_end(locale_t before);

/* Whether 'text' ends with 'end', as "scan.nii.gz" with ".gz". */
bool text_ends_with(const char *text, const char *end);

/* The ending of a noun that 'count' stands before: "" of one, else "s". */
const char *text_plural(int64_t count);

/* A number of any size in four characters and its unit, as in "12.3 kB". Returns 'out'. */
const char *text_amount(double number, const char *unit, char out[32]);

/* Edit distance of a and b: insertions, deletions, replacements, swaps of neighbours. */
int text_distance(const char *a, const char *b);

/* The candidate nearest to 'wrong'; text_guess_try adds one candidate. */
typedef struct text_guess {
    const char *wrong, *best; /* best: NULL while no candidate is near enough                     */
    int distance;
} text_guess;

text_guess text_guess_for(const char *wrong);
void text_guess_try(text_guess *g, const char *candidate);

#endif
