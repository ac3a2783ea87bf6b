/*
 * target_areas.h - the targets of a mask: areas that are near each other are one, and small ones
 * are excluded (the evaluation mask of CAMELYON16; MONAI's compute_multi_instance_mask and
 * compute_isolated_tumor_cells).
 */
#ifndef CORE_DETECTION_TARGET_AREAS_H
#define CORE_DETECTION_TARGET_AREAS_H

#include <pons/plugin.h>

/* Targets have ids from 1 in the order of their first points; ids connect by edges and corners. */
typedef struct target_areas {
    int32_t count;
    int32_t *id;                  /* [points] 0: no target                                        */
    bool *excluded;               /* [count] a target that does not count                         */
} target_areas;

typedef struct target_rule {
    double spacing[2];            /* of rows and columns                                          */
    double grow;                  /* areas this near are one, in the unit of the spacing          */
    double isolated;              /* a target is excluded if its grown length is below the sum    */
                                  /* of both                                                      */
} target_rule;

/*
 * Mark the points nearer to the mask than grow / 2, and fill holes. The length of a target is the
 * major axis of the ellipse with its second moments, four times their largest root. 'mask' is
 * [extent[0]][extent[1]]; nonzero is inside. PONS_DEVICE: out of memory.
 */
pons_status target_areas_find(const uint8_t *mask, const int64_t extent[2],
                              const target_rule *rule, target_areas *out, pons_error *err);
void target_areas_clear(target_areas *t);

#endif
