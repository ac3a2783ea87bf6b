/*
 * plugin_file.h - a plugin's file, read and checked before a byte of it runs (R21).
 */
#ifndef CORE_PLUGIN_PLUGIN_FILE_H
#define CORE_PLUGIN_PLUGIN_FILE_H

#include <pons/plugin.h>

#include <stdbool.h>
#include <sys/stat.h>

typedef struct plugin_file {
    pons_kind kind;
    char name[PONS_NAME_SIZE];
    uint16_t abi_major, abi_minor;
    char *path;
    char *problem; /* plugin_list only: why the file cannot be used, or NULL                      */
    char *hides;   /* plugin_list only: another file of this kind and name in a later folder      */
} plugin_file;

const char *plugin_kind_name(pons_kind kind);           /* "model"                                */
bool plugin_kind_named(const char *name, pons_kind *kind);

/*
 * Read and check the ELF file and its note; no byte of it runs. out->path is malloc'ed; free it
 * with plugin_file_clear.
 */
pons_status plugin_verify(const char *path, plugin_file *out, pons_error *err);
void plugin_file_clear(plugin_file *file);

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

#endif
