/*
 * thread.h - threads, and what is said where one cannot be had.
 */
#ifndef CORE_BASE_THREAD_THREAD_H
#define CORE_BASE_THREAD_THREAD_H

#include <pons/plugin.h>
#include <pthread.h>
#include <signal.h>

/*
 * As pthread_create. PONS_DEVICE where the system refuses: there is no memory for the thread's
 * stack, or there are too many threads. 'what' is what it was for: "the thread that reads cases".
 */
pons_status thread_start(pthread_t *out, void *(*work)(void *), void *context, const char *what,
                         pons_error *err);

/*
 * Block what comes from outside for a thread to be started, which inherits it: signals are for the
 * thread that trains. Those of a thread's own faults stay: a blocked one ends the process
 * unanswered.
 */
void thread_block_signals(sigset_t *before);

/* A condition whose timed waits go by the clock of base/clock.h. */
void thread_condition(pthread_cond_t *out);

/* Processors that this process may run on, no more than its quota allows; at least 1. */
int thread_processors(void);
/* The quota (base/quota.h), as it was when it was first asked for. */
double thread_quota(void);

#endif
