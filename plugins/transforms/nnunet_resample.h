/*
 * nnunet_resample.h - resample a case as nnU-Net does (Isensee et al. 2021).
 */
#ifndef PLUGINS_TRANSFORMS_NNUNET_RESAMPLE_H
#define PLUGINS_TRANSFORMS_NNUNET_RESAMPLE_H

#include "data/volume/axis_resize.h"

/* The modes of the image within slices and across them; labels are linear for each class. */
typedef struct nnunet_modes {
    axis_mode within, across;
    int separate_axis;        /* whose slices are resized one by one; -1: none                    */
} nnunet_modes;

pons_status nnunet_resample(pons_case *c, const int64_t extent[3], const nnunet_modes *modes,
                            pons_error *err);

#endif
