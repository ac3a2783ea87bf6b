/*
 * store.h - a key-value store that all ranks of a run share. Rank 0 serves it at
 * MASTER_ADDR:MASTER_PORT.
 *
 * Rank 0 has a server thread; all ranks, including rank 0, are clients. A client proves the job's
 * token first. Messages have size limits and waits have time limits. Values stay until the store
 * closes; setting a key again replaces its value.
 */
#ifndef CORE_CLUSTER_STORE_STORE_H
#define CORE_CLUSTER_STORE_STORE_H

#include <pons/comm.h>

#include "cluster/rendezvous/rank_info.h"

typedef struct store store;

/*
 * Connect to the store and wait for all ranks. Without them it fails within the timeout, with a
 * message that names the missing ranks (on rank 0) or says that the address does not answer
 * (elsewhere).
 *
 * Two processes with one rank, or different numbers of ranks, are PONS_CONFIG for all. A process
 * that comes after this rendezvous belongs to the next run. It waits up to the timeout for this run
 * to end, then up to the timeout for the other ranks.
 */
pons_status store_open(const rank_info *place, double timeout_s, store **out, pons_error *err);
/* Close the store. Rank 0 first waits, up to wait_s, for the others to close theirs. */
void store_close(store *s, double wait_s);

/* Set a value. Any thread. Calls run in parallel: a waiting 'get' delays no other call. */
pons_status store_set(store *s, const char *key, const void *value, size_t size, pons_error *err);
/* Wait up to wait_s for a key (0: no wait) and read it. A missing key is PONS_COMMUNICATION. */
pons_status store_get(store *s, const char *key, double wait_s, void *value, size_t room,
                      size_t *size, pons_error *err);
/* Set a value unless the key has one: the first value stays. */
pons_status store_set_first(store *s, const char *key, const void *value, size_t size,
                            pons_error *err);
/*
 * As store_set and store_get, for the watchdog: they fail if rank 0 does not answer within
 * answer_s, while other calls wait longer.
 */
pons_status store_try_set(store *s, const char *key, const void *value, size_t size,
                          double answer_s, pons_error *err);
pons_status store_try_get(store *s, const char *key, double wait_s, double answer_s, void *value,
                          size_t room, size_t *size, pons_error *err);
/* As store_try_get without a wait for the key. *age_s: seconds since the value was set. */
pons_status store_try_peek(store *s, const char *key, double answer_s, void *value, size_t room,
                           size_t *size, double *age_s, pons_error *err);
/* Treat rank 0 as dead: all calls fail, and closing does not wait. Any thread. */
void store_mark_dead(store *s);
/*
 * The key that the server sets to the rank, as text, of the first connection that ends without
 * store_close. A get that waits for it returns at once.
 */
#define STORE_LOST "store.lost"
/* Whether the connection to rank 0 has ended, so that all calls fail. Any thread. */
bool store_broken(const store *s);
/* The interface for comm plugins. Lives as long as the store. */
const pons_comm_store *store_comm_interface(store *s);
/* This process's address as rank 0 sees it, which other ranks can reach. */
const char *store_address(const store *s);

#endif
