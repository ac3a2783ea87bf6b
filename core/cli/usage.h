/*
 * usage.h - what "pons help" prints.
 */
#ifndef CORE_CLI_USAGE_H
#define CORE_CLI_USAGE_H

#include "cli/command.h"

#include <stdio.h>

void usage_print_all(FILE *to);
void usage_print_group(FILE *to, const char *group); /* commands of two words: "data"             */
void usage_print(FILE *to, const command *c);
/* An option table as 'pons help' shows it; 'prefix' stands before each name ("", "--"). */
void usage_print_option(FILE *to, const pons_option *o, const char *prefix);
void usage_print_options(FILE *to, const pons_option *options, const char *prefix);

#endif
