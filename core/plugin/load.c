/*
 * load.c - a verified file becomes a plugin: dlopen, the descriptor against the note, the core's
 * own copies of what the plugin brought. The list of loaded plugins is the one thing that all
 * experiments of a process share, as they share the dynamic loader.
 */
#include <config.h>

#include "config/config.h"
#include "plugin/verify.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

typedef struct loaded {
    plugin plugin;
    verified verified;
    bool told; /* plugin_warn_hidden has said what it hides                                       */
    struct loaded *next;
} loaded;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *all;

/* Room for operations that a later caller may ask more of. */
enum { OPERATIONS_ROOM = 1024 };

/* ---- descriptor ------------------------------------------------------------------------------ */

static pons_status refuse(const verified *v, pons_error *err, const char *field, const char *found,
                          const char *expected)
{
    return pons_fail(err, PONS_PLUGIN, "cannot load '%s': %s in its descriptor is '%s', expected "
                     "'%s'", v->file.path, field, found, expected);
}

static pons_status check_sizes(const verified *v, const pons_plugin *d, pons_error *err)
{
    if (d->size < sizeof *d)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its descriptor has %u bytes, "
                         "expected at least %zu", v->file.path, d->size, sizeof *d);
    if (d->abi_major != v->file.abi_major || d->abi_minor != v->file.abi_minor)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': ABI in its descriptor is %u.%u, its "
                         "note says %u.%u", v->file.path, d->abi_major, d->abi_minor,
                         v->file.abi_major, v->file.abi_minor);
    if (d->options != NULL && d->option_size != sizeof(pons_option))
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': an option of it has %u bytes, "
                         "expected %zu", v->file.path, d->option_size, sizeof(pons_option));
    if (d->operations == NULL || d->operations_size == 0)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its descriptor has no operations",
                         v->file.path);
    return PONS_OK;
}

static pons_status check_texts(const verified *v, const pons_plugin *d, pons_error *err)
{
    const char *kind = plugin_kind_name((pons_kind)d->kind);

    if (d->kind != (uint32_t)v->file.kind)
        return refuse(v, err, "kind", kind, plugin_kind_name(v->file.kind));
    if (d->name == NULL || strcmp(d->name, v->file.name) != 0)
        return refuse(v, err, "name", d->name != NULL ? d->name : "", v->file.name);
    if (d->version == NULL || d->summary == NULL || d->licence == NULL)
        return pons_fail(err, PONS_PLUGIN, "cannot load '%s': its descriptor lacks version, "
                         "summary or licence", v->file.path);
    return PONS_OK;
}

