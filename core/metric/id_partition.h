/*
 * id_partition.h - a partition of label ids by a list of classes.
 *
 * An area is a set of ids that belong to the same classes, so the classes cannot distinguish them.
 * Area 0 has the ids of no class.
 */
#ifndef CORE_METRIC_ID_PARTITION_H
#define CORE_METRIC_ID_PARTITION_H

#include "data/dataset/class_list.h"
#include "data/volume/volume.h"

typedef struct id_partition {
    const int32_t *of;        /* [LABEL_ID_MAX + 1] area of each id; NULL: no classes             */
    int count;                /* of areas, with area 0                                            */
    bool disjoint;            /* no id is in two classes: area c + 1 is class c                   */
} id_partition;

void id_partition_make(arena *memory, const data_class *classes, int count, id_partition *out);
/* PONS_DATA with the first id of 'v' (U8 or I32) out of range; 'path' begins the message. */
pons_status id_partition_check_ids(const char *path, const volume *v, pons_error *err);
/* Replace the ids of 'v' (I32), which were checked, by their areas. */
void id_partition_apply(const id_partition *a, volume *v);

#endif
