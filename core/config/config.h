/*
 * config.h - an INI file with its includes and --set values: sections of keys with their origin.
 *
 * A command opens the file (config_open) and fills one struct per section and table (config_fill);
 * a section may belong to two tables, the core's and a plugin's. It skips sections that it does not
 * need (config_skip) and refuses the unknown rest (config_refuse_unknown). It records what 'auto'
 * became (config_resolve) and writes the result (config_write).
 */
#ifndef CORE_CONFIG_CONFIG_H
#define CORE_CONFIG_CONFIG_H

#include <stdio.h>

#include "base/arena.h"
#include "base/hash/sha256.h"
#include <pons/plugin.h>

typedef struct config config;

typedef struct config_entry {
    const char *section, *key, *value; /* 'value' without comment and outer blanks                */
    const char *file;                  /* file of the entry, as it was named, or "--set"          */
    const char *folder;                /* absolute base of relative paths in 'value'              */
    int line;                          /* 0 for --set                                             */
    bool used;                         /* a table has read it                                     */
    const char *replaced;              /* --set: the value of the file in its place, or NULL      */
} config_entry;

/*
 * Read 'file' (NULL: only --set) and its includes, then 'set'. set[i] is "section.key=value"; the
 * section may contain dots. Relative paths start at the folder of the file that has them, those of
 * --set at the folder of 'file'.
 */
pons_status config_open(const char *file, int set_count, const char *const *set, config **out,
                        pons_error *err);
/* A key of a configuration that is no file. */
typedef struct config_line {
    const char *section, *key, *value;
} config_line;
/* config_open of lines. 'name' is a file that they come from, for messages and relative paths. */
pons_status config_open_lines(const char *name, int count, const config_line *line, int set_count,
                              const char *const *set, config **out, pons_error *err);
void config_close(config *c);
/* Divide "section.key=value", without outer blanks, into texts of 'memory'. False: it is none. */
bool config_divide_set(arena *memory, const char *set, config_line *out);
/* The last value that 'set' gives a key, of 'memory'; NULL: it gives none. */
const char *config_set_value(arena *memory, int set_count, const char *const *set,
                             const char *section, const char *key);
/* The file as it was named to config_open. */
const char *config_file(const config *c);
/* 'value' as an absolute path. 'e' NULL: a relative path starts at the folder of the file. */
const char *config_path(config *c, const config_entry *e, const char *value);
/* The entry of a key; NULL if it was not given. */
const config_entry *config_find(const config *c, const char *section, const char *key);
/* "spleen.ini:12" or "--set", for a message about a value; NULL if the key was not given. */
const char *config_origin(config *c, const char *section, const char *key);
/*
 * The location to correct, for a message: the key's line ("spleen.ini:12"), else the section's,
 * else that of the 'steps' that name it, else the file or "--set".
 */
const char *config_location(config *c, const char *section, const char *key);
/*
 * Add the location to the message of 'err', for callers of plugins and data readers, which know no
 * file. A message of status PONS_CONFIG gets "spleen.ini:12: [section] key: " before it. The key is
 * the one that the message begins with ("strides: found ...", pons_option_fail), else the first
 * key of [section] that it quotes ('strides' or 'model.strides'), else 'key'; NULL: none.
 *
 * A message that begins with "[section] key" gets only the location; 'section' NULL restricts the
 * call to such messages. A message that begins with a location stays as it is. A message of status
 * PONS_DATA changes only if it begins with "[section] key". Returns the status of 'err'.
 */
pons_status config_location_add(config *c, const char *section, const char *key, pons_error *err);

/*
 * Fill 'target' (zeroed, of the size that the table describes) from [section] by 'options'. Absent
 * keys get their defaults. The first problem ends the call with PONS_CONFIG and a line with file,
 * line, key, found and expected value. 'c' owns lists and texts.
 */
pons_status config_fill(config *c, const char *section, const pons_option *options, void *target,
                        pons_error *err);
