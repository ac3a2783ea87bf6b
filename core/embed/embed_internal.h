/*
 * embed_internal.h - functions shared by the files behind pons/predict.h and pons/train.h.
 */
#ifndef CORE_EMBED_EMBED_INTERNAL_H
#define CORE_EMBED_EMBED_INTERNAL_H

#include <pthread.h>

#include "base/thread/worker.h"

/* ---- embed_call.c ---------------------------------------------------------------------------- */

/*
 * Copy a caller's struct that begins with its size to 'own' of 'room' bytes. Members that the
 * caller does not know are zero. PONS_USAGE: the size is not set, or a member that only a later
 * library knows is not zero; 'what' names the struct.
 */
pons_status embed_copy(void *own, size_t room, const void *given, const char *what,
                       pons_error *err);
/* Write the outcome of a program's call to 'err', whatever it held; NULL is allowed. */
pons_status embed_return(const pons_error *outcome, pons_error *err);
/*
 * Start a thread for the work of a predictor or a training. Neither it nor the threads that it
 * starts receive signals of the program, and processors are bound to it instead of the caller.
 */
pons_status embed_open_thread(worker **out, pons_error *err);
/* Run a job on the thread, in the C locale; returns when it is done. */
pons_status embed_run(worker *thread, worker_job *job, void *context, pons_error *err);

/* Callbacks of a program, which come one at a time from any thread of a call. */
typedef struct embed_callbacks {
    pthread_mutex_t lock;
    bool (*stop)(void *context);              /* may be NULL                                      */
    void (*line)(void *context, const char *line); /* may be NULL                                 */
    void *context;
    bool stopped;
} embed_callbacks;

void embed_callbacks_open(embed_callbacks *c, bool (*stop)(void *context),
                          void (*line)(void *context, const char *line), void *context);
void embed_callbacks_close(embed_callbacks *c);
/* Ask 'stop', and remember its first true: every later call returns true. */
bool embed_stop(embed_callbacks *c);
/* A logger's 'line'; 'callbacks' is an embed_callbacks. */
void embed_line(void *callbacks, const char *line);

#endif
