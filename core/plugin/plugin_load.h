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
    const void *operations; /* the core's own copy, zeroed behind what the plugin knew            */
    const char *hides;      /* another file of this kind and name in a later folder, or NULL      */
} plugin;

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
/* Load what was verified; the caller has the registry's lock. */
pons_status verified_load(const verified *v, size_t operations_size, plugin *out, pons_error *err);
/* Warn, once for each, of loaded plugins that hide another of the same kind and name. */
void plugin_warn_hidden(logger *l);

#endif
