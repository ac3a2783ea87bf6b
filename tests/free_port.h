/*
 * free_port.h - a port of the loopback address at which nobody listened a moment ago.
 */
#ifndef TESTS_FREE_PORT_H
#define TESTS_FREE_PORT_H

#include <arpa/inet.h>
#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int free_port(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    close(fd);
    return ntohs(at.sin_port);
}

#endif
