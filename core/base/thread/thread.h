/*
 * thread.h - start threads with a message on failure, and count processors.
 */
#ifndef CORE_BASE_THREAD_THREAD_H
#define CORE_BASE_THREAD_THREAD_H

#include <pons/plugin.h>
#include <pthread.h>
#include <signal.h>

/*
 * As pthread_create. PONS_DEVICE where the system refuses: no memory for the thread's stack, or too
 * many threads. 'what' names the thread in the message: "the thread that reads cases".
 */
pons_status thread_start(pthread_t *out, void *(*work)(void *), void *context, const char *what,
                         pons_error *err);

/*
 * Block signals from outside, for a thread that inherits the mask: the training thread handles
 * signals. Signals of a thread's own faults stay unblocked, because a blocked one ends the process
 * without its handler.
 */
void thread_block_signals(sigset_t *before);

/* Initialise a condition whose timed waits use the clock of base/clock.h. */
void thread_condition(pthread_cond_t *out);

/* Processors that the affinity mask and the CPU quota allow this process; at least 1. */
int thread_processors(void);
/* The CPU quota (system/cpu_quota.h), read once. */
double thread_quota(void);

#endif
