/*
 * worker.h - a thread that does one job at a time.
 *
 * A failed job reports once: to the next call that takes an error.
 */
#ifndef CORE_BASE_THREAD_WORKER_H
#define CORE_BASE_THREAD_WORKER_H

#include <pons/plugin.h>

typedef struct worker worker;

typedef pons_status worker_job(void *context, pons_error *err);

/* Low: kernels on the same processors go first. */
typedef enum worker_priority { WORKER_NORMAL, WORKER_LOW } worker_priority;

/*
 * The thread blocks every signal that the caller blocks. PONS_DEVICE without memory or threads;
 * 'what' names the thread in the message: "the thread that writes checkpoints".
 */
pons_status worker_open(worker_priority priority, const char *what, worker **out, pons_error *err);
/* Wait for the job under way, whose context the caller may free or use again afterwards. */
void worker_close(worker *w); /* also NULL */

/* Begin 'job' after the one before; when that one failed nothing begins. */
pons_status worker_start(worker *w, worker_job *job, void *context, pons_error *err);
/* The failure of a job that is done; PONS_OK while it is under way. Never waits. */
pons_status worker_check(worker *w, pons_error *err);
/* The same after waiting until no job is under way. */
pons_status worker_wait(worker *w, pons_error *err);
/* Whether a job is under way. */
bool worker_busy(worker *w);
/* Seconds that the last finished job took; 0: there is none. */
double worker_seconds(worker *w);

#endif
