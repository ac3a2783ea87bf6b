/*
 * dataset.h - which cases there are, what their labels mean, and which are held out.
 *
 * A dataset is a sorted manifest: cases by id (bytes compared), each with its files. Nothing of a
 * volume is read before 'dataset_check' or 'cache_open'. All texts belong to the dataset.
 */
#ifndef CORE_DATA_DATASET_DATASET_H
#define CORE_DATA_DATASET_DATASET_H

#include "base/arena.h"
#include "base/log.h"
#include "data/dataset/case_geometry.h"
#include "data/transform/pipeline.h"
#include <pons/model.h>

/* An entry of 'labels' or 'regions': a name for one or several ids of the label file. */
typedef struct data_class {
    const char *name;
    int id_count;
    const int *id;
} data_class;

typedef struct data_case {
    const char *id;
    int rank;                  /* in the sorted manifest: 'case' of R5 and the index in 'cases'   */
    int image_count;
    const char *const *image;  /* one file per channel, or one file with all of them (4D)         */
    const char *label;         /* NULL: the layout has none for it                                */
    bool incomplete;           /* files are missing; only with 'keep_problems'                    */
} data_case;

/* One problem, or one warning, of one case or of the list of cases. */
typedef struct dataset_problem {
    const char *case_id;        /* NULL: of no single case                                        */
    const char *file;
    const char *text;           /* complete line without the case                                 */
    bool warning;
} dataset_problem;

/* [data] as far as it says what there is; relative paths are resolved by the caller. */
typedef struct dataset_settings {
    const char *file;          /* that says it, for a hint; NULL: none                            */
    const char *source;        /* a root folder or a dataset.json; NULL: 'image' and 'label'      */
    const char *layout;        /* "auto" or NULL, "globs", "decathlon"                            */
    pons_texts image;          /* globs, one per channel                                          */
    const char *label;         /* glob; NULL: none                                                */
    const char *validation;    /* "0.2", "none", "random:0.2", "last:9", "fold:0/5", "names:a,b"  */
    pons_texts labels;         /* "spleen:1", "kidney:1,3"; none: from the layout                 */
    pons_texts regions;        /* "WT:1,2,3"                                                      */
    uint64_t seed;             /* [experiment] seed, for the split                                */
    bool labels_optional;      /* no complaint when nothing says what the ids mean                */
    bool every_case;           /* no split: all cases are in 'training'                           */
    bool keep_problems;        /* cases that are not as they should be go to 'problem', where all */
                               /* are listed, instead of ending dataset_open                      */
} dataset_settings;

typedef struct dataset {
    arena *memory;
    const char *layout;            /* the one that was recognised                                 */
    const char *origin;            /* what was read: folder, file or pattern                      */
    int channels;                  /* image globs, or entries of "modality"; a 4D file holds all  */
    const char *const *channel_names; /* may be NULL                                              */
    int class_count;
    const data_class *classes;     /* of 'labels'; [0] is background                              */
    int region_count;
    const data_class *regions;     /* 0: the target is LABELS                                     */
    int case_count;
    const data_case *cases;        /* sorted by id                                                */
    int training_count, validation_count;
    const int *training, *validation; /* ranks, ascending                                         */
    int problem_count;             /* of the list of cases; 0 without 'keep_problems'             */
    const dataset_problem *problem;
} dataset;

pons_status dataset_open(const dataset_settings *settings, dataset **out, pons_error *err);
void dataset_close(dataset *d);
/* PONS_DATA with the first of 'count' problems; 'hint' is put behind it where there are more. */
pons_status dataset_problems_fail(const dataset_problem *first, int count, const char *hint,
                                  pons_error *err);

/* What is to be learned; size, flat and flat_axis are left to the caller. Borrows the names. */
void dataset_task(const dataset *d, pons_task *task);
/* Channels of the target: 1 for labels, R for regions. */
int dataset_target_channels(const dataset *d);

/* What the check has seen of a case. */
typedef struct dataset_facts {
    int rank;
    bool readable;
    int extent[3];
    double spacing[3], affine[3][4];
    char orientation[4];        /* "RAS"                                                          */
    int64_t voxels;
    int64_t foreground;         /* voxels with an id that is not of classes[0] */
} dataset_facts;

typedef struct dataset_report {
    arena *memory;
    int problem_count, error_count;
    const dataset_problem *problem;
    int facts_count;
    const dataset_facts *facts;
    case_geometry geometry;     /* of all images, as the files have it; no values                 */
    int id_count;               /* every id met in a label file, ascending */
    const int64_t *id, *id_voxels, *id_cases;
} dataset_report;

/*
 * Read every case. *report is written even when there are errors; then the status is PONS_DATA and
 * 'err' holds the first problem and how many there are. The caller frees the report.
 */
pons_status dataset_check(const dataset *d, dataset_report **report, pons_error *err);
/*
 * Add warnings of orientations and spacings that differ between the images behind the steps of
 * 'chain', [preprocess]. Where the steps refuse a single voxel, the images as they are count, and a
 * step 'orient' or 'spacing' is taken to make them alike.
 */
void dataset_report_mixtures(dataset_report *report, const volume_chain *chain, int channels);
/* "step 'spacing' in [preprocess] makes them alike": the mend of spacings that 'chain' leaves. */
const char *dataset_spacing_remedy(const volume_chain *chain);
void dataset_report_free(dataset_report *report);

#endif
