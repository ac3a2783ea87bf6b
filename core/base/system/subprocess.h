/*
 * subprocess.h - run work that may end its process in a child process.
 */
#ifndef CORE_BASE_SYSTEM_SUBPROCESS_H
#define CORE_BASE_SYSTEM_SUBPROCESS_H

#include <pons/plugin.h>

/* The limits and the output of the child process. */
typedef struct subprocess_terms {
    const char *who;    /* subject of the message about a bad end                                 */
    /*
     * Limit of each stage of the work; 0: none. A stage is late behind it if it has computed for as
     * long or hardly at all, and at the latest behind ten times the limit: a busy machine, which
     * leaves it little time of a processor, ends no stage.
     */
    int seconds;
    bool quiet;         /* drop output, and end by _exit                                          */
    /* Called about four times a second with the stage and its age; NULL: not. */
    void (*waiting)(const void *context, const char *stage, double seconds);
} subprocess_terms;

/*
 * The child's side of a call. A stage names what the work is doing, for the message about a late
 * child.
 */
typedef struct subprocess_child subprocess_child;

void subprocess_stage(subprocess_child *child, const char *format,
                      ...) __attribute__((format(printf, 2, 3)));

/*
 * Call 'work' in a forked child and return its status. The child has one thread, memory of its own
 * and this process's output, unless terms->quiet drops it. PONS_PLUGIN if the child ends before
 * 'work' returns, ends badly after it, or exceeds the time of a stage; the message says which.
 * PONS_DEVICE if no process can be started.
 */
pons_status subprocess_run(pons_status (*work)(const void *context, subprocess_child *child,
                                               pons_error *err),
                           const void *context, const subprocess_terms *terms, pons_error *err);

#endif
