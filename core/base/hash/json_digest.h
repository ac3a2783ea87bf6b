/*
 * json_digest.h - a JSON object, or lines of an INI file, that end in the sha256 of all before it,
 * so that what was cut off or changed is told from what is whole.
 */
#ifndef CORE_BASE_HASH_JSON_DIGEST_H
#define CORE_BASE_HASH_JSON_DIGEST_H

#include <pons/plugin.h>
#include <stdbool.h>
#include <stdio.h>

/* The end of the object 'text', which has at least one member and is open: written behind it. */
void seal_put(FILE *to, const char *text, size_t size);
/* PONS_DATA, with 'path' as its name, where 'text' is not as it was sealed. */
pons_status seal_check(const char *path, const char *text, size_t size, pons_error *err);

/* The last line of a text of whole lines, a comment: '; sha256 HASH'; written behind it. */
void seal_line_put(FILE *to, const char *text, size_t size);
bool seal_line_holds(const char *text, size_t size);

#endif
