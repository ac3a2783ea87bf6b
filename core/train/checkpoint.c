/*
 * checkpoint.c - the write protocol, marks, pruning and verification. What the tensors are is
 * weights.c's and trainer_save.c's.
 */
#include <config.h>

#include "train/checkpoint.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/seal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST "manifest.json"
#define MANIFEST_MAX (1 << 20)

static char *join(const char *folder, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static pons_status no_memory(pons_error *err)
{
    return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint's paths");
}

/* The number in 'step-00001200', -1 for any other name. */
static int64_t step_of(const char *name)
{
    int64_t step;
    int used = 0;

    if (sscanf(name, "step-%8" SCNd64 "%n", &step, &used) != 1)
        return -1;
    for (; name[used] >= '0' && name[used] <= '9'; used++)
        step = step * 10 + (name[used] - '0');
    return name[used] == '\0' && step >= 0 ? step : -1;
}

static bool is_part(const char *name)
{
    size_t size = strlen(name);

    return strncmp(name, "step-", 5) == 0 && size > 5 && strcmp(name + size - 5, ".part") == 0;
}

static pons_status sync_folder(const char *path, pons_error *err)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor < 0 || (fsync(descriptor) != 0 && errno != EINVAL))
        pons_fail(err, PONS_FAILURE, "cannot sync folder '%s': %s", path, strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return err->status;
}

static bool is_there(const char *path)
{
    struct stat facts;

    return lstat(path, &facts) == 0;
}

/* Delete a folder with what lies directly in it, or whatever else has that name. */
static bool remove_all(const char *path)
{
    struct stat facts;
    struct dirent *entry;

    if (lstat(path, &facts) == 0 && !S_ISDIR(facts.st_mode))
        return unlink(path) == 0;
    DIR *list = opendir(path);
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0
            && unlinkat(dirfd(list), entry->d_name, 0) != 0)
            unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
    }
    if (list != NULL)
        closedir(list);
    return rmdir(path) == 0;
}

/* Delete what has a checkpoint's name; under one that ends in '.part' from the first moment. */
static pons_status remove_folder(const char *folder, const char *name, pons_error *err)
{
    char *path = join(folder, name), *part = NULL;

    if (path == NULL || asprintf(&part, "%s%s", path, is_part(name) ? "" : ".old.part") < 0) {
        free(path);
        return no_memory(err);
    }
    if (!is_part(name))
        remove_all(part); /* of a process that was killed */
    if (!is_part(name) && rename(path, part) != 0)
        pons_fail(err, PONS_FAILURE, "cannot rename '%s': %s", path, strerror(errno));
    else if (!remove_all(part))
        pons_fail(err, PONS_FAILURE, "cannot remove '%s': %s", part, strerror(errno));
    free(path);
    free(part);
    return err->status;
}

/* ---- manifest -------------------------------------------------------------------------------- */

static void put_facts(FILE *to, const checkpoint_content *c)
{
    fputs("\"" CHECKPOINT_FACTS "\":{", to);
    for (int i = 0; i < c->fact_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", to);
        json_put_text(to, c->fact[i].name);
        fputc(':', to);
        json_put_text(to, c->fact[i].value);
    }
    fputs("\n},", to);
}

static pons_status put_manifest_body(FILE *to, const char *part, int64_t step,
                                     const checkpoint_content *c, pons_error *err)
{
    fprintf(to, "{\"format\":\"pons checkpoint 1\",\"step\":%" PRId64 ",", step);
    put_facts(to, c);
    fputs("\"files\":{", to);
    for (int i = 0; i < c->file_count; i++) {
        const char *name = c->file[i].name;
        struct stat facts;
        char hex[65], *path = join(part, name);
        if (path == NULL)
            return no_memory(err);
        if (stat(path, &facts) != 0)
            pons_fail(err, PONS_FAILURE, "cannot examine '%s': %s", path, strerror(errno));
        else
            sha256_file(path, hex, err);
        free(path);
        if (err->status != PONS_OK)
            return err->status;
        fprintf(to, "%s\n\"%s\":{\"size\":%lld,\"sha256\":\"%s\"}", i > 0 ? "," : "", name,
                (long long)facts.st_size, hex);
    }
    fputs("\n}", to);
    return PONS_OK;
}

