/*
 * log.h - log lines for the user: on stderr, and with date and time, without control characters,
 * in a run's log.txt.
 *
 * The logger appends the newline to every line. A logger belongs to one thread; log_progress,
 * log_block and log_stopped alone may come from others. When the terminal becomes a broken pipe,
 * 'terminal' becomes NULL and 'file' gets a line about it.
 */
#ifndef CORE_BASE_LOG_H
#define CORE_BASE_LOG_H

#include <stdbool.h>
#include <stdio.h>

typedef enum log_level { LOG_QUIET = 0, LOG_NORMAL, LOG_VERBOSE } log_level;

enum { LOG_BLOCK_LINES = 16, LOG_BLOCK_SIZE = 2048 };

typedef struct logger {
    FILE *terminal, *file; /* either may be NULL */
    log_level level;
    bool color, live;      /* terminal accepts colour codes; it can redraw a line */
    int shown;             /* redrawn lines that stand on the terminal */
    bool terminal_lost;    /* 'terminal' has gone, and 'file' does not yet say so */
    /* The receiver of the terminal's lines, without colour; NULL: there is none. */
    void (*line)(void *context, const char *text);
    void *context;
    double drawn;               /* seconds_now() when they last changed; 0: never */
    char block[LOG_BLOCK_SIZE]; /* stands below all lines; "": no block */
} logger;

void log_line(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_detail(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));  /* -v */
void log_warning(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Log the failure that ends a command. 'text' may have a second line, 'hint: ...'. */
void log_error(logger *l, const char *text);
/* Log the signal that ends a command, which saved its work: no error, and shown at every level. */
void log_interruption(logger *l, const char *text);

/* Whether 'l' redraws lines, and the last drawing was 0.25 s ago or more. Any thread. */
bool log_live_due(const logger *l);
/*
 * Redraw the last line of a terminal, cut to its width. Does nothing elsewhere, below a block, and
 * where log_live_due is false. The next log_line takes the place of the progress line.
 */
void log_progress(logger *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Redraw a block of lines below all others, each cut to the width of the terminal, their last ones
 * left out where its rows do not suffice. It stays below later lines until it is "". Draws without
 * regard to log_live_due.
 */
void log_block(logger *l, const char *lines);
/* Erase the redrawn lines, call 'stop', which stops the process, and draw a block again then. */
void log_stopped(logger *l, void (*stop)(void));

#endif
