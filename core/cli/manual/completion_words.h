/*
 * completion_words.h - the words that a command line may have at a place.
 */
#ifndef CORE_CLI_MANUAL_COMPLETION_WORDS_H
#define CORE_CLI_MANUAL_COMPLETION_WORDS_H

#include <stdio.h>

#include "cli/command.h"
#include "cli/manual/option_tables.h"

/* Print words, a blank before each: those that may follow a command of one or of two words. */
void words_commands(FILE *to);
void words_of_group(FILE *to, const char *group);
/* Call 'each' for every first word of a command of two: "data", "plugin". */
void words_groups(FILE *to, void (*each)(const void *context, FILE *to, const char *group),
                  const void *context);
/* --name of every flag of the command, and of those that all commands take. */
void words_flags(FILE *to, const command *c);
/* section.key= of every key. */
void words_keys(FILE *to, const option_tables *tables);
/* The section of a table's keys as --set has it: "train", or "augment.flip" of a transform. */
const char *words_section(const option_table *t, char *text, size_t size);
/* The words that a key may have; false, and nothing is printed, where any value may follow. */
bool words_values(FILE *to, const option_tables *tables, const option_table *t,
                  const pons_option *o);
/*
 * Places whose words are no table's: the argument of a command, "help", or a flag of names,
 * "evaluate --metrics". words_argument: the place by number; NULL: there are no more.
 */
const char *words_argument(int number);
void words_of_argument(FILE *to, const option_tables *tables, int number);
/* The words of a flag, as of words_values. */
bool words_of_choice(FILE *to, const pons_option *o);

#endif
