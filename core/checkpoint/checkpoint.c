/*
 * checkpoint.c - the write protocol, marks, pruning and verification. tensor_names.c and the
 * trainer's checkpoint_contents.c say what the tensors are.
 */
#include "checkpoint/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/file/aside.h"
#include "base/file/file.h"
#include "base/hash/json_digest.h"
#include "base/hash/sha256.h"
#include "base/text/text_stream.h"

#define MANIFEST "manifest.json"
#define MANIFEST_MAX (1 << 20)

#define ASIDE ".aside"
static const char *const marks[2] = { "last", "best" };

enum { NAME_SIZE = 32, /* of 'step-' and a number */
       FOREIGN_SIZE = 256 };
enum { MARK_NONE = -1, MARK_DAMAGED = -2 }; /* there is no such mark; it names no folder */

static char *join_path(const char *folder, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static pons_status no_memory(pons_error *err)
{
    return pons_fail(err, PONS_DEVICE, "out of memory for a checkpoint's paths");
}

static void put_name(char name[NAME_SIZE], int64_t step)
{
    snprintf(name, NAME_SIZE, "step-%08" PRId64, step);
}

/* The number in 'step-00001200', -1 for any other name. A step has one name. */
static int64_t step_of(const char *name)
{
    char own[NAME_SIZE];
    int64_t step = strncmp(name, "step-", 5) == 0 ? strtoll(name + 5, NULL, 10) : -1;

    put_name(own, step);
    return step >= 0 && strcmp(name, own) == 0 ? step : -1;
}

/* A folder that is being written or removed: 'step-00001200.4711.part' or '...old.part'. */
static bool is_part(const char *name)
{
    char own[NAME_SIZE];
    const char *end = strchr(name, '.');
    size_t size = end != NULL ? (size_t)(end - name) : sizeof own, digits;

    if (size >= sizeof own)
        return false;
    memcpy(own, name, size);
    own[size] = '\0';
    digits = strspn(++end, "0123456789");
    return step_of(own) >= 0
           && ((digits > 0 && strcmp(end + digits, ".part") == 0)
               || strcmp(end, "old.part") == 0);
}

static char *step_path(const char *folder, int64_t step)
{
    char name[NAME_SIZE];

    put_name(name, step);
    return join_path(folder, name);
}

static pons_status sync_folder(const char *path, pons_error *err)
{
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor < 0 || (fsync(descriptor) != 0 && errno != EINVAL))
        pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot sync folder '%s': %s", path,
                  strerror(errno));
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

/* Delete what lies at 'path'; it is a checkpoint no more from the first moment. */
static pons_status remove_step(const char *path, pons_error *err)
{
    char *part = NULL;

    if (asprintf(&part, "%s.old.part", path) < 0)
        return no_memory(err);
    remove_all(part); /* of a process that was killed */
    if (rename(path, part) != 0)
        pons_fail(err, PONS_FAILURE, "cannot rename '%s': %s", path, strerror(errno));
    else if (!remove_all(part))
        pons_fail(err, PONS_FAILURE, "cannot remove '%s': %s", part, strerror(errno));
    free(part);
    return err->status;
}

/* ---- manifest -------------------------------------------------------------------------------- */

