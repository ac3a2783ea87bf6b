/*
 * log.c - one line at a time to the terminal and to a file, and redrawn lines below them.
 */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/terminal.h"
#include "base/text/quote.h"

enum { LINE_SIZE = 4096, CONTROL_SIZE = 16 };

static const double DRAW_INTERVAL = 0.25; /* seconds */

/* One lock serves all loggers, because they share the terminal. */
static pthread_mutex_t terminal_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- redrawn lines --------------------------------------------------------------------------- */

/* Erase the redrawn lines, at whose start the cursor stands. */
static void erase_live(logger *l)
{
    if (l->shown == 0)
        return;
    if (terminal_is_ours(l->terminal))
        fputs("\r\033[J", l->terminal);
    l->shown = 0;
}

/* Stop writing to a terminal whose reader has gone: it never comes back. */
static void check_reader(logger *l)
{
    if (l->terminal == NULL || !ferror(l->terminal) || errno != EPIPE)
        return;
    l->terminal = NULL;
    l->terminal_lost = true;
}

/*
 * Draw lines over the earlier ones, by a single write, and return to the start of the first one:
 * a terminal that wraps lines anew in another width keeps the cursor there. No line wraps
 * meanwhile. The last column stays free, because some terminals wrap as soon as it is written.
 */
static void draw(logger *l, const char *lines)
{
    char out[LINE_SIZE + (LOG_BLOCK_LINES + 4) * CONTROL_SIZE];
    int columns = terminal_columns(l->terminal) - 1, n = 0;
    int most = min_int(LOG_BLOCK_LINES, max_int(1, terminal_rows(l->terminal) - 1));
    size_t used;

    if (!terminal_is_ours(l->terminal)) {
        l->shown = 0;
        return;
    }
    used = (size_t)snprintf(out, sizeof out, "\r\033[?7l");
    for (const char *line = lines; line != NULL && n < most; n++) {
        char text[LINE_SIZE];
        size_t size = strcspn(line, "\n");

        snprintf(text, sizeof text, "%.*s", (int)size, line);
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%.*s\033[K", n > 0 ? "\n" : "",
                                 (int)terminal_fit(text, columns), text);
        line = line[size] != '\0' ? line + size + 1 : NULL;
    }
    used += (size_t)snprintf(out + used, sizeof out - used, "\033[J\033[?7h\r");
    if (n > 1)
        used += (size_t)snprintf(out + used, sizeof out - used, "\033[%dA", n - 1);
    l->shown = n;
    fwrite(out, 1, used, l->terminal);
    fflush(l->terminal);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Local date and time in front of a line. */
static void write_time(FILE *file)
{
    time_t now = time(NULL);
    struct tm day;
    char text[32];

    if (localtime_r(&now, &day) != NULL && strftime(text, sizeof text, "%F %T ", &day) > 0)
        fputs(text, file);
}

static void write_line(logger *l, bool shown, const char *before, const char *after,
                       const char *text)
{
    pthread_mutex_lock(&terminal_lock);
    if (l->terminal != NULL && shown) {
        fflush(stdout); /* keeps the order of lines where both streams go to one file */
        erase_live(l);
        errno = 0;
        fprintf(l->terminal, "%s%s%s\n", l->color ? before : "", text, l->color ? after : "");
        fflush(l->terminal);
        if (l->block[0] != '\0')
            draw(l, l->block);
        check_reader(l);
    }
    pthread_mutex_unlock(&terminal_lock);
    if (l->line != NULL && shown)
        l->line(l->context, text);
    if (l->file != NULL) {
        if (l->terminal_lost)
            fputs("warning: nobody reads the standard error any more; its lines are here alone\n",
                  l->file);
        l->terminal_lost = false;
        write_time(l->file);
        fprintf(l->file, "%s\n", text);
        fflush(l->file);
    }
}

void log_line(logger *l, const char *format, ...)
{
    char text[LINE_SIZE];
    va_list list;

    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    write_line(l, l->level >= LOG_NORMAL, "", "", text);
}

void log_detail(logger *l, const char *format, ...)
{
    char text[LINE_SIZE];
    va_list list;

    if (l->level < LOG_VERBOSE)
        return;
    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    write_line(l, true, "\033[2m", "\033[0m", text);
}

void log_warning(logger *l, const char *format, ...)
{
    char text[LINE_SIZE];
    static const char word[] = "warning: ";
    va_list list;

    memcpy(text, word, sizeof word);
    va_start(list, format);
    quote_format(text + sizeof word - 1, sizeof text - (sizeof word - 1), format, list);
    va_end(list);
    write_line(l, true, "\033[33m", "\033[0m", text);
}

void log_error(logger *l, const char *text)
{
    static const char word[] = "error: ";
    char line[LINE_SIZE];

    memcpy(line, word, sizeof word);
    quote_message(line + sizeof word - 1, sizeof line - (sizeof word - 1), text);
    write_line(l, true, "\033[31m", "\033[0m", line);
}

void log_interruption(logger *l, const char *text)
{
    char line[LINE_SIZE];

    quote_message(line, sizeof line, text);
    write_line(l, true, "", "", line);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Locked: another thread may find that the terminal has gone. */
static bool redraws(const logger *l)
{
    return l->terminal != NULL && l->live && l->level >= LOG_NORMAL;
}

bool log_live_due(const logger *l)
{
    bool due;

    pthread_mutex_lock(&terminal_lock);
    due = redraws(l) && (l->drawn <= 0 || seconds_now() - l->drawn >= DRAW_INTERVAL);
    pthread_mutex_unlock(&terminal_lock);
    return due;
}

void log_progress(logger *l, const char *format, ...)
{
    char text[LINE_SIZE];
    va_list list;

    if (!log_live_due(l))
        return;
    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    text[strcspn(text, "\n\t")] = '\0';
    pthread_mutex_lock(&terminal_lock);
    errno = 0;
    if (l->block[0] == '\0' && redraws(l)) {
        l->drawn = seconds_now();
        draw(l, text);
    }
    check_reader(l);
    pthread_mutex_unlock(&terminal_lock);
}

void log_block(logger *l, const char *lines)
{
    pthread_mutex_lock(&terminal_lock);
    if (redraws(l)) {
        quote_message(l->block, sizeof l->block, lines);
        l->drawn = seconds_now();
        errno = 0;
        if (l->block[0] != '\0')
            draw(l, l->block);
        else
            erase_live(l);
        fflush(l->terminal);
        check_reader(l);
    }
    pthread_mutex_unlock(&terminal_lock);
}

void log_stopped(logger *l, void (*stop)(void))
{
    pthread_mutex_lock(&terminal_lock);
    if (redraws(l)) {
        erase_live(l);
        fflush(l->terminal);
    }
    stop();
    if (redraws(l) && l->block[0] != '\0') {
        errno = 0;
        l->drawn = seconds_now();
        draw(l, l->block);
        check_reader(l);
    }
    pthread_mutex_unlock(&terminal_lock);
}
