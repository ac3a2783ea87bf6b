/*
 * evaluate.h - predictions against labels, on the files' grid: Dice and IoU of classes and cases.
 */
#ifndef CORE_EVALUATE_EVALUATE_H
#define CORE_EVALUATE_EVALUATE_H

#include "base/log.h"
#include "data/dataset/dataset.h"
#include "data/volume/volume.h"
#include "metric/id_areas.h"
#include "metric/metric.h"

#include <stdio.h>

/* An id that a prediction holds and no class of --labels lists. */
typedef struct unlisted_id {
    int id;
    int64_t voxels;
} unlisted_id;

typedef struct evaluated_case {
    char *name;
    metric_count *count;      /* per class of the evaluation                                      */
    int unlisted_count;
    const unlisted_id *unlisted; /* ascending                                                     */
} evaluated_case;

/* Grows by evaluation_add_*; classes never hold the background. */
typedef struct evaluation {
    arena *memory;
    int class_count;
    const data_class *classes;
    const bool *listed;       /* [LABEL_ID_MAX + 1] ids of --labels; NULL: each id is a class     */
    id_areas areas;           /* of the classes                                                   */
    bool regions;             /* ids of different classes may be shared                           */
    bool told;                /* another process prints it                                        */
    int case_count, room;
    evaluated_case *cases;
} evaluation;

pons_status evaluation_open(evaluation *e, pons_error *err);
void evaluation_close(evaluation *e);
/* The classes of --labels ("spleen:1 kidney:2,3"); those that hold the id 0 are background. */
pons_status evaluation_name_classes(evaluation *e, const pons_texts *items, pons_error *err);
/* Classes '1', '2', ...: every id but 0 of the files; those with several channels hold no ids. */
pons_status evaluation_find_classes(evaluation *e, int count, const char *const *file,
                                    pons_error *err);

/*
 * Two files; PONS_DATA when they do not lie on one grid. A prediction with several channels holds
 * regions, one channel for each class.
 */
pons_status evaluation_add_files(evaluation *e, const char *name, const char *prediction,
                                 const char *label, pons_error *err);
/*
 * A prediction of regions, and the label as regions: U8, one channel of 0 and 1 for each class. The
 * caller clears both.
 */
pons_status evaluation_read_regions(const evaluation *e, const char *prediction, const char *label,
                                    volume *p, volume *g, pons_error *err);
/* Counted elsewhere: class_count numbers. */
pons_status evaluation_add_counts(evaluation *e, const char *name, const metric_count *count,
                                  pons_error *err);

void evaluation_print_json(const evaluation *e, FILE *to);
void evaluation_print_table(const evaluation *e, FILE *to);

#endif
