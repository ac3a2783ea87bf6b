/*
 * socket.h - TCP sockets with a deadline for every wait.
 *
 * All sockets are non-blocking, close-on-exec and keepalive. No call raises a signal. Deadlines are
 * times of base/clock.h.
 */
#ifndef CORE_CLUSTER_STORE_SOCKET_H
#define CORE_CLUSTER_STORE_SOCKET_H

#include <pons/plugin.h>

enum { SOCKET_ADDRESS_SIZE = 64, SOCKET_LISTENERS = 4 };


/*
 * Listen at a port of all addresses of this machine; only at those of 'host' if that is a loopback
 * address. Returns the number of sockets, at most SOCKET_LISTENERS; 0 with errno.
 */
int socket_listen(const char *host, int port, int out[SOCKET_LISTENERS]);
/* Listen at 'address' and a free port, *port. Returns the socket; -1 with errno. */
int socket_listen_free(const char *address, int *port);
/* Set the options of an inherited socket; false if it does not listen. */
bool socket_adopt(int listener);
/* Accept the next connection; -1 with errno. */
int socket_accept(int listener);
/*
 * Try every address of 'host' once, each for at most 5 s. -1: 'why' and errno describe the last
 * failure.
 */
int socket_connect(const char *host, int port, double deadline, char *why, size_t why_size);

/* Whether this errno means a lack of descriptors or memory. */
bool socket_is_shortage(int problem);

/* Wait until there is data to receive; false with errno, ETIMEDOUT at the deadline. */
bool socket_wait(int fd, double deadline);
/*
 * Transfer all bytes before the deadline; false with errno (ETIMEDOUT, or ECONNRESET at the end of
 * the connection).
 */
bool socket_send(int fd, const void *data, size_t size, double deadline);
bool socket_receive(int fd, void *data, size_t size, double deadline);

/* Write an address of the connection as text, IPv4 in its own form; "" if unknown. */
void socket_peer_address(int fd, char out[SOCKET_ADDRESS_SIZE]);
void socket_own_address(int fd, char out[SOCKET_ADDRESS_SIZE]);
/* Whether 'address' is "localhost", ::1 or 127.x. */
bool socket_is_loopback(const char *address);

#endif