static pons_status write_synced(const char *path, const char *text, size_t size, pons_error *err)
{
    FILE *file;
    bool good;
    int cause;

    if (file_open_stream(path, "w", &file, err) != PONS_OK)
        return err->status;
    good = fwrite(text, 1, size, file) == size && fflush(file) == 0 && fsync(fileno(file)) == 0;
    cause = errno;
    if (fclose(file) != 0 && good) {
        good = false;
        cause = errno;
    }
    if (!good)
        return pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", path, strerror(cause));
    return PONS_OK;
}

static pons_status write_manifest(const char *part, int64_t step, const checkpoint_content *c,
                                  pons_error *err)
{
    char *text = NULL, *path = join(part, MANIFEST);
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL || path == NULL) {
        no_memory(err);
        goto release;
    }
    if (put_manifest_body(to, part, step, c, err) != PONS_OK)
        goto release;
    fflush(to);
    seal_put(to, text, size);
    fflush(to);
    write_synced(path, text, size, err);
release:
    if (to != NULL)
        fclose(to);
    free(text);
    free(path);
    return err->status;
}

static pons_status check_file(const char *folder, const json_value *entry, pons_error *err)
{
    const json_value *hash = json_member(entry, "sha256");
    struct stat facts;
    uint64_t size = 0;
    char hex[65], *path;

    if (strchr(entry->key, '/') != NULL || hash == NULL || hash->type != JSON_TEXT
        || !json_whole(json_member(entry, "size"), &size))
        return pons_fail(err, PONS_DATA, "'%s/" MANIFEST "': entry '%.80s' has no size and sha256",
                         folder, entry->key);
    path = join(folder, entry->key);
    if (path == NULL)
        return no_memory(err);
    if (stat(path, &facts) != 0)
        pons_fail(err, PONS_DATA, "'%s' is missing: %s", path, strerror(errno));
    else if ((uint64_t)facts.st_size != size)
        pons_fail(err, PONS_DATA, "'%s' has %lld bytes, expected %" PRIu64, path,
                  (long long)facts.st_size, size);
    else if (sha256_file(path, hex, err) == PONS_OK && strcmp(hex, hash->text) != 0)
        pons_fail(err, PONS_DATA, "'%s' is damaged: sha256 %.12s..., expected %.12s...", path, hex,
                  hash->text);
    free(path);
    return err->status;
}

pons_status checkpoint_manifest(const char *folder, json_document *out, pons_error *err)
{
    char *path = join(folder, MANIFEST), *text = NULL;
    size_t size = 0;

    if (path == NULL)
        return no_memory(err);
    if (file_read(path, MANIFEST_MAX, &text, &size, PONS_DATA, err) == PONS_OK
        && seal_check(path, text, size, err) == PONS_OK)
        json_parse(text, size, path, PONS_DATA, out, err);
    free(text);
    free(path);
    return err->status;
}

pons_status checkpoint_verify(const char *folder, pons_error *err)
{
    json_document manifest;

    if (checkpoint_manifest(folder, &manifest, err) != PONS_OK)
        return err->status;
    const json_value *files = json_member(manifest.root, "files");
    if (files == NULL || files->type != JSON_OBJECT || files->count == 0)
        pons_fail(err, PONS_DATA, "'%s/" MANIFEST "' lists no files", folder);
    else
        for (const json_value *f = files->child; f != NULL; f = f->next)
            check_file(folder, f, err);
    json_free(&manifest);
    return err->status;
}

/* ---- write ----------------------------------------------------------------------------------- */

static pons_status write_files(const char *part, int64_t step, const checkpoint_content *c,
                               pons_error *err)
{
    if (mkdir(part, 0777) != 0)
        return pons_fail(err, PONS_FAILURE, "cannot make folder '%s': %s", part, strerror(errno));
    for (int i = 0; i < c->file_count && err->status == PONS_OK; i++) {
        char *path = join(part, c->file[i].name);
        if (path == NULL)
            return no_memory(err);
        safetensors_write(path, &c->file[i].content, err);
        free(path);
    }
    if (err->status == PONS_OK && write_manifest(part, step, c, err) == PONS_OK)
        sync_folder(part, err);
    return err->status;
}

/*
 * Give the complete folder 'part' its name. A valid folder that has it is exchanged, so that at any
 * moment one of the two is there; a damaged one goes first. Without PONS_OK 'part' has no name yet.
 */
