/*
 * file.c - read whole files, and write files that are either complete or absent.
 */
#include "base/file/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/errno_status.h"

/* ---- read ------------------------------------------------------------------------------------ */

static pons_status read_all(int fd, const char *path, char *to, size_t size, pons_status kind,
                            pons_error *err)
{
    size_t done = 0;

    while (done < size) {
        ssize_t part = read(fd, to + done, size - done);
        if (part < 0 && errno == EINTR)
            continue;
        if (part < 0)
            return pons_fail(err, errno_status(errno, kind), "cannot read '%s': %s", path,
                             strerror(errno));
        if (part == 0)
            return pons_fail(err, kind, "cannot read '%s': it ended after %zu of %zu bytes", path,
                             done, size);
        done += (size_t)part;
    }
    return PONS_OK;
}

static pons_status read_open(int fd, const char *path, size_t limit, char **data, size_t *size,
                             pons_status kind, pons_error *err)
{
    struct stat facts;
    char *text;

    if (fstat(fd, &facts) != 0)
        return pons_fail(err, errno_status(errno, kind), "cannot examine '%s': %s", path,
                         strerror(errno));
    if (!S_ISREG(facts.st_mode))
        return pons_fail(err, kind, "cannot read '%s': it is %s, expected a regular file", path,
                         S_ISDIR(facts.st_mode) ? "a folder" : "a special file");
    if ((uint64_t)facts.st_size > limit)
        return pons_fail(err, kind, "cannot read '%s': it has %lld bytes, at most %zu are expected",
                         path, (long long)facts.st_size, limit);
    text = malloc((size_t)facts.st_size + 1);
    if (text == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory reading '%s'", path);
    if (read_all(fd, path, text, (size_t)facts.st_size, kind, err) != PONS_OK) {
        free(text);
        return err != NULL ? err->status : kind;
    }
    text[facts.st_size] = '\0';
    *data = text;
    *size = (size_t)facts.st_size;
    return PONS_OK;
}

pons_status file_read(const char *path, size_t limit, char **data, size_t *size, pons_status kind,
                      pons_error *err)
{
    /* O_NONBLOCK: open must not wait for a pipe's writer before the pipe is refused. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    pons_status status;

    if (fd < 0)
        return pons_fail(err, errno_status(errno, kind), "cannot open '%s': %s", path,
                         strerror(errno));
    status = read_open(fd, path, limit, data, size, kind, err);
    close(fd);
    return status;
}

FILE *file_open_reader(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat facts;
    FILE *file = NULL;

    if (fd >= 0 && fstat(fd, &facts) == 0 && !S_ISREG(facts.st_mode))
        errno = S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
    else if (fd >= 0)
        file = fdopen(fd, "rb");
    if (fd >= 0 && file == NULL) {
        int problem = errno;
        close(fd);
        errno = problem;
    }
    return file;
}

bool file_identify(const char *path, file_identity *out)
{
    struct stat facts;

    if (stat(path, &facts) != 0)
        return false;
    *out = (file_identity){ (uint64_t)facts.st_dev, (uint64_t)facts.st_ino };
    return true;
}

bool file_is(const char *path, const char *other)
{
    file_identity a, b;

    return file_identify(path, &a) && file_identify(other, &b) && a.device == b.device
           && a.inode == b.inode;
}

bool file_is_at(int file, const char *path)
{
    struct stat a, b;

    return fstat(file, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev
           && a.st_ino == b.st_ino;
}

bool file_lock(int file, int how)
{
    const struct timespec moment = { 0, 20000000 };

    /* The system releases the lock of a killed process a moment later. */
    for (int i = 0; i < 50; i++) {
        if (flock(file, how | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true;
        nanosleep(&moment, NULL);
    }
    return false;
}

/* ---- folders --------------------------------------------------------------------------------- */

bool folder_is_there(const char *path)
{
    struct stat facts;

    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool folder_holds(const char *folder, const char *name)
{
    char *path = NULL;
    bool found = asprintf(&path, "%s/%s", folder, name) >= 0 && access(path, F_OK) == 0;

    free(path);
    return found;
}

pons_status folder_make_last(const char *path, pons_error *err)
{
    int problem;

    if (mkdir(path, 0777) == 0)
        return PONS_OK;
    problem = errno;
    if (folder_is_there(path))
        return PONS_OK;
    return pons_fail(err, PONS_FAILURE, "cannot make folder '%s': %s", path,
                     problem == EEXIST ? "a file of that name is in the way" : strerror(problem));
}

pons_status folder_make(const char *path, pons_error *err)
{
    char *copy = strdup(path);
    pons_status status = PONS_OK;

    if (copy == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    for (char *p = copy + 1; status == PONS_OK && copy[0] != '\0' && *p != '\0'; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        status = folder_make_last(copy, err);
        *p = '/';
    }
    if (status == PONS_OK)
        status = folder_make_last(copy, err);
    free(copy);
    return status;
}

pons_status folder_make_for(const char *path, pons_error *err)
{
    const char *slash = strrchr(path, '/');
    char *folder;

    if (slash == NULL || slash == path)
        return PONS_OK;
    folder = strndup(path, (size_t)(slash - path));
    if (folder == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    folder_make(folder, err);
    free(folder);
    return err->status;
}

/* ---- write ----------------------------------------------------------------------------------- */

static const char *kind_of(mode_t mode)
{
    return S_ISLNK(mode) ? "a link" : S_ISDIR(mode) ? "a folder" : "a special file";
}

static pons_status refuse_kind(const char *path, mode_t mode, pons_error *err)
{
    return pons_fail(err, PONS_FAILURE, "cannot write '%s': it is %s, expected a regular file",
                     path, kind_of(mode));
}

/* Name the kind of file: the errno of open tells neither a link nor a FIFO without a reader. */
static pons_status refuse_open(const char *path, int problem, pons_error *err)
{
    struct stat facts;

    if (lstat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return refuse_kind(path, facts.st_mode, err);
    return pons_fail(err, errno_status(problem, PONS_FAILURE), "cannot write '%s': %s", path,
                     strerror(problem));
}

pons_status file_open(const char *path, int flags, int *file, pons_error *err)
{
    int fd = open(path, flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    struct stat facts;

    if (fd < 0)
        return refuse_open(path, errno, err);
    facts.st_mode = 0;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        close(fd);
        return refuse_kind(path, facts.st_mode, err);
    }
    *file = fd;
    return PONS_OK;
}

pons_status file_open_stream(const char *path, const char *mode, FILE **file, pons_error *err)
{
    int flags = mode[0] == 'w' ? O_TRUNC : O_APPEND, fd;
    FILE *stream;

    if (file_open(path, flags | (mode[1] == '+' ? O_RDWR : O_WRONLY), &fd, err) != PONS_OK)
        return err != NULL ? err->status : PONS_FAILURE;
    stream = fdopen(fd, mode);
    if (stream == NULL) {
        close(fd);
        return pons_fail(err, PONS_DEVICE, "out of memory writing '%s'", path);
    }
    *file = stream;
    return PONS_OK;
}

/* ---- safe files ------------------------------------------------------------------------------ */

static pons_status sync_folder_of(const char *path, pons_error *err)
{
    char *folder = strdup(path), *slash;
    int fd, problem = 0;

    if (folder == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    slash = strrchr(folder, '/');
    if (slash == NULL)
        strcpy(folder, ".");
    else
        slash[slash == folder] = '\0';
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some network file systems cannot sync a folder (EINVAL). The rename is done all the same. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        problem = errno;
    if (fd >= 0)
        close(fd);
    free(folder);
    if (problem != 0)
        return pons_fail(err, PONS_FAILURE, "cannot sync the folder of '%s': %s", path,
                         strerror(problem));
    return PONS_OK;
}

/* The process id in the name 'NAME.part-PID-N'; 0 for any other name. 'name' NULL: any NAME. */
static pid_t process_of(const char *entry, const char *name)
{
    const char *mark = name != NULL ? entry + strlen(name) : strstr(entry, ".part-");
    long pid;
    int attempt, used = 0;

    if (mark == NULL || (name != NULL && strncmp(entry, name, strlen(name)) != 0)
        || sscanf(mark, ".part-%9ld-%3d%n", &pid, &attempt, &used) != 2
        || mark[used] != '\0' || pid <= 0)
        return 0;
    return (pid_t)pid;
}

/* Whether an entry has not been written for an hour. */
static bool is_old(int folder, const char *entry)
{
    struct stat facts;

    return fstatat(folder, entry, &facts, AT_SYMLINK_NOFOLLOW) == 0
        && facts.st_mtime < time(NULL) - 3600;
}

/* Remove the temporary files of 'name' whose processes have ended; NULL: the old ones of all. */
static void sweep_temporaries(const char *folder, const char *name)
{
    DIR *list = opendir(folder);
    struct dirent *entry;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        pid_t owner = process_of(entry->d_name, name);
        if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH
            && (name != NULL || is_old(dirfd(list), entry->d_name)))
            unlinkat(dirfd(list), entry->d_name, 0);
    }
    if (list != NULL)
        closedir(list);
}

void safe_file_sweep(const char *folder)
{
    sweep_temporaries(folder, NULL);
}

void safe_file_sweep_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char *folder = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash + 1 - path));

    if (folder != NULL)
        sweep_temporaries(folder, name);
    free(folder);
}

/* Output of a safe file: its descriptor, and the errno of the first failed write. */
typedef struct safe_output {
    int file, problem;
} safe_output;

/* A write function of fopencookie: 0 or less than 'size' is a failure. */
static ssize_t output_write(void *cookie, const char *data, size_t size)
{
    safe_output *o = cookie;
    size_t done = 0;

    while (done < size && o->problem == 0) {
        ssize_t part = write(o->file, data + done, size - done);
        if (part >= 0)
            done += (size_t)part;
        else if (errno != EINTR)
            o->problem = errno;
    }
    return (ssize_t)done;
}

static int output_seek(void *cookie, off64_t *offset, int whence)
{
    off64_t at = lseek(((safe_output *)cookie)->file, *offset, whence);

    if (at < 0)
        return -1;
    *offset = at;
    return 0;
}

static int output_close(void *cookie)
{
    return close(((safe_output *)cookie)->file);
}

/* A stream that owns 'fd'; NULL if out of memory. */
static FILE *output_open(safe_file *f, int fd)
{
    const cookie_io_functions_t functions = { .write = output_write, .seek = output_seek,
                                              .close = output_close };

    f->output = malloc(sizeof *f->output);
    if (f->output == NULL)
        return NULL;
    *f->output = (safe_output){ fd, 0 };
    return fopencookie(f->output, "wb", functions);
}

/* Create a file with a unique name beside 'path'; -1, with errno, on failure. */
static int make_temporary(safe_file *f, size_t room)
{
    int fd = -1;

    for (int attempt = 0; fd < 0 && attempt < 100; attempt++) {
        snprintf(f->temporary, room, "%s.part-%ld-%d", f->path, (long)getpid(), attempt);
        fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* Refuse a folder, FIFO or device at 'path'. A regular file or a dangling link may be replaced. */
static pons_status check_replaced(const char *path, pons_error *err)
{
    struct stat facts;

    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return refuse_kind(path, facts.st_mode, err);
    return PONS_OK;
}

pons_status safe_file_open(safe_file *f, const char *path, pons_error *err)
{
    safe_file_sweep_path(path);
    return safe_file_open_swept(f, path, err);
}

pons_status safe_file_open_swept(safe_file *f, const char *path, pons_error *err)
{
    size_t room = strlen(path) + 64;
    int fd;

    memset(f, 0, sizeof *f);
    if (check_replaced(path, err) != PONS_OK)
        return err != NULL ? err->status : PONS_FAILURE;
    f->path = strdup(path);
    f->temporary = malloc(room);
    if (f->path == NULL || f->temporary == NULL)
        goto no_memory;
    fd = make_temporary(f, room);
    if (fd < 0) {
        pons_status status = pons_fail(err, errno_status(errno, PONS_FAILURE),
                                       "cannot create '%s': %s", path, strerror(errno));
        free(f->temporary);
        f->temporary = NULL;
        safe_file_discard(f);
        return status;
    }
    f->file = output_open(f, fd);
    if (f->file != NULL)
        return PONS_OK;
    close(fd);
    unlink(f->temporary);
no_memory:
    free(f->temporary);
    f->temporary = NULL;
    safe_file_discard(f);
    return pons_fail(err, PONS_DEVICE, "out of memory writing '%s'", path);
}

/* The errno of a failed stream: that of its write function, else the current one, else EIO. */
static int errno_of_stream(const safe_file *f)
{
    return f->output->problem != 0 ? f->output->problem : errno != 0 ? errno : EIO;
}

pons_status safe_file_write(safe_file *f, const void *data, size_t size, pons_error *err)
{
    errno = 0;
    if (size > 0 && fwrite(data, 1, size, f->file) != size)
        return pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", f->path,
                         strerror(errno_of_stream(f)));
    return PONS_OK;
}

static pons_status finish_temporary(safe_file *f, pons_error *err)
{
    int problem = 0;

    errno = 0;
    if (fflush(f->file) != 0 || ferror(f->file)
        || (!f->unsynced && fsync(f->output->file) != 0))
        problem = errno_of_stream(f);
    if (fclose(f->file) != 0 && problem == 0)
        problem = errno_of_stream(f);
    f->file = NULL;
    if (problem == 0 && rename(f->temporary, f->path) != 0)
        problem = errno;
    if (problem != 0)
        return pons_fail(err, PONS_FAILURE, "cannot write '%s': %s", f->path, strerror(problem));
    free(f->temporary);
    f->temporary = NULL;
    return PONS_OK;
}

pons_status safe_file_commit(safe_file *f, pons_error *err)
{
    pons_status status = finish_temporary(f, err);

    if (status == PONS_OK && !f->unsynced)
        status = sync_folder_of(f->path, err);
    safe_file_discard(f);
    return status;
}

void safe_file_discard(safe_file *f)
{
    if (f->file != NULL)
        fclose(f->file);
    if (f->temporary != NULL)
        unlink(f->temporary);
    free(f->output);
    free(f->temporary);
    free(f->path);
    memset(f, 0, sizeof *f);
}

pons_status folder_sync_files(const char *folder, pons_error *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int problem = fd < 0 || syncfs(fd) != 0 ? errno : 0;

    if (fd >= 0)
        close(fd);
    if (problem != 0)
        return pons_fail(err, PONS_FAILURE, "cannot sync the files of '%s': %s", folder,
                         strerror(problem));
    return PONS_OK;
}
