/*
 * proxy.c - one thread that forwards bytes between connections, late where a test asks for it.
 */
#include "support/process/proxy.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAIRS_MAX = 256, CHUNK = 65536, CHUNKS_MAX = 64 };

/* Received bytes that are not due, or that the other side cannot take. */
typedef struct chunk {
    struct chunk *next;
    double due;
    size_t size, sent;
    char data[];
} chunk;

/* One direction of a connection. */
typedef struct way {
    chunk *first, *last;
    int count;
    bool ended;                /* the sender has closed this direction                            */
} way;

typedef struct pair {
    int file[2];               /* client and server; -1: not open                                 */
    proxy_header header;
    size_t header_size;        /* bytes received of the header                                    */
    way way[2];                /* bytes from file[i]                                              */
} pair;

struct proxy {
    pthread_t thread;
    int listener, port, wake[2];
    _Atomic double delay_s;
    atomic_bool cut, reset, closing;
    atomic_int connections;
    _Atomic int64_t bytes;
    int count;
    pair pair[PAIRS_MAX];
};

/* ---- connections ----------------------------------------------------------------------------- */

static void drop_chunks(way *w)
{
    while (w->first != NULL) {
        chunk *next = w->first->next;
        free(w->first);
        w->first = next;
    }
    *w = (way){ .ended = true };
}

static void close_file(int *file, bool reset)
{
    const struct linger at_once = { 1, 0 };

    if (*file < 0)
        return;
    if (reset)
        setsockopt(*file, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(*file);
    *file = -1;
}

static void drop_pair(pair *q, bool reset)
{
    for (int i = 0; i < 2; i++) {
        close_file(&q->file[i], reset);
        drop_chunks(&q->way[i]);
    }
}

static void set_options(int file)
{
    int one = 1;

    fcntl(file, F_SETFL, O_NONBLOCK);
    setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void accept_connection(proxy *p)
{
    int file = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);

    if (file < 0)
        return;
    if (p->count == PAIRS_MAX) {
        close_file(&file, true);
        return;
    }
    set_options(file);
    p->pair[p->count++] = (pair){ .file = { file, -1 } };
    p->connections++;
}

/* Connect to the server of the header. The call may block: loopback accepts or refuses at once. */
static bool connect_server(pair *q)
{
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = q->header.port };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = q->header.port };
    bool is_six = q->header.family == AF_INET6;

    memcpy(&four.sin_addr, q->header.address, sizeof four.sin_addr);
    memcpy(&six.sin6_addr, q->header.address, sizeof six.sin6_addr);
    q->file[1] = socket(q->header.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (q->file[1] < 0
        || connect(q->file[1], is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four,
                   is_six ? sizeof six : sizeof four) != 0)
        return false;
    set_options(q->file[1]);
    return true;
}

