/*
 * case_scan.h - what statistics need of a case, found in the order of its files.
 */
#ifndef CORE_PLAN_CASE_SCAN_H
#define CORE_PLAN_CASE_SCAN_H

#include "data/dataset/dataset.h"
#include "data/volume/volume.h"

typedef struct case_scan {
    volume grid;               /* extent and affine of the image, without voxels                  */
    int64_t cropped[3];        /* of the box of voxels other than 0; all, if there are none       */
    int64_t foreground;        /* voxels whose class is not 0                                     */
    float *values;             /* [foreground] of the image, in any order; malloc'ed              */
} case_scan;

/*
 * Scan a case with an image and a label of plain voxels (nifti_stored), and add its voxels to
 * class_voxels [class_count]. The result is that of case_read. False: the case is of another kind,
 * or it has an error, which case_read reports; *out and class_voxels are as before.
 */
bool case_scan_read(const dataset *d, int rank, case_scan *out, int64_t *class_voxels);

#endif
