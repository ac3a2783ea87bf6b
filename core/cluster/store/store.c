/*
 * store.c - a process's side of the store: one connection to rank 0, on which any thread may ask,
 * and a thread that hands the answers to those who wait for them.
 */
#include "cluster/store/store.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/thread.h"
#include "cluster/store/message.h"
#include "cluster/store/server.h"
#include "cluster/store/socket.h"

#define ANSWER_S 10.0   /* for an answer that rank 0 gives at once                                */
#define RETRY_S 0.1     /* between attempts to connect                                            */
#define WRONG_S 10.0    /* somebody else may answer at the port: an earlier run that is ending    */
#define CLOSE_S 5.0     /* rank 0 waits for the others                                            */
#define FAILED_S 1.0    /* the same where this process has not come that far                      */
#define VERDICT_S 2.0   /* on a busy machine rank 0 may be late with who is missing               */

/* A request that waits for its answer; it belongs to the thread that asks. */
typedef struct question {
    struct question *next;
    uint32_t number;
    bool answered;
    store_kind kind;
    uint32_t extra;
    void *value;                /* of the caller, for the answer's value                          */
    size_t room, size;
} question;

struct store {
    dist_place place;
    double timeout_s;
    store_server *server;       /* on rank 0                                                      */
    int fd;
    char where[300], address[LINK_ADDRESS];
    uint8_t *in;
    pthread_t reader;
    bool reading;
    pthread_mutex_t sending;    /* one message after the other                                    */
    pthread_mutex_t lock;       /* of what follows                                                */
    pthread_cond_t changed;
    question *questions;
    uint32_t last;
    bool broken;
    pons_status status;
    char why[256];
    pons_comm_store shared;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void hand_over(store *s, const store_message *m)
{
    question *q;

    pthread_mutex_lock(&s->lock);
    for (q = s->questions; q != NULL && q->number != m->number; )
        q = q->next;
    if (q != NULL && !q->answered) { /* else nobody waits any more */
        q->answered = true;
        q->kind = m->kind;
        q->extra = m->extra;
        q->size = m->size;
        if (m->size > 0 && q->room > 0)
            memcpy(q->value, m->value, m->size < q->room ? m->size : q->room);
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
}

static void declare_broken(store *s, pons_status status, const char *why)
{
    pthread_mutex_lock(&s->lock);
    if (!s->broken) {
        s->status = status;
        snprintf(s->why, sizeof s->why, "%s", why);
    }
    s->broken = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    shutdown(s->fd, SHUT_RDWR);
}

/* Returns NULL, or why the connection has ended. */
static const char *read_some(store *s, size_t *filled)
{
    struct pollfd p = { s->fd, POLLIN, 0 };
    store_message m;
    ssize_t got;
    int size;

    if (poll(&p, 1, -1) < 0 && errno != EINTR)
        return strerror(errno);
    got = recv(s->fd, s->in + *filled, STORE_MESSAGE_MAX - *filled, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return NULL;
    if (got <= 0)
        return got == 0 ? "rank 0 has ended" : strerror(errno);
    *filled += (size_t)got;
    while ((size = store_message_read(s->in, *filled, &m)) > 0) {
        hand_over(s, &m);
        *filled -= (size_t)size;
        memmove(s->in, s->in + size, *filled);
    }
    return size < 0 ? "what comes from rank 0 is no message" : NULL;
}

static void *read_answers(void *context)
{
    store *s = context;
    const char *why = NULL;
    size_t filled = 0;

    while (why == NULL)
        why = read_some(s, &filled);
    declare_broken(s, PONS_COMMUNICATION, why);
    return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void remove_question(store *s, const question *q)
{
    question **at = &s->questions;

    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
}

/* False where the connection had ended already. */
static bool add_question(store *s, question *q)
{
    bool broken;

    pthread_mutex_lock(&s->lock);
    broken = s->broken;
    q->number = ++s->last;
    if (q->number == 0)         /* stands for no request */
        q->number = ++s->last;
    q->next = s->questions;
    s->questions = q;
    pthread_mutex_unlock(&s->lock);
    return !broken;
}

static bool send_message(store *s, const store_message *m, double deadline)
{
    uint8_t *bytes = malloc(STORE_HEAD + STORE_KEY_MAX + m->size);
    bool sent;

    if (bytes == NULL)
        return false;
    pthread_mutex_lock(&s->sending);
    sent = link_send(s->fd, bytes, store_message_write(m, bytes), deadline);
    pthread_mutex_unlock(&s->sending);
    free(bytes);
    return sent;
}

static void declare_unsent(store *s, int cause)
{
    if (cause == ENOMEM)
        declare_broken(s, PONS_DEVICE, "out of memory");
    else
        declare_broken(s, PONS_COMMUNICATION, strerror(cause));
}

static void wait_for_answer(store *s, question *q, double deadline)
{
    const struct timespec until = clock_at(deadline);

    pthread_mutex_lock(&s->lock);
    while (!q->answered && !s->broken
           && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        continue;
    remove_question(s, q);
    pthread_mutex_unlock(&s->lock);
}

static pons_status tell_broken(store *s, const store_message *m, pons_error *err)
{
    pthread_mutex_lock(&s->lock);
    if (s->broken)
        pons_fail(err, s->status, "rank %d: the connection to the store at %s has ended "
                  "('%s' was asked for): %s", s->place.rank, s->where, m->key, s->why);
    else
        pons_fail(err, PONS_COMMUNICATION, "rank %d: the store at %s does not answer ('%s' was "
                  "asked for)", s->place.rank, s->where, m->key);
    pthread_mutex_unlock(&s->lock);
    return err->status;
}

/* How long a caller has patience with rank 0, on top of what that was asked to wait. */
static double patience(const store *s)
{
    return fmin(ANSWER_S, s->timeout_s);
}

/* The answer, or a failure at 'deadline'. */
static pons_status ask(store *s, store_message *m, question *q, double deadline, pons_error *err)
{
    if (add_question(s, q)) {
        m->number = q->number;
        /* Half a message would end the connection: no haste here. */
        if (!send_message(s, m, seconds_now() + patience(s)))
            declare_unsent(s, errno);
    }
    wait_for_answer(s, q, deadline);
    if (!q->answered)
        return tell_broken(s, m, err);
    if (q->kind == STORE_REFUSED)
        return pons_fail(err, (pons_status)q->extra, "the store at %s refuses '%s': %.*s", s->where,
                         m->key, (int)(q->size < q->room ? q->size : q->room),
                         (const char *)q->value);
    return PONS_OK;
}

static bool take_key(store_message *m, const char *key, pons_error *err)
{
    if (store_key_valid(key)) {
        strcpy(m->key, key);
        return true;
    }
    pons_fail(err, PONS_FAILURE, "a key of the store is no word: '%.64s'", key);
    return false;
}

static pons_status set_value(store *s, store_kind kind, const char *key, const void *value,
                             size_t size, double answer_s, pons_error *err)
{
    store_message m = { .kind = kind, .value = value, .size = size };
    char why[128];
    question q = { .value = why, .room = sizeof why };

    if (!take_key(&m, key, err))
        return err->status;
    if (size > PONS_COMM_VALUE_MAX)
        return pons_fail(err, PONS_FAILURE, "the value of '%s' has %zu bytes, the store takes at "
                         "most %d", key, size, PONS_COMM_VALUE_MAX);
    return ask(s, &m, &q, seconds_now() + answer_s, err);
}

pons_status store_set(store *s, const char *key, const void *value, size_t size, pons_error *err)
{
    return set_value(s, STORE_SET, key, value, size, patience(s), err);
}

pons_status store_set_first(store *s, const char *key, const void *value, size_t size,
                            pons_error *err)
{
    return set_value(s, STORE_SET_FIRST, key, value, size, patience(s), err);
}

pons_status store_try_set(store *s, const char *key, const void *value, size_t size,
                          double answer_s, pons_error *err)
{
    return set_value(s, STORE_SET, key, value, size, answer_s, err);
}

/* 'q' says where the value goes. */
static pons_status get_value(store *s, const char *key, double wait_s, double answer_s, question *q,
                             pons_error *err)
{
    store_message m = { .kind = STORE_GET };

    if (!take_key(&m, key, err))
        return err->status;
    m.extra = (uint32_t)ceil(fmin(fmax(wait_s, 0), 4e6) * 1e3);
    if (ask(s, &m, q, seconds_now() + fmax(wait_s, 0) + answer_s, err) != PONS_OK)
        return err->status;
    if (q->kind != STORE_VALUE)
        return pons_fail(err, PONS_COMMUNICATION, "rank %d: nobody has set '%s' within %g s",
                         s->place.rank, key, wait_s);
    return PONS_OK;
}

pons_status store_try_get(store *s, const char *key, double wait_s, double answer_s, void *value,
                          size_t room, size_t *size, pons_error *err)
{
    question q = { .value = value, .room = room };

    if (get_value(s, key, wait_s, answer_s, &q, err) == PONS_OK)
        *size = q.size;
    return err->status;
}

pons_status store_try_look(store *s, const char *key, double answer_s, void *value, size_t room,
                           size_t *size, double *age_s, pons_error *err)
{
    question q = { .value = value, .room = room };

    if (get_value(s, key, 0, answer_s, &q, err) == PONS_OK) {
        *size = q.size;
        *age_s = 1e-3 * q.extra;
    }
    return err->status;
}

pons_status store_get(store *s, const char *key, double wait_s, void *value, size_t room,
                      size_t *size, pons_error *err)
{
    return store_try_get(s, key, wait_s, patience(s), value, room, size, err);
}

void store_give_up(store *s)
{
    declare_broken(s, PONS_COMMUNICATION, "rank 0 was given up");
}

bool store_broken(const store *s)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&s->lock;
    bool broken;

    pthread_mutex_lock(lock);
    broken = s->broken;
    pthread_mutex_unlock(lock);
    return broken;
}

/* ---- as plugins see it ----------------------------------------------------------------------- */

static pons_status shared_set(void *context, const char *key, const void *value, size_t size,
                              pons_error *err)
{
    return store_set(context, key, value, size, err);
}

static pons_status shared_get(void *context, const char *key, void *value, size_t room,
                              size_t *size, pons_error *err)
{
    store *s = context;

    return store_get(s, key, s->timeout_s, value, room, size, err);
}

const pons_comm_store *store_shared(store *s)
{
    return &s->shared;
}

const char *store_address(const store *s)
{
    return s->address;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* How an attempt to be let in went. */
typedef enum outcome { JOINED = 1, REFUSED, NOBODY, WRONG, EARLY } outcome;

static void pause_for(double seconds)
{
    const struct timespec t = clock_at(seconds);

    nanosleep(&t, NULL);
}

/* One message within the handshake; false: the connection has ended, 'errno' why. */
static bool receive_message(store *s, double deadline, store_message *m)
{
    int size;

    if (!link_receive(s->fd, s->in, STORE_HEAD, deadline))
        return false;
    errno = EPROTO;
    size = store_message_size(s->in);
    return size > 0
           && link_receive(s->fd, s->in + STORE_HEAD, (size_t)size - STORE_HEAD, deadline)
           && store_message_read(s->in, (size_t)size, m) == size;
}

static outcome say_hello(store *s, double deadline, char *why, size_t room)
{
    double left = fmax(deadline - seconds_now(), 0);
    const store_hello hello = { (uint32_t)s->place.rank, (uint32_t)s->place.size,
                                (uint32_t)getpid(), (uint32_t)(fmin(left, 4e6) * 1e3) };
    uint8_t greeting[STORE_GREETING], bytes[STORE_HELLO];

    if (!link_receive(s->fd, greeting, sizeof greeting, fmin(deadline, seconds_now() + ANSWER_S))) {
        snprintf(why, room, "%s", strerror(errno));
        return NOBODY;
    }
    if (!store_greeting_valid(greeting)) {
        snprintf(why, room, "what answers there is no store of this version of pons");
        return WRONG;
    }
    store_hello_write(&hello, s->place.token, greeting, bytes);
    if (link_send(s->fd, bytes, sizeof bytes, deadline))
        return JOINED;
    snprintf(why, room, "%s", strerror(errno));
    return NOBODY;
}

/* Rank 0 answers when all are there, or when they will not be. */
static outcome hear_answer(store *s, double deadline, char *why, size_t room, pons_error *err)
{
    store_message m;
    int size;

    if (!link_wait(s->fd, deadline) && !link_wait(s->fd, seconds_now() + VERDICT_S)) {
        snprintf(why, room, "not all processes have come");
        return REFUSED;
    }
    if (!receive_message(s, seconds_now() + ANSWER_S, &m)) {
        snprintf(why, room, "rank 0 has ended the connection");
        return NOBODY;
    }
    size = m.size < PONS_COMM_VALUE_MAX ? (int)m.size : PONS_COMM_VALUE_MAX;
    switch (m.kind) {
    case STORE_WELCOME:
        snprintf(s->address, sizeof s->address, "%.*s", size, (const char *)m.value);
        return JOINED;
    case STORE_REFUSED:
        pons_fail(err, m.extra == PONS_CONFIG || m.extra == PONS_DEVICE ? (pons_status)m.extra
                       : PONS_COMMUNICATION, "%.*s", size, (const char *)m.value);
        return REFUSED;
    case STORE_EARLY:
        snprintf(why, room, "%.*s", size, (const char *)m.value);
        return EARLY;
    case STORE_STRANGER:
        snprintf(why, room, "the store there belongs to another job: its token differs");
        return WRONG;
    default:
        snprintf(why, room, "what answers there is no store of this version of pons");
        return WRONG;
    }
}

static outcome try_once(store *s, double deadline, char *why, size_t room, pons_error *err)
{
    outcome o;

    s->fd = link_connect(s->place.master, s->place.port, deadline, why, room);
    if (s->fd < 0 && link_is_short(errno)) {
        pons_fail(err, PONS_DEVICE, "rank %d: cannot connect to the store of rank 0 at %s: %s",
                  s->place.rank, s->where, why);
        return REFUSED;
    }
    if (s->fd < 0)
        return NOBODY;
    o = say_hello(s, deadline, why, room);
    if (o == JOINED)
        o = hear_answer(s, deadline, why, room, err);
    if (o != JOINED) {
        close(s->fd);
        s->fd = -1;
    }
    return o;
}

static pons_status tell_alone(const store *s, const char *why, pons_error *err)
{
    const char *hint = s->place.rank == 0
        ? "\nhint: rank 0 serves the store itself: MASTER_ADDR must be an address of its node" : "";

    return pons_fail(err, PONS_COMMUNICATION, "rank %d: cannot reach the store of rank 0 at %s "
                     "within %g s: %s%s", s->place.rank, s->where, s->timeout_s, why, hint);
}

static pons_status tell_taken(const store *s, const char *why, pons_error *err)
{
    return pons_fail(err, PONS_COMMUNICATION, "rank %d has found the store at %s taken for %g s: %s"
                     "\nhint: an earlier run has not ended, or another process has this rank",
                     s->place.rank, s->where, s->timeout_s, why);
}

/*
 * Again and again: rank 0 may start later than this process, its name be known later. Who was there
 * says more about what is wrong than that nobody is there now. An earlier run has as long to end as
 * the others then have to come, however long it took.
 */
static pons_status connect_store(store *s, double deadline, pons_error *err)
{
    const double free_by = deadline;
    char why[512] = "", answered[512] = "";
    double wrong = INFINITY;

    for (;;) {
        outcome o = try_once(s, deadline, why, sizeof why, err);
        double now = seconds_now();
        if (o == JOINED)
            return PONS_OK;
        if (err->status == PONS_OK && s->server != NULL && store_server_starved(s->server) != NULL)
            return pons_fail(err, PONS_DEVICE, "%s", store_server_starved(s->server));
        if (o == EARLY && now + RETRY_S >= free_by)
            return tell_taken(s, why, err);
        if (o == EARLY)
            deadline = now + s->timeout_s;
        wrong = o == WRONG ? fmin(wrong, now) : INFINITY;
        if (o == WRONG)
            memcpy(answered, why, sizeof answered);
        if (o == REFUSED || now + RETRY_S >= deadline || now - wrong >= WRONG_S)
            return err->status != PONS_OK ? err->status
                   : tell_alone(s, answered[0] != '\0' ? answered : why, err);
        pause_for(RETRY_S);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

static pons_status start_reader(store *s, pons_error *err)
{
    sigset_t before;

    thread_block_signals(&before);
    thread_start(&s->reader, read_answers, s, "the thread that reads the store's answers", err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->reading = err->status == PONS_OK;
    return err->status;
}

static store *store_new(const dist_place *place, double timeout_s)
{
    store *s = calloc(1, sizeof *s);

    if (s == NULL || (s->in = malloc(STORE_MESSAGE_MAX)) == NULL) {
        free(s);
        return NULL;
    }
    s->place = *place;
    s->timeout_s = timeout_s;
    s->fd = -1;
    s->shared = (pons_comm_store){ s, shared_set, shared_get };
    snprintf(s->where, sizeof s->where, strchr(place->master, ':') != NULL ? "[%s]:%d" : "%s:%d",
             place->master, place->port);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->sending, NULL);
    thread_condition(&s->changed);
    return s;
}

static void store_free(store *s, double wait_s)
{
    if (s->fd >= 0)
        shutdown(s->fd, SHUT_RDWR);
    if (s->reading)
        pthread_join(s->reader, NULL);
    if (s->fd >= 0)
        close(s->fd);
    store_server_close(s->server, wait_s);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->sending);
    pthread_mutex_destroy(&s->lock);
    free(s->in);
    free(s);
}

pons_status store_open(const dist_place *place, double timeout_s, store **out, pons_error *err)
{
    double deadline = seconds_now() + timeout_s;
    store *s = store_new(place, timeout_s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    if (place->rank == 0)
        store_server_open(place, timeout_s, &s->server, err);
    if (err->status == PONS_OK && connect_store(s, deadline, err) == PONS_OK)
        start_reader(s, err);
    if (err->status != PONS_OK) {
        store_free(s, FAILED_S);
        return err->status;
    }
    *out = s;
    return PONS_OK;
}

/* Rank 0 ends the connection when it has read that this process is leaving. */
static void leave(store *s, double wait_s)
{
    const store_message m = { .kind = STORE_CLOSE };
    double deadline = seconds_now() + wait_s;
    const struct timespec until = clock_at(deadline);

    if (store_broken(s) || !send_message(s, &m, deadline))
        return;
    pthread_mutex_lock(&s->lock);
    while (!s->broken && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&s->lock);
}

void store_close_within(store *s, double wait_s)
{
    if (s == NULL)
        return;
    leave(s, wait_s);
    store_free(s, wait_s);
}

void store_close(store *s)
{
    store_close_within(s, CLOSE_S);
}
