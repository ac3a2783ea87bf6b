/*
 * usage.h - the output of "pons help".
 */
#ifndef CORE_CLI_USAGE_H
#define CORE_CLI_USAGE_H

#include "cli/command.h"

#include <stdio.h>

/* A row of a table of two columns. */
typedef struct usage_row {
    const char *name, *text;
} usage_row;

extern const usage_row usage_common_flags[], usage_exit_codes[]; /* each ends with a NULL name    */

void usage_print_all(FILE *to);
void usage_print_group(FILE *to, const char *group); /* commands of two words: "data"             */
void usage_print(FILE *to, const command *c);
/* Print an option table as in 'pons help'. 'prefix' precedes each name ("", "--"). */
void usage_print_option(FILE *to, const pons_option *o, const char *prefix);
void usage_print_options(FILE *to, const pons_option *options, const char *prefix);
/* The default of a row for a reader: "16", "(must be given)", "(not given)". */
const char *usage_default(const pons_option *o);

#endif
