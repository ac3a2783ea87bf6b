/*
 * heat_map.h - a slide's thumbnail with the probabilities of its map over it.
 */
#ifndef CORE_INFER_HEAT_MAP_H
#define CORE_INFER_HEAT_MAP_H

#include <pons/plugin.h>

/* The largest probability of each pixel of a picture, so that overlaps do not add up. */
typedef struct heat_map {
    int64_t rows, columns;
    float *largest;               /* [rows][columns], zeroed by the caller                        */
} heat_map;

/*
 * Put a probability on the pixels from 'first' to before 'end' (rows, columns), at least one along
 * each axis.
 */
void heat_map_put(heat_map *m, const double first[2], const double end[2], float probability);
/* Lay the map over a picture [rows][columns][3]: from clear at 0 over yellow at 0.5 to red at 1. */
void heat_map_blend(const heat_map *m, uint8_t *rgb);

#endif
