/*
 * color_jitter.h - the record of color_jitter.
 */
#ifndef PLUGINS_TRANSFORMS_RANDOM_COLOR_JITTER_H
#define PLUGINS_TRANSFORMS_RANDOM_COLOR_JITTER_H

#include <stdbool.h>

enum { JITTER_BRIGHTNESS = 0, JITTER_CONTRAST, JITTER_SATURATION, JITTER_HUE, JITTER_COUNT };

/* The changes in their order. A factor of 1, or of 0 for the hue, leaves a patch as it is. */
typedef struct jitter_record {
    bool wanted;
    int order[JITTER_COUNT];
    float factor[JITTER_COUNT];
} jitter_record;

#endif