static void put_facts(FILE *to, const checkpoint_list *c)
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
                                     const checkpoint_list *c, pons_error *err)
{
    fprintf(to, "{\"format\":\"pons checkpoint 1\",\"step\":%" PRId64 ",", step);
    put_facts(to, c);
    if (c->resolved != NULL && c->resolved[0] != '\0')
        fprintf(to, "\"" CHECKPOINT_RESOLVED "\":\"%s\",\n", c->resolved);
    if (c->run != NULL && c->run[0] != '\0')
        fprintf(to, "\"" CHECKPOINT_RUN "\":\"%s\",\n", c->run);
    if (c->geometry != NULL)
        fprintf(to, "\"" CHECKPOINT_GEOMETRY "\":%s,\n", c->geometry);
    fputs("\"files\":{", to);
    for (int i = 0; i < c->file_count; i++) {
        const char *name = c->file[i].name;
        struct stat facts;
        char hex[65], *path = join_path(part, name);
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

static pons_status write_manifest(const char *part, int64_t step, const checkpoint_list *c,
                                  pons_error *err)
{
    char *path = join_path(part, MANIFEST);
    text_stream s;

    if (text_stream_open(&s) && put_manifest_body(s.to, part, step, c, err) == PONS_OK
        && text_stream_flush(&s))
        json_digest_put(s.to, s.text, s.size);
    if ((!text_stream_close(&s) || path == NULL) && err->status == PONS_OK)
        no_memory(err);
    if (err->status == PONS_OK)
        write_synced(path, s.text, s.size, err);
    free(s.text);
    free(path);
    return err->status;
}

static pons_status check_file(const char *folder, const char *name, const json_t *entry,
                              pons_error *err)
{
    const char *hash = json_string_value(json_object_get(entry, "sha256"));
    struct stat facts;
    uint64_t size = 0;
    char hex[65], *path;

    if (strchr(name, '/') != NULL || hash == NULL
        || !json_whole(json_object_get(entry, "size"), &size))
        return pons_fail(err, PONS_DATA, "'%s/" MANIFEST "': entry '%.80s' has no size and sha256",
                         folder, name);
    path = join_path(folder, name);
    if (path == NULL)
        return no_memory(err);
    if (stat(path, &facts) != 0)
        pons_fail(err, PONS_DATA, "'%s' is missing: %s", path, strerror(errno));
    else if ((uint64_t)facts.st_size != size)
        pons_fail(err, PONS_DATA, "'%s' has %lld bytes, expected %" PRIu64, path,
                  (long long)facts.st_size, size);
    else if (sha256_file(path, hex, err) == PONS_OK && strcmp(hex, hash) != 0)
        pons_fail(err, PONS_DATA, "'%s' is damaged: sha256 %.12s..., expected %.12s...", path, hex,
                  hash);
    free(path);
    return err->status;
}

pons_status checkpoint_manifest(const char *folder, json_t **out, pons_error *err)
{
    char *path = join_path(folder, MANIFEST), *text = NULL;
    size_t size = 0;

    if (path == NULL)
        return no_memory(err);
    if (file_read(path, MANIFEST_MAX, &text, &size, PONS_DATA, err) == PONS_OK
        && json_digest_check(path, text, size, err) == PONS_OK)
        json_parse(text, size, path, PONS_DATA, out, err);
    free(text);
    free(path);
    return err->status;
}

/* The step that the folder's name says, -1 where somebody has given it another name. */
static int64_t step_of_path(const char *path)
{
    char name[NAME_SIZE];
    size_t end = strlen(path), begin;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--)
        continue;
    if (end - begin >= sizeof name)
        return -1;
    memcpy(name, path + begin, end - begin);
    name[end - begin] = '\0';
    return step_of(name);
}

static pons_status check_step(const char *folder, const json_t *manifest, pons_error *err)
{
    int64_t named = step_of_path(folder);
    uint64_t step;

    if (!json_whole(json_object_get(manifest, "step"), &step))
        return pons_fail(err, PONS_DATA, "'%s/" MANIFEST "' has no step", folder);
    if (named >= 0 && step != (uint64_t)named)
        return pons_fail(err, PONS_DATA, "'%s' holds step %" PRIu64 ", expected the step of its "
                         "name", folder, step);
    return PONS_OK;
}

typedef enum step_holder { HOLDS_NONE, HOLDS_OWN, HOLDS_OTHER } step_holder;

/* Whether the manifest says the step of the folder's name. HOLDS_NONE: it cannot be read. */
static step_holder held_step(const char *folder)
{
    pons_error ignored = PONS_ERROR_INIT;
    step_holder held = HOLDS_NONE;
    json_t *manifest;
    uint64_t step;

    if (checkpoint_manifest(folder, &manifest, &ignored) != PONS_OK)
        return HOLDS_NONE;
    if (json_whole(json_object_get(manifest, "step"), &step))
        held = step == (uint64_t)step_of_path(folder) ? HOLDS_OWN : HOLDS_OTHER;
    json_decref(manifest);
    return held;
}

static pons_status check_files(const char *folder, const json_t *manifest, pons_error *err)
{
    json_t *files = json_object_get(manifest, "files"), *entry;
    const char *name;

    if (json_object_size(files) == 0)
        return pons_fail(err, PONS_DATA, "'%s/" MANIFEST "' lists no files", folder);
    json_object_foreach(files, name, entry)
        if (check_file(folder, name, entry, err) != PONS_OK)
            break;
    return err->status;
}

pons_status checkpoint_verify(const char *folder, pons_error *err)
{
    json_t *manifest;

    if (checkpoint_manifest(folder, &manifest, err) != PONS_OK)
        return err->status;
    if (check_step(folder, manifest, err) == PONS_OK)
        check_files(folder, manifest, err);
    json_decref(manifest);
    return err->status;
}

/* ---- write ----------------------------------------------------------------------------------- */

static pons_status write_files(const char *part, int64_t step, const checkpoint_list *c,
                               pons_error *err)
{
    if (mkdir(part, 0777) != 0)
        return pons_fail(err, PONS_FAILURE, "cannot make folder '%s': %s", part, strerror(errno));
    for (int i = 0; i < c->file_count && err->status == PONS_OK; i++) {
        char *path = join_path(part, c->file[i].name);
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
 * ---- files of others ---------------------------------------------------------------------------
 */

/* True also for a file that NFS keeps because another process reads it. */
static bool is_of_checkpoint(const char *name)
{
    static const char ending[] = ".safetensors";
    size_t size = strlen(name);

    return strcmp(name, MANIFEST) == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0
           || strncmp(name, ".nfs", 4) == 0
           || (size >= sizeof ending && strcmp(name + size - (sizeof ending - 1), ending) == 0);
}

/* The first entry of a folder that no checkpoint has; "" where there is none. */
static pons_status find_foreign(const char *path, char name[FOREIGN_SIZE], pons_error *err)
{
    DIR *list = opendir(path);
    struct dirent *entry;

    name[0] = '\0';
    if (list == NULL)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot open folder '%s', so that "
                         "it is not removed: %s", path, strerror(errno));
    while ((entry = readdir(list)) != NULL && is_of_checkpoint(entry->d_name))
        continue;
    if (entry != NULL)
        snprintf(name, FOREIGN_SIZE, "%s", entry->d_name);
    closedir(list);
    return PONS_OK;
}

/* True for anything at 'path' but a folder of checkpoint files. */
static bool is_foreign(const char *path)
{
    pons_error ignored = PONS_ERROR_INIT;
    char name[FOREIGN_SIZE];

    return find_foreign(path, name, &ignored) != PONS_OK || name[0] != '\0';
}

/*
 * Give the complete folder 'part' its name. A valid folder that has it is exchanged, so that at any
 * moment one of the two is there; a damaged one goes first, a copy of another step's is set aside.
 * Without PONS_OK 'part' has no name yet.
 */
static pons_status give_name(const char *part, const char *path, bool exchange, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;

    if (exchange) {
        if (renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_EXCHANGE) != 0 && errno != EINVAL
            && errno != ENOSYS && errno != ENOTSUP)
            pons_fail(err, PONS_FAILURE, "cannot exchange '%s' and '%s': %s", part, path,
                      strerror(errno));
        return err->status;
    }
    if (is_there(path) && (is_foreign(path) || held_step(path) == HOLDS_OTHER)
        && aside_move(path, path, ASIDE, NULL, err) != PONS_OK)
        return err->status;
    if (is_there(path) && remove_step(path, &problem) != PONS_OK && is_there(path))
        return pons_fail(err, problem.status, "%s", problem.text);
    if (rename(part, path) != 0)
        return pons_fail(err, PONS_FAILURE, "cannot rename '%s' to '%s': %s", part, path,
                         strerror(errno));
    return PONS_OK;
}

/*
 * Name it for good; whatever lies at 'part' behind it goes, and 'part' itself if it got no name.
 * A folder that cannot be removed is left to checkpoint_prune.
 */
static pons_status put_in_place(const char *folder, const char *part, const char *path,
                                pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    bool exchange = checkpoint_verify(path, &problem) == PONS_OK;

    if (give_name(part, path, exchange, err) != PONS_OK) {
        remove_all(part);
        return err->status;
    }
    if (sync_folder(folder, err) != PONS_OK || !exchange)
        return err->status;
    if (is_foreign(part))
        return aside_move(part, path, ASIDE, NULL, err);
    remove_all(part);
    return PONS_OK;
}

pons_status checkpoint_write(const char *folder, int64_t step, const checkpoint_list *list,
                             pons_error *err)
{
    char *path = step_path(folder, step), *part = NULL;

    if (path == NULL || asprintf(&part, "%s.%ld.part", path, (long)getpid()) < 0) {
        free(path);
        return no_memory(err);
    }
    /* A run's folder that was removed is not made again. */
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        pons_fail(err, PONS_FAILURE, "cannot make folder '%s': %s", folder, strerror(errno));
    else if (is_there(part) && !remove_all(part))
        pons_fail(err, PONS_FAILURE, "cannot remove '%s': %s", part, strerror(errno));
    else if (write_files(part, step, list, err) != PONS_OK)
        remove_all(part);
    else
        put_in_place(folder, part, path, err);
    free(path);
    free(part);
    return err->status;
}

/* The step of a text that is one line, -1 for any other text. The line's end may be missing. */
static int64_t step_of_line(char *text, size_t size)
{
    size_t end = strcspn(text, "\r\n");
    const char *ending = text + end;
    bool single = strlen(text) == size && (strcmp(ending, "") == 0 || strcmp(ending, "\n") == 0
                                           || strcmp(ending, "\r\n") == 0);

    text[end] = '\0';
    return single ? step_of(text) : -1;
}

/* The step that a mark names, MARK_NONE, or MARK_DAMAGED with the reason in 'err'. */
static int64_t marked_step(const char *folder, const char *mark, pons_error *err)
{
    char *path = join_path(folder, mark), *text = NULL;
    size_t size = 0;
    int64_t step = MARK_DAMAGED;

    if (path == NULL) {
        no_memory(err);
    } else if (!is_there(path)) {
        step = MARK_NONE;
    } else if (file_read(path, 256, &text, &size, PONS_DATA, err) == PONS_OK) {
        step = step_of_line(text, size);
        if (step < 0) {
            step = MARK_DAMAGED;
            pons_fail(err, PONS_DATA, "'%s' names no checkpoint, expected one line with 'step-' "
                      "and 8 digits", path);
        }
    }
    free(text);
    free(path);
    return step;
}

bool checkpoint_is_marked(const char *folder, const char *mark, int64_t step)
{
    pons_error ignored = PONS_ERROR_INIT;

    return marked_step(folder, mark, &ignored) == step;
}

bool checkpoint_is_there(const char *folder, int64_t step)
{
    char *path = step_path(folder, step);
    bool found = path != NULL && is_there(path);

    free(path);
    return found;
}

pons_status checkpoint_mark(const char *folder, const char *mark, int64_t step, pons_error *err)
{
    char *path, line[NAME_SIZE + 1];
    safe_file file;

    if (checkpoint_is_marked(folder, mark, step))
        return PONS_OK;
    path = join_path(folder, mark);
    if (path == NULL)
        return no_memory(err);
    put_name(line, step);
    strcat(line, "\n");
    if (safe_file_open(&file, path, err) == PONS_OK) {
        if (safe_file_write(&file, line, strlen(line), err) == PONS_OK)
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
    if (list == NULL && errno != ENOENT && errno != ENOTDIR)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot read folder '%s': %s",
                         folder, strerror(errno));
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
        char *path = is_part(entry->d_name) ? join_path(folder, entry->d_name) : NULL;
        if (path != NULL)
            remove_all(path);
        else if (strncmp(entry->d_name, "last.part-", 10) == 0
                 || strncmp(entry->d_name, "best.part-", 10) == 0)
            unlinkat(dirfd(list), entry->d_name, 0); /* of a safe_file */
        free(path);
    }
    if (list != NULL)
        closedir(list);
}

