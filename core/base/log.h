/*
 * log.h - lines for the person: to stderr, and to a run's log.txt without control characters.
 */
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include <stdbool.h>
#include <stdio.h>

typedef enum log_level { LOG_QUIET = 0, LOG_NORMAL, LOG_VERBOSE } log_level;

typedef struct log {
    FILE *terminal, *file; /* either may be NULL */
    log_level level;
    bool color, live;      /* a terminal that can be redrawn */
    int live_size;         /* characters of the line that is being redrawn */
} log;

void log_line(log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_detail(log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));  /* -v    */
void log_warning(log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Redraw the last line of a terminal; nothing elsewhere. The next log_line starts below it. */
void log_progress(log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
