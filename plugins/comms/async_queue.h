/*
 * async_queue.h - collectives that block, made into collectives that are started and waited
 * for: one thread runs them in the order in which they were started. Shared by the comm
 * plugins of host memory.
 *
 * Before each one the thread hears from process 0 what is started there: processes that start
 * different ones get an error with both names instead of a mixture of bytes.
 */
#ifndef PLUGINS_COMMS_ASYNC_QUEUE_H
#define PLUGINS_COMMS_ASYNC_QUEUE_H

#include <pons/comm.h>

typedef enum queue_kind {
    QUEUE_ALL_REDUCE = 0, QUEUE_BROADCAST, QUEUE_ALL_GATHER, QUEUE_BARRIER
} queue_kind;

typedef struct queue_work {
    queue_kind kind;
    pons_type type;           /* ALL_REDUCE                                                       */
    int root;                 /* BROADCAST                                                        */
    uint32_t number;          /* of the transfer; it may wrap around                              */
    int64_t count;            /* ALL_REDUCE: elements                                             */
    size_t size;              /* bytes of 'buffer', ALL_GATHER: of 'mine'                         */
    void *buffer;
    const void *mine;
} queue_work;

/* How a library does it; 'link' is its own. */
typedef struct queue_transport {
    /* Returns when it is done or has failed. On the queue's thread. */
    pons_status (*run)(void *link, const queue_work *work, pons_error *err);
    /* A 'run' under way and all later ones fail within a second. Any thread, more than once. */
    void (*stop)(void *link);
    void (*close)(void *link);
} queue_transport;

/* Takes over 'link', also on failure. *out is the 'comm' of the functions below. */
pons_status queue_open(const queue_transport *transport, void *link, int rank, int size, void **out,
                       pons_error *err);

/* Members of pons_comm_operations. */
void queue_close(void *comm);
pons_status queue_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                             void **pending, pons_error *err);
pons_status queue_broadcast(void *comm, void *buffer, size_t size, int root, void **pending,
                            pons_error *err);
pons_status queue_all_gather(void *comm, const void *mine, size_t size, void *all, void **pending,
                             pons_error *err);
pons_status queue_barrier(void *comm, void **pending, pons_error *err);
pons_comm_state queue_poll(void *comm, void *pending, double wait_s, pons_error *err);
void queue_abort(void *comm);
double queue_ended(void *comm);

#endif
