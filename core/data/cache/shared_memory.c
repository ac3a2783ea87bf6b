/*
 * shared_memory.c - memory files (memfd) that processes of a machine open through /proc/PID/fd.
 *
 * A file in /dev/shm is limited by the size of that file system, 64 MiB in most containers, and
 * outlives a killed process. Passing descriptors over a socket would need a server. /proc denies
 * access to another user's process and cannot name processes of another container. In these cases
 * each process fills its own cache.
 */
#include "data/cache/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/integer.h"
#include "base/system/boot_id.h"

enum { PAGE = 4096 };

/* Processes with equal marks share a cache. */
typedef struct share_id {
    char kernel[BOOT_ID_SIZE];
    hash128 given;
} share_id;

/* The announcement of a process: the location of its memory. */
typedef struct announcement {
    share_id id;
    char token[16];
    int64_t process;           /* its number in /proc                                             */
    int64_t file;              /* descriptor; -1: it has no such memory                           */
} announcement;

static int64_t page_end(size_t size)
{
    return round_up_i64((int64_t)size, PAGE);
}

static void init_counters(shared_counters *b, int count, const char token[16])
{
    memcpy(b->token, token, sizeof b->token);
    b->failed = count;
}

/* ---- memory of this process ------------------------------------------------------------------ */

static int64_t own_process(void)
{
    char text[32] = "";
    ssize_t size = readlink("/proc/self", text, sizeof text - 1);

    return size > 0 ? strtoll(text, NULL, 10) : -1;
}

