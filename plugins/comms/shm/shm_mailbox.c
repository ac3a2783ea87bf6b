/*
 * shm_mailbox.c - mailboxes, how ranks find each other's, and waits that a lost rank ends.
 *
 * Process ids mean something in one namespace only, and reading may be forbidden. So each mailbox
 * has a random number, and opening fails unless each rank can read the number of every other one.
 */
#include "comms/shm/shm_mailbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOK_NS 100000000 /* of a wait before it asks whether the other rank lives */
#define HINT "\nhint: --set distribute.backend=gloo sends through connections"

typedef struct mailbox {
    uint64_t number;
    _Atomic uint32_t events;       /* futex of the owner: something has changed at some rank      */
    _Atomic uint32_t stopped;
    _Atomic uint64_t posted;       /* rounds that the owner has begun                             */
    _Atomic uint64_t finished;     /* rounds of which the owner reads nothing more                */
    _Atomic uint64_t buffer;       /* address in the owner's memory, of the last round            */
} mailbox;

/* A rank as it introduces itself in the store. */
typedef struct introduction {
    uint64_t number, at;           /* of the mailbox, in the owner's memory                       */
    int64_t process, file;
} introduction;

typedef struct peer {
    introduction there;
    mailbox *box;                  /* mapped here                                                 */
} peer;

struct shm_ranks {
    int rank, size;
    uint64_t round;
    mailbox *mine;
    peer *peer;                    /* by rank; the own one has this process's mailbox             */
};

/* ---- mailboxes ------------------------------------------------------------------------------- */

