/*
 * replica_threads.h - one thread for each replica of a process, and pieces of work that all do at
 * once.
 */
#ifndef CORE_DEVICE_REPLICA_THREADS_H
#define CORE_DEVICE_REPLICA_THREADS_H

#include <pons/plugin.h>

typedef struct crew crew;

/* What replica 'number' does; its errors are its own. */
typedef pons_status crew_work(void *context, int number, pons_error *err);

/*
 * Threads for 'count' replicas; with one there is none and the caller's thread does the work.
 * failed: called once, from the thread of the first replica whose work fails, so that others which
 * wait for it can be woken; may be NULL.
 */
pons_status crew_open(int count, void (*failed)(void *context, int number), void *context,
                      crew **out, pons_error *err);
void crew_close(crew *c);
/*
 * Let every replica do 'work' and wait until all have ended. The error is that of the replica that
 * failed first. One caller at a time.
 */
pons_status crew_run(crew *c, crew_work *work, void *context, pons_error *err);

#endif
