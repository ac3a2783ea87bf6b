/*
 * comm_trial.h - what every communicator must do, tried by all processes of a group at once. For
 * comm_suite.h, which forks them, and for comm_mpi, which mpirun starts.
 */
#ifndef TESTS_COMM_TRIAL_H
#define TESTS_COMM_TRIAL_H

#include <pons/comm.h>

typedef struct comm_party {
    const pons_comm_operations *operations;
    void *comm;
    int rank, size;
    void *(*allocate)(size_t size); /* for large buffers; NULL: memory of the host                */
    void (*release)(void *memory);
    /* Either side is memory of 'allocate'; done on return. */
    void (*copy)(void *to, const void *from, size_t size);
} comm_party;

typedef struct comm_trial {
    const char *name;
    pons_status (*run)(const comm_party *party, pons_error *err);
} comm_trial;

extern const comm_trial comm_trials[]; /* ends with a NULL run */

/* Until the end, or what 'poll' says after 'patience' seconds. */
pons_comm_state comm_end(const comm_party *party, void *pending, double patience, pons_error *err);
/* Monotonic seconds. */

#endif
