/*
 * run_folder.c - lock, check and rename the folder of a run; other files write its content.
 */
#include "report/run_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/file/file.h"

pons_status run_folder_name(const char *output, const char *name, run_folder *out, pons_error *err)
{
    run_folder r = { NULL, NULL, -1, NULL };

    if (asprintf(&r.path, "%s/%s", output, name) < 0
        || asprintf(&r.checkpoints, "%s/%s/checkpoints", output, name) < 0) {
        free(r.path);
        return pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
    }
    *out = r;
    return PONS_OK;
}

char *run_folder_file(const run_folder *r, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", r->path, name) < 0 ? NULL : path;
}

static bool is_one_folder(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

enum { HANDOVERS = 10 };

/*
 * Open and lock the folder at 'path'. A run that begins anew renames the folder while another
 * process may wait for its lock; that process then has the lock of the earlier run's folder and
 * tries again with the one at 'path'. -1 with errno: no folder, or it cannot be opened. *held is
 * false if another process keeps the lock.
 */
static int lock_folder(const char *path, int own, int how, bool *held)
{
    *held = true;
    for (int i = 0; i < HANDOVERS && *held; i++) {
        int lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (lock < 0 || is_one_folder(lock, own))
            return lock;
        *held = file_lock(lock, how);
        if (*held && file_is_at(lock, path))
            return lock;
        close(lock);
    }
    *held = false;
    return -1;
}

pons_status run_folder_lock(run_folder *r, pons_error *err)
{
    bool held = true;

    if (r->lock < 0)
        r->lock = lock_folder(r->path, -1, LOCK_EX, &held);
    if (!held)
        return pons_fail(err, PONS_CONFIG, "another process is training in '%s', or about to go on "
                         "from it\nhint: --set experiment.name=NAME is a run of its own", r->path);
    if (r->lock < 0 && errno != ENOENT)
        return pons_fail(err, errno_status(errno, PONS_FAILURE), "cannot open '%s': %s", r->path,
                         strerror(errno));
    return PONS_OK;
}

pons_status run_folder_lock_shared(const run_folder *own, const char *path, int *lock,
                                   pons_error *err)
{
    bool held;

    *lock = lock_folder(path, own->lock, LOCK_SH, &held);
    if (held)
        return PONS_OK;
    return pons_fail(err, PONS_CONFIG, "another process is training in '%s'\nhint: go on from it "
                     "when that has ended", path);
}

/* Another process may rename the new folder before it is locked, so repeat. */
pons_status run_folder_make(run_folder *r, pons_error *err)
{
    do {
        if (folder_make(r->path, err) != PONS_OK || run_folder_lock(r, err) != PONS_OK)
            return err->status;
    } while (r->lock < 0);
    return PONS_OK;
}

pons_status run_folder_check(const run_folder *r, pons_error *err)
{
    if (file_is_at(r->lock, r->path))
        return PONS_OK;
    return pons_fail(err, PONS_FAILURE, "the run's folder '%s' is gone: somebody has removed or "
                     "renamed it, so nothing more is written\nhint: put it back to go on from its "
                     "last checkpoint", r->path);
}

/* True if the open file still has a name, though perhaps another one. */
static bool has_name(FILE *file)
{
    struct stat facts;

    return file != NULL && fstat(fileno(file), &facts) == 0 && facts.st_nlink > 0;
}

pons_status run_folder_check_files(const run_folder *r, pons_error *err)
{
    const struct { const char *name; FILE *open; } needed[] = {
        { "resolved.ini", NULL }, { "metrics.jsonl", NULL }, { "log.txt", r->log }
    };

    for (size_t i = 0; i < sizeof needed / sizeof *needed && err->status == PONS_OK; i++) {
        char *path = run_folder_file(r, needed[i].name);
        if (path == NULL)
            pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
        else if (access(path, F_OK) != 0 && errno == ENOENT && !has_name(needed[i].open))
            pons_fail(err, PONS_FAILURE, "'%s' is gone: somebody has removed files of the run, so "
                      "it stops\nhint: started again, it goes on from its last checkpoint", path);
        free(path);
    }
    return err->status;
}

/* True if the file is empty, or one of its first lines begins with 'start'. */
static bool begins_with(const char *path, const char *start)
{
    FILE *file = file_open_reader(path);
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    int count = 0;

    if (file == NULL)
        return false;
    while (!found && count < 4 && getline(&line, &room, file) >= 0) {
        found = strncmp(line, start, strlen(start)) == 0;
        count++;
    }
    free(line);
    fclose(file);
    return found || count == 0;
}

/* Files of a run that ended before its first checkpoint; the next start writes them again. */
static const struct {
    const char *name, *start;    /* start: of one of its first lines; NULL: no file has the name  */
    bool profile;                /* --profile writes it                                           */
} begun[] = {
    { "metrics.jsonl", "{\"kind\":", false }, { "metrics.csv", "kind,step,", false },
    { "devices.csv", "time,step,", false }, { "resolved.ini", "; pons ", false },
    { "autotune.json", "{\"format\":\"pons autotune", false },
    { "profile.json", "{\"format\":\"pons profile", true }, { "profile.svg", "<svg ", true },
    { "trace.json", "{\"traceEvents\":", true }, { "checkpoints/last", NULL, false }
};

const char *run_folder_foreign_file(const run_folder *r)
{
    const char *found = NULL;

    for (size_t i = 0; i < sizeof begun / sizeof *begun && found == NULL; i++) {
        char *path = run_folder_file(r, begun[i].name);
        if (path != NULL && access(path, F_OK) == 0
            && (begun[i].start == NULL || !begins_with(path, begun[i].start)))
            found = begun[i].name;
        free(path);
    }
    return found;
}

pons_status run_folder_retire(run_folder *r, logger *l, pons_error *err)
{
    char *other = NULL;

    /* another process must not be training in it */
    if (run_folder_lock(r, err) != PONS_OK || r->lock < 0)
        return err->status;
    for (int number = 1; other == NULL; number++) {
        if (asprintf(&other, "%s.%d", r->path, number) < 0)
            return pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
        if (faccessat(AT_FDCWD, other, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            free(other);
            other = NULL;
        }
    }
    if (rename(r->path, other) != 0)
        pons_fail(err, PONS_FAILURE, "cannot rename '%s' to '%s': %s", r->path, other,
                  strerror(errno));
    else
        log_line(l, "the earlier run is now '%s'", other);
    free(other);
    close(r->lock);
    r->lock = -1;
    return err->status;
}

pons_status run_folder_forget_profile(const run_folder *r, pons_error *err)
{
    for (size_t i = 0; i < sizeof begun / sizeof *begun && err->status == PONS_OK; i++) {
        char *path;

        if (!begun[i].profile)
            continue;
        path = run_folder_file(r, begun[i].name);
        if (path == NULL)
            pons_fail(err, PONS_DEVICE, "out of memory for a run's paths");
        else if (unlink(path) != 0 && errno != ENOENT)
            pons_fail(err, PONS_FAILURE, "cannot remove '%s': %s", path, strerror(errno));
        free(path);
    }
    return err->status;
}

pons_status run_folder_log(run_folder *r, logger *l, pons_error *err)
{
    char *path = run_folder_file(r, "log.txt");

    if (path == NULL)
        pons_fail(err, PONS_DEVICE, "out of memory for log.txt");
    else if (file_open_stream(path, "a", &r->log, err) == PONS_OK)
        l->file = r->log;
    free(path);
    return err->status;
}

void run_folder_close(run_folder *r, logger *l)
{
    if (r->log != NULL) {
        l->file = NULL;
        fclose(r->log);
    }
    if (r->lock >= 0)
        close(r->lock);
    free(r->path);
    free(r->checkpoints);
    *r = (run_folder){ NULL, NULL, -1, NULL };
}