static pons_status give_name(const char *folder, const char *part, const char *path, bool exchange,
                             pons_error *err)
{
    const char *name = strrchr(path, '/') + 1;

    if (exchange) {
        if (renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_EXCHANGE) != 0 && errno != EINVAL
            && errno != ENOSYS && errno != ENOTSUP)
            pons_fail(err, PONS_FAILURE, "cannot exchange '%s' and '%s': %s", part, path,
                      strerror(errno));
        return err->status;
    }
    if (is_there(path) && remove_folder(folder, name, err) != PONS_OK)
        return err->status;
    if (rename(part, path) != 0)
        return pons_fail(err, PONS_FAILURE, "cannot rename '%s' to '%s': %s", part, path,
                         strerror(errno));
    return PONS_OK;
}

/* Name it for good; whatever lies at 'part' behind it goes, and 'part' itself if it got no name. */
static pons_status put_in_place(const char *folder, const char *part, const char *path,
                                pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT, ignored = PONS_ERROR_INIT;
    const char *part_name = strrchr(part, '/') + 1;
    bool exchange = checkpoint_verify(path, &problem) == PONS_OK;

    if (give_name(folder, part, path, exchange, err) != PONS_OK) {
        remove_folder(folder, part_name, &ignored);
        return err->status;
    }
    if (sync_folder(folder, err) == PONS_OK && exchange)
        remove_folder(folder, part_name, err);
    return err->status;
}

pons_status checkpoint_write(const char *folder, int64_t step, const checkpoint_content *content,
                             pons_error *err)
{
    pons_error ignored = PONS_ERROR_INIT;
    char *path = NULL, *part = NULL;
    const char *part_name;

    if (asprintf(&path, "%s/step-%08" PRId64, folder, step) < 0)
        return no_memory(err);
    if (asprintf(&part, "%s.%ld.part", path, (long)getpid()) < 0) {
        free(path);
        return no_memory(err);
    }
    part_name = strrchr(part, '/') + 1;
    /* A run's folder that was removed is not made again. */
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        pons_fail(err, PONS_FAILURE, "cannot make folder '%s': %s", folder, strerror(errno));
        goto release;
    }
    if (is_there(part) && remove_folder(folder, part_name, err) != PONS_OK)
        goto release;
    if (write_files(part, step, content, err) != PONS_OK)
        remove_folder(folder, part_name, &ignored);
    else
        put_in_place(folder, part, path, err);
release:
    free(path);
    free(part);
    return err->status;
}

/* The step that a mark names, -1 when there is no such mark. */
static int64_t marked_step(const char *folder, const char *mark)
{
    pons_error ignored = PONS_ERROR_INIT;
    char *path = join(folder, mark), *text = NULL;
    size_t size = 0;
    int64_t step = -1;

    if (path != NULL && file_read(path, 256, &text, &size, PONS_DATA, &ignored) == PONS_OK) {
        text[strcspn(text, "\r\n")] = '\0';
        step = step_of(text);
    }
    free(text);
    free(path);
    return step;
}

bool checkpoint_is_marked(const char *folder, const char *mark, int64_t step)
{
    return marked_step(folder, mark) == step;
}

pons_status checkpoint_mark(const char *folder, const char *mark, int64_t step, pons_error *err)
{
    char *path, line[64];
    safe_file file;

    if (checkpoint_is_marked(folder, mark, step))
        return PONS_OK;
    path = join(folder, mark);
    if (path == NULL)
        return no_memory(err);
    int size = snprintf(line, sizeof line, "step-%08" PRId64 "\n", step);
    if (safe_file_open(&file, path, err) == PONS_OK) {
        if (safe_file_write(&file, line, (size_t)size, err) == PONS_OK)
            safe_file_commit(&file, err);
        else
            safe_file_discard(&file);
    }
    free(path);
    return err->status;
}

/* ---- find and prune -------------------------------------------------------------------------- */

typedef struct step_list {
    int count;
    int64_t *step; /* newest first */
} step_list;

static int compare_steps(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x < y) - (x > y);
}

