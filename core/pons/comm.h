/*
 * comm.h - a comm plugin: collectives over the processes of a run, or over the cards of a process.
 *
 * Every process opens one communicator; where the cards of one process are joined, every thread of
 * a card opens one and stands for a process below. All start the same collectives in the same
 * order. Starting one returns at once; the work is done behind it, in order: on 'stream' where the
 * device has streams, on a thread of the communicator's own elsewhere. Until a collective has ended
 * nobody else touches its buffers. Collectives of a communicator are started, polled and waited for
 * from one thread at a time; 'abort' alone may come from any thread at any time.
 *
 * The core puts deadlines and the names of ranks around this: a plugin moves bytes.
 * It must not break where processes start different collectives; where it can it says which. Sums
 * of fixed order are made by the core from all_gather: a plugin is free in the order of all_reduce.
 */
#ifndef CORE_PONS_COMM_H
#define CORE_PONS_COMM_H

#include <pons/graph.h>

/* Where this process stands. */
typedef struct pons_comm_rank_info {
    int rank, size;       /* 0 <= rank < size                                                     */
    int local_rank;       /* among the processes of this node                                     */
    int local_size;
    const char *address;  /* of this node as the node of rank 0 sees it, "10.0.0.2" or "::1"      */
    double timeout_s;     /* for opening; a collective is ended by 'abort' alone                  */
    void *stream;         /* of the device: its buffers are taken as they are, those of the host  */
                          /* are copied; NULL: buffers are host memory                            */
} pons_comm_rank_info;

/*
 * Small values that all processes of the run share while communicators open: addresses, unique
 * ids. Keys are plain words; values have up to PONS_COMM_VALUE_MAX bytes. 'get' waits, no longer
 * than the run's timeout, until somebody has set the key, and fails naming it. One thread.
 */
#define PONS_COMM_VALUE_MAX 65536

typedef struct pons_comm_store {
    void *context;
    pons_status (*set)(void *context, const char *key, const void *value, size_t size,
                       pons_error *err);
    /* Up to 'room' bytes into 'value'; '*size' is what there is. */
    pons_status (*get)(void *context, const char *key, void *value, size_t room, size_t *size,
                       pons_error *err);
} pons_comm_store;

typedef enum pons_comm_state {
    PONS_COMM_RUNNING = 0, PONS_COMM_DONE, PONS_COMM_FAILED
} pons_comm_state;

typedef struct pons_comm_operations {
    /*
     * Whether this machine has what the communicator needs (a library, a driver): PONS_OK, or one
     * line that says what is missing. Nothing is opened. NULL: it needs nothing.
     */
    pons_status (*check)(pons_error *err);
    /* Returns when all 'size' processes are there, or fails within the timeout. */
    pons_status (*open)(const pons_comm_rank_info *place, const pons_comm_store *store, void **comm,
                        pons_error *err);
    /* Nothing is under way any more, or 'abort' came before. */
    void (*close)(void *comm);
    /* Sum over the processes in place; type is PONS_F32 or PONS_F64. Equal bits everywhere. */
    pons_status (*all_reduce)(void *comm, void *buffer, int64_t count, pons_type type,
                              void **pending, pons_error *err);
    /* 'size' bytes of process 'root' to all others, in place. */
    pons_status (*broadcast)(void *comm, void *buffer, size_t size, int root, void **pending,
                             pons_error *err);
    /* 'size' bytes of each process, by rank, into 'all' (size x processes bytes). */
    pons_status (*all_gather)(void *comm, const void *mine, size_t size, void *all,
                              void **pending, pons_error *err);
    /* Ends when all have started it. */
    pons_status (*barrier)(void *comm, void **pending, pons_error *err);
    /*
     * How a collective stands, after waiting up to 'wait_s' seconds for its end. DONE and FAILED
     * give 'pending' back; FAILED puts one line into 'err' that names the other rank where it is
     * known. After a failure all later collectives fail.
     */
    pons_comm_state (*poll)(void *comm, void *pending, double wait_s, pons_error *err);
    /*
     * Everything under way or started later fails within a second. Any thread, also while another
     * one is in any function above.
     */
    void (*abort)(void *comm);
    /* Collectives between both may leave together; both NULL where that gains nothing. */
    pons_status (*group_begin)(void *comm, pons_error *err);
    pons_status (*group_end)(void *comm, pons_error *err);
    /*
     * When the collective for which 'poll' has last said DONE had ended, in seconds of
     * CLOCK_MONOTONIC; NULL: it is not known.
     */
    double (*ended)(void *comm);
    /*
     * What it is built on, "NCCL 2.27.3"; asked only where 'check' says yes. NULL: nothing to tell.
     */
    void (*describe)(char *text, size_t size);
} pons_comm_operations;

#define PONS_COMM(NAME, VERSION, SUMMARY, OPERATIONS)                                             \
    PONS_PLUGIN_DEFINE_(PONS_KIND_COMM, NAME, 0, VERSION, SUMMARY, NULL, OPERATIONS)

#endif
