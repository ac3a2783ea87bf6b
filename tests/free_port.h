/*
 * free_port.h - a port of the loopback address at which nobody listens. It is one that the kernel
 * gives to nobody who asks for any, and no other test takes it while this one runs.
 */
#ifndef TESTS_FREE_PORT_H
#define TESTS_FREE_PORT_H

#include "asserts.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FREE_PORT_FIRST = 10000, FREE_PORT_COUNT = 10000 };

/* A name in no folder, which goes with the process. */
static inline bool reserve_port(int port)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    int size = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "check-pons-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    if (bind(fd, (struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size)) == 0)
        return true;
    close(fd);
    return false;
}

static inline bool is_free_port(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;

    close(fd);
    return is_free;
}

static inline int free_port(void)
{
    int first = getpid() * 37 % FREE_PORT_COUNT;

    for (int i = 0; i < FREE_PORT_COUNT; i++) {
        int port = FREE_PORT_FIRST + (first + i) % FREE_PORT_COUNT;
        if (reserve_port(port) && is_free_port(port))
            return port;
    }
    ck_abort_msg("no port is free");
    return 0;
}

#endif
