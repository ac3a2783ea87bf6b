/*
 * heat_map.h - a slide's thumbnail with the probabilities of its map over it.
 */
#ifndef CORE_INFER_HEAT_MAP_H
#define CORE_INFER_HEAT_MAP_H

#include <pons/plugin.h>

/* A picture [rows][columns][3] in work. */
typedef struct heat_map {
    int64_t rows, columns;
    uint8_t *rgb;
} heat_map;

/*
 * Lay a probability over the pixels from 'first' to before 'end' (rows, columns), at least one:
 * from clear at 0 over yellow at 0.5 to red at 1.
 */
void heat_map_put(heat_map *m, const double first[2], const double end[2], float probability);

#endif
