/*
 * comm_suite.h - the contract of comm.h between forked processes, for any plugin: trials, aborts,
 * processes that die or never join.
 */
#ifndef TESTS_COMM_SUITE_H
#define TESTS_COMM_SUITE_H

#include "support/process/shared_table.h"
#include "support/run/comm_trial.h"

/* A plugin, and the stream and memory that it works on. */
typedef struct comm_backend {
    const char *plugin;
    void *(*stream)(void);          /* this process's, opened once; NULL: host                    */
    void *(*allocate)(size_t size); /* memory of the stream's device                              */
    void (*release)(void *memory);
    /* Copy between that memory and the host's; complete on return. */
    void (*copy)(void *to, const void *from, size_t size);
    pons_status (*end)(pons_error *err); /* release the stream; NULL: nothing to do               */
} comm_backend;

extern const comm_backend comm_backend_tested; /* of the linked backend_*.c                       */

/*
 * Seconds of this process, counted in naps of 10 ms from the first call on. Other processes had at
 * least that much time to run, so that a paused machine passes no deadline.
 */
double comm_suite_pace(void);

const pons_comm_operations *comm_suite_load(void);
/*
 * Load the plugin, and run 'work' in 'count' processes until all have ended. 'timeout_s' limits
 * their joining, 0: as processes_new. The caller frees the processes.
 */
processes *comm_suite_run(int count, double timeout_s, processes_work *work, void *context);
/* The same for work without an error. */
void comm_suite_pass(int count, processes_work *work, void *context);
/* Join the group; 'address' NULL: a loopback address by p->per_node. */
pons_status comm_suite_join(processes *p, int rank, const char *address, comm_party *out,
                            pons_error *err);
/* Leave the group. No process closes while another one is still reading. */
pons_status comm_suite_leave(processes *p, const comm_party *party, pons_error *err);

/*
 * Run all trials on 1 to 'most' processes, which share one address.
 */
void every_trial_is_passed(bool on_device, int most);
/*
 * Add tests of faults, as suite_add_test_if: rank 0 sums alone, and another thread aborts the sum;
 * the last of several processes dies in its fourth sum.
 */
void comm_suite_add_faults(TCase *c, bool holds, const char *what);
/* 'expected' is part of the error of the process that joins. */
void who_never_comes_is_not_waited_for(const char *expected);

#endif
