/*
 * log.c - one line at a time to the terminal and to a file.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/terminal.h"
#include "base/text/quote.h"

enum { LINE_SIZE = 4096 };

/* Return to the start of the line and erase it. */
static void end_live_line(logger *l)
{
    if (l->shown)
        fputs("\r\033[K", l->terminal);
    l->shown = false;
}

/* Stop writing to a terminal whose reader has gone: it never comes back. */
static void check_reader(logger *l)
{
    if (!ferror(l->terminal) || errno != EPIPE)
        return;
    l->terminal = NULL;
    l->terminal_lost = true;
}

static void write_line(logger *l, bool shown, const char *before, const char *after,
                       const char *text)
{
    if (l->terminal != NULL && shown) {
        fflush(stdout); /* keeps the order of lines where both streams go to one file */
        end_live_line(l);
        errno = 0;
        fprintf(l->terminal, "%s%s%s\n", l->color ? before : "", text, l->color ? after : "");
        fflush(l->terminal);
        check_reader(l);
    }
    if (l->line != NULL && shown)
        l->line(l->context, text);
    if (l->file != NULL) {
        if (l->terminal_lost)
            fputs("warning: nobody reads the standard error any more; its lines are here alone\n",
                  l->file);
        l->terminal_lost = false;
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

/* Leave the last column free: some terminals wrap as soon as it is written. */
void log_progress(logger *l, const char *format, ...)
{
    char text[LINE_SIZE];
    va_list list;

    if (l->terminal == NULL || !l->live || l->level < LOG_NORMAL)
        return;
    va_start(list, format);
    quote_format(text, sizeof text, format, list);
    va_end(list);
    text[strcspn(text, "\n\t")] = '\0';
    errno = 0;
    fprintf(l->terminal, "\r%.*s\033[K",
            (int)terminal_fit(text, terminal_columns(l->terminal) - 1), text);
    fflush(l->terminal);
    l->shown = true;
    check_reader(l);
}
