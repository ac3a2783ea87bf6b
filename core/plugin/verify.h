/*
 * verify.h - what was checked of a plugin file, so that it can be seen to be the same when loaded.
 */
#ifndef CORE_PLUGIN_VERIFY_H
#define CORE_PLUGIN_VERIFY_H

#include "plugin/plugin_load.h"

#include <sys/stat.h>

typedef struct verified {
    plugin_file file;
    char sha256[65];
    struct stat facts; /* of the file when it was read                                            */
} verified;

bool plugin_name_valid(const char *name);
/*
 * 'folder' NULL: any place; else the file must lie in it once links are followed. out->file.path is
 * absolute.
 */
pons_status verified_read(const char *path, const char *folder, verified *out, pons_error *err);
/* PONS_PLUGIN when device, inode, size or time have changed since. */
pons_status verified_unchanged(const verified *v, pons_error *err);
pons_status verified_expect(const verified *v, pons_kind kind, const char *name, pons_error *err);

/*
 * search.c: the file of 'kind' and 'name' in the first of 'folders' that has one, unless it has the
 * bytes of 'path'; malloc'ed, or NULL.
 */
char *plugin_hidden_by(const char *path, pons_kind kind, const char *name, char **folders);
/* search.c: the message for a name that no folder holds. */
pons_status plugin_not_found(pons_kind kind, const char *name, const char *where, char **folders,
                             pons_error *err);
/* Load what was verified; the caller has the registry's lock. */
pons_status verified_load(const verified *v, size_t operations_size, plugin *out, pons_error *err);

#endif
