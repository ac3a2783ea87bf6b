/*
 * socket.h - TCP connections with an end to every wait: listening, connecting, sending, receiving.
 *
 * All sockets do not block, are closed on exec and kept alive; nothing here raises a signal.
 */
#ifndef CORE_CLUSTER_STORE_SOCKET_H
#define CORE_CLUSTER_STORE_SOCKET_H

#include <pons/plugin.h>

enum { LINK_ADDRESS = 64, LINK_LISTENERS = 4 };

/* Seconds on a clock that never goes back. */

/*
 * Listen at a port of all addresses of this machine, or only at those of 'host' where it is a
 * loopback address. Returns how many sockets, at most LINK_LISTENERS; 0 with errno.
 */
int link_listen(const char *host, int port, int out[LINK_LISTENERS]);
/* Listen at an address of this machine, at a port that is free; -1 with errno. */
int link_listen_free(const char *address, int *port);
/* Make a socket that this process inherited one of this kind; false where it does not listen. */
bool link_adopt(int listener);
/* The next one that has connected, or -1 with errno. */
int link_accept(int listener);
/* One attempt at every address of 'host', each up to 5 s; -1: 'why' and errno have the last one's
 * failure. */
int link_connect(const char *host, int port, double deadline, char *why, size_t why_size);

/* Whether this errno says that there are no descriptors or no memory for another connection. */
bool link_is_short(int problem);

/* Whether something has come to be received; false with errno, ETIMEDOUT at the deadline. */
bool link_wait(int fd, double deadline);
/* All of it until the deadline; false with errno (ETIMEDOUT, ECONNRESET where the other closed). */
bool link_send(int fd, const void *data, size_t size, double deadline);
bool link_receive(int fd, void *data, size_t size, double deadline);

/* Addresses as text, IPv4 in its own form on sockets of both; "" where there is none. */
void link_peer(int fd, char out[LINK_ADDRESS]);
void link_own(int fd, char out[LINK_ADDRESS]);
bool link_is_loopback(const char *address);

#endif