static void take_header(pair *q)
{
    ssize_t size = read(q->file[0], (char *)&q->header + q->header_size,
                        sizeof q->header - q->header_size);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    q->header_size += size > 0 ? (size_t)size : 0;
    if (size <= 0 || (q->header_size == sizeof q->header
                      && (q->header.magic != PROXY_MAGIC || !connect_server(q))))
        drop_pair(q, true);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void take_chunk(proxy *p, pair *q, int from)
{
    way *w = &q->way[from];
    chunk *c = malloc(sizeof *c + CHUNK);
    ssize_t size = c == NULL ? -1 : read(q->file[from], c->data, CHUNK);

    if (size <= 0) {
        bool later = size < 0 && (errno == EAGAIN || errno == EINTR);
        free(c);
        if (size < 0 && !later)
            drop_pair(q, true);
        w->ended = w->ended || size == 0;
        return;
    }
    c->next = NULL;
    c->due = seconds_now() + p->delay_s;
    c->size = (size_t)size;
    c->sent = 0;
    p->bytes += size; /* counted before a receiver can have them */
    if (w->last != NULL)
        w->last->next = c;
    else
        w->first = c;
    w->last = c;
    w->count++;
}

static void send_chunk(pair *q, int from)
{
    way *w = &q->way[from];
    chunk *c = w->first;
    ssize_t size = send(q->file[!from], c->data + c->sent, c->size - c->sent, MSG_NOSIGNAL);

    if (size < 0) {
        if (errno != EAGAIN && errno != EINTR)
            drop_pair(q, true);
        return;
    }
    c->sent += (size_t)size;
    if (c->sent < c->size)
        return;
    w->first = c->next;
    w->last = w->first == NULL ? NULL : w->last;
    w->count--;
    free(c);
}

/* Pass on the end of a direction behind the bytes that came before it. */
static void pass_end(pair *q)
{
    for (int i = 0; i < 2; i++)
        if (q->file[!i] >= 0 && q->way[i].ended && q->way[i].first == NULL)
            shutdown(q->file[!i], SHUT_WR);
    if (q->way[0].ended && q->way[1].ended && q->way[0].first == NULL && q->way[1].first == NULL)
        drop_pair(q, false);
}

/* ---- thread ---------------------------------------------------------------------------------- */

static short pair_events(const proxy *p, const pair *q, int side, double now)
{
    const way *in = &q->way[side], *out = &q->way[!side];
    short events = 0;

    if (p->cut || q->file[side] < 0)
        return 0;
    if (q->file[1] < 0)
        return side == 0 ? POLLIN : 0;
    if (!in->ended && in->count < CHUNKS_MAX)
        events |= POLLIN;
    if (out->first != NULL && out->first->due <= now)
        events |= POLLOUT;
    return events;
}

static void serve_pair(proxy *p, pair *q, const struct pollfd file[2])
{
    for (int side = 0; side < 2; side++) {
        if (q->file[side] != file[side].fd || q->file[side] < 0 || file[side].revents == 0)
            continue;
        if (q->file[1] < 0) {
            take_header(q);
            continue;
        }
        if (file[side].revents & POLLOUT)
            send_chunk(q, !side);
        if (q->file[side] >= 0 && (file[side].events & POLLIN)
            && (file[side].revents & (POLLIN | POLLHUP | POLLERR)))
            take_chunk(p, q, side);
    }
    if (q->file[1] >= 0)
        pass_end(q);
}

static void remove_dropped_pairs(proxy *p)
{
    int kept = 0;

    for (int i = 0; i < p->count; i++)
        if (p->pair[i].file[0] >= 0 || p->pair[i].file[1] >= 0)
            p->pair[kept++] = p->pair[i];
    p->count = kept;
}

static void proxy_serve(proxy *p)
{
    struct pollfd file[2 + 2 * PAIRS_MAX] = { { p->wake[0], POLLIN, 0 },
                                              { p->listener, p->cut ? 0 : POLLIN, 0 } };
    double now = seconds_now();
    int count = p->count;
    char word;

    for (int i = 0; i < count; i++)
        for (int side = 0; side < 2; side++) {
            short events = pair_events(p, &p->pair[i], side, now);
            file[2 + 2 * i + side] = (struct pollfd){ events != 0 ? p->pair[i].file[side] : -1,
                                                      events, 0 };
        }
    poll(file, 2 + 2 * (nfds_t)count, p->delay_s > 0 ? 1 : 20);
    while (read(p->wake[0], &word, 1) > 0)
        continue;
    for (int i = 0; i < count; i++)
        serve_pair(p, &p->pair[i], &file[2 + 2 * i]);
    if (file[1].revents != 0)
        accept_connection(p);
    if (atomic_exchange(&p->reset, false))
        for (int i = 0; i < p->count; i++)
            drop_pair(&p->pair[i], true);
    remove_dropped_pairs(p);
}

static void *proxy_run(void *context)
{
    proxy *p = context;

    while (!p->closing)
        proxy_serve(p);
    return NULL;
}

/* ---- interface ------------------------------------------------------------------------------- */

static bool listen_somewhere(proxy *p)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof address;

    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&address, sizeof address) != 0
        || listen(p->listener, SOMAXCONN) != 0
        || getsockname(p->listener, (struct sockaddr *)&address, &size) != 0)
        return false;
    p->port = ntohs(address.sin_port);
    return true;
}

proxy *proxy_open(void)
{
    proxy *p = calloc(1, sizeof *p);

    if (p == NULL || !listen_somewhere(p) || pipe2(p->wake, O_CLOEXEC | O_NONBLOCK) != 0
        || pthread_create(&p->thread, NULL, proxy_run, p) != 0)
        return NULL;
    return p;
}

static void wake(proxy *p)
{
    ssize_t written = write(p->wake[1], "", 1);

    (void)written; /* a full pipe: the thread is awake */
}

void proxy_close(proxy *p)
{
    p->closing = true;
    wake(p);
    pthread_join(p->thread, NULL);
    for (int i = 0; i < p->count; i++)
        drop_pair(&p->pair[i], false);
    close(p->listener);
    close(p->wake[0]);
    close(p->wake[1]);
    free(p);
}

int proxy_port(const proxy *p)
{
    return p->port;
}

bool proxy_surround(const proxy *p)
{
    char module[PATH_MAX], port[16];

    snprintf(port, sizeof port, "%d", p->port);
    return realpath("tests/plugins/.libs/redirect.so", module) != NULL
        && setenv("PROXY_PORT", port, 1) == 0 && setenv("LD_PRELOAD", module, 1) == 0;
}

void proxy_delay(proxy *p, double seconds)
{
    p->delay_s = seconds;
    wake(p);
}

void proxy_cut(proxy *p, bool cut)
{
    p->cut = cut;
    wake(p);
}

void proxy_reset(proxy *p)
{
    p->reset = true;
    wake(p);
}

int64_t proxy_bytes(proxy *p)
{
    return p->bytes;
}

int proxy_connections(proxy *p)
{
    return p->connections;
}
