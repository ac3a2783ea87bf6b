/*
 * socket.c - non-blocking TCP sockets for the store.
 */
#include "cluster/store/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define CONNECT_S 5.0

/* ---- options --------------------------------------------------------------------------------- */

/* Keepalive finds a dead connection after about a minute. */
static void set_options(int fd)
{
    static const struct { int level, name, value; } options[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 }, { IPPROTO_TCP, TCP_KEEPIDLE, 30 },
        { IPPROTO_TCP, TCP_KEEPINTVL, 10 }, { IPPROTO_TCP, TCP_KEEPCNT, 3 },
        { IPPROTO_TCP, TCP_NODELAY, 1 }
    };

    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

/* ---- listening ------------------------------------------------------------------------------- */

static int listen_at(const struct sockaddr *address, socklen_t size, bool both)
{
    int one = 1, only = !both, failed;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (address->sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    if (bind(fd, address, size) == 0 && listen(fd, 1024) == 0)
        return fd;
    failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

static int listen_everywhere(int port)
{
    const struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port),
                                      .sin6_addr = IN6ADDR_ANY_INIT };
    const struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                                      .sin_addr.s_addr = htonl(INADDR_ANY) };
    int fd = listen_at((const struct sockaddr *)&six, sizeof six, true);

    if (fd < 0 && errno != EADDRINUSE) /* a machine without IPv6 */
        fd = listen_at((const struct sockaddr *)&four, sizeof four, false);
    return fd;
}

static int resolve(const char *host, int port, struct addrinfo **out)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_NUMERICSERV };
    char service[16];

    snprintf(service, sizeof service, "%d", port);
    return getaddrinfo(host, service, &hints, out);
}

/* The errno that stands for a failure of getaddrinfo. */
static int resolve_errno(int failed)
{
    return failed == EAI_MEMORY ? ENOMEM
         : failed == EAI_SYSTEM && socket_is_shortage(errno) ? errno : EADDRNOTAVAIL;
}

bool socket_is_loopback(const char *address)
{
    return strcmp(address, "localhost") == 0 || strcmp(address, "::1") == 0
           || strncmp(address, "127.", 4) == 0;
}

int socket_listen(const char *host, int port, int out[SOCKET_LISTENERS])
{
    struct addrinfo *list = NULL;
    int count = 0, failed;

    if (!socket_is_loopback(host)) {
        out[0] = listen_everywhere(port);
        return out[0] >= 0;
    }
    failed = resolve(host, port, &list);
    if (failed != 0) {
        errno = resolve_errno(failed);
        return 0;
    }
    errno = EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a != NULL && count < SOCKET_LISTENERS; a = a->ai_next) {
        out[count] = listen_at(a->ai_addr, a->ai_addrlen, false);
        if (out[count] >= 0)
            count++;
    }
    freeaddrinfo(list);
    return count;
}

static int port_of(int fd)
{
    struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
    socklen_t size = sizeof address;
    const struct sockaddr_in *four = (const void *)&address;
    const struct sockaddr_in6 *six = (const void *)&address;

    getsockname(fd, (struct sockaddr *)&address, &size);
    return ntohs(address.ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
}

int socket_listen_free(const char *address, int *port)
{
    struct addrinfo *list = NULL;
    int fd = -1, failed = resolve(address, 0, &list);

    if (failed != 0) {
        errno = resolve_errno(failed);
        return -1;
    }
    errno = EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
        fd = listen_at(a->ai_addr, a->ai_addrlen, false);
    freeaddrinfo(list);
    if (fd >= 0)
        *port = port_of(fd);
    return fd;
}

bool socket_adopt(int listener)
{
    int listens = 0, flags = fcntl(listener, F_GETFL);
    socklen_t size = sizeof listens;

    return flags >= 0 && getsockopt(listener, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0
           && listens && fcntl(listener, F_SETFL, flags | O_NONBLOCK) == 0
           && fcntl(listener, F_SETFD, FD_CLOEXEC) == 0;
}

int socket_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd >= 0)
        set_options(fd);
    return fd;
}

