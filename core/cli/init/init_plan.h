/*
 * init_plan.h - from the statistics of a dataset to a plan that fits the memory, and its INI file.
 */
#ifndef CORE_CLI_INIT_INIT_PLAN_H
#define CORE_CLI_INIT_INIT_PLAN_H

#include "cli/command.h"
#include "cli/init/ini_text.h"
#include "data/dataset/dataset.h"
#include "plan/network_plan.h"

/* The words of --like. */
typedef enum init_style {
    INIT_NNUNET = 0, INIT_RESENC_M, INIT_RESENC_L, INIT_RESENC_XL, INIT_MONAI
} init_style;

extern const char *const init_style_words[];

/* The input of 'pons init' and, from 'geometry' on, the plan made from it. */
typedef struct init_plan {
    arena *memory;
    const invocation *call;    /* its --set values win                                            */
    const char *source;        /* the dataset as the INI file names it; NULL: patterns name it    */
    const char *image, *label; /* patterns of its files; NULL: none                               */
    const char *validation;    /* the split                                                       */
    const char *name;          /* of the run                                                      */
    const char *length;        /* of the training, as print_plan ends with it                     */
    init_style style;
    const plan_rule *rule;
    int64_t memory_size;       /* --memory; 0: not given                                          */
    const dataset *data;
    const dataset_statistics *statistics;
    plan_geometry geometry;
    bool flat;                 /* cases are single slices                                         */
    bool cache_disk;           /* preprocessed cases are kept on disk                             */
    network_plan network;
    bool reference;            /* nnU-Net's own patch and batch fit                               */
    double limit;              /* bytes; infinite: unknown                                        */
    const char *limit_reason;
    double libraries;          /* least resident bytes of this process, found by the forecasts    */
    double forecast;           /* bytes of the memory that 'limit' bounds                         */
} init_plan;

/* init_plan.c: set everything from 'geometry' on. PONS_DEVICE: no network fits. */
pons_status init_plan_make(init_plan *x, pons_error *err);

/*
 * init_plan_trial.c: refuse --set values that no plan of 'data' can have, without reading the
 * cases. An error that may be one of the data is none here.
 */
pons_status init_plan_try(const init_plan *x, pons_error *err);

/* init_plan_ini.c: the keys that name the dataset, and the INI file of a network. */
void init_plan_ini_files(const init_plan *x, ini_text *out);
void init_plan_ini(const init_plan *x, const network_plan *network, ini_text *out);
/* The axes of a plan in the order of the file, as in "2,2,1"; all equal: "2". */
const char *init_plan_triple(const init_plan *x, const int64_t value[3], const char *divider,
                             bool joined);

/* init_plan_table.c: print the spread of the dataset, and the plan. */
void init_plan_print_dataset(const init_plan *x);
void init_plan_print(const init_plan *x);

#endif
