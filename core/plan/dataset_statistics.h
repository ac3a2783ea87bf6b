/*
 * dataset_statistics.h - what a plan has to know of a dataset: extents, spacings, intensities and
 * volumes of classes.
 *
 * Extents and spacings are along the file's axes i j k if all files have one orientation, else
 * along the axes of RAS, the order after 'orient'. The foreground are the voxels whose class is not
 * the background, or that lie in a region. Intensities are those of the files.
 */
#ifndef CORE_PLAN_DATASET_STATISTICS_H
#define CORE_PLAN_DATASET_STATISTICS_H

#include "base/log.h"
#include "data/dataset/dataset.h"
#include "plan/intensity_statistics.h"

typedef struct case_statistics {
    const char *id;
    int64_t extent[3];        /* of the file                                                      */
    int64_t cropped[3];       /* of the box of voxels other than 0 in any channel                 */
    double spacing[3];
    char orientation[4];      /* of the file, as in "RAS"                                         */
    int64_t foreground;       /* voxels                                                           */
    const int64_t *class_voxels; /* [class_count]                                                 */
} case_statistics;

typedef struct dataset_statistics {
    arena *memory;
    int case_count;
    const case_statistics *cases;
    int channels;
    const intensity_statistics *intensity; /* [channels]                                          */
    int class_count;          /* of classes, or of regions if there are some                      */
    const data_class *classes;   /* borrowed from the dataset                                     */
    bool oriented;            /* orientations differ: axes are those of RAS                       */
    double cropped_share;     /* median of cropped voxels over all voxels                         */
} dataset_statistics;

/*
 * Read all cases of 'd', one on each thread, with a progress line. The first case that cannot be
 * read ends the call. The caller frees *out; 'd' must outlive it.
 */
pons_status dataset_statistics_make(const dataset *d, logger *l, dataset_statistics **out,
                                    pons_error *err);
void dataset_statistics_free(dataset_statistics *s);

#endif
