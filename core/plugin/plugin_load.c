/*
 * plugin_load.c - turn a verified file into a plugin: a trial in a child, the descriptor, the
 * core's own copy of the operations. All experiments of a process share the list of loaded plugins,
 * as they share the dynamic loader.
 */
#include "plugin/plugin_load.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "plugin/descriptor.h"
#include "plugin/plugin_file.h"
#include "plugin/plugin_search.h"

typedef struct loaded {
    plugin plugin;
    verified verified;
    bool warned; /* plugin_warn_hidden has warned                                                 */
    struct loaded *next;
} loaded;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *all;
static bool trials_ended;

/* Smallest size of the copy, so that a later caller may need more operations. */
enum { OPERATIONS_ROOM = 1024 };

static pons_status copy_operations(const pons_plugin *d, size_t size, plugin *out, pons_error *err)
{
    size_t room = max_size(size, OPERATIONS_ROOM);
    void *copy = calloc(1, room);

    if (copy == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    memcpy(copy, d->operations, d->operations_size < room ? d->operations_size : room);
    out->operations = copy;
    return PONS_OK;
}

pons_status verified_load(const verified *v, size_t operations_size, plugin *out, pons_error *err)
{
    const pons_plugin *d;
    void *handle;

    if (verified_unchanged(v, err) != PONS_OK
        || (!trials_ended && descriptor_try(v, err) != PONS_OK)
        || descriptor_load(v, &handle, &d, err) != PONS_OK
        || copy_operations(d, operations_size, out, err) != PONS_OK)
        return err->status;
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

/* Load 'v', which the list then owns. The folders 'behind' may hold a plugin of the same name. */
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

/* Writes the path, too; allocates nothing, so that a lack of memory cannot hide a file. */
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
            /* An invalid name has no file, and might be a path. */
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
        if (p->plugin.hides != NULL && !p->warned)
            log_warning(l, "%s %s is '%s', which hides '%s'",
                        plugin_kind_name(p->verified.file.kind), p->verified.file.name,
                        p->plugin.path, p->plugin.hides);
        p->warned = true;
    }
    pthread_mutex_unlock(&lock);
}

void plugin_end_trials(void)
{
    pthread_mutex_lock(&lock);
    trials_ended = true;
    pthread_mutex_unlock(&lock);
}
