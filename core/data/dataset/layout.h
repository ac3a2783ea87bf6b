/*
 * layout.h - layouts of datasets on disk: a table with one reader per layout.
 */
#ifndef CORE_DATA_DATASET_LAYOUT_H
#define CORE_DATA_DATASET_LAYOUT_H

#include "base/file/json.h"
#include "data/dataset/dataset.h"

typedef struct layout_case {
    data_case info;            /* rank is not set                                                 */
    bool held_out;             /* the layout assigns it to validation                             */
    int fold;                  /* -1: none; with 'has_folds' alone                                */
} layout_case;

/* The result of a reader. Everything lies in 'memory'. */
typedef struct layout_result {
    arena *memory;
    const char *origin;        /* the file that told the layout; the reader may set another       */
    int channels;
    const char *const *channel_names;
    int class_count;           /* 0: the layout does not name classes                             */
    const data_class *classes;
    int region_count;          /* the target unless the INI file has 'labels' or 'regions'        */
    const data_class *regions;
    const char *recognised;    /* the family of the dataset; NULL: the layout has none            */
    const char *sign;          /* file by which it is recognised; NULL: that of layout_choose     */
    int case_count;            /* in any order                                                    */
    layout_case *cases;
    bool holds_out;            /* the layout has a validation list                                */
    bool has_folds;            /* at least one case has a fold                                    */
    const char *splits;        /* the file of folds beside the cases (split_file.c); NULL: none   */
    const char *own_rule;      /* that of 'validation = own', if neither lists nor folds are in   */
                               /* 'cases': the file of folds, or "nnunet"; NULL: none             */
    int unused_count;          /* cases that the layout keeps for tests                           */
    bool lists_tests;          /* the layout can read them (dataset_settings.tests)               */
    slide_pool *slides;        /* of the cases' patches, for the dataset to free; NULL: none      */
    int problem_count, problem_room;
    dataset_problem *problem;  /* problems of single cases, which do not stop the reader          */
    int warning_count, warning_room;
    dataset_problem *warning;
} layout_result;

/* Add a problem; 'id' is NULL if no case is known. */
void layout_problem(layout_result *out, const char *id, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Add a warning in the same way. */
void layout_warning(layout_result *out, const char *id, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Add the file of the next channel to the images of a case; 'path' NULL: it is absent. False: the
 * case must have it and so is incomplete, which is the caller's to report.
 */
bool layout_add_channel(const dataset_settings *settings, const char *path, const char **image,
                        data_case *c);

typedef pons_status layout_read(const dataset_settings *settings, layout_result *out,
                                pons_error *err);

layout_read layout_globs_read;
layout_read layout_decathlon_read;
layout_read layout_nnunet_read;
layout_read layout_datalist_read;
layout_read layout_csv_read;
layout_read layout_brats_read;
layout_read layout_bids_read;
layout_read layout_folders_read;
layout_read layout_idx_read;
layout_read layout_slides_read;

/* The list of so many cases takes tens of gigabytes. */
enum { LAYOUT_CASES_MAX = 1 << 26 };

/* Whether a file has the signs of a layout; false too for a file that cannot be read. */
typedef bool layout_sign(const char *path);

layout_sign layout_decathlon_is;
layout_sign layout_nnunet_is;
layout_sign layout_datalist_is;
layout_sign layout_csv_is;
/* Whether a table has positions of patches in slides. */
layout_sign layout_slides_is;

/* Whether a path, by its ending or by its bytes, is a file that lists cases, and no folder. */
bool layout_lists_cases(const char *path);

typedef struct layout_choice {
    const char *name;
    layout_read *reader;
    const char *file;          /* the file that told the layout, or the source                    */
    bool recognised;           /* found by 'auto'                                                 */
    bool tests;                /* it may have cases for tests                                     */
} layout_choice;

/* PONS_CONFIG: the layout has no reader in this build, or several files tell different datasets. */
pons_status layout_choose(arena *memory, const dataset_settings *settings, layout_choice *out,
                          pons_error *err);

/* ---- layouts with a dataset.json ------------------------------------------------------------- */

typedef struct layout_json {
    arena *memory;
    const char *path, *folder; /* folder ends with '/' or is empty                                */
    json_t *root;              /* an object                                                       */
    layout_result *out;
} layout_json;

/* An entry of an object like {"0": "name"}. */
typedef struct layout_numbered {
    int number;
    const char *name;
} layout_numbered;

/* Parse a file of up to 64 MiB. The caller releases *out by json_decref. */
pons_status layout_json_parse(const char *path, json_t **out, pons_error *err);
/* Parse the dataset.json of 'source'. Close it after success. */
pons_status layout_json_open(const dataset_settings *settings, layout_result *out, layout_json *r,
                             pons_error *err);
void layout_json_close(layout_json *r);
/* PONS_DATA: 'field' has the wrong type, or is empty where 'expected' is "an object ...". */
pons_status layout_json_wrong_type(const layout_json *r, const char *field, const json_t *value,
                                   const char *expected, pons_error *err);
/* The entries of {"0": "name", ...} sorted by number; the numbers differ. */
pons_status layout_json_numbered(const layout_json *r, const char *field, json_t *object,
                                 layout_numbered **out, int *count, pons_error *err);
/* Read the names of channels 0, 1, and so on into the result. */
pons_status layout_json_channels(const layout_json *r, const char *field, pons_error *err);

/* Whether a folder has a folder of images for each class. */
bool layout_folders_is(const char *folder);
/* Whether a folder has files of MNIST. */
bool layout_idx_is(const char *folder);
/* Whether the names in 'folder', or up to two levels below it, are those of BraTS. */
bool layout_brats_is(const char *folder);

/* The stem of a case's first image without the suffix "_0000" of channel 0. */
const char *layout_image_stem(arena *memory, const char *image);

/* PONS_OK if a name is usable as a case id, which also names folders. */
pons_status layout_check_id(const char *id, const char *file, pons_error *err);

/* ---- layouts that are a file which lists the files of each case ------------------------------ */

/*
 * Paths are relative to the folder of the list, or absolute. A case's id is the stem of its first
 * image; where two stems are equal, it is the part of the path that differs, with '_' for '/'.
 */

/* A case with its place in the file, such as "row 3". Without an id the list gives it one. */
typedef struct list_entry {
    layout_case found;
    const char *place;
    const char *path;          /* the file of 'place'; NULL: that of the list                     */
} list_entry;

typedef struct layout_list {
    layout_result *out;
    const char *path, *folder; /* folder ends with '/' or is empty                                */
    list_entry *entry;
    int count;
    bool tests;                /* only cases for tests are listed                                 */
    bool unlabelled;           /* cases need no label                                             */
} layout_list;

/* 'room' bounds the number of entries. */
void layout_list_init(layout_list *l, const char *path, size_t room, layout_result *out);
/* Go on with another file, and at most 'room' entries more. */
void layout_list_begin(layout_list *l, const char *path, size_t room);
/*
 * The path of a file that the list has at 'where', such as "row 3, column 'label'". A missing file
 * is a problem, and makes the case incomplete.
 */
const char *layout_list_file(layout_list *l, const char *where, const char *text, data_case *c);
void layout_list_add(layout_list *l, const list_entry *entry);
/* Name the cases, refuse duplicates and move all entries to the result. */
pons_status layout_list_finish(layout_list *l, pons_error *err);

#endif
