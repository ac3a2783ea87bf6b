/*
 * components.c - flood fill with a stack of its own.
 */
#include "train/components.h"

#include <stdlib.h>

typedef struct flood {
    const uint8_t *labels;
    int stride;
    const int64_t *extent;
    uint8_t value;
    int32_t *part;          /* per voxel: number of its part, 0: none yet                         */
    int64_t *stack;         /* a voxel is pushed once                                             */
} flood;

/* Mark the part that holds 'seed' with 'number'; returns its size. */
static int64_t fill_part(flood *f, int64_t seed, int32_t number)
{
    const int64_t *e = f->extent;
    int64_t depth = 0, size = 0;

    f->stack[depth++] = seed;
    f->part[seed] = number;
    while (depth > 0) {
        int64_t at = f->stack[--depth];
        int64_t x = at / e[2] / e[1], y = at / e[2] % e[1], z = at % e[2];
        size++;
        for (int n = 0; n < 27; n++) {
            int64_t i = x + n / 9 - 1, j = y + n / 3 % 3 - 1, k = z + n % 3 - 1;
            int64_t to = (i * e[1] + j) * e[2] + k;
            if (i < 0 || i >= e[0] || j < 0 || j >= e[1] || k < 0 || k >= e[2]
                || f->part[to] != 0 || f->labels[to * f->stride] != f->value)
                continue;
            f->part[to] = number;
            f->stack[depth++] = to;
        }
    }
    return size;
}

pons_status keep_largest_component(uint8_t *labels, int stride, const int64_t extent[3],
                                   uint8_t value, uint8_t other, pons_error *err)
{
    int64_t voxels = extent[0] * extent[1] * extent[2], largest = 0;
    int32_t count = 0, best = 0;
    flood f = { labels, stride, extent, value, calloc((size_t)voxels + 1, sizeof *f.part),
                malloc(((size_t)voxels + 1) * sizeof *f.stack) };

    if (f.part == NULL || f.stack == NULL) {
        pons_fail(err, PONS_DEVICE, "out of memory for connected parts");
        goto release;
    }
    for (int64_t i = 0; i < voxels; i++) {
        if (labels[i * stride] != value || f.part[i] != 0)
            continue;
        int64_t size = fill_part(&f, i, ++count);
        if (size > largest) {
            largest = size;
            best = count;
        }
    }
    for (int64_t i = 0; i < voxels; i++) {
        if (labels[i * stride] == value && f.part[i] != best)
            labels[i * stride] = other;
    }
release:
    free(f.part);
    free(f.stack);
    return err->status;
}
