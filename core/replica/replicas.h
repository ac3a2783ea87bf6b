/*
 * replicas.h - the replicas of an experiment in this process: each with its device, its memory, its
 * programs and a thread, joined so that all of them take the same step.
 */
#ifndef CORE_REPLICA_REPLICAS_H
#define CORE_REPLICA_REPLICAS_H

#include "data/loader/device_case_layout.h"
#include "device/replica_threads.h"
#include "device/local_comm.h"
#include "cluster/group/gpu_comm.h"
#include "replica/programs.h"
#include "replica/comm_trace.h"

/* Its micro-batches of a step are number x accumulate .. (number + 1) x accumulate - 1 (R1). */
typedef struct replica {
    int number;                     /* of the run's replicas                                      */
    int index;                      /* of this process's                                          */
    const device *device;
    storage *storage;
    program *training, *evaluation, *loss; /* NULL unless asked for                               */
    trace *trace;                   /* of the sums of its training; NULL unless asked for         */
    loader *loader;                 /* NULL before replicas_open_loaders                          */
    loader *validation;             /* patches for 'loss'; NULL before validation_loss_open       */
    const loader_batch *ahead;      /* sent early to the training program, or NULL                */
    char *held;                     /* resident cases, if its device cuts the patches; or NULL    */
    size_t held_size;
} replica;

typedef struct replicas {
    const experiment *experiment;
    int count;                      /* in this process                                            */
    replica *item;
    replica_threads *replica_threads;
    bool borrowed;            /* the replica_threads is that of other replicas                    */
    local_comm *comm;
    device_case_layout layout;       /* of the cases that its devices hold                        */
    gpu_comm *cards;          /* joins those that train on GPUs of their own; NULL: 'comm' does   */
} replicas;

/*
 * TRACED: each has a trace, which has room for REPLICAS_TRACE_STEPS. GIVEN: its training reads
 * image and target from the host, also where the device is to cut them. DROPOUT: its evaluation has
 * the network's dropout. LOSS: the loss without training (programs_build_loss).
 */
enum {
    REPLICAS_TRAINING = 1, REPLICAS_EVALUATION = 2, REPLICAS_TRACED = 4, REPLICAS_GIVEN = 8,
    REPLICAS_DROPOUT = 16, REPLICAS_LOSS = 32
};
enum { REPLICAS_TRACE_STEPS = 1000 };

/* The work of a replica, on its own thread. */
typedef pons_status replica_work(void *context, replica *r, pons_error *err);

/* Threads, memory with initial values (R29), compiled programs. 'r' is zeroed by the caller. */
pons_status replicas_open(const experiment *e, unsigned programs, replicas *r, pons_error *err);
/* Another network on the same devices: the threads are those of 'first', which is closed later. */
pons_status replicas_open_beside(const replicas *first, const experiment *e, unsigned programs,
                                 replicas *r, pons_error *err);
/* A loader for each: the first training cases, as many as 'window' has, from 'step' on. */
pons_status replicas_open_loaders(replicas *r, cache *held, const case_window *window,
                                  int64_t step, pons_error *err);
/* Bytes that a step, or a batch of windows, of its programs certainly touches. */
double replica_bytes(const replica *one);
void replicas_close(replicas *r); /* also of one that was not opened                              */

/*
 * All replicas do 'work' at the same time. Returns when all have ended, with the error of the first
 * that failed; a failure wakes replicas that wait for it in a sum.
 */
pons_status replicas_run(replicas *r, replica_work *work, void *context, pons_error *err);

/* Weights, states, slots and averages of the first one to all others. */
void replicas_copy_first(replicas *r);

#endif
