/*
 * server.c - the store's thread on rank 0. It sends a challenge to each connection and admits those
 * that prove the token. It tells all ranks when they are complete, or why they will not be, and
 * then serves requests.
 *
 * All state except the stop event belongs to this thread. It never waits for a single connection:
 * input is buffered until a message is complete, output until the socket accepts it.
 * Unauthenticated connections are few and have seconds to prove the token.
 */
#include "cluster/store/server.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread/thread.h"
#include "base/whole.h"
#include "cluster/store/message.h"
#include "cluster/store/socket.h"
#include "cluster/store/store.h"
#include "cluster/store/table.h"

/* Limits: unauthenticated connections; waiting requests and unsent bytes of one connection. */
enum { UNAUTHENTICATED_MAX = 64, REQUESTS_MAX = 256, OUT_MAX = 4 * STORE_MESSAGE_MAX };
#define RESPONSE_S 10.0    /* limit of an unauthenticated connection                              */
#define LISTEN_S 10.0   /* an earlier run may still hold the port                                 */
#define FLUSH_S 2.0     /* limit for sending the last message                                     */

/* A proof of the token ends the first state. The end of the connection leads to the last. */
typedef enum connection_state { CONNECTION_UNAUTHENTICATED = 1, CONNECTION_JOINED,
    CONNECTION_ENDED } connection_state;

/* One connection. */
typedef struct connection {
    int fd;
    connection_state state;
    bool closing;               /* announced its end, so it is not lost                           */
    bool ending;                /* closes when its output is sent                                 */
    int requests;               /* number of its waiting gets                                     */
    double deadline;            /* of an unauthenticated or ending one                            */
    store_response response;
    uint8_t challenge[STORE_CHALLENGE];
    char address[SOCKET_ADDRESS_SIZE];
    uint8_t *in, *out;
    size_t in_size, out_size, out_room;
} connection;

/* A get that waits for its key. */
typedef struct request {
    struct request *next;
    connection *from;
    uint32_t number;
    double deadline;
    char key[STORE_KEY_MAX + 1];
} request;

struct store_server {
    rank_info place;
    double timeout_s, deadline;     /* of the rendezvous                                          */
    pthread_t thread;
    int stop;                       /* eventfd: 1 + milliseconds to wait                          */
    int listener[SOCKET_LISTENERS], listeners;
    connection **connections;
    struct pollfd *polled;
    int count, room;
    connection **by_rank;
    int joined;
    bool complete, stopping;
    atomic_int shortage_found;      /* index into 'shortages': why the rendezvous failed          */
    bool failed;                    /* the rendezvous failed, with 'status' and 'why'             */
    pons_status status;
    char why[1024];
    double stop_at;
    int refused;                    /* connections with a wrong token                             */
    char refused_from[SOCKET_ADDRESS_SIZE];
    request *requests;
    store_table table;
};

/* ---- sending --------------------------------------------------------------------------------- */

