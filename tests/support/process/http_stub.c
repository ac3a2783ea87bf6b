/*
 * http_stub.c - one thread, one connection at a time, one request each.
 */
#include "support/process/http_stub.h"

#include "support/asserts.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct http_stub {
    int listener, port, stop[2];
    pthread_t thread;
    http_answer *answer;
    void *context;
};

/* Wait for data or a connection; false: the server is being closed. */
static bool wait_for(const http_stub *s, int file)
{
    struct pollfd polled[2] = { { file, POLLIN, 0 }, { s->stop[0], POLLIN, 0 } };

    while (poll(polled, 2, -1) < 0)
        continue;
    return polled[1].revents == 0;
}

/* Read a head and a body of the length that it says; NULL: the client or the server has gone. */
static char *read_request(const http_stub *s, int file, char **body)
{
    size_t size = 0, room = 1 << 21, length = 0;
    char *text = calloc(1, room), *end = NULL;

    while (end == NULL || size < (size_t)(end + 4 - text) + length) {
        ssize_t got = wait_for(s, file) ? read(file, text + size, room - size - 1) : 0;
        if (got <= 0) {
            free(text);
            return NULL;
        }
        size += (size_t)got;
        end = strstr(text, "\r\n\r\n");
        char *at = end != NULL ? strcasestr(text, "Content-Length:") : NULL;
        if (at != NULL && at < end)
            length = strtoul(at + 15, NULL, 10);
    }
    *body = end + 4;
    return text;
}

static void serve(const http_stub *s, int file)
{
    char *body, *text = read_request(s, file, &body), head[256];
    const char *reply = "";

    if (text == NULL)
        return;
    const http_request request = { text, strchr(text, '\n') + 1, body };
    *strstr(text, " HTTP/") = '\0';
    body[-2] = '\0';
    int code = s->answer(s->context, &request, &reply);
    if (code == 0) {
        wait_for(s, s->stop[0]);
    } else {
        int size = snprintf(head, sizeof head, "HTTP/1.1 %d Told\r\nContent-Length: %zu\r\n"
                            "Connection: close\r\n\r\n", code, strlen(reply));
        ck_assert_int_eq(send(file, head, (size_t)size, MSG_NOSIGNAL), size);
        ck_assert_int_eq(send(file, reply, strlen(reply), MSG_NOSIGNAL), (ssize_t)strlen(reply));
    }
    free(text);
}

static void *run(void *context)
{
    const http_stub *s = context;

    while (wait_for(s, s->listener)) {
        int file = accept(s->listener, NULL, NULL);
        if (file < 0)
            continue;
        serve(s, file);
        close(file);
    }
    return NULL;
}

http_stub *http_stub_open(http_answer *answer, void *context)
{
    http_stub *s = calloc(1, sizeof *s);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof a;

    s->answer = answer;
    s->context = context;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(s->listener, (struct sockaddr *)&a, size), 0);
    ck_assert_int_eq(listen(s->listener, 8), 0);
    ck_assert_int_eq(getsockname(s->listener, (struct sockaddr *)&a, &size), 0);
    s->port = ntohs(a.sin_port);
    ck_assert_int_eq(pipe(s->stop), 0);
    ck_assert_int_eq(pthread_create(&s->thread, NULL, run, s), 0);
    return s;
}

int http_stub_port(const http_stub *s)
{
    return s->port;
}

void http_stub_close(http_stub *s)
{
    ck_assert_int_eq(write(s->stop[1], "x", 1), 1);
    pthread_join(s->thread, NULL);
    close(s->listener);
    close(s->stop[0]);
    close(s->stop[1]);
    free(s);
}
