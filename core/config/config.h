/*
 * config.h - an INI file with its includes and --set values: sections of keys with their origin.
 *
 * The order of use: config_open, config_fill once per section and table (a section may belong to
 * two tables, the core's and a plugin's), config_skip for sections that a command does not need,
 * config_refuse_unknown, config_resolve for what 'auto' became, config_write.
 */
#ifndef CORE_CONFIG_CONFIG_H
#define CORE_CONFIG_CONFIG_H

#include "base/hash/sha256.h"
#include <pons/plugin.h>

typedef struct config config;

typedef struct config_entry {
    const char *section, *key, *value; /* value without comment and outer blanks                  */
    const char *file;                  /* where it stands, or "--set"                             */
    const char *folder;                /* absolute; where relative paths in the value begin       */
    int line;                          /* 0 for --set                                             */
    bool used;                         /* a table has asked for it                                */
} config_entry;

/*
 * 'file' may be NULL (only --set). set[i] is "section.key=value"; section may hold dots. Relative
 * paths begin at the folder of the file they stand in, those of --set at the folder of 'file'.
 */
pons_status config_open(const char *file, int set_count, const char *const *set, config **out,
                        pons_error *err);
void config_close(config *c);
/* As it was given to config_open. */
const char *config_file(const config *c);
/* The value as an absolute path; 'e' NULL: relative paths begin at the folder of the file. */
const char *config_path(config *c, const config_entry *e, const char *value);
const config_entry *config_find(const config *c, const char *section, const char *key);
/* "spleen.ini:12" or "--set"; NULL where the key was not given. For messages about a value. */
const char *config_where(config *c, const char *section, const char *key);
/*
 * Where to mend it: "spleen.ini:12", where the section begins, the 'steps' that name it, the file,
 * or "--set".
 */
const char *config_place(config *c, const char *section, const char *key);
/*
 * For who asked a plugin or a reader of data, which know no file: put
 * "spleen.ini:12: [section] key: " before the message of a PONS_CONFIG in 'err'. The key is the one
 * of [section] that the message has in quotes ('strides' or 'model.strides'), else 'key' (NULL:
 * none). A message that begins with "[section] key" gets its place only, and 'section' may be NULL
 * to mean those alone; one that begins with a place is left as it is. Of PONS_DATA only messages
 * that begin with "[section] key" are about the file. Returns the status of 'err'.
 */
pons_status config_blame(config *c, const char *section, const char *key, pons_error *err);
/* The section is named in a file or by --set, even if it holds nothing. */
bool config_has_section(const config *c, const char *section);

/*
 * Fill 'target' (zeroed, of the size the table belongs to) from [section] by 'options'. Unset keys
 * get their defaults. The first problem ends with PONS_CONFIG and a line that names file, line,
 * key, found and expected. Lists and texts belong to the configuration.
 */
pons_status config_fill(config *c, const char *section, const pons_option *options, void *target,
                        pons_error *err);
/* Whether [section] key was given (not defaulted). */
bool config_given(const config *c, const char *section, const char *key);
/* The section is known but not needed now: its keys are neither checked nor written. */
void config_skip(config *c, const char *section);
/* An unused section or key: PONS_CONFIG, with the nearest known name. Called when all is read. */
pons_status config_refuse_unknown(config *c, pons_error *err);
/*
 * The parts of it that can be said early, before a value is missed that stands under a
 * misspelt name: sections without a dot, all of which must have been filled or skipped; unused
 * keys of one section (NULL: of all); a key of [section] that nothing has asked for yet and
 * that is nearly 'key', or the section of a step that is not listed and is nearly [section].
 */
pons_status config_refuse_sections(config *c, pons_error *err);
pons_status config_refuse_keys(config *c, const char *section, pons_error *err);
pons_status config_refuse_misspelt(config *c, const char *section, const char *key,
                                   pons_error *err);

/*
 * Record what a value was resolved to ('auto' became something), with the reason; config_write
 * prints every section and key that was filled, defaults included, with its origin as a comment.
 */
void config_resolve(config *c, const char *section, const char *key, const char *value,
                    const char *reason);
/* Whether 'section' is 'whole' or a part of it: "log.csv" of "log". */
bool config_is_part(const char *section, const char *whole);
/* A line of comment at the top of what config_write writes. */
void config_remark(config *c, const char *text);
/* The last line is a comment that seals those before it (json_digest.h). */
pons_status config_write(config *c, const char *path, pons_error *err);
/* The sha256 of the file that config_write has written last; "": none. */
const char *config_written(const config *c);
/* Every value that config_write would print, in its order; for checkpoints and comparisons. */
int config_count(const config *c);
void config_item(const config *c, int index, const char **section, const char **key,
                 const char **value);

/*
 * ---- config_option.c
 * --------------------------------------------------------------------------------
 */

/*
 * Parse one value by one row into target + option->offset, for command-line flags and tests;
 * 'where' starts the message. 'c' keeps lists and texts and must live as long as they.
 */
pons_status option_parse(config *c, const pons_option *option, const char *value, const char *where,
                         void *target, pons_error *err);
/* Both values mean the same to [section] key: '16' and '16 16 16', '1e-3' and '0.001'. */
bool config_same(config *c, const char *section, const char *key, const char *a, const char *b);
/* "integer from 1 to 64", "yes or no", ...: what is expected, for messages and help. */
const char *option_expected(const pons_option *option, char *text, size_t size);
/* Add names and values of a filled struct: equal values, however written, give an equal hash. */
void option_hash(sha256 *h, const pons_option *options, const void *values);
/* The rules that a table must keep: names, defaults that parse, a sentence of help. */
pons_status option_table_check(const pons_option *options, size_t config_size, const char *name,
                               pons_error *err);

#endif
