/*
 * comm_trial.h - the duties of every communicator, tried by all processes of a group at once. Users
 * are comm_suite.h, which forks the processes, and comm_mpi, which mpirun starts.
 */
#ifndef TESTS_COMM_TRIAL_H
#define TESTS_COMM_TRIAL_H

#include <pons/comm.h>

typedef struct comm_party {
    const pons_comm_operations *operations;
    void *comm;
    int rank, size;
    void *(*allocate)(size_t size); /* for large buffers; NULL: host memory                       */
    void (*release)(void *memory);
    /* Copy from or to memory of 'allocate'; complete on return. */
    void (*copy)(void *to, const void *from, size_t size);
} comm_party;

typedef struct comm_trial {
    const char *name;
    pons_status (*run)(const comm_party *party, pons_error *err);
} comm_trial;

extern const comm_trial comm_trials[]; /* ends with a NULL run */

/* Poll until the end of the operation, for at most 'patience' seconds; returns the last state. */
pons_comm_state comm_end(const comm_party *party, void *pending, double patience, pons_error *err);

#endif
