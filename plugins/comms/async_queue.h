/*
 * async_queue.h - asynchronous collectives from blocking ones: one thread runs them in the order in
 * which they were started. The comm plugins of host memory share it.
 *
 * Process 0 announces each collective. Processes that start different ones get an error with both
 * names instead of a mixture of bytes.
 */
#ifndef PLUGINS_COMMS_ASYNC_QUEUE_H
#define PLUGINS_COMMS_ASYNC_QUEUE_H

#include <pons/comm.h>

typedef enum async_kind {
    QUEUE_ALL_REDUCE = 0, QUEUE_BROADCAST, QUEUE_ALL_GATHER, QUEUE_BARRIER
} async_kind;

typedef struct async_work {
    async_kind kind;
    pons_type type;           /* ALL_REDUCE                                                       */
    int root;                 /* BROADCAST                                                        */
    uint32_t number;          /* of the transfer; it may wrap around                              */
    int64_t count;            /* ALL_REDUCE: elements                                             */
    size_t size;              /* bytes of 'buffer', ALL_GATHER: of 'mine'                         */
    void *buffer;
    const void *mine;
} async_work;

/* The blocking collectives of a library; 'link' is the library's. */
typedef struct async_transport {
    /* Returns when the collective is done or has failed. On the queue's thread. */
    pons_status (*run)(void *link, const async_work *work, pons_error *err);
    /* A 'run' under way and all later ones fail within a second. Any thread, more than once. */
    void (*stop)(void *link);
    void (*close)(void *link);
} async_transport;

/* Takes over 'link', also on failure. *out is the 'comm' of the functions below. */
pons_status async_queue_open(const async_transport *transport, void *link, int rank, int size,
                             void **out, pons_error *err);

/* Members of pons_comm_operations. */
void async_queue_close(void *comm);
pons_status async_queue_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                                   void **pending, pons_error *err);
pons_status async_queue_broadcast(void *comm, void *buffer, size_t size, int root, void **pending,
                                  pons_error *err);
pons_status async_queue_all_gather(void *comm, const void *mine, size_t size, void *all,
                                   void **pending, pons_error *err);
pons_status async_queue_barrier(void *comm, void **pending, pons_error *err);
pons_comm_state async_queue_poll(void *comm, void *pending, double wait_s, pons_error *err);
void async_queue_abort(void *comm);
double async_queue_ended(void *comm);

#endif