bool socket_is_shortage(int problem)
{
    return problem == EMFILE || problem == ENFILE || problem == ENOMEM || problem == ENOBUFS;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool wait_for(int fd, short events, double deadline)
{
    struct pollfd p = { fd, events, 0 };

    for (;;) {
        double left = deadline - seconds_now();
        int ready = poll(&p, 1, left <= 0 ? 0 : (int)fmin(ceil(left * 1e3), 3600e3));
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready == 0 && left <= 0) {
            errno = ETIMEDOUT;
            return false;
        }
    }
}

bool socket_wait(int fd, double deadline)
{
    return wait_for(fd, POLLIN, deadline);
}

/* ---- connecting ------------------------------------------------------------------------------ */

/*
 * Whether a connection is connected to itself. The kernel may give an attempt the very port that it
 * connects to, while no process listens there (TCP simultaneous open).
 */
static bool is_itself(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_size = sizeof own, peer_size = sizeof peer;

    memset(&own, 0, sizeof own);
    memset(&peer, 0, sizeof peer);
    return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0
           && getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0
           && memcmp(&own, &peer, sizeof own) == 0;
}

static int connect_to(const struct addrinfo *a, double deadline)
{
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), failed = 0;
    socklen_t size = sizeof failed;

    if (fd < 0)
        return -1;
    set_options(fd);
    if (connect(fd, a->ai_addr, a->ai_addrlen) != 0)
        failed = errno;
    if (failed == EINPROGRESS && wait_for(fd, POLLOUT, deadline))
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size);
    else if (failed == EINPROGRESS)
        failed = errno;
    if (failed == 0 && !is_itself(fd))
        return fd;
    close(fd);
    errno = failed != 0 ? failed : ECONNREFUSED;
    return -1;
}

int socket_connect(const char *host, int port, double deadline, char *why, size_t why_size)
{
    struct addrinfo *list = NULL;
    int fd = -1, failed = resolve(host, port, &list);

    if (failed != 0) {
        const int problem = resolve_errno(failed);
        snprintf(why, why_size, "%s", socket_is_shortage(problem) ? strerror(problem)
                                      : gai_strerror(failed));
        errno = problem;
        return -1;
    }
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
        fd = connect_to(a, fmin(deadline, seconds_now() + CONNECT_S));
        failed = errno;
        if (fd < 0)
            snprintf(why, why_size, "%s", strerror(failed));
    }
    freeaddrinfo(list);
    errno = failed;
    return fd;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool is_retry(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

bool socket_send(int fd, const void *data, size_t size, double deadline)
{
    const uint8_t *at = data;

    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent >= 0) {
            at += sent;
            size -= (size_t)sent;
        } else if (!is_retry() || !wait_for(fd, POLLOUT, deadline)) {
            return false;
        }
    }
    return true;
}

bool socket_receive(int fd, void *data, size_t size, double deadline)
{
    uint8_t *at = data;

    while (size > 0) {
        ssize_t got = recv(fd, at, size, 0);
        if (got > 0) {
            at += got;
            size -= (size_t)got;
        } else if (got == 0) {
            errno = ECONNRESET;
            return false;
        } else if (!is_retry() || !wait_for(fd, POLLIN, deadline)) {
            return false;
        }
    }
    return true;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void address_text(const struct sockaddr_storage *address, char out[SOCKET_ADDRESS_SIZE])
{
    const struct sockaddr_in *four = (const void *)address;
    const struct sockaddr_in6 *six = (const void *)address;

    out[0] = '\0';
    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &four->sin_addr, out, SOCKET_ADDRESS_SIZE);
    else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], out, SOCKET_ADDRESS_SIZE);
    else if (address->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &six->sin6_addr, out, SOCKET_ADDRESS_SIZE);
}

void socket_peer_address(int fd, char out[SOCKET_ADDRESS_SIZE])
{
    struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
    socklen_t size = sizeof address;

    getpeername(fd, (struct sockaddr *)&address, &size);
    address_text(&address, out);
}

void socket_own_address(int fd, char out[SOCKET_ADDRESS_SIZE])
{
    struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
    socklen_t size = sizeof address;

    getsockname(fd, (struct sockaddr *)&address, &size);
    address_text(&address, out);
}
