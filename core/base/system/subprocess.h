/*
 * subprocess.h - work that may end its process, in a process of its own.
 */
#ifndef CORE_BASE_SYSTEM_SUBPROCESS_H
#define CORE_BASE_SYSTEM_SUBPROCESS_H

#include <pons/plugin.h>

/* The limits and the output of the child process. */
typedef struct apart_terms {
    const char *who;    /* begins the line where the process ends badly                           */
    int seconds;        /* that each stage of the work may take; 0: any time                      */
    bool quiet;         /* drop its output, and end without what is called at an exit             */
} apart_terms;

/* The child's own; a stage is what the work does at the moment, for the line about a late one. */
typedef struct apart_child apart_child;

void apart_stage(apart_child *child, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Call 'work' in a forked child and return its status. The child has one thread, memory of its own
 * and this process's output, unless terms->quiet drops it. PONS_PLUGIN if the child ends before
 * 'work' returns, ends badly after it, or exceeds the time of a stage; the message says which.
 * PONS_DEVICE if no process can be started.
 */
pons_status apart_run(pons_status (*work)(const void *context, apart_child *child, pons_error *err),
                      const void *context, const apart_terms *terms, pons_error *err);

#endif
