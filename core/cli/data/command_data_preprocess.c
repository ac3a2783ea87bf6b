/*
 * command_data_preprocess.c - pons data preprocess: write every case after the deterministic
 * transforms, as files or to the disk cache.
 */
#include "cli/command.h"
#include "cli/data/preprocess.h"

typedef struct preprocess_flags {
    const char *output;
    bool cache;
} preprocess_flags;

static const pons_option flags[] = {
    PONS_TEXT(preprocess_flags, output, "", "The folder that is written."),
    PONS_FLAG(preprocess_flags, cache, "no",
              "Fill the cache in [data] cache_dir that runs use: with 'cache = lmdb' one file, "
              "else the files of 'cache = disk'."),
    PONS_OPTIONS_END
};

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const preprocess_flags *f = given;
    config *c;
    pons_status status;

    if (f->output == NULL && !f->cache)
        return pons_fail(err, PONS_USAGE, "'pons data preprocess' needs --output or --cache\n"
                         "hint: pons data preprocess --help");
    status = invocation_config(call, call->argument[0], &c, err);
    if (status)
        return status;
    if (f->output != NULL)
        status = preprocess_write(c, f->output, call->log, err);
    if (status == PONS_OK && f->cache)
        status = preprocess_cache(c, call->log, err);
    config_close(c);
    return status;
}

const command command_data_preprocess = {
    "data preprocess", "write each case after the deterministic transforms",
    "FILE.ini -o DIR | --cache", flags, sizeof(preprocess_flags), "o=output", 1, 1, run
};