/* An old checkpoint goes, unless somebody keeps something in it. */
static pons_status prune_step(const char *path, pons_error *err)
{
    char name[FOREIGN_SIZE];

    if (find_foreign(path, name, err) != PONS_OK)
        return err->status;
    if (name[0] != '\0')
        return pons_fail(err, PONS_FAILURE, "'%s' is not removed: it holds '%s', which is of no "
                         "checkpoint", path, name);
    return remove_step(path, err);
}

/*
 * All steps behind the newest ones but the marked; the first problem is told, the others go on. A
 * copy under the name of another step is left alone. It takes nobody's place among the newest, nor
 * does a folder whose manifest cannot be read.
 */
static pons_status prune_steps(const char *folder, int keep, const int64_t marked[2],
                               pons_error *err)
{
    step_list steps;

    if (list_steps(folder, &steps, err) != PONS_OK)
        return err->status;
    for (int i = 0; i < steps.count; i++) {
        pons_error problem = PONS_ERROR_INIT;
        char *path = step_path(folder, steps.step[i]);
        step_holder held = path != NULL ? held_step(path) : HOLDS_NONE;
        bool old = keep <= 0, kept = steps.step[i] == marked[0] || steps.step[i] == marked[1];
        if (held == HOLDS_OWN)
            keep--;
        if (path == NULL)
            no_memory(&problem);
        else if (old && !kept && held != HOLDS_OTHER)
            prune_step(path, &problem);
        if (problem.status != PONS_OK && err->status == PONS_OK)
            *err = problem;
        free(path);
    }
    free(steps.step);
    return err->status;
}

