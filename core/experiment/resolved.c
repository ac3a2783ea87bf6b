/*
 * resolved.c - check a resolved.ini by the hash in a manifest, or else by its seal; find the files
 * of plugins in its comments.
 */
#include "experiment/resolved.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/hash/json_digest.h"
#include "base/text/shell_word.h"
#include "checkpoint/checkpoint.h"
#include "plugin/plugin_search.h"

enum { FILE_LIMIT = 16 << 20 };

/* The hash in the manifest; "": none. */
static pons_status read_expected(const char *checkpoint, char hex[65], pons_error *err)
{
    json_t *manifest;
    const json_t *hash;

    if (checkpoint_manifest(checkpoint, &manifest, err) != PONS_OK)
        return err->status;
    hash = json_object_get(manifest, CHECKPOINT_RESOLVED);
    hex[0] = '\0';
    if (hash != NULL && (!json_is_string(hash) || json_string_length(hash) != 64))
        pons_fail(err, PONS_DATA, "'%s/manifest.json': '" CHECKPOINT_RESOLVED "' is no sha256",
                  checkpoint);
    else if (hash != NULL)
        strcpy(hex, json_string_value(hash));
    json_decref(manifest);
    return err->status;
}

pons_status resolved_check(const char *checkpoint, const char *path, bool *same, pons_error *err)
{
    char expected[65], found[65], *text = NULL;
    size_t size = 0;
    sha256 hash;

    *same = true;
    if (read_expected(checkpoint, expected, err) != PONS_OK || expected[0] == '\0'
        || file_read(path, FILE_LIMIT, &text, &size, PONS_DATA, err) != PONS_OK)
        return err->status;
    sha256_init(&hash);
    sha256_add(&hash, text, size);
    sha256_finish(&hash, found);
    *same = strcmp(found, expected) == 0;
    if (!*same && !json_digest_line_holds(text, size))
        pons_fail(err, PONS_DATA, "'%s' is not as the run wrote it: sha256 %.12s..., expected "
                  "%.12s...", path, found, expected);
    free(text);
    return err->status;
}

/* ---- plugins --------------------------------------------------------------------------------- */

/* A plugin of a comment. 'folder' is that of PONS_PLUGIN_PATH. */
typedef struct noted_plugin {
    char kind[16], name[64];
    char path[600], folder[600];
} noted_plugin;

/* Read "; loss mine is /home/u/own/loss/mine.so"; false: the line is another comment. */
static bool parse_comment(const char *line, noted_plugin *out)
{
    char end[sizeof out->kind + sizeof out->name + sizeof "//.so"];
    int begin = 0, size;

    if (sscanf(line, "; %15[a-z] %63[A-Za-z0-9_-] is %n", out->kind, out->name, &begin) != 2
        || line[begin] != '/')
        return false;
    snprintf(out->path, sizeof out->path, "%.*s", (int)strcspn(line + begin, "\n"), line + begin);
    size = (int)strlen(out->path)
         - snprintf(end, sizeof end, "/%s/%s.so", out->kind, out->name);
    if (size <= 0 || strcmp(out->path + size, end) != 0)
        return false;
    snprintf(out->folder, sizeof out->folder, "%.*s", size, out->path);
    return true;
}

static bool find_missing(const char *resolved, const pons_error *err, noted_plugin *out)
{
    FILE *file = file_open_reader(resolved);
    char *line = NULL;
    size_t room = 0;
    bool found = false;

    while (file != NULL && !found && getline(&line, &room, file) > 0 && line[0] == ';')
        found = parse_comment(line, out) && plugin_error_names(err, out->kind, out->name);
    free(line);
    if (file != NULL)
        fclose(file);
    return found;
}

/* The folder before those that are searched. */
static void put_search_path(const char *folder, char *out, size_t size)
{
    const char *before = getenv("PONS_PLUGIN_PATH");
    char list[1200];

    snprintf(list, sizeof list, "%s%s%s", folder, before != NULL && before[0] ? ":" : "",
             before != NULL ? before : "");
    shell_word_bare(out, size, list);
}

void resolved_hint_plugins(const char *resolved, pons_error *err)
{
    static const char mark[] = "\nhint: ";
    char text[sizeof err->text], word[1200], *hint;
    pons_status status = err->status;
    noted_plugin p;

    if (status == PONS_OK || resolved == NULL || !find_missing(resolved, err, &p)
        || strstr(err->text, p.path) != NULL)
        return;
    snprintf(text, sizeof text, "%s", err->text);
    hint = strstr(text, mark);
    if (hint == NULL)
        return;
    *hint = '\0';
    put_search_path(p.folder, word, sizeof word);
    *err = (pons_error)PONS_ERROR_INIT;
    if (access(p.path, F_OK) == 0)
        pons_fail(err, status, "%s\nhint: the run had it from '%s', which PONS_PLUGIN_PATH=%s "
                  "finds; %s", text, p.path, word, hint + strlen(mark));
    else
        pons_fail(err, status, "%s\nhint: the run had it from '%s', where there is no file any "
                  "more; %s", text, p.path, hint + strlen(mark));
}