/* Every process makes a board; the one of the machine's first rank is used by all. */
static int make_memory_file(size_t board_size, int count, const char token[16])
{
    int fd = memfd_create("pons cache", MFD_CLOEXEC);
    shared_counters *b = NULL;

    if (fd >= 0 && posix_fallocate(fd, 0, (off_t)board_size) == 0)
        b = mmap(NULL, board_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (b == NULL || b == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    init_counters(b, count, token);
    munmap(b, board_size);
    return fd;
}

static void make_announcement(announcement *g, hash128 id, size_t board_size, int count)
{
    *g = (announcement){ .id.given = id, .process = own_process() };
    boot_id(g->id.kernel);
    if (getrandom(g->token, sizeof g->token, 0) != sizeof g->token || g->process < 0)
        g->file = -1;
    else
        g->file = make_memory_file(board_size, count, g->token);
}

/* ---- memory of other processes --------------------------------------------------------------- */

static int open_memory_of(const announcement *g)
{
    char path[64], token[sizeof g->token];
    int fd;

    if (g->file < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)g->process, (long long)g->file);
    fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (pread(fd, token, sizeof token, 0) != sizeof token
                    || memcmp(token, g->token, sizeof token) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool shares_cache(const announcement *a, const announcement *b)
{
    return memcmp(&a->id, &b->id, sizeof a->id) == 0;
}

/* Open the memory of all processes of the machine; false: one of them cannot be opened. */
static bool open_memory_of_all(shared_memory *s, const announcement *all, const cache_peers *p)
{
    const announcement *mine = &all[p->rank];
    int at = 0;

    for (int r = 0; r < p->count; r++) {
        if (!shares_cache(&all[r], mine))
            continue;
        s->file[at] = r == p->rank ? (int)mine->file : open_memory_of(&all[r]);
        if (s->file[at++] < 0)
            return false;
    }
    s->shared = mmap(NULL, s->board_size, PROT_READ | PROT_WRITE, MAP_SHARED, s->file[0], 0);
    if (s->shared == MAP_FAILED)
        s->shared = NULL;
    else
        s->passed = (void *)((char *)s->shared + s->board_size
                             - (size_t)p->count * sizeof *s->passed);
    return s->shared != NULL;
}

static void count_node(shared_memory *s, const announcement *all, const cache_peers *p)
{
    s->count = s->self = 0;
    for (int r = 0; r < p->count; r++) {
        if (!shares_cache(&all[r], &all[p->rank]))
            continue;
        s->self += r < p->rank;
        s->count++;
    }
}

/* Share among all processes of a machine or none: each learns whether all others succeeded. */
static pons_status join_memory(shared_memory *s, const announcement *all, const cache_peers *p,
                               bool *joined, pons_error *err)
{
    char *able = malloc((size_t)p->count), mine;

    s->file = malloc((size_t)s->count * sizeof *s->file);
    if (able == NULL || s->file == NULL) {
        free(able);
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", p->count);
    }
    for (int i = 0; i < s->count; i++)
        s->file[i] = -1;
    mine = (char)open_memory_of_all(s, all, p);
    if (p->all_gather(p->context, &mine, 1, able, err) == PONS_OK) {
        *joined = true;
        for (int r = 0; r < p->count; r++)
            if (shares_cache(&all[r], &all[p->rank]))
                *joined = *joined && able[r];
    }
    free(able);
    return err->status;
}

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status open_private(shared_memory *s, int count, size_t board_size, pons_error *err)
{
    static const char token[16] = "";

    *s = (shared_memory){ .count = 1, .shared = calloc(1, board_size) };
    if (s->shared == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a cache of %d cases", count);
    init_counters(s->shared, count, token);
    return PONS_OK;
}

static pons_status exchange_announcements(shared_memory *s, int count, hash128 id,
                                          const cache_peers *p, bool *joined, pons_error *err)
{
    announcement mine, *all = malloc((size_t)p->count * sizeof *all);

    *joined = false;
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", p->count);
    make_announcement(&mine, id, s->board_size, count);
    s->used = page_end(s->board_size);
    if (p->all_gather(p->context, &mine, sizeof mine, all, err) == PONS_OK) {
        count_node(s, all, p);
        join_memory(s, all, p, joined, err);
    }
    if (mine.file >= 0 && (s->file == NULL || s->file[s->self] != (int)mine.file))
        close((int)mine.file);
    free(all);
    return err->status;
}

pons_status shared_memory_open(shared_memory *s, int count, hash128 id,
                               const cache_peers *peers, logger *l, pons_error *err)
{
    size_t board_size = sizeof *s->shared + (size_t)count * sizeof *s->shared->entry;
    bool joined;

    if (peers != NULL)
        board_size += (size_t)peers->count * sizeof *s->passed;
    *s = (shared_memory){ .count = 1, .board_size = board_size };
    if (peers == NULL || peers->count < 2)
        return open_private(s, count, board_size, err);
    if (exchange_announcements(s, count, id, peers, &joined, err) != PONS_OK) {
        shared_memory_close(s);
        return err->status;
    }
    if (joined && s->count > 1)
        return PONS_OK;
    if (!joined && s->self == 0 && l != NULL)
        log_warning(l, "the %d ranks of this machine cannot map each other's memory: each keeps a "
                    "cache of its own", s->count);
    shared_memory_close(s);
    return open_private(s, count, board_size, err);
}

void shared_memory_close(shared_memory *s)
{
    if (s->board_size > 0 && s->shared != NULL)
        munmap(s->shared, s->board_size);
    else if (s->board_size == 0)
        free(s->shared);
    for (int i = 0; s->file != NULL && i < s->count; i++)
        if (s->file[i] >= 0)
            close(s->file[i]);
    free(s->file);
    *s = (shared_memory){ .count = 0 };
}

/* ---- reading and writing --------------------------------------------------------------------- */

void shared_memory_free(const shared_memory *s, const shared_piece *piece)
{
    fallocate(s->file[s->self], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)piece->offset,
              (off_t)page_end((size_t)piece->size));
}

/* Free the memory of a failed write. */
static pons_status free_pages(const shared_memory *s, int64_t offset, size_t size, pons_error *err)
{
    int why = errno;

    shared_memory_free(s, &(shared_piece){ offset, (int64_t)size });
    return pons_fail(err, PONS_FAILURE, "no memory to share: %s", strerror(why));
}

pons_status shared_memory_put(shared_memory *s, const void *bytes, size_t size, shared_piece *out,
                              pons_error *err)
{
    int64_t offset = atomic_fetch_add(&s->used, page_end(size));
    size_t done = 0;

    while (done < size) {
        ssize_t part = pwrite(s->file[s->self], (const char *)bytes + done, size - done,
                              (off_t)offset + (off_t)done);
        if (part < 0 && errno != EINTR)
            return free_pages(s, offset, size, err);
        done += part > 0 ? (size_t)part : 0;
    }
    *out = (shared_piece){ offset, (int64_t)size };
    return PONS_OK;
}

pons_status shared_memory_map(const shared_memory *s, const shared_case *e, packed_case *out,
                              pons_error *err)
{
    return packed_case_file_map_shared(s->file[e->process], e->packed.offset,
                                       (size_t)e->packed.size, out, err);
}

bool shared_memory_get(const shared_memory *s, int process, const shared_piece *piece, void *out)
{
    return pread(s->file[process], out, (size_t)piece->size, (off_t)piece->offset)
           == (ssize_t)piece->size;
}

char *shared_memory_warnings(const shared_memory *s, const shared_case *e)
{
    char *text = e->warnings.size > 0 ? calloc(1, (size_t)e->warnings.size + 1) : NULL;

    if (text != NULL
        && pread(s->file[e->process], text, (size_t)e->warnings.size,
                 (off_t)e->warnings.offset) < 0)
        text[0] = '\0';
    return text;
}
