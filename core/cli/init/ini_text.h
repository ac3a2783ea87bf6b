/*
 * ini_text.h - an INI file in the making: sections, keys, values and comments in order.
 */
#ifndef CORE_CLI_INIT_INI_TEXT_H
#define CORE_CLI_INIT_INI_TEXT_H

#include "base/arena.h"
#include "config/config.h"

/* A line: a comment alone (key NULL), or a key and its value with a comment or without. */
typedef struct ini_line {
    const char *section;       /* NULL: the top of the file                                       */
    const char *key, *value, *comment;
} ini_line;

typedef struct ini_text {
    arena *memory;             /* borrowed; owns the texts                                        */
    ini_line *line;
    int count, room;
} ini_text;

/* Add a key behind the last line. 'comment' may be NULL. Lines of a section follow each other. */
void ini_text_put(ini_text *t, const char *section, const char *key, const char *comment,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Add a comment as a line of its own. */
void ini_text_comment(ini_text *t, const char *section, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Replace the value of "section.key=value", or add the key to the end of its section. */
void ini_text_set(ini_text *t, const char *assignment);
/* Open the values as a configuration without a file. */
pons_status ini_text_open(const ini_text *t, config **out, pons_error *err);
/* Write the file. PONS_DATA for a value that an INI file cannot hold. */
pons_status ini_text_write(const ini_text *t, const char *path, pons_error *err);

#endif
