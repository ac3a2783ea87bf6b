/*
 * comm_peers.h - one TCP connection to every other process of a run. Only processes that can read
 * the run's store get one: both sides of a connection prove a secret that is published there.
 */
#ifndef PLUGINS_COMMS_COMM_PEERS_H
#define PLUGINS_COMMS_COMM_PEERS_H

#include <pons/comm.h>

/*
 * Called by all processes at the same time. 'socket' has place->size elements: descriptors by rank,
 * which do not block and are the caller's; -1 for this process. Connections of strangers are closed
 * and change nothing. Ends within the place's timeout; on failure no descriptor is left.
 */
pons_status comm_peers_connect(const pons_comm_rank_info *place, const pons_comm_store *store,
                               int *socket,
                               pons_error *err);
/* Close those that are not -1. */
void comm_peers_close(int count, int *socket);

#endif
