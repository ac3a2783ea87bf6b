/*
 * command_data_crop.c - pons data crop: a box of a volume at its original position, or its mask.
 */
#include <string.h>

#include "cli/command.h"
#include "data/nifti/crop.h"

typedef struct crop_flags {
    const char *output;
    int start[3], extent[3];
    pons_reals above;
} crop_flags;

static const pons_option flags[] = {
    PONS_TEXT(crop_flags, output, NULL, "The file to write, .nii or .nii.gz."),
    PONS_AXES(crop_flags, start, "0 0 0", 0, INT32_MAX, "First voxel along i, j and k."),
    PONS_AXES(crop_flags, extent, "0 0 0", 0, INT32_MAX,
              "Voxels along i, j and k; 0: up to the end."),
    PONS_REALS(crop_flags, above, "", -FLT_MAX, FLT_MAX,
               "Write a mask instead: 1 where a value is above this number."),
    PONS_OPTIONS_END
};

static pons_status run(const invocation *call, const void *given, pons_error *err)
{
    const crop_flags *f = given;
    crop_settings settings = { .mask = f->above.count > 0 };

    if (f->above.count > 1)
        return pons_fail(err, PONS_USAGE, "--above has %d numbers, expected 1", f->above.count);
    settings.above = settings.mask ? f->above.item[0] : 0;
    memcpy(settings.start, f->start, sizeof settings.start);
    memcpy(settings.extent, f->extent, sizeof settings.extent);
    return crop_file(call->argument[0], f->output, &settings, err);
}

const command command_data_crop = {
    "data crop", "cut a volume, geometry kept", "IMAGE -o OUT --start I,J,K --extent I,J,K", flags,
    sizeof(crop_flags), "o=output", 1, 1, run
};
