/*
 * plugin_load.h - find, verify and load plugins (R21). A plugin is never unloaded.
 */
#ifndef CORE_PLUGIN_LOAD_H
#define CORE_PLUGIN_LOAD_H

#include <pons/plugin.h>

typedef struct plugin_file {
    pons_kind kind;
    char name[PONS_NAME_SIZE];
    uint16_t abi_major, abi_minor;
    char *path;
} plugin_file;

typedef struct plugin {
    const pons_plugin *descriptor;
    const char *path;
    char sha256[65];
    const void *operations; /* the core's own copy, zeroed behind what the plugin knew            */
} plugin;

const char *plugin_kind_name(pons_kind kind);           /* "model"                                */
bool plugin_kind_named(const char *name, pons_kind *kind);

/* Folders searched: PONS_PLUGIN_PATH (colon list), then plugindir; each holds KIND/NAME.so. */
/* Notes only, nothing is loaded. *files is malloc'ed, sorted by kind and name; first folder wins. */
pons_status plugin_list(plugin_file **files, int *count, pons_error *err);
void plugin_list_free(plugin_file *files, int count);
/* Read and check the ELF file and its note; no byte of it runs. */
pons_status plugin_verify(const char *path, plugin_file *out, pons_error *err);

/*
 * Load plugin 'name' of 'kind', or return the one loaded before. 'where' (file:line of the INI value,
 * or NULL) starts the message when there is none of that name; it ends with the nearest known name.
 * The operations struct is copied into 'operations_size' bytes. Any thread.
 */
pons_status plugin_load(pons_kind kind, const char *name, size_t operations_size, const char *where,
                        const plugin **out, pons_error *err);
pons_status plugin_load_file(const char *path, size_t operations_size, const plugin **out,
                             pons_error *err);

#endif
