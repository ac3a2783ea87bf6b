/*
 * command_data_show.c - pons data show: pictures of cases and of patches.
 */
#include "cli/command.h"
#include "cli/data/show.h"
#include "report/picture/png_write.h"

typedef struct show_flags {
    const char *output;
    int64_t patches;
} show_flags;

static const pons_option flags[] = {
    PONS_TEXT(show_flags, output, "", "The folder of the pictures."),
    PONS_INTEGER(show_flags, patches, "0", 0, 256,
                 "Patches of patches.png, as the network gets them; 0: CASE.png of each case."),
    PONS_OPTIONS_END
};

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const show_flags *f = given;
    int names = call->argument_count - 1;
    const char *const *name = call->argument + 1;
    config *c;

    if (f->output == NULL)
        return pons_fail(err, PONS_USAGE, "'pons data show' needs --output\n"
                         "hint: pons data show --help");
    if (!png_available())
        return pons_fail(err, PONS_CONFIG,
                         "'pons data show' needs libpng, which is not in this build");
    if (invocation_config(call, call->argument[0], &c, err) != PONS_OK)
        return err->status;
    if (f->patches > 0)
        show_patches(c, names, name, f->output, (int)f->patches, call->log, err);
    else
        show_cases(c, names, name, f->output, call->log, err);
    config_close(c);
    return err->status;
}

const command command_data_show = {
    "data show", "draw cases before and after [preprocess], or augmented patches",
    "FILE.ini [CASE...] -o DIR", flags, sizeof(show_flags), "o=output", 1, -1, run
};
