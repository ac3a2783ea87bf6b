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

/*
 * The axis of the slices: the one with the largest spacing, if that is more than three times the
 * smallest; first by the old spacing, then by the new one. -1: none, also if two axes share it.
 */
int nnunet_separate_axis(const double old[3], const double wanted[3]);
/* The only axis with the largest spacing; -1: there are two. */
int nnunet_largest_axis(const double spacing[3]);

pons_status nnunet_resample(pons_case *c, const int64_t extent[3], const nnunet_modes *modes,
                            pons_error *err);

#endif