pons_status checkpoint_check_marks(const char *folder, pons_error *err)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char *path = join_path(folder, marks[i]);
        struct stat facts;

        if (path == NULL)
            return no_memory(err);
        if (lstat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISLNK(facts.st_mode))
            pons_fail(err, PONS_FAILURE, "'%s' is %s, expected a file with the name of a "
                      "checkpoint\nhint: move it away", path,
                      S_ISDIR(facts.st_mode) ? "a folder" : "a special file");
        free(path);
    }
    return err->status;
}

/* Name one of the folders and files that were set aside. */
static pons_status tell_aside(const char *folder, pons_error *err)
{
    DIR *list = opendir(folder);
    struct dirent *entry;

    while (list != NULL && (entry = readdir(list)) != NULL && strstr(entry->d_name, ASIDE) == NULL)
        continue;
    if (list != NULL && entry != NULL)
        pons_fail(err, PONS_FAILURE, "'%s/%s' lay in the place of a checkpoint, and held what is "
                  "of no checkpoint or of another step", folder, entry->d_name);
    if (list != NULL)
        closedir(list);
    return err->status;
}

pons_status checkpoint_prune(const char *folder, int keep, pons_error *err)
{
    int64_t marked[2];

    remove_parts(folder);
    for (int i = 0; i < 2; i++) {
        pons_error problem = PONS_ERROR_INIT;
        marked[i] = marked_step(folder, marks[i], &problem);
        if (marked[i] == MARK_DAMAGED)
            return pons_fail(err, problem.status, "no old checkpoint is removed: %s",
                             problem.text);
    }
    return prune_steps(folder, keep, marked, err) == PONS_OK ? tell_aside(folder, err)
                                                             : err->status;
}

