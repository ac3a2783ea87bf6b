/*
 * case_progress.h - the line of a command that works through cases: log_progress with time left.
 */
#ifndef CORE_BASE_CASE_PROGRESS_H
#define CORE_BASE_CASE_PROGRESS_H

#include <stdint.h>

#include "base/log.h"

typedef struct case_progress {
    const char *verb;     /* "predicting"                                                         */
    int count;            /* of cases                                                             */
    double begin;         /* seconds_now() of the work; 0: that of the first call                 */
    int64_t voxels;       /* of this process's cases, added by the caller as they are done        */
} case_progress;

/*
 * Show that 'number' cases are done, and the share 'part' (0 to 1) of the next one. The rate of
 * voxels is that of whole cases.
 */
void case_progress_show(case_progress *p, logger *l, int number, double part);
/* Erase the line, for commands that go on with the standard output. */
void case_progress_end(logger *l);

#endif
