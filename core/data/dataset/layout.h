/*
 * layout.h - how a dataset lies on disk: one reader per layout, in a table.
 */
#ifndef CORE_DATA_DATASET_LAYOUT_H
#define CORE_DATA_DATASET_LAYOUT_H

#include "data/dataset/dataset.h"

typedef struct layout_case {
    data_case info;            /* rank is not yet known                                           */
    bool held;                 /* the layout itself keeps it for validation                       */
} layout_case;

/* What a layout finds. Everything lies in 'memory'. */
typedef struct layout_result {
    arena *memory;
    const char *origin;
    int channels;
    const char *const *channel_names;
    int class_count;           /* 0: the layout does not know                                     */
    const data_class *classes;
    int case_count;            /* in any order                                                    */
    layout_case *cases;
    bool holds_out;            /* 'held' says something                                           */
    int problem_count, problem_room;
    dataset_problem *problem;  /* of single cases: the others are read all the same               */
} layout_result;

/* Note a problem; 'id' is NULL where there is no case yet. */
void layout_problem(layout_result *out, const char *id, const char *file, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

typedef pons_status layout_read(const dataset_settings *settings, layout_result *out,
                                pons_error *err);

layout_read layout_globs_read;
layout_read layout_decathlon_read;

/*
 * The reader for these settings; *name is the layout's. A layout that is promised and not in this
 * build is PONS_CONFIG.
 */
pons_status layout_choose(const dataset_settings *settings, const char **name,
                          layout_read **reader, pons_error *err);

/* Whether a name may become a case id and so the name of a folder. */
pons_status layout_check_id(const char *id, const char *file, pons_error *err);

#endif
