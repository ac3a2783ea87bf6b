/*
 * disk_shim.c - calls that stand in front of the C library's.
 *
 * Streams are built on descriptors here: the library's own streams do not call 'write' through a
 * symbol that a shim can replace.
 */
#include <config.h>

#include "support/process/disk_shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024 };

disk_fault disk_shim;
void (*disk_seen)(const disk_call *c);

static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;
static const char *gate_path; /* a file; NULL: none */
static bool watched[DESCRIPTORS], unsynced[DESCRIPTORS];
static FILE *stream_of[DESCRIPTORS];
static char path_of[DESCRIPTORS][512];

/* The C library's function of that name. */
#define REAL(NAME) ((__typeof__(&NAME))dlsym(RTLD_NEXT, #NAME))

__attribute__((constructor)) static void read_environment(void)
{
    const char *text = getenv("DISK_SHIM");

    if (text == NULL)
        return;
    disk_fault f = { .path = "" };
    if (sscanf(text, "%255s %15s %d %d %d %d", f.path, f.call, &f.number, &f.error, &f.shorten,
               &f.delay_ms) == 6)
        disk_shim = f;
    gate_path = getenv("DISK_GATE");
}

static bool is_ours(const char *path)
{
    return disk_shim.path[0] != '\0' && strstr(path, disk_shim.path) != NULL;
}

static bool is_watched(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS && watched[fd];
}

/* Report a call to 'disk_seen'; 'to' may be NULL. */
static void report_call(disk_kind kind, const char *path, const char *to)
{
    if (disk_seen != NULL)
        disk_seen(&(disk_call){ .kind = kind, .path = path, .to = to });
}

/* Count one call of a kind. True: the call fails, and errno is set. */
static bool meets_fault(const char *call)
{
    bool fires = false;

    if (strcmp(call, disk_shim.call) != 0)
        return false;
    pthread_mutex_lock(&fault_lock);
    disk_shim.count++;
    fires = disk_shim.number == 0 || disk_shim.count == disk_shim.number;
    disk_shim.fired += fires;
    pthread_mutex_unlock(&fault_lock);
    if (fires && disk_shim.delay_ms > 0)
        usleep(1000 * (unsigned)disk_shim.delay_ms);
    while (fires && gate_path != NULL && access(gate_path, F_OK) != 0)
        usleep(1000);
    if (fires && disk_shim.error != 0)
        errno = disk_shim.error;
    return fires && disk_shim.error != 0;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static int open_watched(const char *path, int flags, mode_t mode)
{
    bool ours = is_ours(path);

    if (ours && meets_fault((flags & O_ACCMODE) == O_RDONLY ? "read" : "open"))
        return -1;
    int fd = REAL(open)(path, flags, mode);
    if (fd >= 0 && fd < DESCRIPTORS) {
        watched[fd] = ours;
        unsynced[fd] = false;
        snprintf(path_of[fd], sizeof path_of[fd], "%s", path);
        if (ours && flags & O_CREAT)
            report_call(DISK_CREATE, path, NULL);
    }
    return fd;
}

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    return open_watched(path, flags, mode);
}

int mkdir(const char *path, mode_t mode)
{
    if (!is_ours(path))
        return REAL(mkdir)(path, mode);
    if (meets_fault("mkdir") || REAL(mkdir)(path, mode) != 0)
        return -1;
    report_call(DISK_FOLDER, path, NULL);
    return 0;
}

int rename(const char *from, const char *to)
{
    if (!is_ours(from))
        return REAL(rename)(from, to);
    if (meets_fault("rename") || REAL(rename)(from, to) != 0)
        return -1;
    report_call(DISK_RENAME, from, to);
    return 0;
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (!is_ours(from))
        return REAL(renameat2)(from_folder, from, to_folder, to, flags);
    if (meets_fault("rename") || REAL(renameat2)(from_folder, from, to_folder, to, flags) != 0)
        return -1;
    report_call(flags & RENAME_EXCHANGE ? DISK_EXCHANGE : DISK_RENAME, from, to);
    return 0;
}

int unlink(const char *path)
{
    int status = REAL(unlink)(path);

    if (status == 0 && is_ours(path))
        report_call(DISK_REMOVE, path, NULL);
    return status;
}

int rmdir(const char *path)
{
    int status = REAL(rmdir)(path);

    if (status == 0 && is_ours(path))
        report_call(DISK_REMOVE, path, NULL);
    return status;
}

