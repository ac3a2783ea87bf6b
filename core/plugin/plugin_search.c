/*
 * plugin_search.c - the folders of plugins and the files in them, from their notes alone.
 */
#include "plugin/plugin_search.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/build_feature.h"
#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/hash/name_index.h"
#include "base/text/text.h"
#include "plugin/plugin_file.h"

enum { FOLDERS_MAX = 64, FILE_LIMIT = 1 << 30 };

/* ---- folders --------------------------------------------------------------------------------- */

static pons_status add_folder(char **folders, int *count, const char *begin, size_t size,
                              pons_error *err)
{
    if (size == 0 || *begin != '/')
        return pons_fail(err, PONS_PLUGIN, "PONS_PLUGIN_PATH: entry %d is '%.*s', expected an "
                         "absolute folder", *count + 1, (int)size, begin);
    if (*count == FOLDERS_MAX)
        return pons_fail(err, PONS_PLUGIN, "PONS_PLUGIN_PATH: more than %d folders", FOLDERS_MAX);
    folders[*count] = strndup(begin, size);
    if (folders[*count] == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    (*count)++;
    return PONS_OK;
}

pons_status plugin_folders(char ***folders, pons_error *err)
{
    const char *list = getenv("PONS_PLUGIN_PATH");
    char **all = calloc(FOLDERS_MAX + 2, sizeof *all);
    pons_status status = PONS_OK;
    int count = 0;

    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    while (status == PONS_OK && list != NULL && *list != '\0') {
        size_t size = strcspn(list, ":");
        status = add_folder(all, &count, list, size, err);
        list += size;
        if (*list == ':' && *++list == '\0' && status == PONS_OK)
            status = add_folder(all, &count, list, 0, err);
    }
    if (status == PONS_OK && (all[count] = strdup(PONS_PLUGINDIR)) == NULL)
        status = pons_fail(err, PONS_DEVICE, "out of memory");
    if (status == PONS_OK)
        *folders = all;
    else
        plugin_folders_free(all);
    return status;
}

void plugin_folders_free(char **folders)
{
    for (char **f = folders; f != NULL && *f != NULL; f++)
        free(*f);
    free(folders);
}

bool plugin_is_installed(const char *path)
{
    size_t size = strlen(PONS_PLUGINDIR);

    return strncmp(path, PONS_PLUGINDIR, size) == 0 && path[size] == '/';
}

/* Whether two files have equal bytes, as where a build and its installation are both searched. */
static bool is_same_plugin(const char *path, const char *other)
{
    char *a = NULL, *b = NULL;
    size_t a_size, b_size;
    bool same = file_is(path, other)
                || (file_read(path, FILE_LIMIT, &a, &a_size, PONS_PLUGIN, NULL) == PONS_OK
                    && file_read(other, FILE_LIMIT, &b, &b_size, PONS_PLUGIN, NULL) == PONS_OK
                    && a_size == b_size && memcmp(a, b, a_size) == 0);

    free(a);
    free(b);
    return same;
}

char *plugin_hidden_by(const char *path, pons_kind kind, const char *name, char **folders)
{
    char other[4096];

    for (char **f = folders; *f != NULL; f++) {
        snprintf(other, sizeof other, "%s/%s/%s.so", *f, plugin_kind_name(kind), name);
        if (access(other, F_OK) == 0)
            return is_same_plugin(path, other) ? NULL : strdup(other);
    }
    return NULL;
}

/* ---- list ------------------------------------------------------------------------------------ */

typedef struct listing {
    plugin_file *file;
    int count, room;
    arena *names;
    name_index listed;
} listing;

/* Whether the name is new: an earlier folder may have the same plugin. */
static bool is_new_name(listing *l, pons_kind kind, const char *name, pons_error *err)
{
    const char *kept = arena_string(l->names, name);
    int number = name_index_add(&l->listed, plugin_kind_name(kind), kept, l->count);

    if (number < 0)
        pons_fail(err, PONS_DEVICE, "out of memory");
    return number == l->count;
}

static plugin_file *listing_add(listing *l)
{
    if (l->count == l->room) {
        int room = l->room > 0 ? 2 * l->room : 32;
        plugin_file *larger = realloc(l->file, (size_t)room * sizeof *larger);
        if (larger == NULL)
            return NULL;
        l->file = larger;
        l->room = room;
    }
    memset(&l->file[l->count], 0, sizeof *l->file);
    return &l->file[l->count++];
}

/* Add one file. '*folder' has it; the folders after it are still unread. */
static pons_status list_plugin(listing *l, char **folder, pons_kind kind, const char *name,
                               pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    plugin_file *f;
    char path[4096];
    verified v = { 0 };

    snprintf(path, sizeof path, "%s/%s/%s.so", *folder, plugin_kind_name(kind), name);
    if (verified_read(path, *folder, &v, &problem) == PONS_OK)
        verified_expect(&v, kind, name, &problem);
    plugin_file_clear(&v.file);
    f = listing_add(l);
    if (f == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    f->kind = kind;
    f->abi_major = PONS_ABI_MAJOR;
    snprintf(f->name, sizeof f->name, "%s", name);
    f->path = strdup(path);
    problem.text[strcspn(problem.text, "\n")] = '\0'; /* drop the hint */
    f->problem = problem.status != PONS_OK ? strdup(problem.text) : NULL;
    f->hides = plugin_hidden_by(path, kind, name, folder + 1);
    if (f->path == NULL || (problem.status != PONS_OK && f->problem == NULL))
        return pons_fail(err, PONS_DEVICE, "out of memory");
    return PONS_OK;
}

/* The NAME of "NAME.so"; false if it cannot be a plugin's. */
static bool plugin_name_of(const char *file, char name[PONS_NAME_SIZE])
{
    size_t size = strlen(file);

    if (size < 4 || size - 3 >= PONS_NAME_SIZE || strcmp(file + size - 3, ".so") != 0)
        return false;
    memcpy(name, file, size - 3);
    name[size - 3] = '\0';
    return plugin_name_valid(name);
}

static pons_status list_folder(listing *l, char **folder, pons_kind kind, pons_error *err)
{
    char path[4096], name[PONS_NAME_SIZE];
    pons_status status = PONS_OK;
    struct dirent *entry;
    DIR *d;

    snprintf(path, sizeof path, "%s/%s", *folder, plugin_kind_name(kind));
    d = opendir(path);
    if (d == NULL && errno != ENOENT && errno != ENOTDIR)
        return errno == ENOMEM ? pons_fail(err, PONS_DEVICE, "out of memory reading '%s'", path)
             : pons_fail(err, errno_status(errno, PONS_PLUGIN), "cannot read folder '%s': %s", path,
                         strerror(errno));
    while (d != NULL && status == PONS_OK && (entry = readdir(d)) != NULL)
        if (plugin_name_of(entry->d_name, name) && is_new_name(l, kind, name, err))
            status = list_plugin(l, folder, kind, name, err);
        else
            status = err->status;
    if (d != NULL)
        closedir(d);
    return status;
}

static int by_kind_and_name(const void *a, const void *b)
{
    const plugin_file *x = a, *y = b;

    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

pons_status plugin_list(plugin_file **files, int *count, pons_error *err)
{
    listing l = { .names = arena_new() };
    char **folders;
    pons_status status = l.names != NULL ? plugin_folders(&folders, err)
                                         : pons_fail(err, PONS_DEVICE, "out of memory");

    if (status != PONS_OK) {
        arena_free(l.names);
        return status;
    }
    for (char **f = folders; *f != NULL; f++)
        for (int kind = PONS_KIND_MODEL; kind <= PONS_KIND_SINK && status == PONS_OK; kind++)
            status = list_folder(&l, f, (pons_kind)kind, err);
    plugin_folders_free(folders);
    name_index_clear(&l.listed);
    arena_free(l.names);
    if (status != PONS_OK) {
        plugin_list_free(l.file, l.count);
        return status;
    }
    if (l.count > 0)
        qsort(l.file, (size_t)l.count, sizeof *l.file, by_kind_and_name);
    *files = l.file;
    *count = l.count;
    return PONS_OK;
}

void plugin_list_free(plugin_file *files, int count)
{
    for (int i = 0; i < count; i++)
        plugin_file_clear(&files[i]);
    free(files);
}

/* ---- not found ------------------------------------------------------------------------------- */

#define NOT_FOUND "no %s plugin is called '%s'"

static void guess_in_folder(const char *folder, pons_kind kind, text_guess *guess,
                            char best[PONS_NAME_SIZE])
{
    char path[4096], name[PONS_NAME_SIZE];
    struct dirent *entry;
    DIR *d;

    snprintf(path, sizeof path, "%s/%s", folder, plugin_kind_name(kind));
    d = opendir(path);
    while (d != NULL && (entry = readdir(d)) != NULL) {
        int distance = guess->distance;
        if (!plugin_name_of(entry->d_name, name))
            continue;
        text_guess_try(guess, name);
        if (guess->distance != distance) {
            memcpy(best, name, PONS_NAME_SIZE);
            guess->best = best;
        }
    }
    if (d != NULL)
        closedir(d);
}

/* Whether the plugin lies in the folder itself, where only its kind's folder is searched. */
static bool lies_beside_kind(const char *folder, const char *name)
{
    char path[4096];

    return snprintf(path, sizeof path, "%s/%s.so", folder, name) < (int)sizeof path
           && access(path, F_OK) == 0;
}

pons_status plugin_not_found(pons_kind kind, const char *name, const char *where, char **folders,
                             pons_error *err)
{
    char best[PONS_NAME_SIZE] = "", searched[1024] = "", moved[640] = "";
    text_guess guess = text_guess_for(name);
    const build_feature *lacking = build_feature_missing(plugin_kind_name(kind), name);
    size_t used = 0;

    if (lacking != NULL)
        return pons_fail(err, PONS_CONFIG, "%s%s'%s' is not in this build\n"
                         "hint: ./configure --with-%s=yes says what it lacks (Debian: %s)",
                         where != NULL ? where : "", where != NULL ? ": " : "", name, name,
                         lacking->package);
    for (char **f = folders; *f != NULL; f++) {
        guess_in_folder(*f, kind, &guess, best);
        if (lies_beside_kind(*f, name))
            snprintf(moved, sizeof moved, "move '%.250s/%.60s.so' into '%.250s/%s'; ", *f, name, *f,
                     plugin_kind_name(kind));
        if (used < sizeof searched)
            used += (size_t)snprintf(searched + used, sizeof searched - used, "%s%s%s",
                                     used > 0 ? ", " : "", *f,
                                     access(*f, F_OK) == 0 ? "" : " (no such folder)");
    }
    return pons_fail(err, where != NULL ? PONS_CONFIG : PONS_PLUGIN,
                     "%s%s" NOT_FOUND "%s%s%s\nhint: %ssearched %.1000s; "
                     "PONS_PLUGIN_PATH names more folders",
                     where != NULL ? where : "", where != NULL ? ": " : "", plugin_kind_name(kind),
                     name, *best != '\0' ? "; did you mean '" : "", best, *best != '\0' ? "'?" : "",
                     moved, searched);
}

bool plugin_error_names(const pons_error *err, const char *kind, const char *name)
{
    char text[PONS_NAME_SIZE + 64];

    snprintf(text, sizeof text, NOT_FOUND, kind, name);
    return err->status != PONS_OK && strstr(err->text, text) != NULL;
}
