/*
 * plugin_load.h - find, verify and load plugins (R21). A plugin is never unloaded.
 */
#ifndef CORE_PLUGIN_PLUGIN_LOAD_H
#define CORE_PLUGIN_PLUGIN_LOAD_H

#include "base/log.h"

#include <pons/plugin.h>

typedef struct plugin_file {
    pons_kind kind;
    char name[PONS_NAME_SIZE];
    uint16_t abi_major, abi_minor;
    char *path;
    char *problem; /* plugin_list only: why the file cannot be used, or NULL                      */
    char *hides;   /* plugin_list only: another file of this kind and name in a later folder      */
} plugin_file;

typedef struct plugin {
    const pons_plugin *descriptor;
    const char *path;
    char sha256[65];
    const void *operations; /* the core's own copy, zeroed behind what the plugin knew            */
    const char *hides;      /* another file of this kind and name in a later folder, or NULL      */
} plugin;

const char *plugin_kind_name(pons_kind kind);           /* "model"                                */
bool plugin_kind_named(const char *name, pons_kind *kind);

/*
 * Folders searched: PONS_PLUGIN_PATH (absolute folders, separated by colons), then plugindir; each
 * holds KIND/NAME.so. *folders is NULL-terminated and freed by plugin_folders_free.
 */
pons_status plugin_folders(char ***folders, pons_error *err);
void plugin_folders_free(char **folders);
/* Notes only, no loading. *files is malloc'ed, sorted by kind and name; first folder wins. */
pons_status plugin_list(plugin_file **files, int *count, pons_error *err);
void plugin_list_free(plugin_file *files, int count);
/*
 * Read and check the ELF file and its note; no byte of it runs. out->path is malloc'ed; free it
 * with plugin_file_clear.
 */
pons_status plugin_verify(const char *path, plugin_file *out, pons_error *err);
void plugin_file_clear(plugin_file *file);

/*
 * Load plugin 'name' of 'kind', or return the one loaded before. 'where' (file:line of the INI
 * value, or NULL) starts the message when there is none of that name; it ends with the nearest
 * known name (PONS_CONFIG, or PONS_PLUGIN without 'where'). The operations struct is copied into
 * 'operations_size' bytes. Any thread.
 */
pons_status plugin_load(pons_kind kind, const char *name, size_t operations_size, const char *where,
                        const plugin **out, pons_error *err);
pons_status plugin_load_file(const char *path, size_t operations_size, const plugin **out,
                             pons_error *err);
/*
 * Plugins that are loaded from here on are not tried in a child first: a card or a network may have
 * memory of this process in use, which a fork would take from it.
 */
void plugin_end_trials(void);
/* Warn, once for each, of loaded plugins that hide another of the same kind and name. */
void plugin_warn_hidden(logger *l);

#endif
