/*
 * label_map.h - map the label ids of a file to the target: class indices, or one channel per
 * region.
 */
#ifndef CORE_DATA_DATASET_LABEL_MAP_H
#define CORE_DATA_DATASET_LABEL_MAP_H

#include "data/dataset/dataset.h"
#include "data/volume/volume.h"

enum { LABEL_MAP_IGNORED = 1 << 9 }; /* behind all class indices; the target is 0                */

typedef struct label_map {
    int count;          /* table size: larger ids are not listed                                  */
    int channels;       /* channels of the target: 1, or the number of regions                    */
    int16_t *class_index;  /* [id] class index in 'labels'; -1: not listed; LABEL_MAP_IGNORED     */
    uint8_t *target_value;     /* [id][channels] target value                                     */
} label_map;

pons_status label_map_init(label_map *m, const dataset *d, pons_error *err);
void label_map_clear(label_map *m);

static inline int label_map_class_index(const label_map *m, int64_t id)
{
    return id >= 0 && id < m->count ? m->class_index[id] : -1;
}

/* Make the mask of voxels whose id is not ignored, of a label as in the file. */
pons_status label_map_valid(const label_map *m, const volume *label, volume *valid,
                            pons_error *err);
/* Replace label ids (U8 or I32) by the target (U8). PONS_DATA names the first unlisted id. */
pons_status label_map_apply(const label_map *m, volume *label, const char *case_id,
                            const char *file, pons_error *err);

#endif
