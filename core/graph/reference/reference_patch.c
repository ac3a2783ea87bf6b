/*
 * reference_patch.c - patches of resident cases, their normal numbers, and sums of patches, element
 * by element.
 *
 * These kernels read bytes and integers, so they are no plain kernels, whose inputs are all of one
 * type.
 */
#include "base/random.h"
#include "graph/reference/reference_internal.h"

static double value_of(const pons_request *r, const unsigned char *resident, const int32_t *row,
                       int64_t at)
{
    const unsigned char *values = resident + (int64_t)row[PONS_PATCH_VALUES] * PONS_PATCH_UNIT;
    int64_t begin = (int64_t)row[PONS_PATCH_TABLE] * PONS_PATCH_UNIT;
    const float *table = (const float *)(resident + begin);

    if (r->output[0].type == PONS_U8)
        return values[at];
    if (row[PONS_PATCH_CODE_SIZE] == 1)
        return (double)table[values[at]];
    if (row[PONS_PATCH_CODE_SIZE] == 2)
        return (double)table[((const uint16_t *)values)[at]];
    return (double)((const float *)values)[at];
}

static void cut_patch(const pons_request *r, const pons_call *call)
{
    pons_shape s = r->output[0].shape;
    int64_t at[PONS_RANK_MAX] = { 0 }, y = 0;

    do {
        const int32_t *row = (const int32_t *)call->input[1] + at[0] * r->input[1].shape.extent[1];
        const int32_t *coordinate = row + PONS_PATCH_COORDINATES;
        int64_t d = coordinate[at[1]], h = coordinate[s.extent[1] + at[2]];
        int64_t w = coordinate[s.extent[1] + s.extent[2] + at[3]];
        bool inside = d >= 0 && h >= 0 && w >= 0;

        number_store(r->output[0].type, call->output[0], y++,
                     inside ? value_of(r, call->input[0], row, (d + h + w) * s.extent[4] + at[4])
                            : 0);
    } while (index_next(s, at));
}

static void draw_patch(const pons_request *r, const pons_call *call)
{
    pons_shape s = r->output[0].shape;
    int64_t count = shape_count(s) / s.extent[0];

    for (int64_t n = 0; n < s.extent[0]; n++) {
        const int32_t *row = (const int32_t *)call->input[0] + n * PONS_PATCH_KEY_SIZE;
        uint64_t key = (uint64_t)(uint32_t)row[PONS_PATCH_KEY_HIGH] << 32
                     | (uint32_t)row[PONS_PATCH_KEY_LOW];
        for (int64_t i = 0; i < count; i++) {
            int pair = (int)(i % 4) & 2;
            uint32_t word[4];
            float normal[2] = { 0 };

            random_voxels(key, (uint64_t)i / 4, word);
            if (row[PONS_PATCH_KEY_WANTED] != 0)
                random_normal(word[pair], word[pair + 1], normal);
            number_store(r->output[0].type, call->output[0], n * count + i, (double)normal[i % 2]);
        }
    }
}

/* In f32 as on devices. In double for a wide device, rounded once. */
static float added_value(const pons_request *r, float sum, double weight, double x)
{
    float product = (float)weight * (float)x;

    return r->input[3].type == PONS_F64 ? (float)((double)sum + weight * x) : sum + product;
}

static void add_patch(const pons_request *r, const pons_call *call)
{
    pons_shape s = r->input[3].shape;
    const int64_t *e = s.extent;
    int64_t at[PONS_RANK_MAX] = { 0 }, n = 0;

    do {
        const int32_t *row = (const int32_t *)call->input[1] + at[0] * r->input[1].shape.extent[1];
        const int32_t *coordinate = row + PONS_PATCH_COORDINATES;
        const int32_t *flag = coordinate + e[1] + e[2] + e[3];
        int64_t k[3] = { at[1], e[1] + at[2], e[1] + e[2] + at[3] };
        bool inside = coordinate[k[0]] >= 0 && coordinate[k[1]] >= 0 && coordinate[k[2]] >= 0;
        bool fresh = flag[k[0]] != 0 && flag[k[1]] != 0 && flag[k[2]] != 0;
        double weight = number_load(r->input[2].type, call->input[2],
                                    (at[1] * e[2] + at[2]) * e[3] + at[3]);
        double x = number_load(r->input[3].type, call->input[3], n++);

        if (!inside)
            continue;
        int64_t begin = (int64_t)row[PONS_PATCH_VALUES] * PONS_PATCH_UNIT;
        char *resident = (char *)call->output[0] + begin;
        int64_t voxel = (int64_t)coordinate[k[0]] + coordinate[k[1]] + coordinate[k[2]];
        float *sum = (float *)resident + voxel * e[4] + at[4];
        *sum = added_value(r, fresh ? 0 : *sum, weight, x);
    } while (index_next(s, at));
}

void reference_patch_run(const pons_request *r, const pons_call *call)
{
    if (r->kind == PONS_KERNEL_PATCH_ACCUMULATE)
        add_patch(r, call);
    else if (r->kind == PONS_KERNEL_PATCH)
        cut_patch(r, call);
    else
        draw_patch(r, call);
}
