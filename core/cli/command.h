/*
 * command.h - one subcommand: a file command_NAME.c with a constant 'command_NAME', and a row in
 * commands.c.
 *
 *     typedef struct bench_flags { bool json; int64_t rounds; } bench_flags;
 *     static const pons_option flags[] = {
 *         PONS_FLAG(bench_flags, json, no, "Write one JSON object to the standard output."),
 *         PONS_INTEGER(bench_flags, rounds, 5, 1, 1000, "How often it is measured."),
 *         PONS_OPTIONS_END
 *     };
 *     static pons_status run(const invocation *call, const void *flags, pons_error *err)
 *     {
 *         const bench_flags *f = flags;
 *         config *c;
 *         if (invocation_config(call, call->argument[0], &c, err) != PONS_OK)
 *             return err->status;
 *         ...
 *     }
 *     const command command_bench = { "bench", "seconds per step", "FILE.ini", flags,
 *                                     sizeof(bench_flags), "", 1, 1, run };
 *
 * Results go to stdout, everything for the person to call->log (stderr).
 */
#ifndef CORE_CLI_COMMAND_H
#define CORE_CLI_COMMAND_H

#include "base/log.h"
#include "config/config.h"

struct command;

/* A command line that has been read. */
typedef struct invocation {
    const struct command *command;
    int word_count;              /* as typed, behind the command's name                           */
    char **word;
    int argument_count;          /* what is not a flag                                            */
    const char **argument;
    int set_count;
    const char **set;            /* --set section.key=value, in order                             */
    bool debug, help;
    logger *log;
    config *values;              /* owns the texts and lists of the flags                         */
} invocation;

typedef struct command {
    const char *name;            /* "train", "data check"                                         */
    const char *summary;         /* one line for the list of commands                             */
    const char *usage;           /* the arguments, as in "FILE.ini"                               */
    /*
     * Flags are options on the command line: 'json' is --json, 'node_rank' is --node-rank. A FLAG
     * takes no value; lists of numbers are separated by commas. NULL: none.
     */
    const pons_option *flags;
    size_t flags_size;           /* of the struct that they fill                                  */
    const char *letters;         /* "o=output n=ranks": short names                               */
    int argument_min, argument_max; /* -1: any number                                             */
    pons_status (*run)(const invocation *call, const void *flags, pons_error *err);
} command;

extern const command *const commands[]; /* ends with NULL */

/* Open FILE.ini (or NULL) with the --set values of the command line. */
pons_status invocation_config(const invocation *call, const char *file, config **out,
                              pons_error *err);

/*
 * command_launch.c: this same command once more, by one rank per listed device, until all have
 * ended: for mode = ddp where no launcher has started the ranks. Call it before there are threads.
 */
pons_status launch_same(const invocation *call, pons_error *err);

#endif
