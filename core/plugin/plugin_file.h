/*
 * plugin_file.h - read and check a plugin file before a byte of it runs (R21).
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
    char *problem; /* from plugin_list: the reason why the file is unusable, or NULL              */
    char *hides;   /* from plugin_list: a file of this kind and name in a later folder            */
} plugin_file;

const char *plugin_kind_name(pons_kind kind);           /* "model"                                */
/* The kind of that name; false if there is none. */
bool plugin_kind_named(const char *name, pons_kind *kind);

/*
 * Read and check the ELF file and its note without running it. out->path is malloc'ed; free it with
 * plugin_file_clear.
 */
pons_status plugin_verify(const char *path, plugin_file *out, pons_error *err);
void plugin_file_clear(plugin_file *file);

typedef struct verified {
    plugin_file file;
    char sha256[65];
    struct stat facts; /* of the file when it was read                                            */
} verified;

/* Whether 'name' has only small letters, digits and '_', and fits PONS_NAME_SIZE. */
bool plugin_name_valid(const char *name);
/*
 * Read and check the file at 'path'. After links are followed it must be in 'folder'; NULL:
 * anywhere. out->file.path is absolute.
 */
pons_status verified_read(const char *path, const char *folder, verified *out, pons_error *err);
/* PONS_PLUGIN if device, inode, size or times differ from those at the reading. */
pons_status verified_unchanged(const verified *v, pons_error *err);
/* PONS_PLUGIN if kind or name of the note differ from these. */
pons_status verified_expect(const verified *v, pons_kind kind, const char *name, pons_error *err);

#endif
