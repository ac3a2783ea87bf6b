/*
 * log.h - log lines for the user: on stderr, and without control characters in a run's log.txt.
 *
 * The logger appends the newline to every line. A logger belongs to one thread. When the terminal
 * becomes a broken pipe, 'terminal' becomes NULL and 'file' gets a line about it.
 */
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include <stdbool.h>
#include <stdio.h>

typedef enum log_level { LOG_QUIET = 0, LOG_NORMAL, LOG_VERBOSE } log_level;

typedef struct logger {
    FILE *terminal, *file; /* either may be NULL */
    log_level level;
    bool color, live;      /* terminal accepts colour codes; it can redraw a line */
    bool shown;            /* a progress line stands on the terminal */
    bool terminal_lost;    /* 'terminal' has gone, and 'file' does not yet say so */
    /* Receives the lines of the terminal without colour; NULL: nothing does. */
    void (*line)(void *context, const char *text);
    void *context;
} logger;

void log_line(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_detail(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));  /* -v */
void log_warning(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Log the failure that ends a command. 'text' may have a second line, 'hint: ...'. */
void log_error(logger *l, const char *text);
/*
 * Redraw the last line of a terminal, cut to its width. Does nothing elsewhere. The next log_line
 * takes the place of the progress line.
 */
void log_progress(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