static pons_status copy_operations(const pons_plugin *d, size_t size, plugin *out, pons_error *err)
{
    size_t room = size > OPERATIONS_ROOM ? size : OPERATIONS_ROOM;
    void *copy = calloc(1, room);

    if (copy == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    memcpy(copy, d->operations, d->operations_size < room ? d->operations_size : room);
    out->operations = copy;
    return PONS_OK;
}

/* ---- load ------------------------------------------------------------------------------------ */

static const pons_plugin *call_entry(void *handle, const verified *v, pons_error *err)
{
    const pons_plugin *(*entry)(void);
    void *symbol = dlsym(handle, "pons_plugin_entry");
    const pons_plugin *d;

    if (symbol == NULL) {
        pons_fail(err, PONS_PLUGIN, "cannot load '%s': it does not export 'pons_plugin_entry'",
                  v->file.path);
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof entry);
    d = entry();
    if (d == NULL)
        pons_fail(err, PONS_PLUGIN, "cannot load '%s': 'pons_plugin_entry' returned nothing",
                  v->file.path);
    return d;
}

/* The loader's words for a file that finds no room; a disk mounted 'noexec' has the same. */
static bool is_memory_short(const char *path, const char *said)
{
    static const char *const phrases[] = { "failed to map segment", "cannot map zero-fill pages",
                                           "out of memory", "annot allocate memory" };
    struct statvfs disk;

    if (statvfs(path, &disk) != 0 || (disk.f_flag & ST_NOEXEC) != 0)
        return false;
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (strstr(said, phrases[i]) != NULL)
            return true;
    return false;
}

static pons_status open_library(const char *path, void **handle, pons_error *err)
{
    const char *said;

    *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (*handle != NULL)
        return PONS_OK;
    said = dlerror();
    if (is_memory_short(path, said))
        return pons_fail(err, PONS_DEVICE, "out of memory: cannot load '%s': %.1000s", path,
                         said);
    return pons_fail(err, PONS_PLUGIN, "cannot load '%s': %.1000s", path, said);
}

pons_status verified_load(const verified *v, size_t operations_size, plugin *out, pons_error *err)
{
    const pons_plugin *d;
    void *handle;
    pons_status status = verified_unchanged(v, err);

    if (status == PONS_OK)
        status = open_library(v->file.path, &handle, err);
    if (status != PONS_OK)
        return status;
    d = call_entry(handle, v, err);
    if (d == NULL)
        return PONS_PLUGIN;
    status = check_sizes(v, d, err);
    if (status == PONS_OK)
        status = check_texts(v, d, err);
    if (status == PONS_OK)
        status = option_table_check(d->options, d->config_size, v->file.path, err);
    if (status == PONS_OK)
        status = copy_operations(d, operations_size, out, err);
    if (status != PONS_OK)
        return status;
    out->descriptor = d;
    out->path = v->file.path;
    memcpy(out->sha256, v->sha256, sizeof out->sha256);
    return PONS_OK;
}

/* ---- list of loaded -------------------------------------------------------------------------- */

static const loaded *find_loaded(pons_kind kind, const char *name)
{
    for (const loaded *l = all; l != NULL; l = l->next)
        if (l->verified.file.kind == kind && strcmp(l->verified.file.name, name) == 0)
            return l;
    return NULL;
}

/* Takes over 'v'. The folders 'behind' that of the plugin may hold another of its name. */
static pons_status add_loaded(verified *v, size_t operations_size, char **behind,
                              const plugin **out, pons_error *err)
{
    loaded *l = calloc(1, sizeof *l);
    pons_status status;

    if (l == NULL) {
        plugin_file_clear(&v->file);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    l->verified = *v;
    status = verified_load(&l->verified, operations_size, &l->plugin, err);
    if (status != PONS_OK) {
        plugin_file_clear(&l->verified.file);
        free(l);
        return status;
    }
    l->plugin.hides = plugin_hidden_by(l->plugin.path, v->file.kind, v->file.name, behind);
    l->next = all;
    all = l;
    *out = &l->plugin;
    return PONS_OK;
}

/* Its path, for which no memory can lack. */
static bool file_exists(const char *folder, pons_kind kind, const char *name, char path[PATH_MAX])
{
    struct stat facts;
    int size = snprintf(path, PATH_MAX, "%s/%s/%s.so", folder, plugin_kind_name(kind), name);

    return size < PATH_MAX && lstat(path, &facts) == 0;
}

static pons_status find_and_load(pons_kind kind, const char *name, size_t operations_size,
                                 const char *where, char **folders, const plugin **out,
                                 pons_error *err)
{
    for (char **folder = folders; *folder != NULL; folder++) {
        verified v;
        char path[PATH_MAX];
        pons_status status;
        if (!file_exists(*folder, kind, name, path))
            continue;
        status = verified_read(path, *folder, &v, err);
        if (status != PONS_OK)
            return status;
        status = verified_expect(&v, kind, name, err);
        if (status == PONS_OK)
            return add_loaded(&v, operations_size, folder + 1, out, err);
        plugin_file_clear(&v.file);
        return status;
    }
    return plugin_not_found(kind, name, where, folders, err);
}

pons_status plugin_load(pons_kind kind, const char *name, size_t operations_size, const char *where,
                        const plugin **out, pons_error *err)
{
    const loaded *known;
    char **folders;
    pons_status status = PONS_OK;

    pthread_mutex_lock(&lock);
    known = find_loaded(kind, name);
    if (known != NULL) {
        *out = &known->plugin;
    } else {
        status = plugin_folders(&folders, err);
        if (status == PONS_OK) {
            /* What is not a name could not be a file of that name, and might be a path. */
            status = plugin_name_valid(name) ?
                     find_and_load(kind, name, operations_size, where, folders, out, err) :
                     plugin_not_found(kind, name, where, folders, err);
            plugin_folders_free(folders);
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

pons_status plugin_load_file(const char *path, size_t operations_size, const plugin **out,
                             pons_error *err)
{
    verified v;
    const loaded *known;
    pons_status status = verified_read(path, NULL, &v, err);

    if (status != PONS_OK)
        return status;
    pthread_mutex_lock(&lock);
    known = find_loaded(v.file.kind, v.file.name);
    if (known == NULL) {
        status = add_loaded(&v, operations_size, (char *[]){ NULL }, out, err);
    } else if (strcmp(known->plugin.sha256, v.sha256) == 0) {
        *out = &known->plugin;
        plugin_file_clear(&v.file);
    } else {
        status = pons_fail(err, PONS_PLUGIN, "cannot load '%s': another %s '%s' is loaded from "
                           "'%s'", v.file.path, plugin_kind_name(v.file.kind), v.file.name,
                           known->plugin.path);
        plugin_file_clear(&v.file);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void plugin_warn_hidden(logger *l)
{
    pthread_mutex_lock(&lock);
    for (loaded *p = all; p != NULL; p = p->next) {
        if (p->plugin.hides != NULL && !p->told)
            log_warning(l, "%s %s is '%s', which hides '%s'",
                        plugin_kind_name(p->verified.file.kind), p->verified.file.name,
                        p->plugin.path, p->plugin.hides);
        p->told = true;
    }
    pthread_mutex_unlock(&lock);
}
