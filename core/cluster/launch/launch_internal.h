/*
 * launch_internal.h - the launcher's structures, shared by its files.
 */
#ifndef CORE_CLUSTER_LAUNCH_LAUNCH_INTERNAL_H
#define CORE_CLUSTER_LAUNCH_LAUNCH_INTERNAL_H

#include "cluster/watchdog/status_page.h"
#include "cluster/launch/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

/* ---- output: launch_output.c ----------------------------------------------------------------- */

enum { LAUNCH_LINE = 8192, LAUNCH_TAIL = 4096 };

/* The read end of a rank's standard output or error. */
typedef struct launch_output {
    int file;                  /* -1: closed                                                      */
    int rank;
    FILE *to;                  /* NULL: only the tail is kept                                     */
    size_t line_size, tail_size;
    char line[LAUNCH_LINE];    /* an incomplete line                                              */
    char tail[LAUNCH_TAIL];    /* the last bytes                                                  */
} launch_output;

/* Read what is available without waiting. */
void launch_output_read(launch_output *s);
/* Print the last lines, each after the rank's number. */
void launch_output_print_tail(const launch_output *s, FILE *to);
void launch_output_close(launch_output *s);

/* ---- one start: launch_start.c --------------------------------------------------------------- */

typedef enum rank_outcome {
    RANK_RUNS = 0,
    RANK_DONE,
    RANK_INTERRUPTED,          /* PONS_INTERRUPTED, or ended by a signal that was passed on       */
    RANK_FAILED,
    RANK_FOLLOWED              /* ended after another rank had failed                             */
} rank_outcome;

typedef struct rank_process {
    pid_t process;             /* process and process group; 0: not started                       */
    int rank;                  /* rank among all nodes                                            */
    rank_outcome outcome;
    bool stopped;              /* stopped by a signal, until SIGCONT                              */
    int code, signal;          /* after its end; signal 0: it exited                              */
    double when;
    launch_output *output[2];  /* output and error; NULL: not piped                               */
} rank_process;

/* The ranks of one start. */
typedef struct rank_set {
    const launch_settings *settings;
    int count;
    rank_process *rank;
    status_page *status_page;
    int listener;              /* the store's socket for rank 0; -1: none                         */
    char master[256];
    int port;
    char token[129];
    sigset_t before;           /* signal mask of the ranks                                        */
} rank_set;

/* Start all ranks. After a failure the caller must end those that were started. */
pons_status rank_set_start(rank_set *c, const launch_settings *settings, int restart,
                           const sigset_t *before, pons_error *err);
/* Free everything after all ranks have ended. */
void rank_set_clear(rank_set *c);

/* ---- the cause: launch_failure.c ------------------------------------------------------------ */

/* The rank that failed first, or NULL. */
const rank_process *rank_set_root_cause(const rank_set *c);
/* Fill 'err' with the failure. Returns whether a restart may help. */
bool rank_set_failure(const rank_set *c, const rank_process *cause, pons_error *err);
/* Log how a rank ended, with -v. */
void rank_set_log_exit(const rank_set *c, const rank_process *r);

#endif
