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
/* Print keys of the INI file as in 'pons help'. */
void usage_print_option(FILE *to, const pons_option *o);
void usage_print_options(FILE *to, const pons_option *options);
/* The default of a row for a reader: "16", "(must be given)", "(not given)". */
const char *usage_default(const pons_option *o);
/* A flag as it is typed, "--node-rank". Returns 'out'. */
const char *usage_flag(const pons_option *o, char *out, size_t size);
/* The values and the default of a flag in a line; "" where its sentence says all. Returns 'out'. */
const char *usage_flag_values(const pons_option *o, char *out, size_t size);
/* Whether the command takes a common flag, whose row or name begins with --NAME. */
bool usage_has_common(const command *c, const char *flag);

#endif
