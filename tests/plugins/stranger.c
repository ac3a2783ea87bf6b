/*
 * stranger.c - preloaded into a program: each port that it opens gets an unauthenticated peer at
 * once. The peer connects before all others, sends 4096 zeros and stays connected.
 */
#include <dlfcn.h>
#include <string.h>
#include <sys/socket.h>

static void come(int listener)
{
    static const char zeros[4096];
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int fd;

    memset(&address, 0, sizeof address);
    if (getsockname(listener, (struct sockaddr *)&address, &size) != 0
        || (address.ss_family != AF_INET && address.ss_family != AF_INET6))
        return;
    fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, size) == 0)
        send(fd, zeros, sizeof zeros, MSG_NOSIGNAL);
}

int listen(int fd, int backlog)
{
    int (*listen_real)(int, int), code;

    *(void **)&listen_real = dlsym(RTLD_NEXT, "listen");
    code = listen_real(fd, backlog);
    if (code == 0)
        come(fd);
    return code;
}
