/*
 * launch.h - start the ranks of a run on this node, watch them and end them together.
 *
 * Ranks are direct children. Each has a process group of its own, so that processes that a rank
 * started end with it. Ranks end with the launcher, even if it is killed. A rank that fails ends
 * all others within seconds, and the root cause is reported once.
 */
#ifndef CORE_CLUSTER_LAUNCH_LAUNCH_H
#define CORE_CLUSTER_LAUNCH_LAUNCH_H

#include "base/log.h"

#include <pons/plugin.h>

enum { LAUNCH_RANKS_MAX = 1024 };

typedef struct launch_settings {
    const char *program;       /* path; it calls status_page_report, as pons_main does            */
    /*
     * Arguments after argv[0], which end with NULL, for the first start (0) or the i-th restart.
     * They are borrowed until the next call.
     */
    const char *const *(*words)(void *context, int restart);
    void *context;
    int ranks;                 /* ranks on this node                                              */
    int nodes, node;           /* this is node 'node', from 0; ranks begin at node x ranks        */
    const char *master;        /* host of the store; NULL: this machine, at a free port           */
    int port;
    const char *token;         /* the job's; NULL: a new one for every start                      */
    int restarts;              /* limit of restarts, for failures that may be temporary           */
    /*
     * Time that other ranks may run after one has ended. On several nodes also the time that all
     * ranks of this node may be stopped, before they are continued.
     */
    double patience_s;
    /* Print all ranks' lines after "[rank] ". Else only rank 0 writes to this process's output. */
    bool show_all;
    logger *log;
} launch_settings;

/*
 * Run until all ranks have ended. Returns PONS_OK, PONS_INTERRUPTED, or the exit code of the rank
 * that failed first, with its message. A signal gives 128 + its number; an exit before the end with
 * code 0 gives PONS_FAILURE.
 *
 * SIGTERM, SIGINT, SIGUSR1 and SIGHUP (as SIGTERM) are passed on to the ranks. Ranks are killed
 * some seconds after a second signal, and by a third one at once. Call it before other threads are
 * started.
 */
pons_status launch_run(const launch_settings *settings, pons_error *err);

#endif
