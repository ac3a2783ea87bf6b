/*
 * comm.h - a comm plugin: collectives over the processes of a run, or over the GPUs of a process.
 *
 * Every process opens one communicator. Where the GPUs of one process are joined, the thread of
 * each GPU opens one and counts as a process below. All processes start the same collectives in the
 * same order. A start returns at once; the work follows in order, on 'stream' where the device has
 * streams, else on a thread of the communicator. Buffers belong to a collective until it has ended.
 * One thread at a time starts, polls and waits for collectives; any thread may call 'abort' at any
 * time.
 *
 * The core adds deadlines and the names of ranks: a plugin moves bytes. A plugin must survive
 * processes that start different collectives, and names the collectives if it can. The core builds
 * sums of fixed order from all_gather, so the order of all_reduce is free.
 */
#ifndef CORE_PONS_COMM_H
#define CORE_PONS_COMM_H

#include <pons/graph.h>

PONS_C_BEGIN

/* The place of this process among the others. */
typedef struct pons_comm_rank_info {
    int rank, size;       /* 0 <= rank < size                                                     */
    int local_rank;       /* among the processes of this node                                     */
    int local_size;
    const char *address;  /* of this node as the node of rank 0 sees it, "10.0.0.2" or "::1"      */
    double timeout_s;     /* for opening; a collective is ended by 'abort' alone                  */
    /*
     * Stream of the device, whose buffers are used directly; those of the host are copied. NULL:
     * buffers are host memory.
     */
    void *stream;
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
    /* Copy up to 'room' bytes into 'value'; '*size' is the size of the whole value. */
    pons_status (*get)(void *context, const char *key, void *value, size_t room, size_t *size,
                       pons_error *err);
} pons_comm_store;

typedef enum pons_comm_state {
    PONS_COMM_RUNNING = 0, PONS_COMM_DONE, PONS_COMM_FAILED
} pons_comm_state;

typedef struct pons_comm_operations {
    pons_status (*check)(const void *config, pons_error *err); /* NULL; see plugin.h              */
    /*
     * PONS_OK if this machine has the libraries and drivers that the communicator needs, else one
     * line that names the missing one. Nothing is opened. NULL: it needs nothing.
     */
    pons_status (*available)(pons_error *err);
    /* Returns when all 'size' processes are there, or fails within the timeout. */
    pons_status (*open)(const pons_comm_rank_info *place, const pons_comm_store *store, void **comm,
                        pons_error *err);
    /* All collectives have ended, or 'abort' came before. */
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
     * The state of a collective, after waiting up to 'wait_s' seconds for its end. DONE and FAILED
     * give 'pending' back; FAILED puts one line into 'err' that names the other rank where it is
     * known. After a failure all later collectives fail.
     */
    pons_comm_state (*poll)(void *comm, void *pending, double wait_s, pons_error *err);
    /*
     * Everything under way or started later fails within a second. Any thread, also while another
     * one is in any function above.
     */
    void (*abort)(void *comm);
    /* The plugin may start the collectives between both together. Both NULL: it does not. */
    pons_status (*group_begin)(void *comm, pons_error *err);
    pons_status (*group_end)(void *comm, pons_error *err);
    /*
     * The end of the collective for which 'poll' has last returned DONE, in seconds of
     * CLOCK_MONOTONIC. NULL: it is not known.
     */
    double (*ended)(void *comm);
    /*
     * The library and its version, "NCCL 2.27.3"; called only where the plugin is available. NULL:
     * there is none.
     */
    void (*describe)(char *text, size_t size);
} pons_comm_operations;

#define PONS_COMM(NAME, VERSION, SUMMARY, OPTIONS, OPERATIONS)                                    \
    PONS_PLUGIN_DEFINE_(PONS_KIND_COMM, pons_comm_operations, NAME, VERSION, SUMMARY,             \
                        OPERATIONS, OPTIONS)

PONS_C_END

#endif
