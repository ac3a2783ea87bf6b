/*
 * dataset.h - the cases of a dataset, the classes of their labels, and the validation split.
 *
 * Words: a label file holds label ids; 'labels' gives ids names and so makes classes; the position
 * of a class in 'labels' is its class index, 0 is background. The target is what the network
 * learns: the class index of each voxel, or one 0/1 channel per region. label_map.h makes targets
 * of labels.
 *
 * Cases are sorted by id (bytes compared); the position of a case is its rank. No volume is read
 * before 'dataset_check' (dataset_check.h) or 'cache_open'. All texts belong to the dataset.
 */
#ifndef CORE_DATA_DATASET_DATASET_H
#define CORE_DATA_DATASET_DATASET_H

#include "base/arena.h"
#include "base/log.h"
#include "data/idx/idx_file.h"
#include "data/packed/case_geometry.h"
#include "data/slide/slide_patch.h"
#include "data/transform/pipeline.h"
#include <pons/model.h>

/* An entry of 'labels' or 'regions': a name for one or several label ids. */
typedef struct data_class {
    const char *name;
    int id_count;
    const int *id;
} data_class;

/* Kinds of targets: labels of voxels, one class for each case, or none. */
typedef enum dataset_target {
    TARGET_OF_VOXELS = 0,      /* the label file of each case, class by class or as regions       */
    TARGET_OF_CASE,            /* one class for the whole image                                   */
    TARGET_NONE                /* the images alone; there are no classes                          */
} dataset_target;

typedef struct data_case {
    const char *id;
    int rank;                  /* position in 'cases'; the 'case' of R5                           */
    int image_count;
    /* One file per channel, NULL for one that 'channels_optional' lets be absent; or a 4D file.  */
    const char *const *image;
    /* The stack whose image number 'slice' is the image, named 'image'; NULL: files are volumes. */
    const idx_file *stack;
    int64_t slice;
    const slide_patch *patch;  /* the image is this patch of a slide; NULL: it is none            */
    const char *label;         /* NULL: the case has no label                                     */
    const char *class_name;    /* TARGET_OF_CASE: the layout's word for the class; NULL: none     */
    const char *class_place;   /* its source, as "'cases.csv' line 3"; NULL: a folder's name      */
    int class_index;           /* TARGET_OF_CASE: its class; -1: none                             */
    bool incomplete;           /* files are missing; only with 'keep_problems'                    */
} data_case;

/* A problem, or a warning, of one case or of the list of cases. */
typedef struct dataset_problem {
    const char *case_id;        /* NULL: not of a single case                                     */
    const char *file;
    const char *text;           /* complete line without the case's id                            */
    bool warning;
} dataset_problem;

/* The largest grid, and the default of slide_patch. */
enum { SLIDE_GRID_MAX = 9, SLIDE_PATCH_USUAL = 224 };

/* The options of the layout 'slides'. */
typedef struct slide_settings {
    const char *files;         /* a path with * for the slide's name; NULL: lists have paths      */
    const char *validation;    /* a second list; NULL: none                                       */
    int64_t level, extent;     /* of patches; pixels of the level along both sides                */
    int64_t grid, region;      /* patches and pixels along a side of the grid at a position       */
    bool corner;               /* positions are first pixels, not centres                         */
    int open;                  /* slides that may be open at a time; 0: as the memory allows      */
} slide_settings;

