/*
 * help_search.c - a word that is no topic, looked for in names and sentences of the help.
 */
#include "cli/help/help_search.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "config/sections.h"

/* A text has the word, in letters of either case. */
static bool mentions(const char *text, const char *word)
{
    return text != NULL && strcasestr(text, word) != NULL;
}

/* Print the rows that have the word. 'mark' is in front of a name, which a flag has with '-'. */
static int print_rows(const char *place, const char *mark, const pons_option *row,
                      const char *word)
{
    int count = 0;

    for (; row != NULL && row->name != NULL; row++) {
        if (!mentions(row->name, word) && !mentions(row->help, word))
            continue;
        printf("%s %s", place, mark);
        for (const char *c = row->name; *c != '\0'; c++)
            putchar(*c == '_' && *mark != '\0' ? '-' : *c);
        printf("\n      %s\n", row->help);
        count++;
    }
    return count;
}

int help_search_print(const char *word)
{
    char place[160];
    int count = 0;

    for (const command *const *c = commands; *c != NULL; c++) {
        snprintf(place, sizeof place, "pons %s", (*c)->name);
        count += print_rows(place, "--", (*c)->flags, word);
    }
    for (const section_table *t = section_tables; t->name != NULL; t++) {
        snprintf(place, sizeof place, "[%s]", t->name);
        count += print_rows(place, "", t->options, word);
    }
    return count;
}
