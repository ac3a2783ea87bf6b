/*
 * proxy.h - a network between processes on this machine that a test can slow down, cut and reset.
 *
 * Processes with tests/plugins/redirect.so preloaded and PROXY_PORT in their environment reach
 * every loopback port through it, the store's and those of collectives alike.
 */
#ifndef TESTS_PROXY_H
#define TESTS_PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* What a redirected connection sends first: where it wanted to go. */
typedef struct proxy_header {
    uint32_t magic;
    uint16_t family, port;     /* the port in network order                                       */
    uint8_t address[16];
} proxy_header;

#define PROXY_MAGIC 0x706f6e73u

typedef struct proxy proxy;

/* NULL where there is no port. */
proxy *proxy_open(void);
void proxy_close(proxy *p);
int proxy_port(const proxy *p);
/* Processes that are started from here on reach everything through it; false: no redirect.so. */
bool proxy_surround(const proxy *p);

/* From now on; any thread. */
void proxy_delay(proxy *p, double seconds);  /* each byte arrives that much later                 */
void proxy_cut(proxy *p, bool cut);          /* nothing passes, and nobody learns of it           */
void proxy_reset(proxy *p);                  /* all connections end at once                       */
int64_t proxy_bytes(proxy *p);               /* that came in to be passed on                      */
int proxy_connections(proxy *p);             /* that have been made                               */

#endif
