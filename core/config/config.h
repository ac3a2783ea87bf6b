/*
 * config.h - an INI file with its includes and --set values: sections of keys with their origin.
 */
#ifndef CORE_CONFIG_CONFIG_H
#define CORE_CONFIG_CONFIG_H

#include <pons/plugin.h>

typedef struct config config;

typedef struct config_entry {
    const char *section, *key, *value; /* value without comment and outer blanks                  */
    const char *file;                  /* where it stands, or "--set"                             */
    int line;                          /* 0 for --set                                             */
    bool used;                         /* a table has asked for it                                */
} config_entry;

/* 'file' may be NULL (only --set). set[i] is "section.key=value"; section may hold dots. */
pons_status config_open(const char *file, int set_count, const char *const *set, config **out,
                        pons_error *err);
void config_close(config *c);
/* The folder of the file, for relative paths; paths in an included file are relative to that file. */
const char *config_path(config *c, const config_entry *e, const char *value);
const config_entry *config_find(config *c, const char *section, const char *key);
bool config_has_section(const config *c, const char *section);

/*
 * Fill 'target' (zeroed, of the size the table belongs to) from [section] by 'options'. Unset keys
 * get their defaults. The first problem ends with PONS_CONFIG and a line that names file, line, key,
 * found and expected. Lists and texts belong to the configuration.
 */
pons_status config_fill(config *c, const char *section, const pons_option *options, void *target,
                        pons_error *err);
/* Whether [section] key was given (not defaulted). */
bool config_given(config *c, const char *section, const char *key);
/* An unused section or key: PONS_CONFIG, with the nearest known name. Called when all has been read. */
pons_status config_refuse_unknown(config *c, pons_error *err);
/* Parse one value by one row, for command-line flags and tests; 'where' starts the message. */
pons_status option_parse(config *c, const pons_option *option, const char *value, const char *where,
                         void *target, pons_error *err);

/*
 * Record what a value was resolved to ('auto' became something), with the reason; config_write prints
 * every section and key that was filled, defaults included, with its origin as a comment.
 */
void config_resolve(config *c, const char *section, const char *key, const char *value,
                    const char *reason);
pons_status config_write(config *c, const char *path, pons_error *err);
/* Every value that config_write would print, in its order; for checkpoints and comparisons. */
int config_count(const config *c);
void config_item(const config *c, int index, const char **section, const char **key,
                 const char **value);

#endif
