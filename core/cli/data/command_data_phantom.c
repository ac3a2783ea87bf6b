/*
 * command_data_phantom.c - pons data phantom: a synthetic dataset.
 */
#include <string.h>

#include "cli/command.h"
#include "data/phantom/phantom.h"

typedef struct phantom_flags {
    const char *output;
    int64_t cases, channels, classes, seed;
    int extent[3];
} phantom_flags;

static const pons_option flags[] = {
    PONS_TEXT(phantom_flags, output, NULL, "The folder that becomes the dataset."),
    PONS_INTEGER(phantom_flags, cases, "4", 1, 100000, "How many cases."),
    PONS_AXES(phantom_flags, extent, "96 96 96", 1, 4096, "Voxels along i, j and k."),
    PONS_INTEGER(phantom_flags, channels, "1", 1, 16, "Contrasts of each image."),
    PONS_INTEGER(phantom_flags, classes, "2", 2, 64, "Classes of the label, background counted."),
    PONS_INTEGER(phantom_flags, seed, "0", 0, (double)INT64_MAX, "Another seed gives other cases."),
    PONS_OPTIONS_END
};

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const phantom_flags *f = given;
    phantom_settings settings = { .cases = f->cases, .channels = (int)f->channels,
                                  .classes = (int)f->classes, .seed = (uint64_t)f->seed };

    memcpy(settings.extent, f->extent, sizeof settings.extent);
    return phantom_write(f->output, &settings, call->log, err);
}

const command command_data_phantom = {
    "data phantom", "write a synthetic dataset of heads", "-o DIR", flags, sizeof(phantom_flags),
    "o=output", 0, 0, run
};
