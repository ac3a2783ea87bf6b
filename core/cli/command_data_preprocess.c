/*
 * command_data_preprocess.c - pons data preprocess: every case after the deterministic transforms.
 */
#include "cli/command.h"
#include "data/preprocess.h"

typedef struct preprocess_flags {
    const char *output;
} preprocess_flags;

static const pons_option flags[] = {
    PONS_TEXT(preprocess_flags, output, NULL, "The folder that is written."),
    PONS_OPTIONS_END
};

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const preprocess_flags *f = given;
    config *c;
    pons_status status;

    status = invocation_config(call, call->argument[0], &c, err);
    if (status)
        return status;
    status = preprocess_write(c, f->output, call->log, err);
    config_close(c);
    return status;
}

const command command_data_preprocess = {
    "data preprocess", "write each case after the deterministic transforms", "FILE.ini -o DIR",
    flags, sizeof(preprocess_flags), "o=output", 1, 1, run
};
