/*
 * config_internal.h - what a configuration holds; shared by the files of this folder only.
 */
#ifndef CORE_CONFIG_CONFIG_INTERNAL_H
#define CORE_CONFIG_CONFIG_INTERNAL_H

#include "base/arena.h"
#include "base/hash/name_index.h"
#include "config/config.h"

/* A section line of a file. */
typedef struct section_line {
    const char *name, *file;
    int line;
    struct section_line *next;
} section_line;

/* A key that a table has asked for, with what it became. */
typedef struct filled {
    const char *section, *key, *value;
    const char *origin; /* "spleen.ini:12", "--set", "default"                                    */
    const char *reason; /* NULL, or why it was resolved so                                        */
    bool path;          /* one path, without quotes                                               */
} filled;

typedef struct known_section {
    const char *name;
    bool skipped;
    const pons_option *options; /* NULL when skipped                                              */
    struct known_section *next;
} known_section;

struct config {
    arena *arena;
    const char *file;   /* as it was named; NULL: none                                            */
    const char *folder;
    int entry_count, entry_room;
    config_entry *entry;
    name_index by_name; /* place of an entry, by section and key                                  */
    section_line *section;
    known_section *known;
    int filled_count, filled_room;
    filled *filled;
    const char *remarks; /* lines of comment, or NULL                                             */
    char written[65];    /* sha256 of what config_write wrote last; "": nothing                   */
};

config_entry *entry_find(const config *c, const char *section, const char *key);
/* One that is not there yet. */
pons_status entry_add(config *c, config_entry entry, pons_error *err);
/* Add the entries of a file, then of what it includes where the file itself is silent. */
pons_status config_read_file(config *c, const char *file, pons_error *err);
pons_status config_read_set(config *c, const char *set, pons_error *err);

#endif
