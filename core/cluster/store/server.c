/*
 * server.c - the store's thread on rank 0. It greets whoever connects, lets in who proves the
 * token, tells all when they are complete or what is wrong, and then answers requests.
 *
 * Everything but the event that ends it belongs to this one thread. It never waits for a single
 * connection: what comes is put together piece by piece, what goes is kept until it fits. Strangers
 * are few at a time and have seconds to say who they are.
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

/* Connections beside those of the processes, and what one may have waiting. */
enum { STRANGERS_MAX = 64, REQUESTS_MAX = 256, OUT_MAX = 4 * STORE_MESSAGE_MAX };
#define HELLO_S 10.0    /* for a hello                                                            */
#define LISTEN_S 10.0   /* for the port to be given back by an earlier run                        */
#define FLUSH_S 2.0     /* for last words                                                         */

typedef enum member_state { MEMBER_STRANGER = 1, MEMBER_JOINED, MEMBER_ENDED } member_state;

/* One connection. */
typedef struct member {
    int fd;
    member_state state;
    bool closing;               /* it said so: its end is no loss                                 */
    bool ending;                /* it ends when what is left has been sent                        */
    int requests;               /* of it that wait                                                */
    double deadline;            /* of a stranger, or of one that is ending                        */
    store_hello hello;
    uint8_t greeting[STORE_GREETING];
    char address[LINK_ADDRESS];
    uint8_t *in, *out;
    size_t in_size, out_size, out_room;
} member;

/* A get that waits. */
typedef struct request {
    struct request *next;
    member *from;
    uint32_t number;
    double deadline;
    char key[STORE_KEY_MAX + 1];
} request;

struct store_server {
    dist_place place;
    double timeout_s, deadline;     /* of the gathering                                           */
    pthread_t thread;
    int stop;                       /* an event: the number written is milliseconds to wait + 1   */
    int listener[LINK_LISTENERS], listeners;
    member **members;
    struct pollfd *polled;
    int count, room;
    member **by_rank;
    int joined;
    bool complete, stopping;
    atomic_int starved;             /* a word of 'shortages': the gathering has ended for it      */
    bool failed;                    /* the gathering; why:                                        */
    pons_status status;
    char why[1024];
    double stop_at;
    int refused;                    /* with a wrong token                                         */
    char refused_from[LINK_ADDRESS];
    request *requests;
    store_table table;
};

/* ---- sending --------------------------------------------------------------------------------- */

