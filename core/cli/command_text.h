/*
 * command_text.h - what 'pons help COMMAND' and pons-COMMAND(1) say of a command besides its flags.
 */
#ifndef CORE_CLI_COMMAND_TEXT_H
#define CORE_CLI_COMMAND_TEXT_H

#include "cli/usage.h"

enum { TEXT_ARGUMENTS = 6, TEXT_EXAMPLES = 5 };

typedef struct command_text {
    const char *command, *description;
    usage_row arguments[TEXT_ARGUMENTS]; /* in order; the last may repeat; ends with a NULL name  */
    usage_row examples[TEXT_EXAMPLES];   /* a command and a sentence on it; ends with a NULL name */
} command_text;

/* The row of a command, which every command has. */
const command_text *command_text_of(const command *c);

/*
 * The name of a flag's value, such as RUN of --resume or "auto|test|all"; "" of a flag without.
 * Returns 'out'.
 */
const char *flag_value_name(const command *c, const pons_option *o, char *out, size_t size);

#endif
