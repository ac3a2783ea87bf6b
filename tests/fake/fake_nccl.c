/*
 * fake_nccl.c - a libnccl between processes of one machine, with faults that a test chooses.
 *
 * A communicator has a thread, as the real one has where calls must not block. The thread joins the
 * group and puts the first collectives on their stream late, which detects callers that do not wait
 * for the end of 'in progress'. A collective runs on its stream in rounds: each process puts a
 * piece into the shared file, waits for the others' pieces and reads them. Processes with different
 * collectives hang, as they do on GPUs.
 */
#include "fake.h"

#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)

enum { RANKS = 16, PIECE = 1 << 18, LATE = 4, LATE_MS = 5, GROUP = 64 };

typedef enum kind { SUM = 1, BROADCAST, GATHER } kind;

typedef struct descriptor {
    int32_t kind, type, root;
    uint64_t count;
} descriptor;

/* The state of a process that the others see. */
typedef struct seat {
    atomic_int joined;
    _Atomic uint64_t written, read;  /* rounds                                                    */
    descriptor what;
} seat;

typedef struct common {
    seat seat[RANKS];
    char piece[][PIECE];
} common;

typedef struct work {
    struct work *next;
    struct ncclComm *comm;
    descriptor what;
    const char *from;
    char *to;
    CUstream stream;
    const void *known[2];    /* 'from' and 'to' of the caller                                     */
    size_t size[2];
} work;

struct ncclComm {
    struct ncclComm *older;
    bool dead;                /* aborted or destroyed: calls are errors                           */
    int rank, size, file;
    common *all;
    uint64_t round;
    int64_t collectives, batches;
    char path[NCCL_UNIQUE_ID_BYTES];
    atomic_int state;         /* ncclResult_t                                                     */
    atomic_bool aborted;
    atomic_int flying;        /* collectives on the stream                                        */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    work *late;               /* collectives for the thread                                       */
    bool finalizing, closing;
    int error_at, lost_at;
    bool never, refused, full, mute, stuck;
};

/* ---- fault words and error texts ------------------------------------------------------------- */

static pthread_mutex_t words_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_words[256];
static struct ncclComm *comms;
static _Thread_local work *group[GROUP];
static _Thread_local int group_count, group_depth;

static const char *find_word(const char *word)
{
    const char *script = getenv("FAKE_NCCL"), *at = script;
    size_t size = strlen(word);

    for (; at != NULL && (at = strstr(at, word)) != NULL; at += size)
        if ((at == script || at[-1] == ' ') && strchr(" =", at[size]) != NULL)
            return at + size;
    return NULL;
}

static int number_of(const char *word)
{
    const char *at = find_word(word);

    return at != NULL && *at == '=' ? atoi(at + 1) : 0;
}

