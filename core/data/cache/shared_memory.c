/*
 * shared_memory.c - memory files (memfd) that processes of a machine open by /proc/PID/fd.
 *
 * A file under /dev/shm would be bound by its size, 64 MiB in most containers, and would outlive
 * a process that is killed. Descriptors over a socket would need a server; /proc needs one number.
 * It is closed to another user and, in containers of their own, to other processes: then everybody
 * fills a cache of his own, as if he were alone on his machine.
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

/* Those with the same share a cache. */
typedef struct share_mark {
    char kernel[KERNEL_NAME_SIZE];
    fingerprint given;
} share_mark;

/* Where a process keeps its memory; told to all. */
typedef struct greeting {
    share_mark mark;
    char token[16];
    int64_t process;           /* its number as /proc has it                                      */
    int64_t file;              /* -1: it has no such memory                                       */
} greeting;

static int64_t page_end(size_t size)
{
    return round_up_i64((int64_t)size, PAGE);
}

static void board_init(cache_board *b, int count, const char token[16])
{
    memcpy(b->token, token, sizeof b->token);
    b->failed = count;
}

/* ---- this process's memory ------------------------------------------------------------------- */

static int64_t own_number(void)
{
    char text[32] = "";
    ssize_t size = readlink("/proc/self", text, sizeof text - 1);

    return size > 0 ? strtoll(text, NULL, 10) : -1;
}

