/*
 * nnunet_plan.h - the plans.json and dataset.json of nnU-Net (version 2) as a configuration of
 * ours.
 *
 * Plans count axes as arrays do, slowest first, after 'transpose_forward'; a configuration counts
 * them as the file does. A key that is not understood is refused and named.
 */
#ifndef CORE_NNUNET_NNUNET_PLAN_H
#define CORE_NNUNET_NNUNET_PLAN_H

#include "base/arena.h"
#include "config/config.h"
#include "data/dataset/class_list.h"
#include "nnunet/nnunet_json.h"

/* The checkpoint's facts about its network. */
typedef struct nnunet_facts {
    const char *configuration; /* "3d_fullres"                                                    */
    bool batch_norm;          /* the norms have running statistics                                */
    int mirror_count;         /* plan axes along which predictions are mirrored                   */
    int mirror[3];
} nnunet_facts;

typedef struct nnunet_plan {
    arena *memory;
    const char *where;        /* plans.json                                                       */
    int axes;                 /* 2 or 3                                                           */
    int order[3];             /* the plan axis of each axis of the file; 2D: axis 0 is flat       */
    int channels;             /* of the images                                                    */
    const char *previous;     /* the configuration of a cascade's first stage; NULL: no cascade   */
    int id_count;             /* ids of all labels but the background and 'ignore', ascending     */
    int id[CLASS_COUNT_MAX];
    config_line *line;
    int line_count, line_room;
} nnunet_plan;

/* Read both files of a folder. PONS_CONFIG names a key, PONS_DATA a file that is no JSON. */
pons_status nnunet_plan_read(nnunet_plan *out, arena *memory, const char *folder,
                             const nnunet_facts *facts, pons_error *err);

/* ---- the parts, which keep their first failure in the JSON's 'err' */

void nnunet_plan_put(nnunet_plan *p, const char *section, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Append a word to a list. */
const char *nnunet_plan_join(const nnunet_plan *p, const char *list, const char *word);
/* Numbers along the plan's axes in the order of the file. */
const char *nnunet_plan_axes(const nnunet_plan *p, const double value[3], const char *divider);
/* nnunet_plan_network.c: [model] of a configuration's architecture. */
void nnunet_network_put(nnunet_plan *p, const nnunet_json *configuration,
                        const nnunet_facts *facts);
/* nnunet_plan_labels.c: [data] and region_ids of dataset.json. */
void nnunet_labels_put(nnunet_plan *p, const nnunet_json *dataset);
/* nnunet_plan_values.c: the steps of [preprocess] that normalise; returns their names. */
const char *nnunet_values_put(nnunet_plan *p, const nnunet_json *plans,
                              const nnunet_json *configuration);

#endif
