/*
 * progress.h - the line of a command at work, log_progress with the time left: cases, or the bytes
 * of a large file.
 */
#ifndef CORE_BASE_PROGRESS_H
#define CORE_BASE_PROGRESS_H

#include <stdint.h>

#include "base/log.h"

enum { PROGRESS_LEFT = 48 };

/*
 * The time left, as in ", 1:05 left", of work that began at seconds_now() 'begin' and has done
 * 'done' of 'all'; "" while that is unknown. Returns 'out'.
 */
const char *progress_left(double begin, double done, double all, char out[PROGRESS_LEFT]);

typedef struct case_progress {
    const char *verb;     /* "predicting"                                                         */
    int count;            /* of cases                                                             */
    double begin;         /* seconds_now() of the work; 0: that of the first call                 */
    int64_t voxels;       /* of this process's cases, added by the caller as they are done        */
    int64_t next;         /* voxels of the case under way; 0: unknown                             */
} case_progress;

/*
 * Show that 'number' cases are done, and the share 'part' (0 to 1) of the next one. The rate of
 * voxels counts that share, too.
 */
void case_progress_show(case_progress *p, logger *l, int number, double part);
/* Erase the line, for commands that go on with the standard output. */
void case_progress_end(logger *l);

typedef struct byte_progress {
    logger *log;
    const char *verb, *path;  /* "reading", and the file                                          */
    int64_t size, done;       /* bytes                                                            */
    double begin;
    bool shown;
} byte_progress;

/*
 * Begin a file of 'size' bytes. A line is shown once the work takes half a second. The functions
 * accept NULL, for work that shows nothing.
 */
void byte_progress_begin(byte_progress *p, int64_t size);
void byte_progress_add(byte_progress *p, int64_t bytes);
/* Erase the line, if there is one. */
void byte_progress_end(byte_progress *p);

#endif
