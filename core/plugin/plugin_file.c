/*
 * plugin_file.c - check a plugin file before any of it runs: its folder, its owners, its note. A
 * plugin is trusted code and runs unconfined. The checks find mistakes and planted files, not
 * malice in a plugin that a user chose.
 */
#include "plugin/plugin_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "plugin/elf_note.h"
#include "plugin/owner.h"

enum { FILE_LIMIT = 1 << 30 };

static const char *const kind_names[] = {
    [PONS_KIND_MODEL] = "model", [PONS_KIND_LOSS] = "loss", [PONS_KIND_OPTIMIZER] = "optimizer",
    [PONS_KIND_OP] = "op", [PONS_KIND_TRANSFORM] = "transform", [PONS_KIND_SCHEDULE] = "schedule",
    [PONS_KIND_DEVICE] = "device", [PONS_KIND_COMM] = "comm", [PONS_KIND_SINK] = "sink"
};
enum { KIND_COUNT = sizeof kind_names / sizeof *kind_names };

const char *plugin_kind_name(pons_kind kind)
{
    return (int)kind >= 1 && (int)kind < KIND_COUNT ? kind_names[kind] : "unknown";
}

bool plugin_kind_named(const char *name, pons_kind *kind)
{
    for (int i = 1; i < KIND_COUNT; i++) {
        if (strcmp(kind_names[i], name) == 0) {
            *kind = (pons_kind)i;
            return true;
        }
    }
    return false;
}

bool plugin_name_valid(const char *name)
{
    size_t size = strlen(name);

    for (size_t i = 0; i < size; i++)
        if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) && name[i] != '_')
            return false;
    return size > 0 && size < PONS_NAME_SIZE;
}

void plugin_file_clear(plugin_file *file)
{
    free(file->path);
    free(file->problem);
    free(file->hides);
    memset(file, 0, sizeof *file);
}

/* ---- place ----------------------------------------------------------------------------------- */

static pons_status check_folder(const char *path, const char *folder, pons_error *err)
{
    char *real = realpath(folder, NULL);
    size_t size = real != NULL ? strlen(real) : 0;
    bool within = real != NULL && strncmp(path, real, size) == 0 && path[size] == '/';

    if (real == NULL)
        return pons_fail(err, errno_status(errno, PONS_PLUGIN), "cannot examine the plugin folder "
                         "'%s': %s", folder, strerror(errno));
    free(real);
    if (!within)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': it is outside of the plugin "
                         "folder '%s'", path, folder);
    return PONS_OK;
}

static pons_status check_location(const char *path, const char *folder, struct stat *facts,
                                  pons_error *err)
{
    pons_status status;

    if (getuid() != geteuid() || getgid() != getegid())
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': pons runs with the rights of "
                         "another user", path);
    if (folder != NULL && (status = check_folder(path, folder, err)) != PONS_OK)
        return status;
    if (stat(path, facts) != 0)
        return pons_fail(err, errno_status(errno, PONS_PLUGIN), "cannot examine '%s': %s", path,
                         strerror(errno));
    if (!S_ISREG(facts->st_mode))
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': it is %s, expected a regular file",
                         path, S_ISDIR(facts->st_mode) ? "a folder" : "a special file");
    return owner_check(path, facts, err);
}

/* ---- note ------------------------------------------------------------------------------------ */

static pons_status check_note(const char *path, const pons_note *note, pons_error *err)
{
    if (note->abi_major != PONS_ABI_MAJOR)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': ABI major is %u, expected %u "
                         "(it must be built with the headers of this pons)", path, note->abi_major,
                         PONS_ABI_MAJOR);
    if (note->abi_minor > PONS_ABI_MINOR)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': ABI minor is %u, expected at most %u "
                         "(it was built for a newer pons)", path, note->abi_minor, PONS_ABI_MINOR);
    if (note->kind < 1 || note->kind >= KIND_COUNT)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': kind is %u, expected 1 to %d", path,
                         note->kind, KIND_COUNT - 1);
    if (!plugin_name_valid(note->name))
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': name in its note is not of small "
                         "letters, digits and '_'", path);
    return PONS_OK;
}

static pons_status read_note(const char *path, verified *out, pons_error *err)
{
    pons_note note;
    sha256 hash;
    char *data;
    size_t size;
    pons_status status = file_read(path, FILE_LIMIT, &data, &size, PONS_PLUGIN, err);

    if (status != PONS_OK)
        return status;
    status = elf_note_read(path, data, size, &note, err);
    if (status == PONS_OK)
        status = check_note(path, &note, err);
    if (status == PONS_OK) {
        sha256_init(&hash);
        sha256_add(&hash, data, size);
        sha256_finish(&hash, out->sha256);
        out->file.kind = (pons_kind)note.kind;
        out->file.abi_major = note.abi_major;
        out->file.abi_minor = note.abi_minor;
        memcpy(out->file.name, note.name, sizeof out->file.name);
    }
    free(data);
    return status;
}

pons_status verified_read(const char *path, const char *folder, verified *out, pons_error *err)
{
    pons_status status;
    char *real = realpath(path, NULL);

    if (real == NULL)
        return pons_fail(err, errno_status(errno, PONS_PLUGIN), "cannot load '%s': %s", path,
                         strerror(errno));
    memset(out, 0, sizeof *out);
    status = check_location(real, folder, &out->facts, err);
    if (status == PONS_OK)
        status = read_note(real, out, err);
    if (status == PONS_OK)
        out->file.path = real;
    else
        free(real);
    return status;
}

pons_status verified_unchanged(const verified *v, pons_error *err)
{
    struct stat now;

    if (stat(v->file.path, &now) != 0)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': it vanished after it was checked",
                         v->file.path);
    if (now.st_dev != v->facts.st_dev || now.st_ino != v->facts.st_ino ||
        now.st_size != v->facts.st_size || now.st_mtim.tv_sec != v->facts.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != v->facts.st_mtim.tv_nsec ||
        now.st_ctim.tv_sec != v->facts.st_ctim.tv_sec ||
        now.st_ctim.tv_nsec != v->facts.st_ctim.tv_nsec)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': it changed after it was checked",
                         v->file.path);
    return PONS_OK;
}

pons_status verified_expect(const verified *v, pons_kind kind, const char *name, pons_error *err)
{
    if (v->file.kind != kind)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': kind is '%s', expected '%s'",
                         v->file.path, plugin_kind_name(v->file.kind), plugin_kind_name(kind));
    if (strcmp(v->file.name, name) != 0)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': name is '%s', expected '%s'",
                         v->file.path, v->file.name, name);
    return PONS_OK;
}

pons_status plugin_verify(const char *path, plugin_file *out, pons_error *err)
{
    verified v;
    pons_status status = verified_read(path, NULL, &v, err);

    if (status == PONS_OK)
        *out = v.file;
    return status;
}
