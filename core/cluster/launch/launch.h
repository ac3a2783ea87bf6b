/*
 * launch.h - the local ranks of a run: started together, watched, ended together.
 *
 * Ranks are direct children, each in a process group of its own, so that what a rank started ends
 * with it. They end with the launcher too, also when it is killed. One that fails ends all others
 * within seconds, and the first cause is told once.
 */
#ifndef CORE_CLUSTER_LAUNCH_LAUNCH_H
#define CORE_CLUSTER_LAUNCH_LAUNCH_H

#include "base/log.h"

#include <pons/plugin.h>

enum { LAUNCH_RANKS_MAX = 1024 };

typedef struct launch_settings {
    const char *program;       /* path; must call board_end, as pons_main does                    */
    /*
     * Its arguments behind argv[0], NULL at the end, for the first start (0) or the i-th restart;
     * borrowed until the next call.
     */
    const char *const *(*words)(void *context, int restart);
    void *context;
    int ranks;                 /* on this node                                                    */
    int nodes, node;           /* this one is 'node' of 'nodes'; its ranks begin at node x ranks  */
    const char *master;        /* host of the store; NULL: this machine, at a free port           */
    int port;
    const char *token;         /* the job's; NULL: a new one for every start                      */
    int restarts;              /* after failures that another start may survive                   */
    /*
     * For the others, after one rank came to its end; on several nodes, for all of this node that
     * are stopped without this process, which are then told to go on.
     */
    double patience_s;
    bool show_all;             /* lines of all ranks behind "[rank] "; else those of rank 0 only, */
    logger *log;               /* which then writes where this process does                       */
} launch_settings;

/*
 * Until all ranks have ended. PONS_OK, PONS_INTERRUPTED, or the exit code of the rank that failed
 * first and one line that says why: 128 + its number for a signal, PONS_FAILURE for an exit before
 * the end with code 0.
 *
 * SIGTERM, SIGINT, SIGUSR1 and SIGHUP (as SIGTERM) go to the ranks; after a second one what does
 * not end is killed. Call it before there are threads.
 */
pons_status launch_run(const launch_settings *settings, pons_error *err);

#endif
