/*
 * cache_disk.c - file names, locks and total size of a cache folder.
 *
 * The modification time of a file is the time of its last use, which decides about removal. A
 * process that has mapped a removed file keeps its content.
 */
#include "data/cache/cache_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"

static const char SUFFIX[] = ".case";

static char *path_of(const cache_disk *c, const char *name, const char *end)
{
    char *path;

    return asprintf(&path, "%s/%s%s", c->folder, name, end) < 0 ? NULL : path;
}

pons_status cache_disk_open(cache_disk *c, const char *folder, pons_error *err)
{
    pons_error ignored = PONS_ERROR_INIT; /* a folder without locks is usable */
    char *path;

    *c = (cache_disk){ .lock = -1 };
    if (folder_make(folder, err) != PONS_OK)
        return err->status;
    safe_file_sweep(folder);
    c->folder = strdup(folder);
    path = c->folder != NULL ? path_of(c, "lock", "") : NULL;
    if (path == NULL) {
        cache_disk_close(c);
        return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    file_open(path, O_RDWR, &c->lock, &ignored);
    free(path);
    return PONS_OK;
}

void cache_disk_close(cache_disk *c)
{
    if (c->folder != NULL && c->lock >= 0)
        close(c->lock);
    free(c->folder);
    *c = (cache_disk){ .lock = -1 };
}

/* ---- locks ----------------------------------------------------------------------------------- */

/*
 * A key locks one byte of the lock file. On a file system without locks two processes may make the
 * same case; the second file replaces the first and is equal to it.
 */
int cache_disk_lock(const cache_disk *c, const char *key)
{
    char *path = c->lock >= 0 ? path_of(c, "lock", "") : NULL;
    int descriptor = path != NULL ? open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    struct flock range = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    char digits[13] = { 0 };

    free(path);
    memcpy(digits, key, sizeof digits - 1);
    range.l_start = (off_t)strtoll(digits, NULL, 16);
    while (descriptor >= 0 && fcntl(descriptor, F_OFD_SETLKW, &range) != 0)
        if (errno != EINTR) {
            close(descriptor);
            return -1;
        }
    return descriptor;
}

void cache_disk_unlock(int descriptor)
{
    if (descriptor >= 0)
        close(descriptor);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void warn_case(logger *l, const char *name, const char *what, const pons_error *cause)
{
    if (l != NULL)
        log_warning(l, "case '%s': %s: %s", name, what, cause->text);
}

bool cache_disk_find(const cache_disk *c, const char *key, const char *name, logger *l,
                     packed_case *out, const char **note)
{
    pons_error cause = PONS_ERROR_INIT;
    char *path = path_of(c, key, SUFFIX);
    pons_status status;

    if (path == NULL)
        return false;
    status = packed_case_file_map(path, key, out, note, &cause);
    if (status == PONS_OK)
        utimensat(AT_FDCWD, path, NULL, 0);
    if (status == PONS_DATA) {
        warn_case(l, name, "is preprocessed again", &cause);
        unlink(path);
    }
    free(path);
    return status == PONS_OK;
}

bool cache_disk_write(const cache_disk *c, const char *key, const char *name, const packed_case *p,
                      const char *note, logger *l)
{
    pons_error cause = PONS_ERROR_INIT;
    char *path = path_of(c, key, SUFFIX);
    bool kept = path != NULL && packed_case_file_write(path, key, p, note, &cause) == PONS_OK;

    if (!kept)
        warn_case(l, name, "cannot be kept, and is read each time", &cause);
    free(path);
    return kept;
}

/* ---- size limit ------------------------------------------------------------------------------ */

typedef struct cached_file {
    char name[CASE_KEY_SIZE + sizeof SUFFIX];
    int64_t size;
    int64_t used;              /* seconds since the epoch */
} cached_file;

static int compare_use(const void *a, const void *b)
{
    const cached_file *x = a, *y = b;

    return x->used != y->used ? (x->used < y->used ? -1 : 1) : strcmp(x->name, y->name);
}

static bool is_case(const char *name)
{
    return strlen(name) == CASE_KEY_SIZE - 1 + sizeof SUFFIX - 1
           && strcmp(name + CASE_KEY_SIZE - 1, SUFFIX) == 0;
}

static int list_files(DIR *folder, cached_file **out)
{
    cached_file *list = NULL;
    int count = 0, room = 0;
    struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        struct stat s;
        if (!is_case(entry->d_name) || fstatat(dirfd(folder), entry->d_name, &s, 0) != 0)
            continue;
        if (count == room) {
            cached_file *more = realloc(list, (size_t)(room = 2 * room + 64) * sizeof *list);
            if (more == NULL)
                break;
            list = more;
        }
        strcpy(list[count].name, entry->d_name);
        list[count].size = s.st_size;
        list[count++].used = s.st_mtime;
    }
    if (count > 0)
        qsort(list, (size_t)count, sizeof *list, compare_use);
    *out = list;
    return count;
}

void cache_disk_trim(const cache_disk *c, int64_t limit, int64_t begin)
{
    DIR *folder = opendir(c->folder);
    cached_file *list = NULL;
    int count = folder != NULL ? list_files(folder, &list) : 0;
    int64_t total = 0;

    for (int i = 0; i < count; i++)
        total += list[i].size;
    for (int i = 0; i < count && total > limit && list[i].used < begin; i++)
        if (unlinkat(dirfd(folder), list[i].name, 0) == 0)
            total -= list[i].size;
    free(list);
    if (folder != NULL)
        closedir(folder);
}