static pons_status list_steps(const char *folder, step_list *out, pons_error *err)
{
    DIR *list = opendir(folder);
    struct dirent *entry;
    int room = 0;

    *out = (step_list){ 0, NULL };
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (step_of(entry->d_name) < 0)
            continue;
        if (out->count == room) {
            int64_t *more = realloc(out->step, (size_t)(room = 2 * room + 16) * sizeof *more);
            if (more == NULL) {
                closedir(list);
                free(out->step);
                return no_memory(err);
            }
            out->step = more;
        }
        out->step[out->count++] = step_of(entry->d_name);
    }
    if (list != NULL)
        closedir(list);
    if (out->count > 0)
        qsort(out->step, (size_t)out->count, sizeof *out->step, compare_steps);
    return PONS_OK;
}

static void remove_parts(const char *folder)
{
    DIR *list = opendir(folder);
    struct dirent *entry;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        pons_error ignored = PONS_ERROR_INIT;
        if (is_part(entry->d_name))
            remove_folder(folder, entry->d_name, &ignored);
        else if (strncmp(entry->d_name, "last.part-", 10) == 0
                 || strncmp(entry->d_name, "best.part-", 10) == 0)
            unlinkat(dirfd(list), entry->d_name, 0); /* of a safe_file */
    }
    if (list != NULL)
        closedir(list);
}

pons_status checkpoint_prune(const char *folder, int keep, pons_error *err)
{
    int64_t last = marked_step(folder, "last"), best = marked_step(folder, "best");
    step_list steps;

    remove_parts(folder);
    if (list_steps(folder, &steps, err) != PONS_OK)
        return err->status;
    for (int i = keep; i < steps.count && err->status == PONS_OK; i++) {
        char name[32];
        if (steps.step[i] == last || steps.step[i] == best)
            continue;
        snprintf(name, sizeof name, "step-%08" PRId64, steps.step[i]);
        remove_folder(folder, name, err);
    }
    free(steps.step);
    return err->status;
}

/* 'path' of a step if it is valid; a warning and NULL if not. */
static char *try_step(const char *folder, int64_t step, bool others, logger *l)
{
    pons_error problem = PONS_ERROR_INIT;
    char *path = NULL;

    if (asprintf(&path, "%s/step-%08" PRId64, folder, step) < 0)
        return NULL;
    if (checkpoint_verify(path, &problem) == PONS_OK)
        return path;
    if (l != NULL)
        log_warning(l, "%s%s", problem.text, others ? "; trying another checkpoint" : "");
    free(path);
    return NULL;
}

static bool has_step(const step_list *steps, int64_t step)
{
    int i = 0;

    while (i < steps->count && steps->step[i] != step)
        i++;
    return i < steps->count;
}

/* The first valid one: 'first' (-1: none), then the others, the newest of them first. */
static pons_status find_valid(const char *folder, int64_t first, logger *l, char **path,
                              pons_error *err)
{
    step_list steps;
    char *found = NULL;
    int count, tried = 0;

    if (list_steps(folder, &steps, err) != PONS_OK)
        return err->status;
    count = steps.count + (first >= 0 && !has_step(&steps, first));
    for (int i = first >= 0 ? -1 : 0; i < steps.count && found == NULL; i++) {
        int64_t step = i < 0 ? first : steps.step[i];
        if (i < 0 || step != first)
            found = try_step(folder, step, ++tried < count, l);
    }
    free(steps.step);
    if (found == NULL && count == 1)
        return pons_fail(err, PONS_DATA, "the only checkpoint in '%s' is damaged", folder);
    if (found == NULL && count > 0)
        return pons_fail(err, PONS_DATA, "all %d checkpoints in '%s' are damaged", count, folder);
    *path = found;
    return PONS_OK;
}

pons_status checkpoint_newest(const char *folder, logger *l, char **path, pons_error *err)
{
    int64_t last = marked_step(folder, "last");
    char *named = NULL;

    if (last >= 0 && asprintf(&named, "%s/step-%08" PRId64, folder, last) < 0)
        return no_memory(err);
    if (named != NULL && l != NULL && access(named, F_OK) != 0)
        log_warning(l, "'%s/last' names step %" PRId64 ", which is not there", folder, last);
    free(named);
    return find_valid(folder, -1, l, path, err);
}

pons_status checkpoint_marked(const char *folder, const char *mark, logger *l, char **path,
                              pons_error *err)
{
    return find_valid(folder, marked_step(folder, mark), l, path, err);
}