static mailbox *map_mailbox(int file)
{
    void *at = mmap(NULL, sizeof(mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* False: errno says why. */
static bool read_memory(int64_t process, uint64_t from, size_t size, void *to)
{
    for (size_t done = 0; done < size;) {
        struct iovec here = { (char *)to + done, size - done };
        struct iovec there = { (void *)(uintptr_t)(from + done), size - done };
        ssize_t n = process_vm_readv((pid_t)process, &here, 1, &there, 1, 0);

        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool is_there(const introduction *i)
{
    uint64_t number;

    errno = 0;
    return read_memory(i->process, i->at, sizeof number, &number) && number == i->number;
}

/* The setting of Yama; from 2 on a process reads another one with a capability or not at all. */
static int yama_scope(void)
{
    FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    int scope = 0;

    if (f == NULL)
        return 0;
    if (fscanf(f, "%d", &scope) != 1)
        scope = 0;
    fclose(f);
    return scope;
}

pons_status shm_available(pons_error *err)
{
    int from = 1, to = 0, scope = yama_scope();

    if (!read_memory(getpid(), (uintptr_t)&from, sizeof from, &to))
        return pons_fail(err, PONS_COMMUNICATION, "processes cannot read each other's memory: %s",
                         strerror(errno));
    if (scope > 2 || (scope == 2 && geteuid() != 0))
        return pons_fail(err, PONS_COMMUNICATION, "processes cannot read each other's memory: "
                         "kernel.yama.ptrace_scope is %d", scope);
    return PONS_OK;
}

static void wake(mailbox *box)
{
    atomic_fetch_add(&box->events, 1);
    syscall(SYS_futex, &box->events, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static void wake_all(shm_ranks *s)
{
    for (int r = 0; r < s->size; r++)
        if (s->peer[r].box != NULL)
            wake(s->peer[r].box);
}

void shm_stop(shm_ranks *s)
{
    s->mine->stopped = 1;
    wake_all(s);
}

/* ---- waits ----------------------------------------------------------------------------------- */

typedef bool condition(const mailbox *box, uint64_t round);

static bool has_posted(const mailbox *box, uint64_t round)
{
    return box->posted >= round;
}

static bool has_finished(const mailbox *box, uint64_t round)
{
    return box->finished >= round;
}

static pons_status check_rank(const shm_ranks *s, int rank, bool silent, pons_error *err)
{
    const peer *p = &s->peer[rank];

    if (s->mine->stopped != 0)
        return pons_fail(err, PONS_COMMUNICATION, "the communicator was stopped");
    if (p->box->stopped != 0)
        return pons_fail(err, PONS_COMMUNICATION, "rank %d has stopped", rank);
    if (silent && !is_there(&p->there))
        return pons_fail(err, PONS_COMMUNICATION, "rank %d has gone", rank);
    return PONS_OK;
}

/* The events are read before the condition, so that no change of it is slept through. */
static pons_status wait_until(shm_ranks *s, int rank, condition *done, double end, pons_error *err)
{
    static const struct timespec look = { 0, LOOK_NS };
    bool silent = false;

    for (;;) {
        uint32_t seen = s->mine->events;

        if (done(s->peer[rank].box, s->round))
            return PONS_OK;
        if (check_rank(s, rank, silent, err) != PONS_OK)
            return err->status;
        if (end > 0 && seconds_now() > end)
            return pons_fail(err, PONS_COMMUNICATION, "no answer from rank %d", rank);
        silent = syscall(SYS_futex, &s->mine->events, FUTEX_WAIT, seen, &look, NULL, 0) != 0
                 && errno == ETIMEDOUT;
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

int shm_rank(const shm_ranks *s)
{
    return s->rank;
}

int shm_size(const shm_ranks *s)
{
    return s->size;
}

void shm_post(shm_ranks *s, const void *buffer)
{
    s->round++;
    s->mine->buffer = (uintptr_t)buffer;
    s->mine->posted = s->round;
    wake_all(s);
}

pons_status shm_wait_posted(shm_ranks *s, int rank, pons_error *err)
{
    return wait_until(s, rank, has_posted, 0, err);
}

pons_status shm_read(shm_ranks *s, int rank, size_t offset, size_t size, void *to, pons_error *err)
{
    const peer *p = &s->peer[rank];

    if (read_memory(p->there.process, p->box->buffer + offset, size, to))
        return PONS_OK;
    return pons_fail(err, PONS_COMMUNICATION, "cannot read from rank %d: %s", rank,
                     strerror(errno));
}

void shm_finish(shm_ranks *s)
{
    s->mine->finished = s->round;
    wake_all(s);
}

pons_status shm_wait_finished(shm_ranks *s, pons_error *err)
{
    for (int r = 0; r < s->size; r++)
        if (wait_until(s, r, has_finished, 0, err) != PONS_OK)
            return err->status;
    return PONS_OK;
}

/* ---- open ------------------------------------------------------------------------------------ */

/* A lack of files or memory, with errno as the reason. */
static pons_status refuse_shortage(pons_error *err)
{
    return pons_fail(err, PONS_DEVICE, "cannot share memory: %s%s", strerror(errno),
                     errno == EMFILE ? "\nhint: ulimit -n allows more open files" : "");
}

static pons_status make_mailbox(shm_ranks *s, int *file, pons_error *err)
{
    introduction *i = &s->peer[s->rank].there;

    *file = memfd_create("pons shm", MFD_CLOEXEC);
    if (*file >= 0 && ftruncate(*file, sizeof(mailbox)) == 0)
        s->mine = map_mailbox(*file);
    if (s->mine == NULL)
        return refuse_shortage(err);
    *i = (introduction){ .at = (uintptr_t)s->mine, .process = getpid(), .file = *file };
    if (getrandom(&i->number, sizeof i->number, 0) != sizeof i->number)
        return pons_fail(err, PONS_FAILURE, "cannot get a random number: %s", strerror(errno));
    s->mine->number = i->number;
    s->peer[s->rank].box = s->mine;
    return PONS_OK;
}

/* Yama keeps processes apart; the children of the same launcher may read this one. */
static void allow_siblings(void)
{
    if (getppid() > 1)
        prctl(PR_SET_PTRACER, (unsigned long)getppid(), 0, 0, 0);
}

static pons_status introduce(const shm_ranks *s, const pons_comm_store *store, pons_error *err)
{
    char key[32];

    snprintf(key, sizeof key, "shm.%d", s->rank);
    return store->set(store->context, key, &s->peer[s->rank].there, sizeof(introduction), err);
}

static pons_status map_peer(shm_ranks *s, int rank, const pons_comm_store *store, pons_error *err)
{
    peer *p = &s->peer[rank];
    char key[32], path[64];
    size_t size = 0;
    int file;

    snprintf(key, sizeof key, "shm.%d", rank);
    if (store->get(store->context, key, &p->there, sizeof p->there, &size, err) != PONS_OK)
        return err->status;
    if (size != sizeof p->there)
        return pons_fail(err, PONS_COMMUNICATION, "rank %d has published no mailbox", rank);
    if (!is_there(&p->there))
        return pons_fail(err, PONS_COMMUNICATION, "cannot read the memory of rank %d: %s" HINT,
                         rank, errno != 0 ? strerror(errno) : "it is not there");
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)p->there.process,
             (long long)p->there.file);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0) {
        p->box = map_mailbox(file);
        close(file);
    }
    if (p->box != NULL && p->box->number == p->there.number)
        return PONS_OK;
    if (p->box == NULL && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
        return refuse_shortage(err);
    return pons_fail(err, PONS_COMMUNICATION, "cannot share memory with rank %d: %s" HINT, rank,
                     p->box == NULL ? strerror(errno) : "another file is there");
}

/* The first round ends when every rank has mapped the mailboxes of all. */
static pons_status meet_ranks(shm_ranks *s, double end, pons_error *err)
{
    shm_post(s, NULL);
    for (int r = 0; r < s->size; r++)
        if (wait_until(s, r, has_posted, end, err) != PONS_OK)
            return err->status;
    shm_finish(s);
    return PONS_OK;
}

static pons_status join_ranks(shm_ranks *s, const pons_comm_rank_info *place,
                              const pons_comm_store *store, pons_error *err)
{
    double end = seconds_now() + place->timeout_s;
    int file = -1;

    if (make_mailbox(s, &file, err) == PONS_OK && introduce(s, store, err) == PONS_OK) {
        for (int r = 0; r < s->size && err->status == PONS_OK; r++)
            if (r != s->rank)
                map_peer(s, r, store, err);
        if (err->status == PONS_OK)
            meet_ranks(s, end, err);
        if (err->status != PONS_OK)
            shm_stop(s);
    }
    if (file >= 0)
        close(file);
    return err->status;
}

pons_status shm_open_ranks(const pons_comm_rank_info *place, const pons_comm_store *store,
                           shm_ranks **out, pons_error *err)
{
    shm_ranks *s = calloc(1, sizeof *s);

    if (s == NULL || (s->peer = calloc((size_t)place->size, sizeof *s->peer)) == NULL) {
        free(s);
        return pons_fail(err, PONS_DEVICE, "out of memory for %d processes", place->size);
    }
    s->rank = place->rank;
    s->size = place->size;
    allow_siblings();
    if (join_ranks(s, place, store, err) != PONS_OK)
        shm_close_ranks(s);
    else
        *out = s;
    return err->status;
}

void shm_close_ranks(shm_ranks *s)
{
    for (int r = 0; r < s->size; r++)
        if (s->peer[r].box != NULL)
            munmap(s->peer[r].box, sizeof(mailbox));
    free(s->peer);
    free(s);
}
