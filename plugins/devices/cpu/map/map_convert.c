/*
 * map_convert.c - conversion of single elements of every type from and to f32.
 */
#include "cpu/simd/lane_math.h"
#include "cpu/map/map_internal.h"

size_t map_type_size(pons_type type)
{
    static const size_t size[] = { [PONS_F32] = 4, [PONS_BF16] = 2, [PONS_F16] = 2, [PONS_U8] = 1,
                                   [PONS_I32] = 4, [PONS_F64] = 8 };
    return size[type];
}

float map_number_load(pons_type type, const void *from, int64_t at)
{
    switch (type) {
    case PONS_BF16: return lane_from_bf16(((const uint16_t *)from)[at]);
    case PONS_F16: return lane_from_f16(((const uint16_t *)from)[at]);
    case PONS_U8: return (float)((const uint8_t *)from)[at];
    case PONS_I32: return (float)((const int32_t *)from)[at];
    default: return ((const float *)from)[at];
    }
}

void map_number_store(pons_type type, void *to, int64_t at, float value)
{
    switch (type) {
    case PONS_BF16: ((uint16_t *)to)[at] = lane_to_bf16(value); break;
    case PONS_F16: ((uint16_t *)to)[at] = lane_to_f16(value); break;
    case PONS_U8: ((uint8_t *)to)[at] = lane_to_u8(value); break;
    case PONS_I32: ((int32_t *)to)[at] = lane_to_i32(value); break;
    default: ((float *)to)[at] = value; break;
    }
}
