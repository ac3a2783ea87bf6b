/*
 * json.h - a strict reader of JSON text (RFC 8259) and a few pieces for writing it.
 *
 * Refused besides what the grammar forbids: duplicate keys, text that is not UTF-8, the escape
 * \u0000, nesting deeper than 64. A document is one block of memory; values belong to it.
 */
#ifndef CORE_BASE_FILE_JSON_H
#define CORE_BASE_FILE_JSON_H

#include <pons/plugin.h>
#include <stdio.h>

typedef enum json_type {
    JSON_NULL = 1, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT
} json_type;

typedef struct json_value {
    json_type type;
    const char *key;          /* inside an object, else NULL                                      */
    const char *text;         /* TEXT: unescaped; NUMBER: as written                              */
    double number;
    int count;                /* LIST, OBJECT: children                                           */
    struct json_value *child; /* the first                                                        */
    struct json_value *next;  /* the next in the parent                                           */
} json_value;

typedef struct json_document {
    struct json_block *block;
    json_value *root;
} json_document;

/* 'where' (a file's name) starts the message of a failure, which has status 'kind'. */
pons_status json_parse(const char *text, size_t size, const char *where, pons_status kind,
                       json_document *out, pons_error *err);
void json_free(json_document *document);

const json_value *json_member(const json_value *object, const char *key); /* NULL: none           */
const json_value *json_item(const json_value *list, int index);           /* NULL: none           */
/* A number that is written as a whole number without sign, fraction or exponent. */
bool json_whole(const json_value *value, uint64_t *out);

/* Nine significant digits, null when not finite; a quoted and escaped string. Locale-free. */
void json_put_number(FILE *file, double number);
void json_put_text(FILE *file, const char *text);
/* The same into 'out' (at least 32 bytes). */
void json_format_number(char *out, double number);

#endif
