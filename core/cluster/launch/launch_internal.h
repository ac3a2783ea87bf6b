/*
 * launch_internal.h - what the files of the launcher share.
 */
#ifndef CORE_CLUSTER_LAUNCH_LAUNCH_INTERNAL_H
#define CORE_CLUSTER_LAUNCH_LAUNCH_INTERNAL_H

#include "cluster/watchdog/status_page.h"
#include "cluster/launch/launch.h"

#include <poll.h>
#include <signal.h>
#include <sys/types.h>

/* ---- output: launch_output.c ----------------------------------------------------------------- */

enum { STREAM_LINE = 8192, STREAM_TAIL = 4096 };

/* The reading end of a rank's standard output or error. */
typedef struct stream {
    int file;                  /* -1: closed                                                      */
    int rank;
    FILE *to;                  /* NULL: only its tail is kept                                     */
    size_t line_size, tail_size;
    char line[STREAM_LINE];    /* what has come of a line                                         */
    char tail[STREAM_TAIL];    /* the last that came                                              */
} stream;

/* Takes what there is; does not wait. */
void stream_read(stream *s);
/* The last lines, each behind the rank. */
void stream_tell_tail(const stream *s, FILE *to);
void stream_close(stream *s);

/* ---- one start: launch_start.c --------------------------------------------------------------- */

typedef enum rank_outcome {
    RANK_RUNS = 0,
    RANK_DONE,
    RANK_INTERRUPTED,          /* PONS_INTERRUPTED, or ended by a signal that was passed on       */
    RANK_FAILED,
    RANK_FOLLOWED              /* after it was told to end because another one had failed         */
} rank_outcome;

typedef struct launched {
    pid_t process;             /* also of its group; 0: not started                               */
    int rank;                  /* among all nodes                                                 */
    rank_outcome outcome;
    bool stopped;              /* by a signal, as SIGSTOP; it runs on with SIGCONT                */
    int code, signal;          /* once it has ended; signal 0: it exited                          */
    double when;
    stream *output[2];         /* standard output and error, NULL: not through this process       */
} launched;

/* The ranks of one start. */
typedef struct crowd {
    const launch_settings *settings;
    int count;
    launched *rank;
    board *board;
    int listener;              /* the store's socket for rank 0, -1: none                         */
    char master[256];
    int port;
    char token[129];
    sigset_t before;           /* the mask that ranks get                                         */
} crowd;

/* Starts all; what was started has to be ended by the caller also where this fails. */
pons_status crowd_start(crowd *c, const launch_settings *settings, int restart,
                        const sigset_t *before, pons_error *err);
/* All have ended. */
void crowd_clear(crowd *c);

/*
 * ---- why: launch_failure.c ---------------------------------------------------------------------
 */

/* The rank that failed first, or NULL. */
const launched *crowd_cause(const crowd *c);
/* Fill 'err'; whether another start may go better. */
bool crowd_tell(const crowd *c, const launched *cause, pons_error *err);
/* One line on how a rank ended, for -v. */
void crowd_tell_end(const crowd *c, const launched *r);

#endif
