/*
 * label_map.h - from the ids of a label file to the target: classes, or regions.
 */
#ifndef CORE_DATA_DATASET_LABEL_MAP_H
#define CORE_DATA_DATASET_LABEL_MAP_H

#include "data/dataset/dataset.h"
#include "data/volume/volume.h"

typedef struct label_map {
    int count;          /* ids below it are looked up, others are not listed                      */
    int channels;       /* 1, or regions                                                          */
    int16_t *class_of;  /* number in 'labels'; -1: not listed                                     */
    uint8_t *value;     /* [count][channels], what the target holds                               */
} label_map;

pons_status label_map_init(label_map *m, const dataset *d, pons_error *err);
void label_map_clear(label_map *m);

static inline int label_map_class(const label_map *m, int64_t id)
{
    return id >= 0 && id < m->count ? m->class_of[id] : -1;
}

/* Replace ids, U8 or I32, by the U8 target; an id that is not listed is PONS_DATA (id, voxels). */
pons_status label_map_apply(const label_map *m, volume *label, const char *case_id,
                            const char *file, pons_error *err);

#endif
