/*
 * offline_folder.c - find the folder of a run, or make one with a new identity.
 */
#include "sinks/wandb/offline_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sinks/wandb/run_record.h"
#include "sinks/wandb/transaction_log.h"

static const char start[] = "offline-run-";
/* Parts of a name in front of its identity, such as "20261128_101500-". */
enum { TIME_SIZE = 16, NAME_SIZE = sizeof start - 1 + TIME_SIZE + RUN_ID_SIZE };

/* ---- an earlier folder ----------------------------------------------------------------------- */

static int is_run_folder(const struct dirent *e)
{
    return strncmp(e->d_name, start, sizeof start - 1) == 0 && strlen(e->d_name) == NAME_SIZE;
}

static bool set_paths(offline_folder *f, const char *parent, const char *name)
{
    free(f->path);
    free(f->log);
    f->log = NULL;
    memcpy(f->id, name + NAME_SIZE - RUN_ID_SIZE, RUN_ID_SIZE);
    if (asprintf(&f->path, "%s/%s", parent, name) < 0)
        f->path = NULL;
    if (f->path != NULL && asprintf(&f->log, "%s/run-%s.wandb", f->path, f->id) < 0)
        f->log = NULL;
    return f->log != NULL;
}

/* Whether this sink has made the file, which may be empty; others are left alone. */
static bool is_own_log(const char *path)
{
    FILE *file = fopen(path, "re");
    message record = { 0 };
    bool own = file != NULL
               && (fgetc(file) == EOF
                   || (transaction_log_open(file) && transaction_log_read(file, &record)
                       && record_is_own_header(&record)));

    message_free(&record);
    if (file != NULL)
        fclose(file);
    return own;
}

static bool find_folder(offline_folder *f, const char *parent)
{
    struct dirent **entry = NULL;
    int count = scandir(parent, &entry, is_run_folder, alphasort);
    bool found = false;

    for (int i = count - 1; i >= 0; i--) {
        found = found || (set_paths(f, parent, entry[i]->d_name) && is_own_log(f->log));
        free(entry[i]);
    }
    free(entry);
    return found;
}

/* ---- a new folder ---------------------------------------------------------------------------- */

/* Letters and digits, as wandb draws them. */
static void draw_id(char id[RUN_ID_SIZE + 1])
{
    static const char symbol[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    unsigned char byte[RUN_ID_SIZE] = { 0 };

    if (getrandom(byte, sizeof byte, 0) != (ssize_t)sizeof byte)
        little_endian_store(byte, (uint64_t)time(NULL) << 16 ^ (uint64_t)getpid(), sizeof byte);
    for (int i = 0; i < RUN_ID_SIZE; i++)
        id[i] = symbol[byte[i] % (sizeof symbol - 1)];
    id[RUN_ID_SIZE] = '\0';
}

/* Make a folder; one that exists, and is no link, is no error. */
static pons_status make_folder(const char *path, pons_error *err)
{
    struct stat facts;

    if (mkdir(path, 0777) == 0)
        return PONS_OK;
    if (errno == EEXIST && lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode))
        return PONS_OK;
    return pons_fail(err, PONS_FAILURE, "cannot make the folder '%s': %s", path, strerror(errno));
}

/* Make the folder of files that are delivered, where 'wandb sync' adds those of the records. */
static pons_status make_files_folder(const offline_folder *f, pons_error *err)
{
    char *files = NULL;

    if (asprintf(&files, "%s/files", f->path) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for wandb");
    make_folder(files, err);
    free(files);
    return err->status;
}

static pons_status make_new_folder(offline_folder *f, const char *parent, pons_error *err)
{
    char name[NAME_SIZE + 1], id[RUN_ID_SIZE + 1], at[TIME_SIZE + 1];
    time_t now = time(NULL);
    struct tm local;

    draw_id(id);
    localtime_r(&now, &local);
    strftime(at, sizeof at, "%Y%m%d_%H%M%S-", &local);
    snprintf(name, sizeof name, "%s%s%s", start, at, id);
    if (!set_paths(f, parent, name))
        return pons_fail(err, PONS_DEVICE, "out of memory for wandb");
    if (make_folder(f->path, err) == PONS_OK)
        make_files_folder(f, err);
    return err->status;
}

pons_status offline_folder_open(offline_folder *f, const char *run, pons_error *err)
{
    char *parent = NULL;

    *f = (offline_folder){ 0 };
    if (asprintf(&parent, "%s/wandb", run) < 0)
        return pons_fail(err, PONS_DEVICE, "out of memory for wandb");
    if (make_folder(parent, err) == PONS_OK && !find_folder(f, parent))
        make_new_folder(f, parent, err);
    free(parent);
    return err->status;
}

void offline_folder_forget_delivery(const offline_folder *f)
{
    char *marker = NULL;

    if (asprintf(&marker, "%s.synced", f->log) < 0)
        return;
    unlink(marker);
    free(marker);
}

void offline_folder_remove(const offline_folder *f)
{
    char *parent = strndup(f->path, strlen(f->path) - NAME_SIZE - 1), *files = NULL;

    if (asprintf(&files, "%s/files", f->path) < 0)
        files = NULL;
    if (files != NULL && parent != NULL && rmdir(files) == 0 && unlink(f->log) == 0
        && rmdir(f->path) == 0)
        rmdir(parent);
    free(files);
    free(parent);
}

void offline_folder_close(offline_folder *f)
{
    free(f->path);
    free(f->log);
    *f = (offline_folder){ 0 };
}
