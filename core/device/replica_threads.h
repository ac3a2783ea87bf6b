/*
 * replica_threads.h - one thread for each replica of a process, and tasks that all of them run at
 * once.
 */
#ifndef CORE_DEVICE_REPLICA_THREADS_H
#define CORE_DEVICE_REPLICA_THREADS_H

#include <pons/plugin.h>

typedef struct replica_threads replica_threads;

/* The task of replica 'number'; each replica has its own error. */
typedef pons_status replica_task(void *context, int number, pons_error *err);

/*
 * Start threads for 'count' replicas; a single replica runs in the caller's thread. 'failed' (may
 * be NULL) is called once, in the thread of the first replica whose task fails, so that it can wake
 * replicas that wait for it.
 */
pons_status replica_threads_open(int count, void (*failed)(void *context, int number),
                                 void *context, replica_threads **out, pons_error *err);
void replica_threads_close(replica_threads *c);
/*
 * Run 'work' in every replica and wait for all. The error is that of the first replica that failed.
 * One caller at a time.
 */
pons_status replica_threads_run(replica_threads *c, replica_task *work, void *context,
                                pons_error *err);

#endif
