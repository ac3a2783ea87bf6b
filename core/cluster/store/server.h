/*
 * server.h - the store's server on rank 0: one thread that serves all connections.
 */
#ifndef CORE_CLUSTER_STORE_SERVER_H
#define CORE_CLUSTER_STORE_SERVER_H

#include "cluster/rendezvous/rank_info.h"

typedef struct store_server store_server;

/*
 * Start the server; it listens when this returns. The rendezvous ends after 'timeout_s', or earlier
 * if a rank waits less. Then all ranks get a message that names the missing ones.
 */
pons_status store_server_open(const rank_info *place, double timeout_s, store_server **out,
                              pons_error *err);
/*
 * The message if the rendezvous failed for a lack of memory or descriptors, else NULL. Any thread.
 */
const char *store_server_shortage(const store_server *s);
/* Wait up to wait_s for the ranks to close their connections, then end. Accepts NULL. */
void store_server_close(store_server *s, double wait_s);

#endif
