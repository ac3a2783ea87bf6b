/*
 * range_kind.h - the kinds of work that profiles tell apart, each with a name and a fixed colour.
 *
 * The phases of a run come first. Data is red and the forward pass green, as in MONAI's guide.
 */
#ifndef CORE_BASE_PROFILE_RANGE_KIND_H
#define CORE_BASE_PROFILE_RANGE_KIND_H

#include <stdint.h>

typedef enum range_kind {
    RANGE_START = 0, RANGE_LOADING, RANGE_FORWARD, RANGE_BACKWARD, RANGE_UPDATE, RANGE_VALIDATION,
    RANGE_CHECKPOINT, RANGE_REPORT,
    RANGE_TRANSFORM, RANGE_MODEL, RANGE_LOSS, RANGE_OPTIMIZER, /* calls of plugins                */
    RANGE_KERNEL, RANGE_OTHER, RANGE_KIND_COUNT,
    RANGE_PHASE_COUNT = RANGE_TRANSFORM
} range_kind;

const char *range_kind_name(range_kind kind);
/* The colour as 0xAARRGGBB. */
uint32_t range_kind_color(range_kind kind);

#endif
