/*
 * store.h - the table of small values that the processes of a run share, kept by rank 0 at
 * MASTER_ADDR:MASTER_PORT.
 *
 * Rank 0 serves it from a thread of its own; all, rank 0 too, are clients. A client proves the
 * job's token first. Every message has a bound, every wait an end. Values stay until the store
 * closes; setting a key again replaces the value.
 */
#ifndef CORE_CLUSTER_STORE_STORE_H
#define CORE_CLUSTER_STORE_STORE_H

#include <pons/comm.h>

#include "cluster/rendezvous/rank_info.h"

typedef struct store store;

/*
 * Returns when all processes are connected. Within the timeout at the latest it fails with one line
 * that says which ranks are missing (on rank 0), or that nobody answers at the address (elsewhere).
 *
 * Two processes of one rank, or of another number of ranks, are PONS_CONFIG for all while they
 * meet. Once all have met, or have failed to, who comes is early for the next run: it waits within
 * the timeout for this one to end, and from then on as long again for the others.
 */
pons_status store_open(const dist_place *place, double timeout_s, store **out, pons_error *err);
/* On rank 0 it stays open until the others have closed theirs, a few seconds at most. */
void store_close(store *s);
/* The same after a failure: no longer than wait_s. */
void store_close_within(store *s, double wait_s);

/* Any thread. Calls do not wait for each other: a 'get' that waits holds up nobody. */
pons_status store_set(store *s, const char *key, const void *value, size_t size, pons_error *err);
/* Waits up to wait_s (0: not at all) for the key; PONS_COMMUNICATION naming it when it is late. */
pons_status store_get(store *s, const char *key, double wait_s, void *value, size_t room,
                      size_t *size, pons_error *err);
/* As store_set where nobody has set the key yet, else nothing: the first value stays. */
pons_status store_set_first(store *s, const char *key, const void *value, size_t size,
                            pons_error *err);
/*
 * As store_set and store_get, for a watch: where rank 0 does not answer they fail after answer_s,
 * while other calls are more patient.
 */
pons_status store_try_set(store *s, const char *key, const void *value, size_t size,
                          double answer_s, pons_error *err);
pons_status store_try_get(store *s, const char *key, double wait_s, double answer_s, void *value,
                          size_t room, size_t *size, pons_error *err);
/* As store_try_get without waiting for the key; *age_s: how long ago the value was set. */
pons_status store_try_look(store *s, const char *key, double answer_s, void *value, size_t room,
                           size_t *size, double *age_s, pons_error *err);
/* Take rank 0 for dead: all calls fail from now on, closing does not wait for it. Any thread. */
void store_give_up(store *s);
/*
 * Set (first) by the store itself when the connection of a rank ends without store_close: the
 * rank's number as text. A get that waits for it ends at once.
 */
#define STORE_LOST "store.lost"
/* Whether the connection to rank 0 has ended: all calls fail from now on. Any thread. */
bool store_broken(const store *s);
/* As a comm plugin sees it; lives as long as the store. */
const pons_comm_store *store_shared(store *s);
/* This process's address, as rank 0 sees it: the one that others can reach. */
const char *store_address(const store *s);

#endif
