/*
 * arguments.h - the words of a command line.
 */
#ifndef CORE_CLI_ARGUMENTS_H
#define CORE_CLI_ARGUMENTS_H

#include "cli/command.h"

/*
 * Fill 'call' and the zeroed 'flags' from the words behind the command's name. The caller frees
 * call->given.
 */
pons_status arguments_read(const command *c, int count, char **word, invocation *call, void *flags,
                           pons_error *err);

/* Whether the command line has the flag 'name' of the command's table, as "node_rank". */
bool arguments_given(const invocation *call, const char *name);

/* Whether the command takes a common flag, as "set" or "debug". */
bool arguments_takes(const command *c, const char *name);
/* The letter of a flag, 'o' of --output; 0: it has none. */
char arguments_letter(const command *c, const pons_option *o);

/* The i-th flag that every command takes, or NULL behind the last one. */
const char *arguments_common(int i, bool *valued);

#endif
