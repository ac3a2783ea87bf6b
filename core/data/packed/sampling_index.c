/*
 * sampling_index.c - find the n-th voxel of a set without a list of its voxels.
 *
 * The index holds, per set, the number of voxels before each block of 4096. A draw finds the block
 * by bisection and scans it. This takes 2 bytes per 1000 voxels and set for any set; run lengths
 * would take more than the image for a noisy set.
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
        if (packed_case_value(p, voxel * channels + c) > p->background_above)
            return true;
    }
    return false;
}

static bool is_ignored(const packed_case *p, int64_t voxel)
{
    return p->target[voxel * p->label.channels] == TARGET_IGNORED;
}

/* Voxels of class 'set' of 'count', or of region 'set'. */
static bool is_in_class(const packed_case *p, int set, int count, int64_t voxel)
{
    return p->label.channels == 1 && count > 1 ? p->target[voxel] == set
           : p->target[voxel * p->label.channels + set] == 1;
}

static bool is_in_set(const packed_case *p, int set, int64_t voxel)
{
    if (p->sets == SAMPLING_SETS_CLASSES)
        return is_in_class(p, set, p->set_count, voxel);
    if (p->sets == SAMPLING_SETS_CLASSES_VALID)
        return set == p->set_count - 1 ? !is_ignored(p, voxel)
                                       : is_in_class(p, set, p->set_count - 1, voxel);
    if (p->sets == SAMPLING_SETS_BALANCED_VALID && is_ignored(p, voxel))
        return false;
    return set == 0 ? is_foreground(p, voxel)
                    : !is_foreground(p, voxel) && is_above(p, voxel);
}

/* Count the voxels of each set in a block; the count is stored at the next block's entry. */
static void count_blocks(void *context, int64_t first, int64_t end)
{
    const packed_case *p = context;
    int64_t count = pons_volume_count(&p->image);

    for (int64_t block = first; block < end; block++) {
        int64_t last = min_i64((block + 1) * BLOCK, count);

        for (int set = 0; set < p->set_count; set++) {
            int64_t found = 0;

            for (int64_t v = block * BLOCK; v < last; v++)
                found += is_in_set(p, set, v);
            p->before[(p->block_count + 1) * set + block + 1] = found;
        }
    }
}

pons_status sampling_index_make(packed_case *p, const sampling_spec *spec, pons_error *err)
{
    int64_t count = pons_volume_count(&p->image);
    size_t row;

    if (spec->sets == SAMPLING_SETS_NONE || p->target == NULL)
        return PONS_OK;
    p->sets = spec->sets;
    p->set_count = sampling_sets_balanced(spec->sets) ? 2 : spec->set_count;
    p->background_above = spec->background_above;
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

int64_t sampling_index_count(const packed_case *p, int set)
{
    return p->before[(p->block_count + 1) * (set + 1) - 1];
}

int64_t sampling_index_voxel(const packed_case *p, int set, int64_t n)
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
    /* stays in the volume even if a mapped file was cut */
    for (int64_t v = low * BLOCK; v < last; v++) {
        if (is_in_set(p, set, v) && n-- == 0)
            return v;
    }
    return last;
}