/* The options of [data] that describe the dataset; the caller has resolved relative paths. */
typedef struct dataset_settings {
    const char *file;          /* the INI file, named in a hint; NULL: none                       */
    const char *source;        /* a root folder or a file of cases; NULL: 'image' and 'label'     */
    const char *layout;        /* "auto" or NULL, or the name of a layout                         */
    pons_texts image;          /* globs, one per channel                                          */
    pons_texts channels;       /* names of the channels; none: the layout's                       */
    const char *label;         /* glob; NULL: none                                                */
    pons_texts image_suffix;   /* bids: endings of image names, one per channel; none: T1w        */
    const char *label_suffix;  /* bids: ending of label names; NULL: dseg                         */
    const char *validation;    /* "0.2", "none", "random:0.2", "last:9", "fold:0/5", "names:a,b", */
                               /* "file:F", "nnunet", "own": the dataset's list or folds; NULL:   */
                               /* "own" where there are some, else "0.2"                          */
    const int64_t *fold;       /* the fold to validate on; NULL: 0 where the split has folds      */
    pons_texts labels;         /* "spleen:1", "kidney:1,3"; none: from the layout                 */
    const char *label_table;   /* in place of 'labels': a table of ids and classes; NULL: none    */
    pons_texts regions;        /* "WT:1,2,3"                                                      */
    pons_texts map;            /* "4:3": id 4 counts as id 3                                      */
    slide_settings slide;
    uint64_t seed;             /* [experiment] seed, for the split                                */
    bool labels_optional;      /* unknown classes are no error                                    */
    bool channels_optional;    /* a channel's file may be absent; lists of paths name all files   */
    dataset_target target;
    bool every_case;           /* no split: all cases are in 'training'                           */
    bool tests;                /* the cases that a dataset keeps for tests, in place of others    */
    /*
     * Put problems of cases into 'problem' and leave these cases out, instead of failing in
     * dataset_open.
     */
    bool keep_problems;
} dataset_settings;

typedef struct dataset {
    arena *memory;
    const char *layout;            /* name of the layout in use                                   */
    bool layout_recognised;        /* found by 'auto'                                             */
    const char *origin;            /* folder, file or pattern that was read                       */
    const char *sign;              /* the file by which 'auto' recognised the layout              */
    const char *recognised;        /* family and label ids that the names tell; NULL: none        */
    dataset_target target;
    int channels;                  /* image globs, or entries of "modality"; a 4D file holds all  */
    const char *const *channel_names; /* may be NULL                                              */
    int class_count;
    const data_class *classes;     /* from 'labels'; with labels of voxels [0] is background      */
    const data_class *ignored;     /* label ids that no loss and no metric counts; NULL: none     */
    int region_count;
    const data_class *regions;     /* region_count 0: the target is class indices                 */
    int case_count;
    const data_case *cases;        /* sorted by id                                                */
    bool own_split;                /* 'validation' is the dataset's own list or fold              */
    const char *own_rule;          /* the rule of 'own', as in "nnunet"; NULL: a list, or none    */
    const char *spare_splits;      /* the dataset's file of folds, if 'validation' skips it       */
    int unused_count;              /* cases of neither part, which are not in 'cases'             */
    bool lists_tests;              /* 'tests' would find some of them                             */
    slide_pool *slides;            /* of the cases' patches; NULL: there are none                 */
    int training_count, validation_count;
    const int *training, *validation; /* ranks, ascending                                         */
    int problem_count;             /* problems of the list of cases; 0 without 'keep_problems'    */
    const dataset_problem *problem;
    int warning_count;             /* warnings of the list of cases                               */
    const dataset_problem *warning;
} dataset;

pons_status dataset_open(const dataset_settings *settings, dataset **out, pons_error *err);
void dataset_close(dataset *d);
/* The line for the user: "layout: csv, by 'train.csv'", with the family that was recognised. */
const char *dataset_layout_text(const dataset *d);
/* PONS_DATA with the first of 'count' problems; 'hint' follows if there are more. */
pons_status dataset_problems_fail(const dataset_problem *first, int count, const char *hint,
                                  pons_error *err);

/* Whether the case is one of training. */
bool dataset_trains_on(const dataset *d, int rank);
/* The steps of [preprocess] that change the case. */
pipeline_cases dataset_step_cases(const dataset *d, int rank);
/* Log the layout's line, and the first warning with the number of warnings. */
void dataset_log(const dataset *d, logger *l);

/* The network's task without size, flat and flat_axis, which the caller sets. Borrows the names. */
void dataset_task(const dataset *d, pons_task *task);
/* Channels of the target: 1 for classes, else the number of regions. */
int dataset_target_channels(const dataset *d);

#endif
