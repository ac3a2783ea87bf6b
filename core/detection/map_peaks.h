/*
 * map_peaks.h - detections of a probability map by non-maximum suppression (MONAI's ProbNMS).
 */
#ifndef CORE_DETECTION_MAP_PEAKS_H
#define CORE_DETECTION_MAP_PEAKS_H

#include <pons/plugin.h>

/* A detection: an index into the map's values. */
typedef struct map_peak {
    int64_t at;
    float probability;
} map_peak;

typedef struct peak_list {
    int64_t count;
    map_peak *item;               /* malloc'ed, in falling order of probability                   */
} peak_list;

/*
 * Take the largest value above 'threshold', the first in memory of equals, and suppress the box of
 * rows y - box / 2 .. y - box / 2 + box - 1 and such columns around it; then the largest of those
 * that are left. 'map' is [extent[0]][extent[1]]. PONS_DATA: it has NaN. PONS_DEVICE: out of memory.
 */
pons_status map_peaks_find(const float *map, const int64_t extent[2], float threshold, int box,
                           peak_list *out, pons_error *err);
void peak_list_clear(peak_list *l);

#endif
