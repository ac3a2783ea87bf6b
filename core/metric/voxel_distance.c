/*
 * voxel_distance.c - search the nearest voxel of a set in a tree of bit blocks.
 *
 * A leaf of the tree has a bit for each of 4 x 4 x 4 voxels. A block above has a bit for each of
 * 4 x 4 x 4 blocks below that hold a voxel. The search is branch and bound (Friedman, Bentley and
 * Finkel, "An Algorithm for Finding Best Matches in Logarithmic Expected Time", ACM TOMS 3, 1977):
 * it leaves out blocks that are not nearer than the nearest voxel so far. The nearest voxel of the
 * last search bounds the next one. Neighbours on a surface have near answers, so that a search
 * visits few blocks.
 *
 * Rounding keeps the order of numbers, so the bound of a block never exceeds the distance of a
 * voxel in it. The result is therefore the smallest of the rounded distances, whatever the order
 * of the search.
 */
#include "metric/voxel_distance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"

enum { SIDE = 4, SIDE_BITS = 2, LEVELS_MAX = 16 };

typedef struct block_level {
    int64_t extent[3];
    uint64_t *block;        /* bit (a * SIDE + b) * SIDE + c is the part at a, b, c               */
} block_level;

typedef struct block_tree {
    int levels;             /* level 0 has the leaves, the last one has one block                 */
    block_level level[LEVELS_MAX];
    double weight[3];       /* squared spacings                                                   */
} block_tree;

typedef struct distance_work {
    const voxel_box *box;
    uint8_t from, to;
    block_tree tree;
    int64_t *first;         /* [i + 1] first number in 'out' of each plane                        */
    double *out;
} distance_work;

/* ---- tree ------------------------------------------------------------------------------------ */

static void tree_clear(block_tree *t)
{
    for (int n = 0; n < t->levels; n++)
        free(t->level[n].block);
}

static bool tree_init(block_tree *t, const voxel_box *box)
{
    const int64_t *below = box->extent;
    int64_t count = 0;

    for (int axis = 0; axis < 3; axis++)
        t->weight[axis] = box->spacing[axis] * box->spacing[axis];
    while (count != 1) {
        block_level *l = &t->level[t->levels];

        count = 1;
        for (int axis = 0; axis < 3; axis++) {
            l->extent[axis] = ceil_div_i64(below[axis], SIDE);
            count *= l->extent[axis];
        }
        l->block = calloc((size_t)count, sizeof *l->block);
        if (l->block == NULL)
            return false;
        t->levels++;
        below = l->extent;
    }
    return true;
}

static uint64_t *block_at(const block_level *l, int64_t i, int64_t j, int64_t k)
{
    return &l->block[(i * l->extent[1] + j) * l->extent[2] + k];
}

