/*
 * free_port.c - see free_port.h.
 */
#include "support/process/free_port.h"

/* Reserve a port by an abstract socket name, which disappears with the process. */
static bool reserve_port(int port)
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

static bool is_free_port(int port)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;

    close(fd);
    return is_free;
}

int free_port(void)
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