/* 'path' of a step if it is valid; a warning and NULL if not. */
static char *try_step(const char *folder, int64_t step, bool others, logger *l)
{
    pons_error problem = PONS_ERROR_INIT;
    char *path = step_path(folder, step);

    if (path == NULL || checkpoint_verify(path, &problem) == PONS_OK)
        return path;
    if (l != NULL)
        log_warning(l, "%s%s", problem.text, others ? "; trying another checkpoint" : "");
    free(path);
    return NULL;
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
    count = steps.count;
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

/* marked_step, but MARK_DAMAGED if the named folder is missing. */
static int64_t found_mark(const char *folder, const char *mark, pons_error *err)
{
    int64_t step = marked_step(folder, mark, err);
    char *path = step >= 0 ? step_path(folder, step) : NULL;

    if (step >= 0 && path == NULL)
        no_memory(err);
    else if (step >= 0 && !is_there(path))
        pons_fail(err, PONS_DATA, "'%s/%s' names step %" PRId64 ", which is not there", folder,
                  mark, step);
    free(path);
    return err->status == PONS_OK ? step : MARK_DAMAGED;
}

/* The first valid one, that of 'mark' before all others; a mark that leads nowhere is said. */
static pons_status find_any(const char *folder, const char *mark, bool first, logger *l,
                            char **path, pons_error *err)
{
    pons_error problem = PONS_ERROR_INIT;
    int64_t marked = found_mark(folder, mark, &problem);

    if (problem.status != PONS_OK && l != NULL)
        log_warning(l, "%s", problem.text);
    return find_valid(folder, first ? marked : -1, l, path, err);
}

pons_status checkpoint_newest(const char *folder, logger *l, char **path, pons_error *err)
{
    return find_any(folder, "last", false, l, path, err);
}

pons_status checkpoint_any(const char *folder, const char *mark, logger *l, char **path,
                           pons_error *err)
{
    return find_any(folder, mark, true, l, path, err);
}

/* The marked step, without the mark the newest one, MARK_NONE where there is no checkpoint. */
static pons_status choose_step(const char *folder, const char *mark, int64_t *step,
                               pons_error *err)
{
    step_list steps;

    *step = found_mark(folder, mark, err);
    if (*step != MARK_NONE || list_steps(folder, &steps, err) != PONS_OK)
        return err->status;
    if (steps.count > 0)
        *step = steps.step[0];
    free(steps.step);
    return PONS_OK;
}

static pons_status take_chosen(const char *folder, const char *mark, int64_t *step, char **path,
                               pons_error *err)
{
    char *found;

    if (choose_step(folder, mark, step, err) != PONS_OK || *step < 0)
        return err->status;
    found = step_path(folder, *step);
    if (found == NULL)
        return no_memory(err);
    if (checkpoint_verify(found, err) == PONS_OK)
        *path = found;
    else
        free(found);
    return err->status;
}

pons_status checkpoint_marked(const char *folder, const char *mark, char **path, pons_error *err)
{
    int64_t step, before = MARK_NONE;
    bool again;

    *path = NULL;
    do { /* a training may have marked another one and removed this meanwhile */
        pons_error problem = PONS_ERROR_INIT;
        if (take_chosen(folder, mark, &step, path, &problem) == PONS_OK)
            return PONS_OK;
        again = step != before;
        before = step;
        if (!again)
            pons_fail(err, problem.status, "%s", problem.text);
    } while (again);
    return err->status;
}
