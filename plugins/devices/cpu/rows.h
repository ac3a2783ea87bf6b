/*
 * rows.h - single numbers in f32 and bf16, for kernels that walk windows and neighbours.
 */
#ifndef CPU_ROWS_H
#define CPU_ROWS_H

#include "lane.h"

#include <pons/device.h>

LANE bool rows_type(pons_type type) { return type == PONS_F32 || type == PONS_BF16; }

LANE float number_in(pons_type type, const void *memory, int64_t at)
{
    return type == PONS_F32 ? ((const float *)memory)[at]
                            : lane_from_bf16(((const uint16_t *)memory)[at]);
}

LANE void number_out(pons_type type, void *memory, int64_t at, float value)
{
    if (type == PONS_F32)
        ((float *)memory)[at] = value;
    else
        ((uint16_t *)memory)[at] = lane_to_bf16(value);
}

#endif
