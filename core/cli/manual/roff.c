/*
 * roff.c - the text of a man page, in the macros of man(7).
 */
#include "cli/manual/roff.h"

#include <ctype.h>
#include <string.h>

#include <pons/pons.h>

/* The longest line that mandoc takes without a remark is 80 bytes; escapes make a line longer. */
enum { LINE_BYTES = 68 };

/* The day of the release of docs/releases.md, so that a build is the same on every day. */
static const char release_day[] = "2026-11-28";

/* A hyphen of a command must stay one, and a '\' or a leading dot would begin a request. */
static void put(FILE *to, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", to);
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else
            fputc(*text, to);
        if (*text == '\n' && (text[1] == '.' || text[1] == '\''))
            fputs("\\&", to);
    }
}

/* A sentence is filled by the reader's program, so that it may be broken at any blank. */
void roff_line(FILE *to, const char *text)
{
    char line[LINE_BYTES + 1];

    while (strlen(text) > LINE_BYTES) {
        size_t size = LINE_BYTES;
        while (size > 0 && text[size] != ' ')
            size--;
        if (size == 0)
            break;
        memcpy(line, text, size);
        line[size] = '\0';
        put(to, line);
        fputc('\n', to);
        text += size + 1;
    }
    put(to, text);
    fputc('\n', to);
}

void roff_begin(FILE *to, const char *name, const char *section)
{
    fputs(".\\\" Written by 'pons help --manual' from the tables of commands and options.\n.TH \"",
          to);
    for (; *name != '\0'; name++)
        fputc(toupper((unsigned char)*name), to);
    fprintf(to, "\" \"%s\" \"%s\" \"pons %s\" \"pons\"\n", section, release_day, pons_version());
}

void roff_heading(FILE *to, const char *title)
{
    fprintf(to, ".SH \"%s\"\n", title);
}

void roff_subheading(FILE *to, const char *title)
{
    fprintf(to, ".SS \"%s\"\n", title);
}

void roff_paragraph(FILE *to, const char *text)
{
    fputs(".PP\n", to);
    roff_line(to, text);
}

void roff_example(FILE *to, const char *text)
{
    fputs(".PP\n.nf\n.RS\n", to);
    put(to, text);
    fputs(".RE\n.fi\n", to);
}

void roff_term(FILE *to, const char *term, const char *rest, const char *description)
{
    fputs(".TP\n\\fB", to);
    put(to, term);
    fputs("\\fR", to);
    if (rest != NULL && *rest != '\0') {
        fputc(' ', to);
        put(to, rest);
    }
    fputc('\n', to);
    roff_line(to, description);
}

void roff_break(FILE *to, const char *title, const char *text)
{
    fputs(".br\n", to);
    put(to, title);
    roff_line(to, text);
}
