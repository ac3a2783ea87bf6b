/*
 * worker.h - one piece of work at a time, on a thread of its own and of lower priority.
 *
 * Work that failed says so once: to the next call that takes an error.
 */
#ifndef CORE_BASE_THREAD_WORKER_H
#define CORE_BASE_THREAD_WORKER_H

#include <pons/plugin.h>

typedef struct background background;

typedef pons_status background_work(void *context, pons_error *err);

/* The thread blocks every signal that the caller blocks. */
pons_status background_open(background **out, pons_error *err);
/* Waits for work under way, whose context the caller may free or use again afterwards. */
void background_close(background *b); /* also NULL */

/* Begin 'work'. Waits for the one before; when that failed nothing begins. */
pons_status background_start(background *b, background_work *work, void *context, pons_error *err);
/* The failure of work that is done; PONS_OK while it is under way. Never waits. */
pons_status background_check(background *b, pons_error *err);
/* The same after waiting until nothing is under way. */
pons_status background_wait(background *b, pons_error *err);
/* How long the last work that is done took; 0: there is none. */
double background_seconds(background *b);

#endif