/* Whether a file or --set gives the key; a default does not count. */
bool config_given(const config *c, const char *section, const char *key);
/* Mark a section as known but not needed: its keys are neither checked nor written. */
void config_skip(config *c, const char *section);
/*
 * Leave out the unused keys of [section] in files that 'known' has and 'kept' has not, those of a
 * plugin that --set replaces. Returns their names, "momentum, nesterov"; NULL: there is none.
 */
const char *config_leave_out(config *c, const char *section, const pons_option *known,
                             const pons_option *kept);
/*
 * Leave out the sections WHOLE.NAME of files whose NAME is in the list [whole] 'key' that --set
 * replaces, and not in its value. A section with a key of --set stays. Returns the names,
 * "spacing, orient"; NULL: there is none.
 */
const char *config_leave_out_parts(config *c, const char *whole, const char *key);
/* PONS_CONFIG for an unused section or key, with the nearest known name. Called last. */
pons_status config_refuse_unknown(config *c, pons_error *err);
/*
 * Parts of config_refuse_unknown that run early, so that a misspelt name is reported before the
 * value that is missing because of it.
 *
 * config_refuse_sections: sections without a dot, which must all have been filled or skipped.
 *
 * config_refuse_keys: unused keys of one section; NULL: of all.
 *
 * config_refuse_misspelt: an unused key of [section] that resembles 'key', or the section of an
 * unlisted step that resembles [section].
 */
pons_status config_refuse_sections(config *c, pons_error *err);
pons_status config_refuse_keys(config *c, const char *section, pons_error *err);
pons_status config_refuse_misspelt(config *c, const char *section, const char *key,
                                   pons_error *err);

/*
 * Record the value that replaced 'auto', with the reason, and return it. config_write prints every
 * filled section and key, defaults included, with its origin as a comment.
 */
const char *config_resolve(config *c, const char *section, const char *key, const char *value,
                           const char *reason);
/* Whether 'section' is 'whole' or a subsection of it: "log.csv" of "log". */
bool config_is_part(const char *section, const char *whole);
/*
 * Record a value that follows from other keys, with the reason. config_write prints it as a
 * comment, so that the file is valid where the value would be another one.
 */
void config_derive(config *c, const char *section, const char *key, const char *value,
                   const char *reason);
/* Add a comment line to the top of the file that config_write writes. */
void config_add_comment(config *c, const char *text);
/* Print the resolved file, without a hash. The caller checks 'to' for errors. */
void config_print(config *c, FILE *to);
/*
 * Write the resolved file. Its last line is a comment with the hash of the others (json_digest.h).
 */
pons_status config_write(config *c, const char *path, pons_error *err);
/* The SHA-256 of the file that config_write wrote last; "": none. */
const char *config_written_hash(const config *c);
/* The values that config_write would print, in its order; for checkpoints and comparisons. */
int config_count(const config *c);
void config_item(const config *c, int index, const char **section, const char **key,
                 const char **value);

/* ---- config_option.c */

/*
 * Parse a value by one row into target + option->offset, for command-line flags and tests. 'where'
 * begins the message. 'c' owns lists and texts and must outlive them.
 */
pons_status option_parse(config *c, const pons_option *option, const char *value, const char *where,
                         void *target, pons_error *err);
/* Whether both values parse to the same: '16' and '16 16 16', '1e-3' and '0.001'. */
bool config_same(config *c, const char *section, const char *key, const char *a, const char *b);
/* The default of a filled section's key; "": it has none. */
const char *config_default(const config *c, const char *section, const char *key);
/* The row of that name in a table, which may be NULL; NULL: it has none. */
const pons_option *option_find(const pons_option *options, const char *name);
/* The expected value for messages and help: "integer from 1 to 64", "yes or no". */
const char *option_expected(const pons_option *option, char *text, size_t size);
/* Hash names and values of a filled struct. Equal values, however written, hash equally. */
void option_hash(sha256 *h, const pons_option *options, const void *values);
/* Check the rules of a table: names, defaults that parse, a sentence of help. */
pons_status option_table_check(const pons_option *options, size_t config_size, const char *name,
                               pons_error *err);

#endif
