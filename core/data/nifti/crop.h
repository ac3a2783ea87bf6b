/*
 * crop.h - crop a NIfTI file and keep its geometry: 'pons data crop'.
 */
#ifndef CORE_DATA_NIFTI_CROP_H
#define CORE_DATA_NIFTI_CROP_H

#include "data/volume/volume.h"

typedef struct crop_settings {
    int start[3], extent[3]; /* extent 0: up to the end of the axis                               */
    bool mask;               /* write uint8: 1 for values larger than 'above', else 0             */
    double above;
} crop_settings;

/*
 * PONS_USAGE if the box is not inside the volume. Integer types without scaling are kept, other
 * types become float32. qform, sform, their codes and units are kept; their origins move to the
 * box.
 */
pons_status crop_file(const char *image, const char *out, const crop_settings *settings,
                      pons_error *err);

#endif
