/*
 * comm_suite.h - the contract of comm.h between forked processes, for whatever plugin: trials,
 * aborts, processes that die or never come.
 */
#ifndef TESTS_COMM_SUITE_H
#define TESTS_COMM_SUITE_H

#include "comm_trial.h"
#include "processes.h"

/* A plugin and what it works on. */
typedef struct comm_backend {
    const char *plugin;
    void *(*stream)(void);          /* of this process, opened on the first call; NULL: host      */
    void *(*allocate)(size_t size); /* memory of the stream's device                              */
    void (*release)(void *memory);
    /* Between that memory and the host's; done on return. */
    void (*copy)(void *to, const void *from, size_t size);
    pons_status (*end)(pons_error *err); /* the stream is not needed any more; NULL: nothing      */
} comm_backend;

extern const comm_backend comm_backend_tested; /* one of backend_*.c, as the program is linked    */

/*
 * Seconds of this process, counted in naps of 10 ms from the first call on: as much as others could
 * have done something. A machine that pauses does not make a deadline pass.
 */
double comm_suite_pace(void);

const pons_comm_operations *comm_suite_load(void);
/* address NULL: on loopback, as p->per_node says. */
pons_status comm_suite_join(processes *p, int rank, const char *address, comm_party *out,
                            pons_error *err);
/* Nobody closes while another one is still reading. */
pons_status comm_suite_leave(processes *p, const comm_party *party, pons_error *err);

/* per_node: how many processes have one address, 0: all of them. */
void every_trial_is_passed(bool on_device, int most, int per_node);
/* Rank 0 sums alone and is told to stop by another thread; the others come later. */
void an_abort_ends_what_hangs(int per_node);
/* The last of 'count' processes dies in its fourth sum. */
void a_death_ends_the_sums(int count, int per_node);
/* 'expected' is part of what the one that has come says. */
void who_never_comes_is_not_waited_for(const char *expected);

#endif
