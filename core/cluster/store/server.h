/*
 * server.h - rank 0's side of the store: one thread that serves all connections.
 */
#ifndef CORE_CLUSTER_STORE_SERVER_H
#define CORE_CLUSTER_STORE_SERVER_H

#include "cluster/rendezvous/rank_info.h"

typedef struct store_server store_server;

/*
 * Listens when it returns. The processes hear from it how the gathering ended: at the end of
 * 'timeout_s', or of what the least patient of them gives it, those that are missing are named.
 */
pons_status store_server_open(const dist_place *place, double timeout_s, store_server **out,
                              pons_error *err);
/* NULL, or the line on the memory or descriptors for which the gathering has failed. Any thread. */
const char *store_server_starved(const store_server *s);
/* Waits up to wait_s for the processes to close their connections. NULL is allowed. */
void store_server_close(store_server *s, double wait_s);

#endif
