/*
 * dataset_check.h - read every case of a dataset, and tell what is wrong with files, labels and
 * geometry.
 */
#ifndef CORE_DATA_CHECK_DATASET_CHECK_H
#define CORE_DATA_CHECK_DATASET_CHECK_H

#include "base/log.h"
#include "data/dataset/dataset.h"

/* Findings of the check in one case. */
typedef struct dataset_facts {
    int rank;
    bool readable;
    int extent[3];
    double spacing[3], affine[3][4];
    char orientation[4];        /* "RAS"                                                          */
    int64_t voxels;
    int64_t foreground;         /* voxels whose class index is not 0 */
} dataset_facts;

/* Voxels of a class, and cases with the class. The class of a whole image has 0 voxels. */
typedef struct label_total {
    int64_t voxels, cases;
} label_total;

typedef struct dataset_report {
    arena *memory;
    int problem_count, error_count;
    const dataset_problem *problem;
    int facts_count;
    const dataset_facts *facts;
    case_geometry geometry;     /* of all image files, without intensities                        */
    int id_count;               /* label ids that occur, ascending */
    const int64_t *id, *id_voxels, *id_cases;
    label_total *class_total;   /* [class_count]                                                  */
    label_total *region_total;  /* [region_count]                                                 */
    label_total ignored_total;
} dataset_report;

/*
 * Read every case, with progress on 'l' unless it is NULL. *report is written even if cases have
 * errors; the status is then PONS_DATA, and 'err' holds the first problem and the number of
 * problems. The caller frees the report.
 */
pons_status dataset_check(const dataset *d, logger *l, dataset_report **report, pons_error *err);
/*
 * Add warnings if orientations or spacings differ between images after [preprocess] ('chain'). If
 * a step refuses a volume of one voxel, the images as stored are compared, and a step 'orient' or
 * 'spacing' is trusted to unify them.
 */
void dataset_report_add_mixtures(dataset_report *report, const dataset *d, const pipeline *chain);
/*
 * Add a warning if images with one class each differ in extent and no step of [preprocess] changes
 * grids: a network of whole images takes one extent.
 */
void dataset_report_add_extents(dataset_report *report, const dataset *d, const pipeline *chain);
/* Whether spacings differ for another cause: a step resizes images with one class each. */
bool dataset_resizes_whole(dataset_target target, const pipeline *chain);
/*
 * Whether spacings are alike by the last step that sets them, but for the rounding of extents: a
 * step 'spacing' of all cases with a fixed 'mm' for each axis.
 */
bool dataset_spacing_is_fixed(const pipeline *chain);
/* The advice at the end of a warning of spacings: how to give all images one spacing. */
const char *dataset_spacing_remedy(const pipeline *chain);
void dataset_report_free(dataset_report *report);

#endif
