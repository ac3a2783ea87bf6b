/*
 * option_tables.h - every table of keys of the INI file: the core's sections and the plugins' keys.
 */
#ifndef CORE_CLI_MANUAL_OPTION_TABLES_H
#define CORE_CLI_MANUAL_OPTION_TABLES_H

#include "plugin/plugin_load.h"

typedef struct option_table {
    /*
     * The section. "preprocess.NAME" is that of keys that every step has, "log.NAME" that of a
     * sink. A plugin of a kind without a section has the kind's name here.
     */
    char place[64];
    const char *summary;        /* of the section, or of the plugin                               */
    const plugin *plugin;       /* NULL: a table of the core                                      */
    const pons_option *options; /* NULL: a plugin without options                                 */
} option_table;

typedef struct option_tables {
    option_table *item;         /* sections first, then plugins by kind and name                  */
    int count;
} option_tables;

/* Collect the tables; loads every plugin that is found. Free them with option_tables_free. */
pons_status option_tables_collect(option_tables *out, pons_error *err);
void option_tables_free(option_tables *t);

#endif