/* A board at its beginning, so that the first of a machine has one for all. */
static int make_file(size_t board_size, int count, const char token[16])
{
    int fd = memfd_create("pons cache", MFD_CLOEXEC);
    cache_board *b = NULL;

    if (fd >= 0 && posix_fallocate(fd, 0, (off_t)board_size) == 0)
        b = mmap(NULL, board_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (b == NULL || b == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    board_init(b, count, token);
    munmap(b, board_size);
    return fd;
}

static void greet(greeting *g, fingerprint mark, size_t board_size, int count)
{
    *g = (greeting){ .mark.given = mark, .process = own_number() };
    kernel_name(g->mark.kernel);
    if (getrandom(g->token, sizeof g->token, 0) != sizeof g->token || g->process < 0)
        g->file = -1;
    else
        g->file = make_file(board_size, count, g->token);
}

/* ---- the others' ----------------------------------------------------------------------------- */

static int open_other(const greeting *g)
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

static bool is_together(const greeting *a, const greeting *b)
{
    return memcmp(&a->mark, &b->mark, sizeof a->mark) == 0;
}

/* Whether this process can use the memory of all processes of its machine. */
static bool open_others(cache_share *s, const greeting *all, const cache_peers *p)
{
    const greeting *mine = &all[p->rank];
    int at = 0;

    for (int r = 0; r < p->count; r++) {
        if (!is_together(&all[r], mine))
            continue;
        s->file[at] = r == p->rank ? (int)mine->file : open_other(&all[r]);
        if (s->file[at++] < 0)
            return false;
    }
    s->board = mmap(NULL, s->board_size, PROT_READ | PROT_WRITE, MAP_SHARED, s->file[0], 0);
    if (s->board == MAP_FAILED)
        s->board = NULL;
    return s->board != NULL;
}

static void find_node(cache_share *s, const greeting *all, const cache_peers *p)
{
    s->count = s->self = 0;
    for (int r = 0; r < p->count; r++) {
        if (!is_together(&all[r], &all[p->rank]))
            continue;
        s->self += r < p->rank;
        s->count++;
    }
}

/* All of a machine, or none: a rank that cannot is known to the others. */
static pons_status join(cache_share *s, const greeting *all, const cache_peers *p, bool *joined,
                        pons_error *err)
{
    char *able = malloc((size_t)p->count), mine;

    s->file = malloc((size_t)s->count * sizeof *s->file);
    if (able == NULL || s->file == NULL) {
        free(able);
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", p->count);
    }
    for (int i = 0; i < s->count; i++)
        s->file[i] = -1;
    mine = (char)open_others(s, all, p);
    if (p->all_gather(p->context, &mine, 1, able, err) == PONS_OK) {
        *joined = true;
        for (int r = 0; r < p->count; r++)
            if (is_together(&all[r], &all[p->rank]))
                *joined = *joined && able[r];
    }
    free(able);
    return err->status;
}

/* ---- open ------------------------------------------------------------------------------------ */

static pons_status stay_alone(cache_share *s, int count, size_t board_size, pons_error *err)
{
    static const char token[16] = "";

    *s = (cache_share){ .count = 1, .board = calloc(1, board_size) };
    if (s->board == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for a cache of %d cases", count);
    board_init(s->board, count, token);
    return PONS_OK;
}

static pons_status meet(cache_share *s, int count, fingerprint mark, const cache_peers *p,
                        bool *joined, pons_error *err)
{
    greeting mine, *all = malloc((size_t)p->count * sizeof *all);

    *joined = false;
    if (all == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", p->count);
    greet(&mine, mark, s->board_size, count);
    s->used = page_end(s->board_size);
    if (p->all_gather(p->context, &mine, sizeof mine, all, err) == PONS_OK) {
        find_node(s, all, p);
        join(s, all, p, joined, err);
    }
    if (mine.file >= 0 && (s->file == NULL || s->file[s->self] != (int)mine.file))
        close((int)mine.file);
    free(all);
    return err->status;
}

pons_status cache_share_open(cache_share *s, int count, fingerprint mark,
                             const cache_peers *peers, logger *l, pons_error *err)
{
    size_t board_size = sizeof *s->board + (size_t)count * sizeof *s->board->entry;
    bool joined;

    *s = (cache_share){ .count = 1, .board_size = board_size };
    if (peers == NULL || peers->count < 2)
        return stay_alone(s, count, board_size, err);
    if (meet(s, count, mark, peers, &joined, err) != PONS_OK) {
        cache_share_close(s);
        return err->status;
    }
    if (joined && s->count > 1)
        return PONS_OK;
    if (!joined && s->self == 0 && l != NULL)
        log_warning(l, "the %d ranks of this machine cannot map each other's memory: each keeps a "
                    "cache of its own", s->count);
    cache_share_close(s);
    return stay_alone(s, count, board_size, err);
}

void cache_share_close(cache_share *s)
{
    if (s->board_size > 0 && s->board != NULL)
        munmap(s->board, s->board_size);
    else if (s->board_size == 0)
        free(s->board);
    for (int i = 0; s->file != NULL && i < s->count; i++)
        if (s->file[i] >= 0)
            close(s->file[i]);
    free(s->file);
    *s = (cache_share){ .count = 0 };
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* A write that was cut short leaves nothing behind. */
static pons_status give_up(const cache_share *s, int64_t offset, size_t size, pons_error *err)
{
    int why = errno;

    fallocate(s->file[s->self], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
              (off_t)size);
    return pons_fail(err, PONS_FAILURE, "no memory to share: %s", strerror(why));
}

pons_status cache_share_put(cache_share *s, const void *bytes, size_t size, cache_piece *out,
                            pons_error *err)
{
    int64_t offset = atomic_fetch_add(&s->used, page_end(size));
    size_t done = 0;

    while (done < size) {
        ssize_t part = pwrite(s->file[s->self], (const char *)bytes + done, size - done,
                              (off_t)offset + (off_t)done);
        if (part < 0 && errno != EINTR)
            return give_up(s, offset, size, err);
        done += part > 0 ? (size_t)part : 0;
    }
    *out = (cache_piece){ offset, (int64_t)size };
    return PONS_OK;
}

pons_status cache_share_map(const cache_share *s, const cache_entry *e, packed_case *out,
                            pons_error *err)
{
    return case_file_map_part(s->file[e->process], e->packed.offset, (size_t)e->packed.size, out,
                              err);
}

char *cache_share_said(const cache_share *s, const cache_entry *e)
{
    char *text = e->said.size > 0 ? calloc(1, (size_t)e->said.size + 1) : NULL;

    if (text != NULL
        && pread(s->file[e->process], text, (size_t)e->said.size, (off_t)e->said.offset) < 0)
        text[0] = '\0';
    return text;
}
