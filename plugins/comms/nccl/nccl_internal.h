/*
 * nccl_internal.h - a communicator of NCCL, shared by the files of the plugin.
 *
 * NCCL's communicator does not block (blocking = 0): a call may return 'in progress', and then no
 * other call may be made, and nothing is on the stream, until that has passed. So collectives wait
 * in a list and advance whenever the core starts or polls one:
 *
 *     waiting -> launched (a batch at a time, as one group of NCCL) -> on the stream, with an event
 *
 * One lock goes around all calls into NCCL and the driver. The thread that aborts waits only
 * briefly for it, because a call that does not return is a reason to abort.
 */
#ifndef PLUGINS_COMMS_NCCL_NCCL_INTERNAL_H
#define PLUGINS_COMMS_NCCL_NCCL_INTERNAL_H

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

/* A range of bytes of a staging buffer. */
typedef struct nccl_part {
    size_t at, size;
} nccl_part;

/* The staging buffer of host memory: a pinned half and one on the GPU. */
typedef struct nccl_staging {
    char *host;               /* pinned                                                           */
    CUdeviceptr device;
    size_t room;              /* of both                                                          */
    nccl_part in, out;        /* copied from the caller's memory, and back to it                  */
    void *user;               /* destination of 'out'                                             */
} nccl_staging;

/* A collective under way; 'pending' points to it. */
typedef struct nccl_op {
    struct nccl_op *next;     /* in its list: waiting, launched or spare                          */
    struct nccl_op *older;    /* in the list of all items                                         */
    int64_t batch;            /* items of one batch are launched together                         */
    nccl_kind kind;
    const void *from;
    void *to;
    size_t count;             /* elements of 'type'; 0: nothing is sent                           */
    ncclDataType_t type;
    int root;
    bool staged;
    nccl_staging stage;
    CUevent event;            /* recorded after its last work                                     */
    bool recorded;
} nccl_op;

typedef struct nccl_list {
    nccl_op *first, **last;
} nccl_list;

/* The end of a communicator (nccl_end.c). */
typedef struct nccl_end {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;         /* calls ncclCommAbort                                              */
    bool wanted, ended;       /* of the abort                                                     */
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
    nccl_op *spare, *all;
    int64_t batches;
    bool grouping;            /* the last batch is still being put together                       */
    CUdeviceptr word;         /* the number that a barrier sums                                   */
    CUevent base;             /* an event of known time, from which others are measured           */
    double base_time;
    double ended;             /* end of the item that was last found done                         */
} nccl_comm;

/* A pause between two polls; the first ones are short. */
void nccl_rest(int64_t round);

/* PONS_OK for ncclSuccess and ncclInProgress, else a line with NCCL's own last words. */
pons_status nccl_result(ncclResult_t code, const char *what, pons_error *err);

/* ---- nccl_end.c ------------------------------------------------------------------------------ */

/* Take the lock, and make the GPU's context current. */
pons_status nccl_lock(nccl_comm *c, pons_error *err);
void nccl_unlock(nccl_comm *c);
/* Record the event 'base' on the stream and wait for it. */
CUresult nccl_drain(nccl_comm *c, double wait_s);
/* NCCL's state: ncclInProgress, ncclSuccess, or the failure of something asynchronous. */
ncclResult_t nccl_state(nccl_comm *c);

/* Keep the first failure and ask for the abort. Any thread. */
void nccl_fail(nccl_comm *c, const pons_error *failure);
/* Report the kept failure. */
pons_status nccl_failure(nccl_comm *c, pons_error *err);

/* Start the thread that aborts; a communicator needs it. */
pons_status nccl_end_open(nccl_comm *c, pons_error *err);
void nccl_abort(void *comm);
void nccl_close(void *comm);

/*
 * ---- nccl_staging.c ----------------------------------------------------------------------------
 */

/* Whether the GPU can use this memory as it is. */
bool nccl_staging_unneeded(const nccl_comm *c, const void *memory);
/* Make room for 'in' and 'out' of the staging buffer, and copy 'from' into it. */
pons_status nccl_staging_fill(const nccl_comm *c, nccl_staging *s, const void *from, void *to,
                              pons_error *err);
/* Queue the copies before and after the collective. */
CUresult nccl_staging_send(const nccl_comm *c, const nccl_staging *s);
CUresult nccl_staging_fetch(const nccl_comm *c, const nccl_staging *s);
/* Copy 'out' to the caller's memory, once the stream has passed. */
void nccl_staging_empty(const nccl_staging *s);
void nccl_staging_free(const nccl_comm *c, nccl_staging *s);

/* ---- nccl_launch.c --------------------------------------------------------------------------- */

/* The name in a message: "a broadcast". */
const char *nccl_kind_name(nccl_kind kind);
/* A free or new item; NULL: out of memory. */
nccl_op *nccl_op_take(nccl_comm *c, pons_error *err);
void nccl_op_give_back(nccl_comm *c, nccl_op *i);
void nccl_list_append(nccl_list *l, nccl_op *i);
/* Launch waiting items as far as NCCL allows; its failure is the communicator's. Needs the lock. */
void nccl_launch_waiting(nccl_comm *c);
/* Free all items. Requires an idle stream. */
void nccl_ops_free(nccl_comm *c);

/* ---- nccl_op.c ----------------------------------------------------------------------------- */

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
