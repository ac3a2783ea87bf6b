/*
 * plugin_search.h - the folders in which plugins are found.
 */
#ifndef CORE_PLUGIN_PLUGIN_SEARCH_H
#define CORE_PLUGIN_PLUGIN_SEARCH_H

#include "plugin/plugin_file.h"

/*
 * The folders to search: those of PONS_PLUGIN_PATH (absolute, separated by colons), then plugindir.
 * Each holds KIND/NAME.so. *folders ends with NULL; free it with plugin_folders_free.
 */
pons_status plugin_folders(char ***folders, pons_error *err);
void plugin_folders_free(char **folders);
/*
 * List all plugins from their notes, without loading them. *files is malloc'ed and sorted by kind
 * and name. Of one name, the first folder's file is listed.
 */
pons_status plugin_list(plugin_file **files, int *count, pons_error *err);
void plugin_list_free(plugin_file *files, int count);
/*
 * The file of 'kind' and 'name' in the first of 'folders' that has one, malloc'ed. NULL: there is
 * none, or its bytes equal those of 'path'.
 */
char *plugin_hidden_by(const char *path, pons_kind kind, const char *name, char **folders);
/* Whether a plugin's file lies in plugindir, where it is always found. */
bool plugin_is_installed(const char *path);
/* Fail with the message for a name that no folder holds. */
pons_status plugin_not_found(pons_kind kind, const char *name, const char *where, char **folders,
                             pons_error *err);
/* Whether 'err' is that failure for this plugin; 'kind' is a word such as "loss". */
bool plugin_error_names(const pons_error *err, const char *kind, const char *name);

#endif