static void tree_add(block_tree *t, int64_t i, int64_t j, int64_t k)
{
    bool known = false;     /* the blocks above have a bit for this one                           */

    for (int n = 0; n < t->levels && !known; n++) {
        int64_t bit = (i % SIDE * SIDE + j % SIDE) * SIDE + k % SIDE;
        uint64_t *block = block_at(&t->level[n], i /= SIDE, j /= SIDE, k /= SIDE);

        known = *block != 0;
        *block |= UINT64_C(1) << bit;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The first voxel of a row from 'k' on that has a bit of 'mask'; 'extent': none. */
static int64_t find_bit(const uint8_t *row, int64_t extent, int64_t k, uint8_t mask)
{
    uint64_t word, wanted = UINT64_C(0x0101010101010101) * mask;

    for (; k + 8 <= extent; k += 8) {
        memcpy(&word, row + k, sizeof word);
        if ((word & wanted) != 0)
            break;
    }
    while (k < extent && (row[k] & mask) == 0)
        k++;
    return k;
}

static void add_voxels(block_tree *t, const voxel_box *box, uint8_t to)
{
    const int64_t *extent = box->extent;
    const uint8_t *row = box->bits;

    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++, row += extent[2])
            for (int64_t k = find_bit(row, extent[2], 0, to); k < extent[2];
                 k = find_bit(row, extent[2], k + 1, to))
                tree_add(t, i, j, k);
}

/* ---- search ---------------------------------------------------------------------------------- */

typedef struct voxel_search {
    const block_tree *tree;
    int32_t at[3];
    int32_t nearest[3];
    double best;            /* squared distance to 'nearest'                                      */
} voxel_search;

static double sum_squares(double i, double j, double k)
{
    return i + (j + k);
}

/* Write the squared distances along an axis to the parts of a block, which begin at 'low'. */
static void measure_axis(double low, double size, double weight, double square[SIDE])
{
    for (int n = 0; n < SIDE; n++) {
        double below = low + n * size, above = 1 - size - below;
        double gap = below > above ? below : above;

        gap = gap > 0 ? gap : 0;
        square[n] = weight * (gap * gap);
    }
}

/*
 * Write the squared distances along each axis to the parts of a block. Returns the bits of the
 * parts that may be nearer than the best along every single axis.
 */
static uint64_t measure_parts(const voxel_search *s, int level, const int32_t block[3],
                              double square[3][SIDE])
{
    /* The bits of the parts whose index along an axis is 0. */
    static const uint64_t first[3] = { UINT64_C(0xffff), UINT64_C(0x000f000f000f000f),
                                       UINT64_C(0x1111111111111111) };
    static const int shift[3] = { SIDE * SIDE, SIDE, 1 };
    double size = (double)((int64_t)1 << SIDE_BITS * level);
    uint64_t near = ~UINT64_C(0);

    for (int axis = 0; axis < 3; axis++) {
        uint64_t along = 0;

        measure_axis(block[axis] * SIDE * size - s->at[axis], size, s->tree->weight[axis],
                     square[axis]);
        for (int n = 0; n < SIDE; n++)
            along |= square[axis][n] < s->best ? first[axis] << shift[axis] * n : 0;
        near &= along;
    }
    return near;
}

static double part_distance(int part, double square[3][SIDE])
{
    return sum_squares(square[0][part / (SIDE * SIDE)], square[1][part / SIDE % SIDE],
                       square[2][part % SIDE]);
}

/* The nearest of 'parts', which are not none. */
static int nearest_part(uint64_t parts, double square[3][SIDE])
{
    int nearest = __builtin_ctzll(parts);
    double distance = part_distance(nearest, square);

    while ((parts &= parts - 1) != 0) {
        int n = __builtin_ctzll(parts);
        double other = part_distance(n, square);

        nearest = other < distance ? n : nearest;
        distance = other < distance ? other : distance;
    }
    return nearest;
}

static void search_block(voxel_search *s, int level, const int32_t block[3]);

/* Search a part of a block if it is nearer than the best. */
static void search_part(voxel_search *s, int level, const int32_t block[3], int part,
                        double square[3][SIDE])
{
    double distance = part_distance(part, square);
    const int32_t at[3] = { block[0] * SIDE + part / (SIDE * SIDE),
                            block[1] * SIDE + part / SIDE % SIDE, block[2] * SIDE + part % SIDE };

    if (distance >= s->best)
        return;
    if (level > 0) {
        search_block(s, level - 1, at);
        return;
    }
    s->best = distance;
    memcpy(s->nearest, at, sizeof at);
}

/* Search the parts of a block: the nearest one, and above leaves the others. */
static void search_block(voxel_search *s, int level, const int32_t block[3])
{
    double square[3][SIDE];
    uint64_t parts = *block_at(&s->tree->level[level], block[0], block[1], block[2])
                     & measure_parts(s, level, block, square);

    if (parts == 0)
        return;
    int nearest = nearest_part(parts, square);
    search_part(s, level, block, nearest, square);
    for (parts &= ~(UINT64_C(1) << nearest); level > 0 && parts != 0; parts &= parts - 1)
        search_part(s, level, block, __builtin_ctzll(parts), square);
}

/* Search the nearest voxel of s->at, beginning with that of the last search; the distance. */
static double search_nearest(voxel_search *s)
{
    double square[3];

    for (int axis = 0; axis < 3; axis++) {
        double difference = s->at[axis] - s->nearest[axis];
        square[axis] = s->tree->weight[axis] * (difference * difference);
    }
    s->best = s->best < INFINITY ? sum_squares(square[0], square[1], square[2]) : INFINITY;
    search_block(s, s->tree->levels - 1, (const int32_t[3]){ 0, 0, 0 });
    return sqrt(s->best);
}

static void measure_planes(void *context, int64_t first, int64_t end)
{
    const distance_work *w = context;
    const int64_t *extent = w->box->extent;
    const uint8_t *row = w->box->bits + first * extent[1] * extent[2];
    voxel_search s = { .tree = &w->tree, .best = INFINITY };
    double *out = w->out + w->first[first];

    for (int64_t i = first; i < end; i++) {
        for (int64_t j = 0; j < extent[1]; j++, row += extent[2]) {
            for (int64_t k = find_bit(row, extent[2], 0, w->from); k < extent[2];
                 k = find_bit(row, extent[2], k + 1, w->from)) {
                const int32_t at[3] = { (int32_t)i, (int32_t)j, (int32_t)k };
                memcpy(s.at, at, sizeof at);
                *out++ = (row[k] & w->to) != 0 ? 0 : search_nearest(&s);
            }
        }
    }
}

/* ---- distances ------------------------------------------------------------------------------- */

static int64_t count_bits(const uint8_t *bits, int64_t count, uint8_t mask)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    int64_t found = 0, n = 0;

    /* A single bit of eight bytes is counted by a product, whose highest byte is their sum. */
    for (int shift = __builtin_ctz(mask); mask == 1U << shift && n + 8 <= count; n += 8) {
        uint64_t word;
        memcpy(&word, bits + n, sizeof word);
        found += (int64_t)(((word >> shift & each) * each) >> 56);
    }
    for (; n < count; n++)
        found += (bits[n] & mask) != 0;
    return found;
}

int64_t voxel_box_count(const voxel_box *box, uint8_t mask)
{
    return count_bits(box->bits, box->extent[0] * box->extent[1] * box->extent[2], mask);
}

/* Number the distances of each plane. */
static void number_planes(distance_work *w)
{
    int64_t plane = w->box->extent[1] * w->box->extent[2];

    for (int64_t i = 0; i < w->box->extent[0]; i++)
        w->first[i + 1] = w->first[i] + count_bits(w->box->bits + i * plane, plane, w->from);
}

pons_status voxel_distance_compute(const voxel_box *box, uint8_t from, uint8_t to, double *out,
                                   pons_error *err)
{
    const int64_t *extent = box->extent;
    distance_work w = { .box = box, .from = from, .to = to, .out = out };

    w.first = calloc((size_t)extent[0] + 1, sizeof *w.first);
    if (w.first != NULL && tree_init(&w.tree, box)) {
        number_planes(&w);
        add_voxels(&w.tree, box, to);
        parallel_run(extent[0], parallel_piece(extent[1] * extent[2]), measure_planes, &w);
    } else {
        pons_fail(err, PONS_DEVICE, "out of memory for distances of surfaces");
    }
    tree_clear(&w.tree);
    free(w.first);
    return err->status;
}