static void flush_output(connection *m)
{
    while (m->out_size > 0 && m->state != CONNECTION_ENDED) {
        ssize_t sent = send(m->fd, m->out, m->out_size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (sent < 0) {
            m->state = CONNECTION_ENDED;
            return;
        }
        m->out_size -= (size_t)sent;
        memmove(m->out, m->out + sent, m->out_size);
    }
    if (m->ending && m->out_size == 0)
        m->state = CONNECTION_ENDED;
}

/* Space for 'size' more bytes of output. A connection that does not read its answers is closed. */
static uint8_t *reserve_output(connection *m, size_t size)
{
    size_t room = m->out_size + size;
    uint8_t *out;

    if (room > OUT_MAX) {
        m->state = CONNECTION_ENDED;
        return NULL;
    }
    if (room > m->out_room) {
        out = realloc(m->out, room);
        if (out == NULL) {
            m->state = CONNECTION_ENDED;
            return NULL;
        }
        m->out = out;
        m->out_room = room;
    }
    return m->out + m->out_size;
}

static void answer_message(connection *m, const store_message *message)
{
    uint8_t *out = reserve_output(m, STORE_HEAD + strlen(message->key) + message->size);

    if (out == NULL)
        return;
    m->out_size += store_message_write(message, out);
    flush_output(m);
}

static void answer_text(connection *m, store_kind kind, uint32_t number, pons_status status,
                        const char *text)
{
    const store_message message = { .kind = kind, .number = number, .extra = (uint32_t)status,
                                    .value = text, .size = strlen(text) };

    answer_message(m, &message);
}

/* Send a last message, then close the connection. */
static void close_with_message(connection *m, store_kind kind, pons_status status, const char *text)
{
    m->ending = true;
    m->closing = true;
    m->deadline = seconds_now() + FLUSH_S;
    answer_text(m, kind, 0, status, text);
    flush_output(m);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void answer_value(connection *m, uint32_t number, const store_entry *e)
{
    store_message message = { .kind = STORE_LATE, .number = number };

    if (e != NULL) {
        message.kind = STORE_VALUE;
        message.extra = (uint32_t)fmin(1e3 * (seconds_now() - e->set), UINT32_MAX);
        message.value = e->value;
        message.size = e->size;
    }
    answer_message(m, &message);
}

/* Answer and remove gets of 'key', late gets, and gets of closed connections. NULL: no key. */
static void answer_gets(store_server *s, const char *key, double now)
{
    for (request **at = &s->requests, *r; (r = *at) != NULL; ) {
        bool answered = key != NULL && strcmp(r->key, key) == 0;
        if (!answered && r->from->state != CONNECTION_ENDED && now < r->deadline) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->from->requests--;
        if (r->from->state != CONNECTION_ENDED)
            answer_value(r->from, r->number, store_table_find(&s->table, r->key));
        free(r);
    }
}

/* Answer the setter before the waiters: a waiter may end the run. */
static void handle_set(store_server *s, connection *m, const store_message *message)
{
    const store_message done = { .kind = STORE_DONE, .number = message->number };
    bool keeps = message->kind == STORE_SET_FIRST && store_table_find(&s->table, message->key);

    if (!keeps && !store_table_set(&s->table, message->key, message->value, message->size)) {
        answer_text(m, STORE_REFUSED, message->number, PONS_DEVICE, "the store is full");
        return;
    }
    answer_message(m, &done);
    if (!keeps)
        answer_gets(s, message->key, seconds_now());
}

static void handle_get(store_server *s, connection *m, const store_message *message)
{
    const store_entry *e = store_table_find(&s->table, message->key);
    request *r;

    if (e != NULL || message->extra == 0) {
        answer_value(m, message->number, e);
        return;
    }
    r = m->requests < REQUESTS_MAX ? malloc(sizeof *r) : NULL;
    if (r == NULL) {
        answer_text(m, STORE_REFUSED, message->number, PONS_DEVICE, "too many requests wait");
        return;
    }
    *r = (request){ .next = s->requests, .from = m, .number = message->number,
                    .deadline = seconds_now() + 1e-3 * message->extra };
    memcpy(r->key, message->key, sizeof r->key);
    s->requests = r;
    m->requests++;
}

static void handle_close(store_server *s, connection *m, const store_message *message)
{
    (void)s;
    (void)message;
    m->closing = true;
    m->state = CONNECTION_ENDED;
}

/* ---- rendezvous ------------------------------------------------------------------------------ */

/* End the rendezvous with a failure: send every rank the reason and close its connection. */
static void fail_all(store_server *s, pons_status status, const char *text)
{
    s->failed = true;
    s->status = status;
    snprintf(s->why, sizeof s->why, "%s", text);
    for (int i = 0; i < s->count; i++)
        if (s->connections[i]->state == CONNECTION_JOINED)
            close_with_message(s->connections[i], STORE_REFUSED, status, s->why);
}

/*
 * The address of a rank as others reach it. A rank on rank 0's node has a loopback address. It gets
 * the address at which another rank has reached rank 0.
 */
static const char *address_of(const store_server *s, const connection *m,
                              char room[SOCKET_ADDRESS_SIZE])
{
    for (int i = 0; i < s->place.size && socket_is_loopback(m->address); i++)
        if (!socket_is_loopback(s->by_rank[i]->address)) {
            socket_own_address(s->by_rank[i]->fd, room);
            return room;
        }
    return m->address;
}

static void welcome_all(store_server *s)
{
    char address[SOCKET_ADDRESS_SIZE];

    s->complete = true;
    for (int i = 0; i < s->place.size; i++)
        answer_text(s->by_rank[i], STORE_WELCOME, 0, PONS_OK,
                    address_of(s, s->by_rank[i], address));
}

static size_t append_text(char *out, size_t room, size_t used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t append_text(char *out, size_t room, size_t used, const char *format, ...)
{
    va_list list;
    int size;

    va_start(list, format);
    size = vsnprintf(out + used, room - used, format, list);
    va_end(list);
    return size >= 0 && (size_t)size < room - used ? used + (size_t)size : room - 1;
}

/* Write "ranks 1, 3 and 5 of 8 have not come to the store at a:29500 within 30 s". */
static void print_missing(const store_server *s, char *out, size_t room)
{
    enum { NAMED = 8 };
    int missing = s->place.size - s->joined, named = 0;
    size_t used = append_text(out, room, 0, missing > 1 ? "ranks" : "rank");

    for (int i = 0; i < s->place.size && named < NAMED; i++) {
        if (s->by_rank[i] != NULL)
            continue;
        used = append_text(out, room, used, "%s %d",
                           named == 0 ? "" : named + 1 == missing ? " and" : ",", i);
        named++;
    }
    if (missing > named)
        used = append_text(out, room, used, " and %d more", missing - named);
    used = append_text(out, room, used, " of %d ha%s not come to the store at %s:%d within %g s",
                       s->place.size, missing > 1 ? "ve" : "s", s->place.master, s->place.port,
                       s->timeout_s);
    if (s->refused > 0)
        append_text(out, room, used,
                    "; %d connection%s without the job's token %s refused, the last "
                    "from %s", s->refused, s->refused > 1 ? "s" : "", s->refused > 1 ? "were"
                        : "was",
                    s->refused_from);
}

static void end_rendezvous(store_server *s)
{
    char text[sizeof s->why];

    print_missing(s, text, sizeof text);
    fail_all(s, PONS_COMMUNICATION, text);
}

static void lose_rank(store_server *s, connection *m)
{
    char rank[16];

    if (m->response.rank >= (uint32_t)s->place.size || s->by_rank[m->response.rank] != m)
        return;
    if (!s->complete) {
        s->by_rank[m->response.rank] = NULL;
        s->joined--;
        return;
    }
    snprintf(rank, sizeof rank, "%u", m->response.rank);
    if (!m->closing && store_table_find(&s->table, STORE_LOST) == NULL
        && store_table_set(&s->table, STORE_LOST, rank, strlen(rank)))
        answer_gets(s, STORE_LOST, seconds_now());
}

/* A restarted rank may connect before the end of its old connection has been handled. */
static void lose_ended_rank(store_server *s, uint32_t rank)
{
    connection *m = rank < (uint32_t)s->place.size ? s->by_rank[rank] : NULL;

    if (m != NULL && m->state == CONNECTION_ENDED)
        lose_rank(s, m);
}

/* Find out why an authenticated process cannot be the rank that it claims; "": it can. */
static void find_fault(const store_server *s, const connection *m, char *out, size_t room)
{
    const store_response *h = &m->response;
    const connection *other = h->rank < (uint32_t)s->place.size ? s->by_rank[h->rank] : NULL;

    out[0] = '\0';
    if (h->size != (uint32_t)s->place.size)
        snprintf(out, room, "process %u at %s is rank %u of %u, but process %d, rank 0 at %s:%d, "
                 "is one of %d", h->process, m->address, h->rank, h->size, (int)getpid(),
                 s->place.master, s->place.port, s->place.size);
    else if (h->rank >= h->size)
        snprintf(out, room, "process %u at %s is rank %u of %u", h->process, m->address, h->rank,
                 h->size);
    else if (other != NULL)
        snprintf(out, room, "rank %u is there twice: process %u at %s and process %u at %s",
                 h->rank, other->response.process, other->address, h->process, m->address);
}

/*
 * Refuse a process after the rendezvous. After a failure, a restarted process may come before the
 * others and before this store has closed. It gets STORE_EARLY and tries again, since the
 * configuration is right.
 */
static bool refuse_late_rank(const store_server *s, connection *m, const char *fault)
{
    bool early = s->failed ? s->status == PONS_COMMUNICATION : s->complete;

    if (early)
        close_with_message(m, STORE_EARLY, PONS_COMMUNICATION, s->failed ? s->why : fault);
    else if (s->failed)
        close_with_message(m, STORE_REFUSED, s->status, s->why);
    return early || s->failed;
}

static void join_rank(store_server *s, connection *m)
{
    char fault[512];
    double margin = fmin(0.5, 0.1 * s->timeout_s);

    m->state = CONNECTION_JOINED;
    lose_ended_rank(s, m->response.rank);
    find_fault(s, m, fault, sizeof fault);
    if (refuse_late_rank(s, m, fault))
        return;
    if (fault[0] != '\0') {
        fail_all(s, PONS_CONFIG, fault);
        return;
    }
    s->by_rank[m->response.rank] = m;
    s->joined++;
    /* The rendezvous ends before the first rank gives up, so that all receive the names. */
    s->deadline = fmin(s->deadline, seconds_now() + 1e-3 * m->response.wait_ms - margin);
    if (s->joined == s->place.size)
        welcome_all(s);
}

static void take_response(store_server *s, connection *m)
{
    if (store_response_read(m->in, s->place.token, m->challenge, &m->response)) {
        join_rank(s, m);
        return;
    }
    s->refused++;
    memcpy(s->refused_from, m->address, sizeof s->refused_from);
    close_with_message(m, STORE_UNAUTHENTICATED, PONS_COMMUNICATION, "");
}

/* ---- receiving ------------------------------------------------------------------------------- */

typedef void message_handler(store_server *s, connection *m, const store_message *message);

static message_handler *const message_handlers[STORE_KINDS] = {
    [STORE_SET] = handle_set, [STORE_SET_FIRST] = handle_set, [STORE_GET] = handle_get,
    [STORE_CLOSE] = handle_close
};

/* Handle one message. Returns its size; 0: incomplete; -1: close the connection. */
static int handle_message(store_server *s, connection *m)
{
    store_message message;
    int size;

    if (m->state == CONNECTION_UNAUTHENTICATED) {
        if (m->in_size < STORE_RESPONSE)
            return 0;
        take_response(s, m);
        return STORE_RESPONSE;
    }
    size = store_message_read(m->in, m->in_size, &message);
    if (size <= 0)
        return size;
    if (message_handlers[message.kind] == NULL || !s->complete
        || (message.kind != STORE_CLOSE && message.key[0] == '\0'))
        return -1;
    message_handlers[message.kind](s, m, &message);
    return size;
}

/* Whether no further request is read until output has been sent. */
static bool is_full(const connection *m)
{
    return m->out_size > OUT_MAX - STORE_MESSAGE_MAX;
}

static void handle_input(store_server *s, connection *m)
{
    while (m->in_size > 0 && m->state != CONNECTION_ENDED && !m->ending && !is_full(m)) {
        int size = handle_message(s, m);
        if (size == 0)
            return;
        if (size < 0) {
            m->state = CONNECTION_ENDED;
            return;
        }
        m->in_size -= (size_t)size;
        memmove(m->in, m->in + size, m->in_size);
    }
}

/* An unauthenticated connection is read only up to the end of its response. */
static void receive_input(store_server *s, connection *m)
{
    size_t room = m->state == CONNECTION_UNAUTHENTICATED ? STORE_RESPONSE : STORE_MESSAGE_MAX;
    uint8_t rest[256];
    ssize_t got;

    if (m->ending) /* an ending connection gets no answer */
        got = recv(m->fd, rest, sizeof rest, 0);
    else
        got = recv(m->fd, m->in + m->in_size, room - m->in_size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (got <= 0) {
        m->state = CONNECTION_ENDED;
        return;
    }
    if (m->ending)
        return;
    m->in_size += (size_t)got;
    handle_input(s, m);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void connection_free(connection *m)
{
    if (m == NULL)
        return;
    if (m->fd >= 0)
        close(m->fd);
    free(m->in);
    free(m->out);
    free(m);
}

/* Close ended connections. Those of ranks stay in memory, because by_rank refers to them. */
static void sweep_connections(store_server *s, double now)
{
    int kept = 0;

    for (int i = 0; i < s->count; i++) {
        connection *m = s->connections[i];
        bool late = (m->state == CONNECTION_UNAUTHENTICATED || m->ending) && now >= m->deadline;
        if (late)
            m->state = CONNECTION_ENDED;
        if (m->state == CONNECTION_ENDED && m->fd >= 0) {
            lose_rank(s, m);
            close(m->fd);
            m->fd = -1;
        }
    }
    answer_gets(s, NULL, now);
    for (int i = 0; i < s->count; i++) {
        connection *m = s->connections[i];
        bool held = m->response.rank < (uint32_t)s->place.size && s->by_rank[m->response.rank] == m;
        if (m->fd >= 0 || held)
            s->connections[kept++] = m;
        else
            connection_free(m);
    }
    s->count = kept;
}

static bool reserve_connection(store_server *s)
{
    int room = s->room > 0 ? 2 * s->room : 32;
    connection **connections;
    struct pollfd *polled;

    if (s->count < s->room)
        return true;
    connections = realloc(s->connections, (size_t)room * sizeof *connections);
    if (connections != NULL)
        s->connections = connections;
    polled = realloc(s->polled, (size_t)(room + 1 + SOCKET_LISTENERS) * sizeof *polled);
    if (polled != NULL)
        s->polled = polled;
    if (connections == NULL || polled == NULL)
        return false;
    s->room = room;
    return true;
}

/* Close the oldest unauthenticated connection if there are too many beyond the missing ranks. */
static void limit_unauthenticated(store_server *s)
{
    connection *oldest = NULL;
    int unauthenticated = 0;

    for (int i = 0; i < s->count; i++) {
        connection *m = s->connections[i];
        if (m->state != CONNECTION_UNAUTHENTICATED)
            continue;
        unauthenticated++;
        if (oldest == NULL || m->deadline < oldest->deadline)
            oldest = m;
    }
    if (unauthenticated > UNAUTHENTICATED_MAX + s->place.size - s->joined)
        oldest->state = CONNECTION_ENDED;
}

static connection *connection_new(int fd)
{
    connection *m = calloc(1, sizeof *m);

    if (m == NULL)
        return NULL;
    m->fd = -1;
    m->in = malloc(STORE_MESSAGE_MAX);
    m->out_room = STORE_CHALLENGE;
    m->out = malloc(m->out_room);
    if (m->in == NULL || m->out == NULL || !store_challenge_write(m->challenge)) {
        connection_free(m);
        return NULL;
    }
    m->fd = fd;
    m->state = CONNECTION_UNAUTHENTICATED;
    m->response.rank = UINT32_MAX;
    m->deadline = seconds_now() + RESPONSE_S;
    socket_peer_address(fd, m->address);
    return m;
}

typedef enum shortage { ENOUGH = 0, NO_MEMORY, NO_DESCRIPTORS } shortage;

static const char *const shortages[] = {
    [NO_MEMORY] = "rank 0 is out of memory for connections to its store",
    [NO_DESCRIPTORS] = "rank 0 cannot take connections to its store: Too many open files"
};

/* Fail the rendezvous for a lack of memory or descriptors. A refused rank would retry in vain. */
static void fail_for_shortage(store_server *s, shortage what)
{
    if (s->complete || s->failed)
        return;
    s->shortage_found = what;
    fail_all(s, PONS_DEVICE, shortages[what]);
}

/* Whether an unauthenticated or ending connection will soon release its descriptor. */
static bool has_closing_connection(const store_server *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->connections[i]->fd >= 0 && (s->connections[i]->state == CONNECTION_UNAUTHENTICATED
                                           || s->connections[i]->ending))
            return true;
    return false;
}

static void add_connection(store_server *s, int fd)
{
    connection *m = reserve_connection(s) ? connection_new(fd) : NULL;

    if (m == NULL) {
        close(fd);
        fail_for_shortage(s, NO_MEMORY);
        return;
    }
    s->connections[s->count++] = m;
    memcpy(m->out, m->challenge, STORE_CHALLENGE);
    m->out_size = STORE_CHALLENGE;
    flush_output(m);
    limit_unauthenticated(s);
}

/*
 * Accept connections. Returns false without a free descriptor: new connections stay queued until an
 * unauthenticated or ending one is closed. If there is none, the rendezvous fails.
 */
static bool accept_from(store_server *s, int listener)
{
    for (int i = 0; i < UNAUTHENTICATED_MAX; i++) {
        int fd = socket_accept(listener);
        if (fd < 0) {
            const int problem = errno;
            if (socket_is_shortage(problem) && !has_closing_connection(s))
                fail_for_shortage(s, problem == EMFILE || problem == ENFILE ? NO_DESCRIPTORS
                                  : NO_MEMORY);
            return !socket_is_shortage(problem);
        }
        add_connection(s, fd);
    }
    return true;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static double next_deadline(const store_server *s)
{
    double next = s->stopping ? s->stop_at : INFINITY;

    if (!s->complete && !s->failed)
        next = fmin(next, s->deadline);
    for (int i = 0; i < s->count; i++)
        if (s->connections[i]->fd >= 0 && (s->connections[i]->state == CONNECTION_UNAUTHENTICATED
                                           || s->connections[i]->ending))
            next = fmin(next, s->connections[i]->deadline);
    for (const request *r = s->requests; r != NULL; r = r->next)
        next = fmin(next, r->deadline);
    return next;
}

static int wait_ms(double until)
{
    double left = until - seconds_now();

    return left <= 0 ? 0 : (int)ceil(fmin(left, 3600) * 1e3);
}

static short events_of(const connection *m)
{
    return (short)((is_full(m) ? 0 : POLLIN) | (m->out_size > 0 ? POLLOUT : 0));
}

static int fill_polled(store_server *s, bool accepting)
{
    int n = 0;

    s->polled[n++] = (struct pollfd){ s->stop, POLLIN, 0 };
    for (int i = 0; i < s->listeners; i++)
        s->polled[n++] = (struct pollfd){ accepting ? s->listener[i] : -1, POLLIN, 0 };
    for (int i = 0; i < s->count; i++)
        s->polled[n++] = (struct pollfd){ s->connections[i]->fd, events_of(s->connections[i]), 0 };
    return n;
}

static void handle_stop(store_server *s)
{
    uint64_t given;

    if (read(s->stop, &given, sizeof given) != sizeof given)
        return;
    s->stopping = true;
    s->stop_at = seconds_now() + 1e-3 * (double)(given - 1);
    if (!s->complete && !s->failed)
        fail_all(s, PONS_COMMUNICATION, "rank 0 has given up before all processes were there");
}

/* Whether no rank is connected. */
static bool has_no_rank(const store_server *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->connections[i]->fd >= 0 && s->connections[i]->state == CONNECTION_JOINED)
            return false;
    return true;
}

static void serve_events(store_server *s, bool *accepting)
{
    int count = s->count; /* connections accepted below are polled next time */
    const struct pollfd *connections = s->polled + 1 + s->listeners;

    for (int i = 0; i < count; i++) {
        connection *m = s->connections[i];
        if (connections[i].revents != 0 && m->state != CONNECTION_ENDED)
            flush_output(m);
        handle_input(s, m); /* requests that waited for space in the output */
        if (connections[i].revents & (POLLIN | POLLHUP | POLLERR) && m->state != CONNECTION_ENDED)
            receive_input(s, m);
    }
    *accepting = true;
    if (s->polled[0].revents != 0)
        handle_stop(s);
    for (int i = 0; i < s->listeners; i++)
        if (s->polled[1 + i].revents != 0 && !accept_from(s, s->listener[i]))
            *accepting = false;
}

static void *serve_connections(void *context)
{
    store_server *s = context;
    bool accepting = true;

    for (;;) {
        double now = seconds_now(), until = next_deadline(s);
        if (!s->complete && !s->failed && now >= s->deadline)
            end_rendezvous(s);
        sweep_connections(s, now);
        if (s->stopping && (now >= s->stop_at || has_no_rank(s)))
            return NULL;
        if (!accepting) /* until a descriptor may be free */
            until = fmin(until, now + 0.1);
        poll(s->polled, (nfds_t)fill_polled(s, accepting), wait_ms(until));
        serve_events(s, &accepting);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

static pons_status listen_at_port(store_server *s, double timeout_s, pons_error *err)
{
    const struct timespec pause = { 0, 100000000 };
    double until = seconds_now() + fmin(timeout_s / 2, LISTEN_S); /* before others time out */

    if (s->place.listener > 2) {
        s->listener[0] = s->place.listener;
        if (!socket_adopt(s->place.listener))
            return pons_fail(err, PONS_CONFIG, "%s = %d in the environment is no socket that "
                             "listens", RANK_INFO_LISTENER, s->place.listener);
        s->listeners = 1;
        return PONS_OK;
    }
    for (;;) {
        s->listeners = socket_listen(s->place.master, s->place.port, s->listener);
        if (s->listeners > 0)
            return PONS_OK;
        if (errno != EADDRINUSE || seconds_now() >= until)
            return pons_fail(err, socket_is_shortage(errno) ? PONS_DEVICE : PONS_COMMUNICATION,
                             "rank 0 cannot open the store at port %d: %s"
                             "%s", s->place.port, strerror(errno), errno != EADDRINUSE ? ""
                             : "\nhint: another run, or another process with rank 0, has it; "
                               "MASTER_PORT (pons launch: --master) chooses another port");
        nanosleep(&pause, NULL);
    }
}

/* Raise the limit of descriptors: the usual one is too low for a thousand ranks. */
static void allow_descriptors(int processes)
{
    rlim_t needed = (rlim_t)processes + 512;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return;
    limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void server_free(store_server *s)
{
    for (int i = 0; i < s->listeners; i++)
        close(s->listener[i]);
    for (int i = 0; i < s->count; i++)
        connection_free(s->connections[i]);
    for (request *r = s->requests, *next; r != NULL; r = next) {
        next = r->next;
        free(r);
    }
    store_table_clear(&s->table);
    if (s->stop >= 0)
        close(s->stop);
    free(s->connections);
    free(s->polled);
    free(s->by_rank);
    free(s);
}

/* The thread blocks signals, which other threads handle. */
static pons_status start_thread(store_server *s, pons_error *err)
{
    sigset_t before;

    thread_block_signals(&before);
    thread_start(&s->thread, serve_connections, s, "the store's thread", err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err->status;
}

pons_status store_server_open(const rank_info *place, double timeout_s, store_server **out,
                              pons_error *err)
{
    store_server *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    s->place = *place;
    s->timeout_s = timeout_s;
    s->deadline = seconds_now() + timeout_s;
    s->by_rank = calloc((size_t)place->size, sizeof(connection *));
    s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    allow_descriptors(place->size);
    if (s->by_rank == NULL || s->stop < 0 || !reserve_connection(s))
        pons_fail(err, PONS_DEVICE, "the store cannot be opened: %s", strerror(errno));
    else if (listen_at_port(s, timeout_s, err) == PONS_OK)
        start_thread(s, err);
    if (err->status != PONS_OK) {
        server_free(s);
        return err->status;
    }
    *out = s;
    return PONS_OK;
}

const char *store_server_shortage(const store_server *s)
{
    return shortages[s->shortage_found];
}

void store_server_close(store_server *s, double wait_s)
{
    uint64_t milliseconds = 1 + (uint64_t)whole_within(wait_s * 1e3, 0, INT64_C(1) << 53);

    if (s == NULL)
        return;
    if (write(s->stop, &milliseconds, sizeof milliseconds) == sizeof milliseconds)
        pthread_join(s->thread, NULL);
    server_free(s);
}
