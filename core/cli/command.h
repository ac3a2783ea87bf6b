/*
 * command.h - the interface of a subcommand.
 *
 * A subcommand is a file command_NAME.c with a constant 'command_NAME', and a row in commands.c.
 *
 *     typedef struct bench_flags { bool json; int64_t rounds; } bench_flags;
 *     static const pons_option flags[] = {
 *         PONS_FLAG(bench_flags, json, "no", "Write one JSON object to the standard output."),
 *         PONS_INTEGER(bench_flags, rounds, "5", 1, 1000, "How often it is measured."),
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
 * Results go to stdout, messages for the user to call->log (stderr).
 */
#ifndef CORE_CLI_COMMAND_H
#define CORE_CLI_COMMAND_H

#include "base/log.h"
#include "config/config.h"

struct command;

enum { LIST_HINT_SIZE = 1024 };

/* A parsed command line. */
typedef struct invocation {
    const struct command *command;
    int word_count;              /* words as typed, behind the command's name                     */
    char **word;
    int argument_count;          /* words that are neither flags nor their values                 */
    const char **argument;
    char list_hint[LIST_HINT_SIZE]; /* if an argument follows the value of a list: both in quotes */
    int set_count;
    const char **set;            /* --set section.key=value, in order                             */
    bool *given;                 /* for each row of the command's flags, whether it is typed      */
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
     * takes no value. Commas separate lists of numbers. NULL: the command has no flags.
     */
    const pons_option *flags;
    size_t flags_size;           /* size of the struct that they fill                             */
    const char *letters;         /* "o=output n=ranks": short names                               */
    int argument_min, argument_max; /* -1: any number                                             */
    pons_status (*run)(const invocation *call, const void *flags, pons_error *err);
} command;

extern const command *const commands[]; /* ends with NULL */

/* Open FILE.ini (or NULL) with the --set values of the command line. */
pons_status invocation_config(const invocation *call, const char *file, config **out,
                              pons_error *err);

/*
 * Run this command with one rank for each listed device, and wait for all ranks (command_launch.c).
 * It serves mode = ddp without a launcher. No thread may be running when it is called.
 */
pons_status relaunch_under_launcher(const invocation *call, pons_error *err);

#endif
