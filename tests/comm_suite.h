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
    pons_status (*end)(pons_error *err); /* the stream is not needed any more; NULL: nothing      */
} comm_backend;

extern const comm_backend comm_backend_tested; /* one of backend_*.c, as the program is linked    */

const pons_comm_operations *comm_suite_load(void);
pons_status comm_suite_join(processes *p, int rank, const char *address, comm_party *out,
                            pons_error *err);

void every_trial_is_passed(bool on_device, int most);
/* Rank 0 sums alone and is told to stop by another thread; the others come later. */
void an_abort_ends_what_hangs(void);
/* The last of 'count' processes dies in its fourth sum. */
void a_death_ends_the_sums(int count);
/* 'expected' is part of what the one that has come says. */
void who_never_comes_is_not_waited_for(const char *expected);

#endif
