/*
 * proxy.h - a network between processes on this machine that a test can slow down, cut and reset.
 *
 * Processes with tests/plugins/redirect.so preloaded and PROXY_PORT in their environment reach
 * every loopback port through the proxy: the store's and those of collectives alike.
 */
#ifndef TESTS_PROXY_H
#define TESTS_PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* The first bytes of a redirected connection: its destination. */
typedef struct proxy_header {
    uint32_t magic;
    uint16_t family, port;     /* 'port' in network order                                         */
    uint8_t address[16];
} proxy_header;

#define PROXY_MAGIC 0x706f6e73u

typedef struct proxy proxy;

/* Open a proxy; NULL: no port is free. */
proxy *proxy_open(void);
void proxy_close(proxy *p);
int proxy_port(const proxy *p);
/* Processes started later connect through the proxy; false: redirect.so is missing. */
bool proxy_surround(const proxy *p);

/* Changes take effect at once; any thread may make them. */
void proxy_delay(proxy *p, double seconds);  /* each byte arrives that much later                 */
void proxy_cut(proxy *p, bool cut);          /* nothing passes, without an error                  */
void proxy_reset(proxy *p);                  /* all connections end at once                       */
int64_t proxy_bytes(proxy *p);               /* received, to be forwarded                         */
int proxy_connections(proxy *p);             /* accepted so far                                   */

#endif
