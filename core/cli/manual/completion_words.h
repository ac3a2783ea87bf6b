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
/* Whether the command, of two words, is the first of its group, whose name is written. */
bool words_begins_group(const command *const *c, char *group, size_t size);
/* Call 'each' for every first word of a command of two: "data", "plugin". */
void words_groups(FILE *to, void (*each)(const void *context, FILE *to, const char *group),
                  const void *context);
/* --name of every flag of the command, and of those that all commands take. */
void words_flags(FILE *to, const command *c);
/* Call 'each' for every such flag with its help, and for every first word with its summary. */
typedef void words_each(const void *context, FILE *to, const char *word, const char *help);
void words_each_flag(FILE *to, const command *c, words_each *each, const void *context);
void words_each_command(FILE *to, words_each *each, const void *context);
/* section.key= of every key. */
void words_keys(FILE *to, const option_tables *tables);
/* The section of a table's keys as --set has it: "train", or "augment.flip" of a transform. */
const char *words_section(const option_table *t, char *text, size_t size);
/* The words that a key may have; false, and nothing is printed, where any value may follow. */
bool words_values(FILE *to, const option_tables *tables, const option_table *t,
                  const pons_option *o);
/*
 * Arguments and flags of a command: words, or what files may stand there, as a word "@ini",
 * "@so", "@run", "@dir", "@file" or, of values that no list has, "@none".
 */
void words_of_argument(FILE *to, const option_tables *tables, const command *c, int number);
void words_of_flag(FILE *to, const command *c, const pons_option *o);
/*
 * Words that may follow the first argument "loss" of 'help' or 'plugin show'. words_follow: the
 * command and the argument by number, in one text; NULL: there are no more.
 */
const char *words_follow(int number, char *place, size_t size);
void words_of_follow(FILE *to, const option_tables *tables, int number);
/* The words of a flag, as of words_values. */
bool words_of_choice(FILE *to, const pons_option *o);

#endif
