/*
 * plugin_search.h - folders in which plugins are found.
 */
#ifndef CORE_PLUGIN_PLUGIN_SEARCH_H
#define CORE_PLUGIN_PLUGIN_SEARCH_H

#include "plugin/plugin_file.h"

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
 * The file of 'kind' and 'name' in the first of 'folders' that has one, unless it has the
 * bytes of 'path'; malloc'ed, or NULL.
 */
char *plugin_hidden_by(const char *path, pons_kind kind, const char *name, char **folders);
/* The message for a name that no folder holds. */
pons_status plugin_not_found(pons_kind kind, const char *name, const char *where, char **folders,
                             pons_error *err);

#endif
