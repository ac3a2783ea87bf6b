/*
 * config_internal.h - the contents of a configuration, shared by the files of this folder.
 */
#ifndef CORE_CONFIG_CONFIG_INTERNAL_H
#define CORE_CONFIG_CONFIG_INTERNAL_H

#include "base/arena.h"
#include "base/hash/name_index.h"
#include "config/config.h"

/* The line of a file that begins a section. */
typedef struct section_line {
    const char *name, *file;
    int line;
    struct section_line *next;
} section_line;

/* A key that a table has read, with its value. */
typedef struct filled {
    const char *section, *key, *value;
    const char *origin; /* "spleen.ini:12", "--set", "default", "resolved"                        */
    const char *reason; /* reason of a resolved value, or NULL                                    */
    bool path;          /* a single path, stored without quotes                                   */
    bool derived;       /* config_derive                                                          */
} filled;

typedef struct known_section {
    const char *name;
    bool skipped;
    const pons_option *options; /* NULL: skipped                                                  */
    struct known_section *next;
} known_section;

struct config {
    arena *arena;
    const char *file;   /* as it was named; NULL: none                                            */
    const char *folder;
    int entry_count, entry_room;
    config_entry *entry;
    name_index by_name; /* index into 'entry' by section and key                                  */
    section_line *section;
    known_section *known;
    int filled_count, filled_room;
    filled *filled;
    const char *remarks; /* comment lines, or NULL                                                */
    char written[65];    /* SHA-256 of the last written file; "": none                            */
};

/* The row of a key in the tables that have filled [section]; NULL: none has it. */
const pons_option *config_known_option(const config *c, const char *section, const char *key);
config_entry *config_entry_find(const config *c, const char *section, const char *key);
/* Add an entry whose key is new. */
pons_status config_entry_add(config *c, config_entry entry, pons_error *err);
/* Add the entries of a file, then those entries of its includes that it does not have. */
pons_status config_read_file(config *c, const char *file, pons_error *err);
pons_status config_read_set(config *c, const char *set, pons_error *err);

#endif