static ncclResult_t say(ncclResult_t code, const char *format, ...)
{
    va_list list;

    pthread_mutex_lock(&words_lock);
    va_start(list, format);
    if (last_words[0] == '\0')
        vsnprintf(last_words, sizeof last_words, format, list);
    va_end(list);
    pthread_mutex_unlock(&words_lock);
    return code;
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return last_words;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    static const char *const texts[ncclNumResults] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        [ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        [ncclInternalError] = "internal error - please report this issue to the NCCL developers",
        [ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
        [ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
        [ncclRemoteError] = "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress"
    };

    return texts[code];
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = number_of("version") > 0 ? number_of("version") : NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* ---- waits for other processes --------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A process holds a lock on its byte of the file as long as it lives. */
static bool is_alive(const struct ncclComm *c, int rank)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1 };

    return rank == c->rank || fcntl(c->file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static void fail(struct ncclComm *c, ncclResult_t code)
{
    int running = ncclSuccess, joining = ncclInProgress;

    if (!atomic_compare_exchange_strong(&c->state, &running, code))
        atomic_compare_exchange_strong(&c->state, &joining, code);
}

/* Block until an abort. */
static void hang(struct ncclComm *c)
{
    while (!atomic_load(&c->aborted))
        usleep(1000);
}

static bool wait_for(struct ncclComm *c, int rank, const _Atomic uint64_t *at, uint64_t round)
{
    double next = now() + 0.005;

    for (int k = 0; atomic_load(at) < round; k++) {
        if (atomic_load(&c->aborted))
            return false;
        if (k < 50)
            sched_yield();
        else
            usleep(50);
        if (c->mute || now() < next)
            continue;
        next = now() + 0.005;
        if (!is_alive(c, rank) && atomic_load(at) < round) {
            fail(c, say(ncclRemoteError, "socketProgress: Connection closed by remote peer "
                        "rank %d", rank));
            hang(c);
            return false;
        }
    }
    return true;
}

static bool wait_for_all(struct ncclComm *c, bool written, uint64_t round)
{
    for (int r = 0; r < c->size; r++) {
        seat *s = &c->all->seat[r];
        if (!wait_for(c, r, written ? &s->written : &s->read, round))
            return false;
    }
    return true;
}

/* Begin a round. True: the pieces of all processes are readable until 'end_round'. */
static bool begin_round(struct ncclComm *c, const descriptor *what, const void *mine, size_t size)
{
    seat *own = &c->all->seat[c->rank];

    if (!wait_for_all(c, false, c->round))
        return false;
    if (what != NULL)
        own->what = *what;
    else if (size > 0)
        memcpy(c->all->piece[c->rank], mine, size);
    atomic_store(&own->written, ++c->round);
    return wait_for_all(c, true, c->round);
}

static void end_round(struct ncclComm *c)
{
    atomic_store(&c->all->seat[c->rank].read, c->round);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static size_t size_of(int32_t type)
{
    return type == ncclDouble ? sizeof(double) : type == ncclFloat ? sizeof(float) : 1;
}

static void add_up(const struct ncclComm *c, int32_t type, void *to, size_t size)
{
    memcpy(to, c->all->piece[0], size);
    for (int r = 1; r < c->size; r++)
        for (size_t i = 0; i < size / size_of(type); i++)
            if (type == ncclDouble)
                ((double *)to)[i] += ((const double *)(const void *)c->all->piece[r])[i];
            else
                ((float *)to)[i] += ((const float *)(const void *)c->all->piece[r])[i];
}

static void take_pieces(const struct ncclComm *c, const work *w, size_t at, size_t size)
{
    size_t whole = (size_t)w->what.count * size_of(w->what.type);

    if (w->what.kind == SUM)
        add_up(c, w->what.type, w->to + at, size);
    else if (w->what.kind == BROADCAST)
        memcpy(w->to + at, c->all->piece[w->what.root], size);
    else
        for (int r = 0; r < c->size; r++)
            memcpy(w->to + (size_t)r * whole + at, c->all->piece[r], size);
}

static bool is_same_everywhere(const struct ncclComm *c, const descriptor *what)
{
    for (int r = 0; r < c->size; r++)
        if (memcmp(&c->all->seat[r].what, what, sizeof *what) != 0)
            return false;
    return true;
}

static void exchange(struct ncclComm *c, const work *w)
{
    size_t size = (size_t)w->what.count * size_of(w->what.type);
    bool same;

    if (!begin_round(c, &w->what, NULL, 0))
        return;
    same = is_same_everywhere(c, &w->what);
    end_round(c);
    if (!same)
        hang(c);
    for (size_t at = 0; same && at < size; at += PIECE) {
        size_t part = size - at < PIECE ? size - at : PIECE;
        if (!begin_round(c, NULL, w->from + at, part))
            return;
        take_pieces(c, w, at, part);
        end_round(c);
    }
}

static void run_work(void *context)
{
    work *w = context;
    struct ncclComm *c = w->comm;

    c->collectives++;
    if (c->collectives == c->error_at) {
        fail(c, say(ncclSystemError, "ibv_poll_cq: completion with error 12, vendor err 129"));
        hang(c);
    } else if (c->collectives == c->lost_at) {
        fail(c, say(ncclRemoteError, "NET/IB: Got completion from peer rank %d with status 12",
                    (c->rank + 1) % c->size));
        hang(c);
    } else if (!atomic_load(&c->aborted)) {
        exchange(c, w);
    }
    atomic_fetch_sub(&c->flying, 1);
    free(w);
}

static void push_all(work *first)
{
    for (work *w = first, *next; w != NULL; w = next) {
        next = w->next;
        fake_stream_touch(w->stream, w->known[0], w->size[0], false);
        fake_stream_touch(w->stream, w->known[1], w->size[1], true);
        fake_stream_push(w->stream, run_work, w);
    }
}

/* ---- the thread of a communicator ------------------------------------------------------------ */

static bool open_file(struct ncclComm *c)
{
    size_t size = sizeof(common) + (size_t)c->size * PIECE;
    struct flock own = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = c->rank, .l_len = 1 };

    c->file = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* the file may be removed */
    if (c->file < 0 || ftruncate(c->file, (off_t)size) != 0
        || fcntl(c->file, F_OFD_SETLK, &own) != 0)
        return false;
    c->all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, c->file, 0);
    return c->all != MAP_FAILED;
}

static void join_group(struct ncclComm *c)
{
    if (c->never) {
        hang(c);
        return;
    }
    if (c->refused) {
        fail(c, say(ncclSystemError, "socketPollConnect: connect to 10.0.0.7<41217> returned "
                    "Connection refused"));
        return;
    }
    if (c->full) {
        fail(c, say(ncclUnhandledCudaError, "Cuda failure 2 'out of memory'"));
        return;
    }
    if (!open_file(c)) {
        fail(c, say(ncclSystemError, "cannot use '%s': %s", c->path, strerror(errno)));
        return;
    }
    atomic_store(&c->all->seat[c->rank].joined, 1);
    for (int r = 0; r < c->size && !atomic_load(&c->aborted); r++)
        while (atomic_load(&c->all->seat[r].joined) == 0 && !atomic_load(&c->aborted))
            usleep(500);
    if (c->rank == 0)
        unlink(c->path);
    if (!atomic_load(&c->aborted))
        atomic_store(&c->state, ncclSuccess);
}

/* Push the late collectives, or finalize behind the pushed ones; the lock is held. */
static void do_one(struct ncclComm *c)
{
    work *late = c->late;

    c->late = NULL;
    pthread_mutex_unlock(&c->lock);
    usleep(LATE_MS * 1000);
    while (late == NULL && atomic_load(&c->flying) > 0 && !atomic_load(&c->aborted))
        usleep(500);
    push_all(late);
    pthread_mutex_lock(&c->lock);
    if (late == NULL)
        c->finalizing = false;
    if (atomic_load(&c->state) == ncclInProgress)
        atomic_store(&c->state, ncclSuccess);
}

static void *run_thread(void *context)
{
    struct ncclComm *c = context;

    join_group(c);
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->late == NULL && !c->finalizing && !c->closing)
            pthread_cond_wait(&c->changed, &c->lock);
        if (c->late == NULL && !c->finalizing)
            break;
        do_one(c);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- opening and ending ---------------------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    const char *folder = getenv("FAKE_NCCL_DIR");
    int file;

    snprintf(id->internal, sizeof id->internal, "%s/fake-nccl-XXXXXX",
             folder != NULL ? folder : "/tmp");
    file = mkstemp(id->internal);
    if (file < 0)
        return say(ncclSystemError, "cannot make '%s': %s", id->internal, strerror(errno));
    close(file);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    struct ncclComm *c;
    bool fails;

    if (!fake_has_context() || config == NULL || config->magic != 0xcafebeef
        || config->blocking != 0)
        return say(ncclInvalidUsage, "no context, or a communicator that blocks");
    if (rank < 0 || rank >= size || size > RANKS)
        return say(ncclInvalidArgument, "rank %d of %d", rank, size);
    c = calloc(1, sizeof *c);
    c->rank = rank;
    c->size = size;
    c->file = -1;
    c->all = MAP_FAILED;
    memcpy(c->path, id.internal, sizeof c->path);
    atomic_store(&c->state, ncclInProgress);
    fails = find_word("only") == NULL || number_of("only") == rank;
    c->never = fails && find_word("init-never") != NULL;
    c->refused = fails && find_word("init-error") != NULL;
    c->full = fails && find_word("init-memory") != NULL;
    c->mute = find_word("mute") != NULL;
    c->stuck = fails && find_word("abort-hangs") != NULL;
    c->error_at = fails ? number_of("error") : 0;
    c->lost_at = fails ? number_of("lost") : 0;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    pthread_mutex_lock(&words_lock);
    c->older = comms;
    comms = c;
    pthread_mutex_unlock(&words_lock);
    pthread_create(&c->thread, NULL, run_thread, c);
    *out = c;
    return ncclInProgress;
}

/* End the process on a call with a dead communicator: the caller cannot recover from it. */
static void must_live(const struct ncclComm *c, const char *call)
{
    if (c != NULL && !c->dead)
        return;
    fprintf(stderr, "fake nccl: %s of a communicator that is no more\n", call);
    abort();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *out)
{
    must_live(c, "ncclCommGetAsyncError");
    *out = (ncclResult_t)atomic_load(&c->state);
    return ncclSuccess;
}

static void end(struct ncclComm *c)
{
    pthread_mutex_lock(&c->lock);
    c->closing = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    while (atomic_load(&c->flying) > 0)
        usleep(500);
    c->dead = true;
    unlink(c->path);
    if (c->all != MAP_FAILED)
        munmap(c->all, sizeof(common) + (size_t)c->size * PIECE);
    if (c->file >= 0)
        close(c->file);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    must_live(c, "ncclCommFinalize");
    if (atomic_load(&c->state) != ncclSuccess)
        return say(ncclInvalidUsage, "ncclCommFinalize while something is in progress");
    pthread_mutex_lock(&c->lock);
    atomic_store(&c->state, ncclInProgress);
    c->finalizing = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    must_live(c, "ncclCommDestroy");
    if (atomic_load(&c->state) != ncclSuccess)
        return say(ncclInvalidUsage, "ncclCommDestroy while something is in progress");
    end(c);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    must_live(c, "ncclCommAbort");
    unlink(c->path);
    while (c->stuck)
        usleep(100000);
    atomic_store(&c->aborted, true);
    end(c);
    return ncclSuccess;
}

/* ---- starting collectives -------------------------------------------------------------------- */

ncclResult_t ncclGroupStart(void); /* the header has no prototype */
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclGroupStart(void)
{
    group_depth++;
    return ncclSuccess;
}

/* Launch the collectives of one communicator. */
static ncclResult_t launch(work *first)
{
    struct ncclComm *c = first->comm;

    if (c->batches++ >= LATE) {
        push_all(first);
        return ncclSuccess;
    }
    pthread_mutex_lock(&c->lock);
    atomic_store(&c->state, ncclInProgress);
    c->late = first;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return ncclInProgress;
}

ncclResult_t ncclGroupEnd(void)
{
    int count = group_count;

    if (group_depth == 0)
        return say(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--group_depth > 0 || count == 0)
        return ncclSuccess;
    group_count = 0;
    for (int i = 0; i < count; i++)
        group[i]->next = i + 1 < count ? group[i + 1] : NULL;
    return launch(group[0]);
}

static ncclResult_t start(ncclComm_t c, kind kind, const void *from, void *to, size_t count,
                          ncclDataType_t type, int root, CUstream stream)
{
    size_t size = count * size_of(type), all = kind == GATHER ? size * (size_t)c->size : size;
    work *w;

    must_live(c, "a collective");
    if (atomic_load(&c->state) != ncclSuccess)
        return say(ncclInvalidUsage, "a collective while something is in progress");
    if (!fake_has_context() || group_count == GROUP)
        return say(ncclInvalidUsage, "no context, or too many collectives in a group");
    if (!fake_on_device(from, size) || !fake_on_device(to, all) || root >= c->size)
        return say(ncclInvalidArgument, "a buffer is no memory of the GPU");
    w = malloc(sizeof *w);
    *w = (work){ .comm = c, .what = { (int32_t)kind, (int32_t)type, root, count },
                 .from = fake_reach(from), .to = fake_reach(to), .stream = stream,
                 .known = { from, to }, .size = { size, all } };
    atomic_fetch_add(&c->flying, 1);
    ncclGroupStart();
    group[group_count++] = w;
    return ncclGroupEnd();
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t c, cudaStream_t stream)
{
    if (operation != ncclSum || (type != ncclFloat && type != ncclDouble))
        return say(ncclInvalidArgument, "no such sum");
    return start(c, SUM, from, to, count, type, 0, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t c, cudaStream_t stream)
{
    return start(c, BROADCAST, from, to, count, type, root, stream);
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t c, cudaStream_t stream)
{
    return start(c, GATHER, from, to, count, type, 0, stream);
}
