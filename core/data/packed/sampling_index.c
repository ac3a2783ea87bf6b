/*
 * sampling_index.c - the n-th foreground voxel without a list of them.
 *
 * Only the number of a set's voxels before each block of 4096 is kept; a pick finds the block by
 * bisection and walks through it. That is 2 bytes per 1000 voxels and set however ragged the set
 * is, where runs may need more than the image (noise above a threshold).
 */
#include "data/packed/sampling_index.h"

#include <stdlib.h>

#include "base/integer.h"
#include "base/thread/parallel.h"

#define BLOCK 4096

static bool is_foreground(const packed_case *p, int64_t voxel)
{
    const uint8_t *t = p->target + voxel * p->label.channels;

    for (int r = 0; r < p->label.channels; r++) {
        if (t[r] != 0)
            return true;
    }
    return false;
}

static bool is_above(const packed_case *p, int64_t voxel)
{
    int channels = p->image.channels;

    for (int c = 0; c < channels; c++) {
        if (packed_value(p, voxel * channels + c) > p->background_above)
            return true;
    }
    return false;
}

static bool is_in_set(const packed_case *p, int set, int64_t voxel)
{
    if (p->sets == PACKED_SETS_BALANCED)
        return set == 0 ? is_foreground(p, voxel)
                        : !is_foreground(p, voxel) && is_above(p, voxel);
    return p->label.channels == 1 && p->set_count > 1 ? p->target[voxel] == set
           : p->target[voxel * p->label.channels + set] != 0;
}

/* How many voxels of each set a block has, at the place of the next one. */
static void count_blocks(void *context, int64_t first, int64_t end)
{
    const packed_case *p = context;
    int64_t count = pons_volume_count(&p->image);

    for (int64_t block = first; block < end; block++) {
        int64_t last = (block + 1) * BLOCK < count ? (block + 1) * BLOCK : count;

        for (int set = 0; set < p->set_count; set++) {
            int64_t found = 0;

            for (int64_t v = block * BLOCK; v < last; v++)
                found += is_in_set(p, set, v);
            p->before[(p->block_count + 1) * set + block + 1] = found;
        }
    }
}

pons_status packed_set_find(packed_case *p, const packed_wish *wish, pons_error *err)
{
    int64_t count = pons_volume_count(&p->image);
    size_t row;

    if (wish->sets == PACKED_SETS_NONE || p->target == NULL)
        return PONS_OK;
    p->sets = wish->sets;
    p->set_count = wish->sets == PACKED_SETS_BALANCED ? 2 : wish->set_count;
    p->background_above = wish->background_above;
    p->block_count = ceil_div_i64(count, BLOCK);
    row = (size_t)p->block_count + 1;
    p->before = calloc(row * (size_t)p->set_count, sizeof *p->before);
    if (p->before == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    p->size += row * (size_t)p->set_count * sizeof *p->before;
    parallel_run(p->block_count, parallel_piece(BLOCK), count_blocks, p);
    for (int set = 0; set < p->set_count; set++) {
        int64_t *before = p->before + row * (size_t)set;
        for (int64_t block = 0; block < p->block_count; block++)
            before[block + 1] += before[block];
    }
    return PONS_OK;
}

int64_t packed_set_size(const packed_case *p, int set)
{
    return p->before[(p->block_count + 1) * (set + 1) - 1];
}

int64_t packed_set_voxel(const packed_case *p, int set, int64_t n)
{
    const int64_t *before = p->before + (p->block_count + 1) * set;
    int64_t low = 0, high = p->block_count; /* before[low] <= n < before[high] */
    int64_t last = pons_volume_count(&p->image) - 1;

    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (before[middle] <= n)
            low = middle;
        else
            high = middle;
    }
    n -= before[low];
    for (int64_t v = low * BLOCK; v < last; v++) { /* not beyond it in a file that was cut */
        if (is_in_set(p, set, v) && n-- == 0)
            return v;
    }
    return last;
}