static void flush(member *m)
{
    while (m->out_size > 0 && m->state != MEMBER_ENDED) {
        ssize_t sent = send(m->fd, m->out, m->out_size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (sent < 0) {
            m->state = MEMBER_ENDED;
            return;
        }
        m->out_size -= (size_t)sent;
        memmove(m->out, m->out + sent, m->out_size);
    }
    if (m->ending && m->out_size == 0)
        m->state = MEMBER_ENDED;
}

/* Room for 'size' more bytes to send; a member that does not read what it asks for is let go. */
static uint8_t *room_out(member *m, size_t size)
{
    size_t room = m->out_size + size;
    uint8_t *out;

    if (room > OUT_MAX) {
        m->state = MEMBER_ENDED;
        return NULL;
    }
    if (room > m->out_room) {
        out = realloc(m->out, room);
        if (out == NULL) {
            m->state = MEMBER_ENDED;
            return NULL;
        }
        m->out = out;
        m->out_room = room;
    }
    return m->out + m->out_size;
}

static void answer(member *m, const store_message *message)
{
    uint8_t *out = room_out(m, STORE_HEAD + strlen(message->key) + message->size);

    if (out == NULL)
        return;
    m->out_size += store_message_write(message, out);
    flush(m);
}

static void answer_text(member *m, store_kind kind, uint32_t number, pons_status status,
                        const char *text)
{
    const store_message message = { .kind = kind, .number = number, .extra = (uint32_t)status,
                                    .value = text, .size = strlen(text) };

    answer(m, &message);
}

/* Last words; then the connection ends. */
static void dismiss(member *m, store_kind kind, pons_status status, const char *text)
{
    m->ending = true;
    m->closing = true;
    m->deadline = seconds_now() + FLUSH_S;
    answer_text(m, kind, 0, status, text);
    flush(m);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void answer_value(member *m, uint32_t number, const store_entry *e)
{
    store_message message = { .kind = STORE_LATE, .number = number };

    if (e != NULL) {
        message.kind = STORE_VALUE;
        message.extra = (uint32_t)fmin(1e3 * (seconds_now() - e->set), UINT32_MAX);
        message.value = e->value;
        message.size = e->size;
    }
    answer(m, &message);
}

/* Answer and drop the requests for 'key', those that are late, and those whose member has ended. */
static void settle(store_server *s, const char *key, double now)
{
    for (request **at = &s->requests, *r; (r = *at) != NULL; ) {
        bool answered = key != NULL && strcmp(r->key, key) == 0;
        if (!answered && r->from->state != MEMBER_ENDED && now < r->deadline) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->from->requests--;
        if (r->from->state != MEMBER_ENDED)
            answer_value(r->from, r->number, store_table_find(&s->table, r->key));
        free(r);
    }
}

/* Who sets has its answer before those who wait have theirs, and end the run for all it knows. */
static void take_set(store_server *s, member *m, const store_message *message)
{
    const store_message done = { .kind = STORE_DONE, .number = message->number };
    bool keeps = message->kind == STORE_SET_FIRST && store_table_find(&s->table, message->key);

    if (!keeps && !store_table_set(&s->table, message->key, message->value, message->size)) {
        answer_text(m, STORE_REFUSED, message->number, PONS_DEVICE, "the store is full");
        return;
    }
    answer(m, &done);
    if (!keeps)
        settle(s, message->key, seconds_now());
}

static void take_get(store_server *s, member *m, const store_message *message)
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

static void take_close(store_server *s, member *m, const store_message *message)
{
    (void)s;
    (void)message;
    m->closing = true;
    m->state = MEMBER_ENDED;
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* The gathering has failed: all learn why, and their connections end. */
static void fail_all(store_server *s, pons_status status, const char *text)
{
    s->failed = true;
    s->status = status;
    snprintf(s->why, sizeof s->why, "%s", text);
    for (int i = 0; i < s->count; i++)
        if (s->members[i]->state == MEMBER_JOINED)
            dismiss(s->members[i], STORE_REFUSED, status, s->why);
}

/*
 * Where a process is: who sits beside rank 0 is seen at an address that the others do not reach,
 * and is, as they see it, where they have reached rank 0.
 */
static const char *address_of(const store_server *s, const member *m, char room[LINK_ADDRESS])
{
    for (int i = 0; i < s->place.size && link_is_loopback(m->address); i++)
        if (!link_is_loopback(s->by_rank[i]->address)) {
            link_own(s->by_rank[i]->fd, room);
            return room;
        }
    return m->address;
}

static void welcome_all(store_server *s)
{
    char address[LINK_ADDRESS];

    s->complete = true;
    for (int i = 0; i < s->place.size; i++)
        answer_text(s->by_rank[i], STORE_WELCOME, 0, PONS_OK,
                    address_of(s, s->by_rank[i], address));
}

static size_t append(char *out, size_t room, size_t used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t append(char *out, size_t room, size_t used, const char *format, ...)
{
    va_list list;
    int size;

    va_start(list, format);
    size = vsnprintf(out + used, room - used, format, list);
    va_end(list);
    return size >= 0 && (size_t)size < room - used ? used + (size_t)size : room - 1;
}

/* "ranks 1, 3 and 5 of 8 have not come to the store at a:29500 within 30 s" */
static void tell_missing(const store_server *s, char *out, size_t room)
{
    enum { NAMED = 8 };
    int missing = s->place.size - s->joined, named = 0;
    size_t used = append(out, room, 0, missing > 1 ? "ranks" : "rank");

    for (int i = 0; i < s->place.size && named < NAMED; i++) {
        if (s->by_rank[i] != NULL)
            continue;
        used = append(out, room, used, "%s %d",
                      named == 0 ? "" : named + 1 == missing ? " and" : ",", i);
        named++;
    }
    if (missing > named)
        used = append(out, room, used, " and %d more", missing - named);
    used = append(out, room, used, " of %d ha%s not come to the store at %s:%d within %g s",
                  s->place.size, missing > 1 ? "ve" : "s", s->place.master, s->place.port,
                  s->timeout_s);
    if (s->refused > 0)
        append(out, room, used, "; %d connection%s without the job's token %s refused, the last "
               "from %s", s->refused, s->refused > 1 ? "s" : "", s->refused > 1 ? "were" : "was",
               s->refused_from);
}

static void end_gathering(store_server *s)
{
    char text[sizeof s->why];

    tell_missing(s, text, sizeof text);
    fail_all(s, PONS_COMMUNICATION, text);
}

static void lose(store_server *s, member *m)
{
    char rank[16];

    if (m->hello.rank >= (uint32_t)s->place.size || s->by_rank[m->hello.rank] != m)
        return;
    if (!s->complete) {
        s->by_rank[m->hello.rank] = NULL;
        s->joined--;
        return;
    }
    snprintf(rank, sizeof rank, "%u", m->hello.rank);
    if (!m->closing && store_table_find(&s->table, STORE_LOST) == NULL
        && store_table_set(&s->table, STORE_LOST, rank, strlen(rank)))
        settle(s, STORE_LOST, seconds_now());
}

/* The next process of a rank may be heard in the same moment as the end of the one before. */
static void lose_ended(store_server *s, uint32_t rank)
{
    member *m = rank < (uint32_t)s->place.size ? s->by_rank[rank] : NULL;

    if (m != NULL && m->state == MEMBER_ENDED)
        lose(s, m);
}

/* Why a process that knows the token cannot be who it says; "" where it can. */
static void find_fault(const store_server *s, const member *m, char *out, size_t room)
{
    const store_hello *h = &m->hello;
    const member *other = h->rank < (uint32_t)s->place.size ? s->by_rank[h->rank] : NULL;

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
                 h->rank, other->hello.process, other->address, h->process, m->address);
}

/*
 * The run has begun, or will not. Where its processes are started again after a failure this one
 * may be ahead of the others, and of this store's end: that is no fault of the configuration.
 */
static bool turn_away(const store_server *s, member *m, const char *fault)
{
    bool early = s->failed ? s->status == PONS_COMMUNICATION : s->complete;

    if (early)
        dismiss(m, STORE_EARLY, PONS_COMMUNICATION, s->failed ? s->why : fault);
    else if (s->failed)
        dismiss(m, STORE_REFUSED, s->status, s->why);
    return early || s->failed;
}

static void join(store_server *s, member *m)
{
    char fault[512];
    double margin = fmin(0.5, 0.1 * s->timeout_s);

    m->state = MEMBER_JOINED;
    lose_ended(s, m->hello.rank);
    find_fault(s, m, fault, sizeof fault);
    if (turn_away(s, m, fault))
        return;
    if (fault[0] != '\0') {
        fail_all(s, PONS_CONFIG, fault);
        return;
    }
    s->by_rank[m->hello.rank] = m;
    s->joined++;
    /* Before anybody's own patience ends, so that the line with the names reaches everybody. */
    s->deadline = fmin(s->deadline, seconds_now() + 1e-3 * m->hello.wait_ms - margin);
    if (s->joined == s->place.size)
        welcome_all(s);
}

static void take_hello(store_server *s, member *m)
{
    if (store_hello_read(m->in, s->place.token, m->greeting, &m->hello)) {
        join(s, m);
        return;
    }
    s->refused++;
    memcpy(s->refused_from, m->address, sizeof s->refused_from);
    dismiss(m, STORE_STRANGER, PONS_COMMUNICATION, "");
}

/* ---- receiving ------------------------------------------------------------------------------- */

typedef void taker(store_server *s, member *m, const store_message *message);

static taker *const takers[STORE_KINDS] = {
    [STORE_SET] = take_set, [STORE_SET_FIRST] = take_set, [STORE_GET] = take_get,
    [STORE_CLOSE] = take_close
};

/* Returns how much of what has come is dealt with; -1: the connection is to end. */
static int take_one(store_server *s, member *m)
{
    store_message message;
    int size;

    if (m->state == MEMBER_STRANGER) {
        if (m->in_size < STORE_HELLO)
            return 0;
        take_hello(s, m);
        return STORE_HELLO;
    }
    size = store_message_read(m->in, m->in_size, &message);
    if (size <= 0)
        return size;
    if (takers[message.kind] == NULL || !s->complete
        || (message.kind != STORE_CLOSE && message.key[0] == '\0'))
        return -1;
    takers[message.kind](s, m, &message);
    return size;
}

/* No further request is taken before what was asked for has gone. */
static bool is_full(const member *m)
{
    return m->out_size > OUT_MAX - STORE_MESSAGE_MAX;
}

static void take_all(store_server *s, member *m)
{
    while (m->in_size > 0 && m->state != MEMBER_ENDED && !m->ending && !is_full(m)) {
        int size = take_one(s, m);
        if (size == 0)
            return;
        if (size < 0) {
            m->state = MEMBER_ENDED;
            return;
        }
        m->in_size -= (size_t)size;
        memmove(m->in, m->in + size, m->in_size);
    }
}

/* A stranger's bytes are taken up to the end of its hello only. */
static void receive(store_server *s, member *m)
{
    size_t room = m->state == MEMBER_STRANGER ? STORE_HELLO : STORE_MESSAGE_MAX;
    uint8_t rest[256];
    ssize_t got;

    if (m->ending) /* nothing is said to it that it could answer */
        got = recv(m->fd, rest, sizeof rest, 0);
    else
        got = recv(m->fd, m->in + m->in_size, room - m->in_size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (got <= 0) {
        m->state = MEMBER_ENDED;
        return;
    }
    if (m->ending)
        return;
    m->in_size += (size_t)got;
    take_all(s, m);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void member_free(member *m)
{
    if (m == NULL)
        return;
    if (m->fd >= 0)
        close(m->fd);
    free(m->in);
    free(m->out);
    free(m);
}

/* Those that have ended go; the ranks among them stay as they were for those who ask later. */
static void sweep(store_server *s, double now)
{
    int kept = 0;

    for (int i = 0; i < s->count; i++) {
        member *m = s->members[i];
        bool late = (m->state == MEMBER_STRANGER || m->ending) && now >= m->deadline;
        if (late)
            m->state = MEMBER_ENDED;
        if (m->state == MEMBER_ENDED && m->fd >= 0) {
            lose(s, m);
            close(m->fd);
            m->fd = -1;
        }
    }
    settle(s, NULL, now);
    for (int i = 0; i < s->count; i++) {
        member *m = s->members[i];
        bool held = m->hello.rank < (uint32_t)s->place.size && s->by_rank[m->hello.rank] == m;
        if (m->fd >= 0 || held)
            s->members[kept++] = m;
        else
            member_free(m);
    }
    s->count = kept;
}

static bool make_room(store_server *s)
{
    int room = s->room > 0 ? 2 * s->room : 32;
    member **members;
    struct pollfd *polled;

    if (s->count < s->room)
        return true;
    members = realloc(s->members, (size_t)room * sizeof *members);
    if (members != NULL)
        s->members = members;
    polled = realloc(s->polled, (size_t)(room + 1 + LINK_LISTENERS) * sizeof *polled);
    if (polled != NULL)
        s->polled = polled;
    if (members == NULL || polled == NULL)
        return false;
    s->room = room;
    return true;
}

/* More than may still be ranks, and some: the one that has said nothing for longest makes room. */
static void limit_strangers(store_server *s)
{
    member *oldest = NULL;
    int strangers = 0;

    for (int i = 0; i < s->count; i++) {
        member *m = s->members[i];
        if (m->state != MEMBER_STRANGER)
            continue;
        strangers++;
        if (oldest == NULL || m->deadline < oldest->deadline)
            oldest = m;
    }
    if (strangers > STRANGERS_MAX + s->place.size - s->joined)
        oldest->state = MEMBER_ENDED;
}

static member *member_new(int fd)
{
    member *m = calloc(1, sizeof *m);

    if (m == NULL)
        return NULL;
    m->fd = -1;
    m->in = malloc(STORE_MESSAGE_MAX);
    m->out_room = STORE_GREETING;
    m->out = malloc(m->out_room);
    if (m->in == NULL || m->out == NULL || !store_greeting_write(m->greeting)) {
        member_free(m);
        return NULL;
    }
    m->fd = fd;
    m->state = MEMBER_STRANGER;
    m->hello.rank = UINT32_MAX;
    m->deadline = seconds_now() + HELLO_S;
    link_peer(fd, m->address);
    return m;
}

typedef enum shortage { ENOUGH = 0, NO_MEMORY, NO_DESCRIPTORS } shortage;

static const char *const shortages[] = {
    [NO_MEMORY] = "rank 0 is out of memory for connections to its store",
    [NO_DESCRIPTORS] = "rank 0 cannot take connections to its store: Too many open files"
};

/* A process that may have been a rank is turned away: it would come again until its time is up. */
static void starve(store_server *s, shortage what)
{
    if (s->complete || s->failed)
        return;
    s->starved = what;
    fail_all(s, PONS_DEVICE, shortages[what]);
}

/* Unauthenticated connections are closed within seconds, and so are those of members that end. */
static bool has_lenders(const store_server *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->members[i]->fd >= 0 && (s->members[i]->state == MEMBER_STRANGER
                                       || s->members[i]->ending))
            return true;
    return false;
}

static void greet(store_server *s, int fd)
{
    member *m = make_room(s) ? member_new(fd) : NULL;

    if (m == NULL) {
        close(fd);
        starve(s, NO_MEMORY);
        return;
    }
    s->members[s->count++] = m;
    memcpy(m->out, m->greeting, STORE_GREETING);
    m->out_size = STORE_GREETING;
    flush(m);
    limit_strangers(s);
}

/*
 * Accept connections. Without a free descriptor a new connection stays queued until an
 * unauthenticated or ending one is closed; if there is none, the gathering fails.
 */
static bool accept_from(store_server *s, int listener)
{
    for (int i = 0; i < STRANGERS_MAX; i++) {
        int fd = link_accept(listener);
        if (fd < 0) {
            const int problem = errno;
            if (link_is_short(problem) && !has_lenders(s))
                starve(s, problem == EMFILE || problem == ENFILE ? NO_DESCRIPTORS : NO_MEMORY);
            return !link_is_short(problem);
        }
        greet(s, fd);
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
        if (s->members[i]->fd >= 0 && (s->members[i]->state == MEMBER_STRANGER
                                       || s->members[i]->ending))
            next = fmin(next, s->members[i]->deadline);
    for (const request *r = s->requests; r != NULL; r = r->next)
        next = fmin(next, r->deadline);
    return next;
}

static int wait_ms(double until)
{
    double left = until - seconds_now();

    return left <= 0 ? 0 : (int)ceil(fmin(left, 3600) * 1e3);
}

static short events_of(const member *m)
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
        s->polled[n++] = (struct pollfd){ s->members[i]->fd, events_of(s->members[i]), 0 };
    return n;
}

static void take_stop(store_server *s)
{
    uint64_t given;

    if (read(s->stop, &given, sizeof given) != sizeof given)
        return;
    s->stopping = true;
    s->stop_at = seconds_now() + 1e-3 * (double)(given - 1);
    if (!s->complete && !s->failed)
        fail_all(s, PONS_COMMUNICATION, "rank 0 has given up before all processes were there");
}

/* Nobody is connected but strangers. */
static bool is_left_alone(const store_server *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->members[i]->fd >= 0 && s->members[i]->state == MEMBER_JOINED)
            return false;
    return true;
}

static void serve_events(store_server *s, bool *accepting)
{
    int count = s->count; /* those who come now are polled next time */
    const struct pollfd *members = s->polled + 1 + s->listeners;

    for (int i = 0; i < count; i++) {
        member *m = s->members[i];
        if (members[i].revents != 0 && m->state != MEMBER_ENDED)
            flush(m);
        take_all(s, m); /* what waited for room */
        if (members[i].revents & (POLLIN | POLLHUP | POLLERR) && m->state != MEMBER_ENDED)
            receive(s, m);
    }
    *accepting = true;
    if (s->polled[0].revents != 0)
        take_stop(s);
    for (int i = 0; i < s->listeners; i++)
        if (s->polled[1 + i].revents != 0 && !accept_from(s, s->listener[i]))
            *accepting = false;
}

static void *serve(void *context)
{
    store_server *s = context;
    bool accepting = true;

    for (;;) {
        double now = seconds_now(), until = next_deadline(s);
        if (!s->complete && !s->failed && now >= s->deadline)
            end_gathering(s);
        sweep(s, now);
        if (s->stopping && (now >= s->stop_at || is_left_alone(s)))
            return NULL;
        if (!accepting) /* until a descriptor is free again */
            until = fmin(until, now + 0.1);
        poll(s->polled, (nfds_t)fill_polled(s, accepting), wait_ms(until));
        serve_events(s, &accepting);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

static pons_status listen_at_port(store_server *s, double timeout_s, pons_error *err)
{
    const struct timespec pause = { 0, 100000000 };
    double until = seconds_now() + fmin(timeout_s / 2, LISTEN_S); /* before others give up */

    if (s->place.listener > 2) {
        s->listener[0] = s->place.listener;
        if (!link_adopt(s->place.listener))
            return pons_fail(err, PONS_CONFIG, "%s = %d in the environment is no socket that "
                             "listens", DIST_LISTENER, s->place.listener);
        s->listeners = 1;
        return PONS_OK;
    }
    for (;;) {
        s->listeners = link_listen(s->place.master, s->place.port, s->listener);
        if (s->listeners > 0)
            return PONS_OK;
        if (errno != EADDRINUSE || seconds_now() >= until)
            return pons_fail(err, link_is_short(errno) ? PONS_DEVICE : PONS_COMMUNICATION,
                             "rank 0 cannot open the store at port %d: %s"
                             "%s", s->place.port, strerror(errno), errno != EADDRINUSE ? ""
                             : "\nhint: another run, or another process with rank 0, has it; "
                               "MASTER_PORT (pons launch: --master) chooses another port");
        nanosleep(&pause, NULL);
    }
}

/* One descriptor per process is more than the usual limit allows from a thousand on. */
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
        member_free(s->members[i]);
    for (request *r = s->requests, *next; r != NULL; r = next) {
        next = r->next;
        free(r);
    }
    store_table_clear(&s->table);
    if (s->stop >= 0)
        close(s->stop);
    free(s->members);
    free(s->polled);
    free(s->by_rank);
    free(s);
}

/* Signals belong to the other threads. */
static pons_status start(store_server *s, pons_error *err)
{
    sigset_t before;

    thread_block_signals(&before);
    thread_start(&s->thread, serve, s, "the store's thread", err);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err->status;
}

pons_status store_server_open(const dist_place *place, double timeout_s, store_server **out,
                              pons_error *err)
{
    store_server *s = calloc(1, sizeof *s);

    if (s == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    s->place = *place;
    s->timeout_s = timeout_s;
    s->deadline = seconds_now() + timeout_s;
    s->by_rank = calloc((size_t)place->size, sizeof(member *));
    s->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    allow_descriptors(place->size);
    if (s->by_rank == NULL || s->stop < 0 || !make_room(s))
        pons_fail(err, PONS_DEVICE, "the store cannot be opened: %s", strerror(errno));
    else if (listen_at_port(s, timeout_s, err) == PONS_OK)
        start(s, err);
    if (err->status != PONS_OK) {
        server_free(s);
        return err->status;
    }
    *out = s;
    return PONS_OK;
}

const char *store_server_starved(const store_server *s)
{
    return shortages[s->starved];
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
