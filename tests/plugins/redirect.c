/*
 * redirect.c - preloaded: connections to this machine go through the proxy at PROXY_PORT. Its
 * processes cannot read each other's memory, as if they ran on different machines.
 */
#include "support/process/proxy.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

typedef int connect_function(int file, const struct sockaddr *address, socklen_t size);

/* Describe the destination; false: it is another machine. */
static bool describe(const struct sockaddr *address, proxy_header *out)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

    *out = (proxy_header){ .magic = PROXY_MAGIC, .family = address->sa_family };
    if (address->sa_family == AF_INET && ntohl(four->sin_addr.s_addr) >> 24 == 127) {
        out->port = four->sin_port;
        memcpy(out->address, &four->sin_addr, sizeof four->sin_addr);
        return true;
    }
    if (address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)) {
        out->port = six->sin6_port;
        memcpy(out->address, &six->sin6_addr, sizeof six->sin6_addr);
        return true;
    }
    return false;
}

/* Replace a socket of the other family by one that can reach the proxy. */
static int fit_family(int file, int family)
{
    int made, kept = fcntl(file, F_GETFD), flags = fcntl(file, F_GETFL);

    if (family == AF_INET)
        return 0;
    made = socket(AF_INET, SOCK_STREAM, 0);
    if (made < 0 || dup2(made, file) < 0)
        return -1;
    fcntl(file, F_SETFD, kept);
    fcntl(file, F_SETFL, flags);
    return 0;
}

int connect(int file, const struct sockaddr *address, socklen_t size)
{
    connect_function *real = (connect_function *)dlsym(RTLD_NEXT, "connect");
    const char *port = getenv("PROXY_PORT");
    struct sockaddr_in proxy = { .sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    proxy_header header;
    int type = 0, flags = fcntl(file, F_GETFL), failed;
    socklen_t type_size = sizeof type;

    getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &type_size);
    if (port == NULL || type != SOCK_STREAM || !describe(address, &header))
        return real(file, address, size);
    proxy.sin_port = htons((uint16_t)atoi(port));
    if (fit_family(file, address->sa_family) != 0)
        return -1;
    fcntl(file, F_SETFL, flags & ~O_NONBLOCK);
    failed = real(file, (struct sockaddr *)&proxy, sizeof proxy) != 0
             || send(file, &header, sizeof header, MSG_NOSIGNAL) != (ssize_t)sizeof header
             ? errno : 0;
    fcntl(file, F_SETFL, flags);
    errno = failed;
    return failed != 0 ? -1 : 0;
}

ssize_t process_vm_readv(pid_t process, const struct iovec *here, unsigned long here_count,
                         const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    errno = EPERM;
    return -1;
}
