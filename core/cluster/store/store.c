/*
 * store.c - the client of the store: one connection to rank 0 for requests of any thread, and a
 * thread that gives each answer to the thread that waits for it.
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
#include "base/integer.h"
#include "base/thread/thread.h"
#include "cluster/store/message.h"
#include "cluster/store/server.h"
#include "cluster/store/socket.h"

#define ANSWER_S 10.0   /* limit of an immediate answer of rank 0                                 */
#define RETRY_S 0.1     /* between attempts to connect                                            */
#define WRONG_S 10.0    /* limit of a foreign server at the port, such as an earlier run          */
#define FAILED_S 1.0    /* the same after a failed start                                          */
#define VERDICT_S 2.0   /* extra wait for a busy rank 0 that names missing ranks                  */

/* A pending request, owned by the thread that waits for its answer. */
typedef struct request {
    struct request *next;
    uint32_t number;
    bool answered;
    store_kind kind;
    uint32_t extra;
    void *value;                /* buffer of the caller for the answer's value                    */
    size_t room, size;
} request;

struct store {
    rank_info place;
    double timeout_s;
    store_server *server;       /* on rank 0, else NULL                                           */
    int fd;
    char where[300], address[SOCKET_ADDRESS_SIZE];
    uint8_t *in;
    pthread_t reader;
    bool reading;
    pthread_mutex_t sending;    /* held while a message is sent                                   */
    pthread_mutex_t lock;       /* protects the members below                                     */
    pthread_cond_t changed;
    request *requests;
    uint32_t last;
    bool broken;
    pons_status status;
    char why[256];
    pons_comm_store shared;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void deliver_answer(store *s, const store_message *m)
{
    request *q;

    pthread_mutex_lock(&s->lock);
    for (q = s->requests; q != NULL && q->number != m->number; )
        q = q->next;
    if (q != NULL && !q->answered) { /* else the caller has given up */
        q->answered = true;
        q->kind = m->kind;
        q->extra = m->extra;
        q->size = m->size;
        if (m->size > 0 && q->room > 0)
            memcpy(q->value, m->value, min_size(m->size, q->room));
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

/* Read and hand over messages. Returns NULL, or why the connection ended. */
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
        deliver_answer(s, &m);
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

static void remove_request(store *s, const request *q)
{
    request **at = &s->requests;

    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
}

/* Add a pending request; false if the connection has ended. */
static bool add_request(store *s, request *q)
{
    bool broken;

    pthread_mutex_lock(&s->lock);
    broken = s->broken;
    q->number = ++s->last;
    if (q->number == 0)         /* 0 stands for no request */
        q->number = ++s->last;
    q->next = s->requests;
    s->requests = q;
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
    sent = socket_send(s->fd, bytes, store_message_write(m, bytes), deadline);
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

static void wait_for_answer(store *s, request *q, double deadline)
{
    const struct timespec until = clock_timespec(deadline);

    pthread_mutex_lock(&s->lock);
    while (!q->answered && !s->broken
           && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        continue;
    remove_request(s, q);
    pthread_mutex_unlock(&s->lock);
}

static pons_status report_broken(store *s, const store_message *m, pons_error *err)
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

/* Seconds that a caller waits for rank 0 beyond the wait that it asks for. */
static double answer_limit(const store *s)
{
    return fmin(ANSWER_S, s->timeout_s);
}

/* Send a request and wait for its answer until 'deadline'. */
static pons_status send_request(store *s, store_message *m, request *q, double deadline,
                                pons_error *err)
{
    if (add_request(s, q)) {
        m->number = q->number;
        /* A longer limit here, because half a message would end the connection. */
        if (!send_message(s, m, seconds_now() + answer_limit(s)))
            declare_unsent(s, errno);
    }
    wait_for_answer(s, q, deadline);
    if (!q->answered)
        return report_broken(s, m, err);
    if (q->kind == STORE_REFUSED)
        return pons_fail(err, (pons_status)q->extra, "the store at %s refuses '%s': %.*s", s->where,
                         m->key, (int)min_size(q->size, q->room),
                         (const char *)q->value);
    return PONS_OK;
}

static bool set_key(store_message *m, const char *key, pons_error *err)
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
    request q = { .value = why, .room = sizeof why };

    if (!set_key(&m, key, err))
        return err->status;
    if (size > PONS_COMM_VALUE_MAX)
        return pons_fail(err, PONS_FAILURE, "the value of '%s' has %zu bytes, the store takes at "
                         "most %d", key, size, PONS_COMM_VALUE_MAX);
    return send_request(s, &m, &q, seconds_now() + answer_s, err);
}

pons_status store_set(store *s, const char *key, const void *value, size_t size, pons_error *err)
{
    return set_value(s, STORE_SET, key, value, size, answer_limit(s), err);
}

pons_status store_set_first(store *s, const char *key, const void *value, size_t size,
                            pons_error *err)
{
    return set_value(s, STORE_SET_FIRST, key, value, size, answer_limit(s), err);
}

pons_status store_try_set(store *s, const char *key, const void *value, size_t size,
                          double answer_s, pons_error *err)
{
    return set_value(s, STORE_SET, key, value, size, answer_s, err);
}

/* 'q' has the buffer for the value. */
static pons_status get_value(store *s, const char *key, double wait_s, double answer_s, request *q,
                             pons_error *err)
{
    store_message m = { .kind = STORE_GET };

    if (!set_key(&m, key, err))
        return err->status;
    m.extra = (uint32_t)ceil(fmin(fmax(wait_s, 0), 4e6) * 1e3);
    if (send_request(s, &m, q, seconds_now() + fmax(wait_s, 0) + answer_s, err) != PONS_OK)
        return err->status;
    if (q->kind != STORE_VALUE)
        return pons_fail(err, PONS_COMMUNICATION, "rank %d: nobody has set '%s' within %g s",
                         s->place.rank, key, wait_s);
    return PONS_OK;
}

pons_status store_try_get(store *s, const char *key, double wait_s, double answer_s, void *value,
                          size_t room, size_t *size, pons_error *err)
{
    request q = { .value = value, .room = room };

    if (get_value(s, key, wait_s, answer_s, &q, err) == PONS_OK)
        *size = q.size;
    return err->status;
}

pons_status store_try_peek(store *s, const char *key, double answer_s, void *value, size_t room,
                           size_t *size, double *age_s, pons_error *err)
{
    request q = { .value = value, .room = room };

    if (get_value(s, key, 0, answer_s, &q, err) == PONS_OK) {
        *size = q.size;
        *age_s = 1e-3 * q.extra;
    }
    return err->status;
}

pons_status store_get(store *s, const char *key, double wait_s, void *value, size_t room,
                      size_t *size, pons_error *err)
{
    return store_try_get(s, key, wait_s, answer_limit(s), value, room, size, err);
}

void store_mark_dead(store *s)
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

/* ---- interface of comm plugins --------------------------------------------------------------- */

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

const pons_comm_store *store_comm_interface(store *s)
{
    return &s->shared;
}

const char *store_address(const store *s)
{
    return s->address;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Outcome of an attempt to join the store. */
typedef enum join_outcome { JOINED = 1, REFUSED, NOBODY, WRONG, EARLY } join_outcome;

static void pause_for(double seconds)
{
    const struct timespec t = clock_timespec(seconds);

    nanosleep(&t, NULL);
}

/* Receive a message of the handshake; false with errno if the connection ended. */
static bool receive_message(store *s, double deadline, store_message *m)
{
    int size;

    if (!socket_receive(s->fd, s->in, STORE_HEAD, deadline))
        return false;
    errno = EPROTO;
    size = store_message_size(s->in);
    return size > 0
           && socket_receive(s->fd, s->in + STORE_HEAD, (size_t)size - STORE_HEAD, deadline)
           && store_message_read(s->in, (size_t)size, m) == size;
}

static join_outcome send_response(store *s, double deadline, char *why, size_t room)
{
    double left = fmax(deadline - seconds_now(), 0);
    const store_response response = { (uint32_t)s->place.rank, (uint32_t)s->place.size,
                                      (uint32_t)getpid(), (uint32_t)(fmin(left, 4e6) * 1e3) };
    uint8_t challenge[STORE_CHALLENGE], bytes[STORE_RESPONSE];

    if (!socket_receive(s->fd, challenge, sizeof challenge, fmin(deadline,
                                                                 seconds_now() + ANSWER_S))) {
        snprintf(why, room, "%s", strerror(errno));
        return NOBODY;
    }
    if (!store_challenge_valid(challenge)) {
        snprintf(why, room, "what answers there is no store of this version of pons");
        return WRONG;
    }
    store_response_write(&response, s->place.token, challenge, bytes);
    if (socket_send(s->fd, bytes, sizeof bytes, deadline))
        return JOINED;
    snprintf(why, room, "%s", strerror(errno));
    return NOBODY;
}

/* Wait for the answer, which rank 0 sends when the rendezvous has ended. */
static join_outcome read_join_answer(store *s, double deadline, char *why, size_t room,
                                     pons_error *err)
{
    store_message m;
    int size;

    if (!socket_wait(s->fd, deadline) && !socket_wait(s->fd, seconds_now() + VERDICT_S)) {
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
    case STORE_UNAUTHENTICATED:
        snprintf(why, room, "the store there belongs to another job: its token differs");
        return WRONG;
    default:
        snprintf(why, room, "what answers there is no store of this version of pons");
        return WRONG;
    }
}

static join_outcome try_to_join(store *s, double deadline, char *why, size_t room, pons_error *err)
{
    join_outcome o;

    s->fd = socket_connect(s->place.master, s->place.port, deadline, why, room);
    if (s->fd < 0 && socket_is_shortage(errno)) {
        pons_fail(err, PONS_DEVICE, "rank %d: cannot connect to the store of rank 0 at %s: %s",
                  s->place.rank, s->where, why);
        return REFUSED;
    }
    if (s->fd < 0)
        return NOBODY;
    o = send_response(s, deadline, why, room);
    if (o == JOINED)
        o = read_join_answer(s, deadline, why, room, err);
    if (o != JOINED) {
        close(s->fd);
        s->fd = -1;
    }
    return o;
}

static pons_status report_unreachable(const store *s, const char *why, pons_error *err)
{
    const char *hint = s->place.rank == 0
        ? "\nhint: rank 0 serves the store itself: MASTER_ADDR must be an address of its node" : "";

    return pons_fail(err, PONS_COMMUNICATION, "rank %d: cannot reach the store of rank 0 at %s "
                     "within %g s: %s%s", s->place.rank, s->where, s->timeout_s, why, hint);
}

static pons_status report_taken(const store *s, const char *why, pons_error *err)
{
    return pons_fail(err, PONS_COMMUNICATION, "rank %d has found the store at %s taken for %g s: %s"
                     "\nhint: an earlier run has not ended, or another process has this rank",
                     s->place.rank, s->where, s->timeout_s, why);
}

/*
 * Try to join until the deadline, because rank 0 may start later, and its name may resolve later. A
 * message of a foreign server explains more than a later refusal, so it is kept. While an earlier
 * run blocks the store, the deadline moves: the other ranks get the full timeout after that run.
 */
static pons_status connect_store(store *s, double deadline, pons_error *err)
{
    const double free_by = deadline;
    char why[512] = "", answered[512] = "";
    double wrong = INFINITY;

    for (;;) {
        join_outcome o = try_to_join(s, deadline, why, sizeof why, err);
        double now = seconds_now();
        if (o == JOINED)
            return PONS_OK;
        if (err->status == PONS_OK && s->server != NULL && store_server_shortage(s->server) != NULL)
            return pons_fail(err, PONS_DEVICE, "%s", store_server_shortage(s->server));
        if (o == EARLY && now + RETRY_S >= free_by)
            return report_taken(s, why, err);
        if (o == EARLY)
            deadline = now + s->timeout_s;
        wrong = o == WRONG ? fmin(wrong, now) : INFINITY;
        if (o == WRONG)
            memcpy(answered, why, sizeof answered);
        if (o == REFUSED || now + RETRY_S >= deadline || now - wrong >= WRONG_S)
            return err->status != PONS_OK ? err->status
                   : report_unreachable(s, answered[0] != '\0' ? answered : why, err);
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

static store *store_new(const rank_info *place, double timeout_s)
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

pons_status store_open(const rank_info *place, double timeout_s, store **out, pons_error *err)
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

/* Announce the end. Rank 0 closes the connection when it has read that. */
static void announce_close(store *s, double wait_s)
{
    const store_message m = { .kind = STORE_CLOSE };
    double deadline = seconds_now() + wait_s;
    const struct timespec until = clock_timespec(deadline);

    if (store_broken(s) || !send_message(s, &m, deadline))
        return;
    pthread_mutex_lock(&s->lock);
    while (!s->broken && pthread_cond_timedwait(&s->changed, &s->lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&s->lock);
}

void store_close(store *s, double wait_s)
{
    if (s == NULL)
        return;
    announce_close(s, wait_s);
    store_free(s, wait_s);
}
