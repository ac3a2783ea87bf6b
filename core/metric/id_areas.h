/*
 * id_areas.h - what a list of classes tells apart in a label file. Ids that belong to the same
 * classes are one area; ids of no class are area 0.
 */
#ifndef CORE_METRIC_ID_AREAS_H
#define CORE_METRIC_ID_AREAS_H

#include "data/dataset/class_list.h"
#include "data/volume/volume.h"

typedef struct id_areas {
    const int32_t *of;        /* [LABEL_ID_MAX + 1] area of an id; NULL: there are no classes     */
    bool disjoint;            /* no id belongs to two classes: class c is area c + 1              */
} id_areas;

void id_areas_make(arena *memory, const data_class *classes, int count, id_areas *out);
/* PONS_DATA with the first id of 'v' (I32) that no area can have; 'path' begins the message. */
pons_status id_areas_check(const char *path, const volume *v, pons_error *err);
/* Areas in place of ids that were checked. */
void id_areas_apply(const id_areas *a, volume *v);

#endif
