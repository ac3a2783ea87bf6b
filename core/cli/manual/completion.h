/*
 * completion.h - completions of the command line for bash, zsh and fish.
 *
 * A script holds all words of commands, flags, keys and values, so that no program runs while a
 * user types.
 */
#ifndef CORE_CLI_MANUAL_COMPLETION_H
#define CORE_CLI_MANUAL_COMPLETION_H

#include <stdio.h>

#include "cli/manual/option_tables.h"

void completion_bash(FILE *to, const option_tables *tables);
void completion_zsh(FILE *to, const option_tables *tables);
void completion_fish(FILE *to, const option_tables *tables);

#endif
