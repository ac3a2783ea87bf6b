/*
 * nccl_comm.h - a communicator of NCCL, as its files share it.
 *
 * NCCL's communicator does not block (blocking = 0): a call may return 'in progress', and then no
 * other one may be made, and nothing lies on the stream, until that has passed. So collectives wait
 * in a list and move on whenever the core starts or polls one:
 *
 *     waiting -> launched (a batch at a time, as one group of NCCL) -> on the stream, with an event
 *
 * One lock goes around all calls into NCCL and the driver. The thread that aborts waits but briefly
 * for it: a call that does not return is what an abort is there for.
 */
#ifndef PLUGINS_COMMS_NCCL_NCCL_COMM_H
#define PLUGINS_COMMS_NCCL_NCCL_COMM_H

#include "comms/nccl/nccl_driver.h"

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>

/* A library that lacks these is loaded nevertheless, so that 'check' can say that it is too old. */
#pragma weak ncclCommInitRankConfig
#pragma weak ncclCommFinalize
#pragma weak ncclGetLastError

typedef enum nccl_kind {
    NCCL_ALL_REDUCE = 0, NCCL_BROADCAST, NCCL_ALL_GATHER
} nccl_kind;

/* Bytes of a stage. */
typedef struct nccl_part {
    size_t at, size;
} nccl_part;

/* Where buffers of the host are while the GPUs work on them. */
typedef struct nccl_stage {
    char *host;               /* pinned                                                           */
    CUdeviceptr device;
    size_t room;              /* of both                                                          */
    nccl_part in, out;        /* what is taken from the caller's memory, and given to it          */
    void *user;               /* gets 'out' in the end                                            */
} nccl_stage;

/* A collective under way: what 'pending' points to. */
typedef struct nccl_item {
    struct nccl_item *next;   /* of its list: waiting, launched, spare                            */
    struct nccl_item *older;  /* of all that were ever made                                       */
    int64_t batch;            /* those of one batch leave together                                */
    nccl_kind kind;
    const void *from;
    void *to;
    size_t count;             /* elements of 'type'; 0: nothing is sent                           */
    ncclDataType_t type;
    int root;
    bool staged;
    nccl_stage stage;
    CUevent event;            /* behind its last work                                             */
    bool recorded;
} nccl_item;

typedef struct nccl_list {
    nccl_item *first, **last;
} nccl_list;

/* How it ends, once: see nccl_end.c. */
typedef struct nccl_end {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;         /* which calls ncclCommAbort                                        */
    bool wanted, ended;       /* an abort; it is over                                             */
    bool closing;
    pons_error failure;       /* the first one                                                    */
} nccl_end;

typedef struct nccl_comm {
    nccl_driver driver;
    CUcontext context;
    CUstream stream;
    int rank, size;
    pthread_mutex_t lock;
    _Atomic(ncclComm_t) handle; /* NULL: there is none, or no more                                */
    atomic_bool failed;
    nccl_end end;
    nccl_list waiting, launched;
    nccl_item *spare, *all;
    int64_t batches;
    bool grouping;            /* the last batch is still being put together                       */
    CUdeviceptr word;         /* what a barrier sums                                              */
    CUevent base;             /* an event and when it was, for the times of others                */
    double base_time;
    double ended;             /* of the item that was last found done                             */
} nccl_comm;

double nccl_now(void);
/* A pause between two looks; the first ones are short. */
void nccl_rest(int64_t round);

/* PONS_OK for ncclSuccess and ncclInProgress, else a line with NCCL's own last words. */
pons_status nccl_result(ncclResult_t code, const char *what, pons_error *err);

/* ---- nccl_end.c ------------------------------------------------------------------------------ */

/* The lock, and the context of the GPU for this thread. */
pons_status nccl_enter(nccl_comm *c, pons_error *err);
void nccl_leave(nccl_comm *c);
/* Put the event 'base' behind all that is on the stream, and wait until it has passed. */
CUresult nccl_drain(nccl_comm *c, double wait_s);
/* NCCL's state: ncclInProgress, ncclSuccess, or the failure of something asynchronous. */
ncclResult_t nccl_state(nccl_comm *c);

/* The first failure is kept and the GPUs are told to let go. Any thread. */
void nccl_fail(nccl_comm *c, const pons_error *failure);
/* The failure that is kept. */
pons_status nccl_failure(nccl_comm *c, pons_error *err);

/* The thread that aborts; a communicator without it cannot be. */
pons_status nccl_end_open(nccl_comm *c, pons_error *err);
void nccl_abort(void *comm);
void nccl_close(void *comm);

/* ---- nccl_stage.c ---------------------------------------------------------------------------- */

/* Whether the GPU can use this memory as it is. */
bool nccl_stage_unneeded(const nccl_comm *c, const void *memory);
/* Make room for 'in' and 'out' of the stage, and take in what lies in 'from'. */
pons_status nccl_stage_fill(const nccl_comm *c, nccl_stage *s, const void *from, void *to,
                            pons_error *err);
/* On the stream, before and after the collective. */
CUresult nccl_stage_send(const nccl_comm *c, const nccl_stage *s);
CUresult nccl_stage_fetch(const nccl_comm *c, const nccl_stage *s);
/* When all of that is done. */
void nccl_stage_empty(const nccl_stage *s);
void nccl_stage_free(const nccl_comm *c, nccl_stage *s);

/* ---- nccl_launch.c --------------------------------------------------------------------------- */

/* As a line calls it: "a broadcast". */
const char *nccl_kind_name(nccl_kind kind);
/* One that is free, or a new one; NULL: there is no memory for it. */
nccl_item *nccl_item_take(nccl_comm *c, pons_error *err);
void nccl_item_give_back(nccl_comm *c, nccl_item *i);
void nccl_list_append(nccl_list *l, nccl_item *i);
/* As far as NCCL lets them; its failure is the communicator's. With the lock held. */
void nccl_move_on(nccl_comm *c);
/* All of them; nothing is on the stream. */
void nccl_items_free(nccl_comm *c);

/* ---- nccl_item.c ----------------------------------------------------------------------------- */

pons_status nccl_all_reduce(void *comm, void *buffer, int64_t count, pons_type type,
                            void **pending, pons_error *err);
pons_status nccl_broadcast(void *comm, void *buffer, size_t size, int root, void **pending,
                           pons_error *err);
pons_status nccl_all_gather(void *comm, const void *mine, size_t size, void *all, void **pending,
                            pons_error *err);
pons_status nccl_barrier(void *comm, void **pending, pons_error *err);
pons_comm_state nccl_poll(void *comm, void *pending, double wait_s, pons_error *err);
pons_status nccl_group_begin(void *comm, pons_error *err);
pons_status nccl_group_end(void *comm, pons_error *err);
double nccl_ended(void *comm);

#endif
