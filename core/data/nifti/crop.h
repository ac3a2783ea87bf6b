/*
 * crop.h - cut a file, geometry kept: 'pons data crop'.
 */
#ifndef CORE_DATA_NIFTI_CROP_H
#define CORE_DATA_NIFTI_CROP_H

#include "data/volume/volume.h"

typedef struct crop_settings {
    int start[3], extent[3]; /* extent 0: up to the end of the axis                               */
    bool mask;               /* write 1 where a voxel is above 'above', else 0, as uint8          */
    double above;
} crop_settings;

/*
 * The box must lie in the volume (PONS_USAGE). Integer types without scaling stay what they are,
 * others become float32. Both forms, codes and units are kept, their origins moved to the box.
 */
pons_status crop_file(const char *image, const char *out, const crop_settings *settings,
                      pons_error *err);

#endif
