/*
 * json_digest.h - a JSON object, or lines of an INI file, that end with the SHA-256 of all bytes
 * before it. The hash reveals a file that was truncated or changed.
 */
#ifndef CORE_BASE_HASH_JSON_DIGEST_H
#define CORE_BASE_HASH_JSON_DIGEST_H

#include <pons/plugin.h>
#include <stdbool.h>
#include <stdio.h>

/* Write the last member and the '}' of the object 'text', which is open and has a member. */
void json_digest_put(FILE *to, const char *text, size_t size);
/* PONS_DATA, with 'path' in the message, where the hash at the end of 'text' does not match. */
pons_status json_digest_check(const char *path, const char *text, size_t size, pons_error *err);

/* Write the hash of 'text', which ends with a newline, as a comment: '; sha256 HASH'. */
void json_digest_put_line(FILE *to, const char *text, size_t size);
/* Whether the last line of 'text' is the hash of the lines before it. */
bool json_digest_line_holds(const char *text, size_t size);

#endif
