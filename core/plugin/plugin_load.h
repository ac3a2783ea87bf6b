/*
 * plugin_load.h - find, verify and load plugins (R21). A plugin is never unloaded.
 */
#ifndef CORE_PLUGIN_PLUGIN_LOAD_H
#define CORE_PLUGIN_PLUGIN_LOAD_H

#include "base/log.h"
#include "plugin/plugin_file.h"

typedef struct plugin {
    const pons_plugin *descriptor;
    const char *path;
    char sha256[65];
    const void *operations; /* the core's copy; zeros after the plugin's operations               */
    const char *hides;      /* file of this kind and name in a later folder, or NULL              */
} plugin;

/*
 * Load plugin 'name' of 'kind', or return the loaded one. A missing name is PONS_CONFIG
 * (PONS_PLUGIN if 'where' is NULL). The message begins with 'where', the file:line of the INI
 * value, and ends with the nearest known name. The operations are copied into 'operations_size'
 * bytes. Any thread.
 */
pons_status plugin_load(pons_kind kind, const char *name, size_t operations_size, const char *where,
                        const plugin **out, pons_error *err);
/* The same by the path of a file. A different plugin of that kind and name must not be loaded. */
pons_status plugin_load_file(const char *path, size_t operations_size, const plugin **out,
                             pons_error *err);
/*
 * End the trials in a child for plugins that are loaded later. A GPU or a network may be using
 * memory of this process, and a fork would take it away.
 */
void plugin_end_trials(void);
/* Load a verified file. The caller holds the lock of the list. */
pons_status verified_load(const verified *v, size_t operations_size, plugin *out, pons_error *err);
/* Warn of loaded plugins that hide another of the same kind and name, once for each. */
void plugin_warn_hidden(logger *l);

#endif
