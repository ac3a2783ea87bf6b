/*
 * log.h - lines for the person: to stderr, and to a run's log.txt without control characters.
 *
 * Every line ends with a newline that the caller does not write. One logger, one thread. A terminal
 * that is a broken pipe becomes NULL, and 'file' has a line about it.
 */
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include <stdbool.h>
#include <stdio.h>

typedef enum log_level { LOG_QUIET = 0, LOG_NORMAL, LOG_VERBOSE } log_level;

typedef struct logger {
    FILE *terminal, *file; /* either may be NULL */
    log_level level;
    bool color, live;      /* a terminal that can be redrawn */
    bool shown;            /* a line that is being redrawn */
    bool untold;           /* nobody reads the terminal any more, which 'file' does not say yet */
} logger;

void log_line(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_detail(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));  /* -v */
void log_warning(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The failure that ends a command; 'text' may hold a second line, 'hint: ...'. */
void log_error(logger *l, const char *text);
/*
 * Redraw the last line of a terminal, in one line of its width; nothing elsewhere. The next
 * log_line takes its place.
 */
void log_progress(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
