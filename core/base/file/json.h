/*
 * json.h - JSON text: the strict reader of jansson with messages of ours, and pieces for writing.
 *
 * Refused besides what RFC 8259 forbids: duplicate keys, the escape \u0000, whole numbers beyond
 * 63 bits, numbers beyond double, nesting deeper than jansson's 2048. The root is an object or a
 * list. Members keep the order of the text.
 */
#ifndef CORE_BASE_FILE_JSON_H
#define CORE_BASE_FILE_JSON_H

#include <jansson.h>
#include <pons/plugin.h>
#include <stdio.h>

/*
 * 'where' (a file's name) starts the message of a failure, which has status 'kind'. The caller
 * releases *out by json_decref.
 */
pons_status json_parse(const char *text, size_t size, const char *where, pons_status kind,
                       json_t **out, pons_error *err);

/* A whole number without sign, fraction and exponent. */
bool json_whole(const json_t *value, uint64_t *out);

/* Nine significant digits, null when not finite; a quoted and escaped string. Locale-free. */
void json_put_number(FILE *file, double number);
void json_put_text(FILE *file, const char *text);

#endif