int unlinkat(int folder, const char *name, int flags)
{
    char link[64], where[512], path[1024];
    int status = REAL(unlinkat)(folder, name, flags);

    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, where, sizeof where - 1);
    if (status != 0 || size < 0)
        return status;
    where[size] = '\0';
    snprintf(path, sizeof path, "%s/%s", where, name);
    if (is_ours(path))
        report_call(DISK_REMOVE, path, NULL);
    return status;
}

ssize_t write(int fd, const void *data, size_t size)
{
    if (is_watched(fd) && meets_fault("write"))
        return -1;
    if (is_watched(fd) && disk_shim.shorten && strcmp(disk_shim.call, "write") == 0
        && size > 1 && (disk_shim.number == 0 || disk_shim.count == disk_shim.number))
        size /= 2;
    long at = is_watched(fd) ? (long)lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t done = REAL(write)(fd, data, size);
    if (done > 0 && is_watched(fd) && disk_seen != NULL)
        disk_seen(&(disk_call){ .kind = DISK_WRITE, .path = path_of[fd], .data = data,
                                .size = (size_t)done, .at = at });
    return done;
}

int fsync(int fd)
{
    if (is_watched(fd) && unsynced[fd])
        disk_shim.after_failed_sync++;
    if (is_watched(fd) && meets_fault("fsync")) {
        unsynced[fd] = true;
        return -1;
    }
    int status = REAL(fsync)(fd);
    if (status == 0 && is_watched(fd))
        report_call(DISK_SYNC, path_of[fd], NULL);
    return status;
}

/* The descriptor is closed even when close reports an error, as in the Linux kernel. */
int close(int fd)
{
    bool fails = is_watched(fd) && meets_fault("close");
    int cause = errno;

    if (fd >= 0 && fd < DESCRIPTORS)
        watched[fd] = false;
    int status = REAL(close)(fd);
    if (fails)
        errno = cause;
    return fails ? -1 : status;
}

/* ---- streams --------------------------------------------------------------------------------- */

static int fd_of(void *cookie)
{
    return (int)((char *)cookie - (char *)NULL) - 1;
}

/* Write all bytes, in several writes if need be, as the C library does. */
static ssize_t stream_write(void *cookie, const char *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t part = write(fd_of(cookie), data + done, size - done);
        if (part < 0)
            break;
        done += (size_t)part;
    }
    return (ssize_t)done;
}

static ssize_t stream_read(void *cookie, char *data, size_t size)
{
    return read(fd_of(cookie), data, size);
}

static int stream_seek(void *cookie, off64_t *offset, int whence)
{
    off64_t at = lseek(fd_of(cookie), *offset, whence);

    *offset = at;
    return at < 0 ? -1 : 0;
}

static int stream_close(void *cookie)
{
    stream_of[fd_of(cookie)] = NULL;
    return close(fd_of(cookie));
}

static FILE *make_stream(int fd, const char *mode)
{
    static const cookie_io_functions_t functions = { stream_read, stream_write, stream_seek,
                                                     stream_close };
    char plain[4] = { mode[0], strchr(mode, '+') != NULL ? '+' : '\0', '\0' };
    FILE *file = fopencookie((char *)NULL + fd + 1, plain, functions);

    stream_of[fd] = file;
    return file;
}

FILE *fdopen(int fd, const char *mode)
{
    return is_watched(fd) ? make_stream(fd, mode) : REAL(fdopen)(fd, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    static const struct { char letter; int flags; } kinds[] = {
        { 'r', O_RDONLY },
        { 'w', O_WRONLY | O_CREAT | O_TRUNC },
        { 'a', O_WRONLY | O_CREAT | O_APPEND }
    };
    int flags = 0;

    if (!is_ours(path))
        return REAL(fopen)(path, mode);
    for (int i = 0; i < 3; i++)
        if (mode[0] == kinds[i].letter)
            flags = kinds[i].flags;
    if (strchr(mode, '+') != NULL)
        flags = (flags & ~O_ACCMODE) | O_RDWR;
    int fd = open_watched(path, flags | O_CLOEXEC, 0666);
    return fd < 0 ? NULL : fd < DESCRIPTORS ? make_stream(fd, mode) : REAL(fdopen)(fd, mode);
}

int fileno(FILE *file)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (watched[fd] && stream_of[fd] == file)
            return fd;
    return REAL(fileno)(file);
}
