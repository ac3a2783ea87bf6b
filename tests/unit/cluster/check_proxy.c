/*
 * check_proxy.c - the proxy that disturbs the network of other tests passes bytes on unchanged,
 * and disturbs them on request.
 */
#include "base/clock.h"
#include "support/process/proxy.h"

#include "support/suite.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static proxy *network;
static int near, far;          /* both ends of a connection through the proxy                     */

static void connect_through(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    proxy_header header = { .magic = PROXY_MAGIC, .family = AF_INET };
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    network = proxy_open();
    ck_assert_ptr_nonnull(network);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    header.port = address.sin_port;
    memcpy(header.address, &address.sin_addr, sizeof address.sin_addr);
    near = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_port = htons((uint16_t)proxy_port(network));
    ck_assert_int_eq(connect(near, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(send(near, &header, sizeof header, 0), sizeof header);
    far = accept(listener, NULL, NULL);
    ck_assert_int_ge(far, 0);
    close(listener);
}

enum { MUCH = 4 << 20 };

static void *send_much(void *context)
{
    char *text = malloc(MUCH);

    for (int i = 0; i < MUCH; i++)
        text[i] = (char)(i * 31 >> 3);
    for (int at = 0; at < MUCH; ) {
        ssize_t sent = send(near, text + at, (size_t)(MUCH - at), MSG_NOSIGNAL);
        if (sent <= 0)
            break;
        at += (int)sent;
    }
    free(text);
    shutdown(near, SHUT_WR);
    return NULL;
}

START_TEST(bytes_arrive_as_they_came)
{
    static char text[65536];
    pthread_t sender;
    ssize_t size;
    int at = 0;

    connect_through();
    proxy_delay(network, _i * 0.003);
    ck_assert_int_eq(pthread_create(&sender, NULL, send_much, NULL), 0);
    while ((size = recv(far, text, sizeof text, 0)) > 0)
        for (ssize_t i = 0; i < size; i++, at++)
            ck_assert_int_eq(text[i], (char)(at * 31 >> 3));
    ck_assert_int_eq(size, 0);
    ck_assert_int_eq(at, MUCH);
    pthread_join(sender, NULL);
    ck_assert_int_eq(send(far, "back", 4, 0), 4);
    ck_assert_int_eq(recv(near, text, 4, MSG_WAITALL), 4);
    ck_assert_int_ge(proxy_bytes(network), MUCH + 4);
    ck_assert_int_eq(proxy_connections(network), 1);
    proxy_close(network);
}
END_TEST

START_TEST(a_delay_delays)
{
    char word;

    connect_through();
    proxy_delay(network, 0.2);
    double before = seconds_now();
    ck_assert_int_eq(send(near, "a", 1, 0), 1);
    ck_assert_int_eq(recv(far, &word, 1, 0), 1);
    ck_assert_double_ge(seconds_now() - before, 0.19);
    proxy_close(network);
}
END_TEST

START_TEST(a_cut_connection_holds_bytes_until_it_is_restored)
{
    struct timeval soon = { 0, 300000 };
    char word;

    connect_through();
    proxy_cut(network, true);
    struct timespec pause = { 0, 100000000 };
    nanosleep(&pause, NULL);
    ck_assert_int_eq(send(near, "a", 1, 0), 1);
    setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    ck_assert_int_eq(recv(far, &word, 1, 0), -1);
    ck_assert_int_eq(errno, EAGAIN);
    proxy_cut(network, false);
    soon.tv_sec = 60;
    setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    ck_assert_int_eq(recv(far, &word, 1, 0), 1);
    proxy_close(network);
}
END_TEST

START_TEST(a_reset_ends_both_sides)
{
    char word;

    connect_through();
    proxy_reset(network);
    ck_assert_int_eq(recv(far, &word, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    ck_assert_int_eq(recv(near, &word, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    proxy_close(network);
}
END_TEST

int main(void)
{
    TCase *c = suite_new("proxy");

    tcase_add_loop_test(c, bytes_arrive_as_they_came, 0, 2);
    tcase_add_test(c, a_delay_delays);
    tcase_add_test(c, a_cut_connection_holds_bytes_until_it_is_restored);
    tcase_add_test(c, a_reset_ends_both_sides);
    return suite_run();
}
