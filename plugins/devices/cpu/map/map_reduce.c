/*
 * map_reduce.c - reductions: lanes over tiles, the lanes of a block to partial results, partial
 * results in a tree.
 *
 * Each lane has an accumulator, so that kept inner axes (channels) need no treatment while tiles
 * run. At the end of a block the accumulators are folded axis by axis, always in the same order.
 * Moments use Welford's method in each lane; lanes and blocks are merged by their means and sums of
 * squared deviations.
 */
#include "cpu/map/map_internal.h"

#include <math.h>
#include <string.h>

/* ---- prepare --------------------------------------------------------------------------------- */

static int fold_point(const map_fold *fold, int lane, int *index)
{
    int kept = 0;

    for (int d = fold->dimensions - 1; d >= 0; d--) {
        index[d] = lane % fold->extent[d];
        lane /= fold->extent[d];
    }
    for (int d = 0; d < fold->dimensions; d++)
        if (fold->kept[d])
            kept = kept * fold->extent[d] + index[d];
    return kept;
}

/* Offsets of the kept elements of a tile with 'box' elements of the cut axis. */
static bool fold_make(map_plan *plan, map_reduce *r, map_fold *fold, int box)
{
    int index[PONS_MAP_AXES + 1], first = r->rows > 1;
    int ragged = plan->map->segment_count > 0;

    *fold = (map_fold){ .dimensions = first, .lanes = 1, .kept_count = 1 };
    if (first) {
        fold->extent[0] = plan->rows;
        fold->kept[0] = r->to[0].channel != 0;
    }
    for (int a = plan->cut; a < plan->axes; a++) {
        fold->kept[fold->dimensions] = !ragged && r->to[0].stride[a] != 0;
        fold->extent[fold->dimensions++] = a == plan->cut ? box : (int)plan->extent[a];
    }
    for (int d = 0; d < fold->dimensions; d++) {
        fold->lanes *= fold->extent[d];
        fold->kept_count *= fold->kept[d] ? fold->extent[d] : 1;
    }
    fold->key = map_allocate(plan, (size_t)fold->lanes, sizeof *fold->key);
    fold->dense = map_allocate(plan, (size_t)fold->kept_count, sizeof *fold->dense);
    for (int k = 0; k < 2; k++)
        fold->to[k] = map_allocate(plan, (size_t)fold->kept_count, sizeof *fold->to[k]);
    if (fold->key == NULL || fold->dense == NULL || fold->to[0] == NULL || fold->to[1] == NULL)
        return false;
    for (int i = 0; i < fold->lanes; i++) {
        int64_t to[2] = { 0, 0 }, dense = 0;
        int kept = fold_point(fold, i, index);
        for (int d = first; d < fold->dimensions; d++) {
            int a = plan->cut + d - first;
            to[0] += fold->kept[d] ? index[d] * r->to[0].stride[a] : 0;
            to[1] += fold->kept[d] ? index[d] * r->to[1].stride[a] : 0;
            dense += index[d] * r->dense_stride[a];
        }
        if (first && fold->kept[0]) {
            to[0] += index[0] * r->to[0].channel;
            to[1] += index[0] * r->to[1].channel;
            dense += index[0] * r->dense_channel;
        }
        fold->key[i] = (int16_t)kept;
        fold->to[0][kept] = to[0];
        fold->to[1][kept] = to[1];
        fold->dense[kept] = dense;
    }
    return true;
}

/* Strides of a dense array of all kept elements, for moments in groups of channels. */
static void dense_make(const map_plan *plan, map_reduce *r)
{
    int64_t stride = 1;

    r->group_extent = 0;
    if (r->rows > 1 && r->to[0].channel != 0) {
        r->dense_channel = 1;
        r->group_extent = stride = plan->rows;
    }
    for (int a = plan->axes - 1; a >= 0; a--) {
        if (r->to[0].stride[a] == 0)
            continue;
        r->group_extent = r->group_extent == 0 ? plan->extent[a] : r->group_extent;
        r->dense_stride[a] = stride;
        stride *= plan->extent[a];
    }
    r->group_extent = r->group_extent == 0 ? 1 : r->group_extent;
    r->dense_count = stride;
    for (int a = 0; a <= plan->cut; a++)
        r->dense_outer[a] = r->dense_stride[a] * (a == plan->cut ? plan->box : 1);
}

bool map_reduce_make(map_plan *plan, map_reduce *r)
{
    int box = (int)plan->box, end = plan->end_points / plan->inner, period;
    bool moments = r->kind == PONS_REDUCE_MOMENTS, ragged = plan->map->segment_count > 0;

    dense_make(plan, r);
    r->cut_kept = !ragged && r->to[0].stride[plan->cut] != 0;
    period = !moments || r->whole ? plan->cycle : ragged ? 0 : plan->period;
    r->by_period = !r->cut_kept && period > 0;
    if (r->by_period) {
        box = period / plan->inner;
        end = plan->end_points % period / plan->inner;
        end = end > 0 ? end : 1;
    }
    r->lanes = !r->by_period ? plan->row : moments ? period : plan->cycle_lanes;
    r->pitch = r->lanes * (moments ? 4 : 1);
    return fold_make(plan, r, &r->fold[0], box) && fold_make(plan, r, &r->fold[1], end);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

void map_reduce_begin(const map_run *run, map_worker *worker)
{
    static const float first[] = { [PONS_REDUCE_SUM] = 0, [PONS_REDUCE_MAX] = -INFINITY,
                                   [PONS_REDUCE_MIN] = INFINITY, [PONS_REDUCE_MOMENTS] = 0 };

    for (int k = 0; k < 2; k++)
        worker->tiles[k] = worker->periods[k] = worker->cycles[k] = 0;
    for (int i = 0; i < run->pass->reduce_count; i++) {
        const map_reduce *r = run->pass->reduce[i];
        run->plan->lanes->fill(worker->buffers + r->accumulator, first[r->kind],
                               r->rows * r->pitch);
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static double reduce_two(pons_reduction_kind kind, double a, double b)
{
    bool other = (kind == PONS_REDUCE_MAX ? b > a : b < a) || b != b;

    return kind == PONS_REDUCE_SUM ? a + b : other ? b : a;
}

/* x[before][n][after] -> x[before][after], by pairwise halving. */
static void fold_axis(pons_reduction_kind kind, float *x, int before, int n, int after)
{
    for (int i = 0; i < before; i++) {
        float *from = x + (size_t)i * (size_t)n * (size_t)after;
        for (int left = n; left > 1; left = (left + 1) / 2) {
            int half = (left + 1) / 2, count = (left - half) * after;
            float *upper = from + half * after;
            if (kind == PONS_REDUCE_SUM || kind == PONS_REDUCE_MOMENTS)
                for (int k = 0; k < count; k++)
                    from[k] += upper[k];
            else
                for (int k = 0; k < count; k++)
                    from[k] = (float)reduce_two(kind, (double)from[k], (double)upper[k]);
        }
        memmove(x + (size_t)i * (size_t)after, from, (size_t)after * sizeof *x);
    }
}

/* Fold lanes into kept elements, from the last axis to the first. */
static void fold_run(const map_fold *fold, pons_reduction_kind kind, float *x)
{
    int after = 1, before = fold->lanes;

    for (int d = fold->dimensions - 1; d >= 0; d--) {
        before /= fold->extent[d];
        if (fold->kept[d])
            after *= fold->extent[d];
        else
            fold_axis(kind, x, before, fold->extent[d], after);
    }
}

/* Copy the lanes of all channels without the gaps between channels. */
static void compact_lanes(const map_reduce *r, const map_fold *fold, const float *from, float *to)
{
    size_t n = (size_t)fold->lanes / (size_t)r->rows;

    for (int i = 0; i < r->rows; i++)
        memcpy(to + (size_t)i * n, from + (size_t)i * (size_t)r->pitch, n * sizeof *to);
}

/* Join the accumulators past the end of the cycle with those at its begin. */
static void join_strips(const map_plan *plan, const map_reduce *r, float *x)
{
    for (int i = 0; i < r->rows && r->lanes > plan->cycle; i++, x += r->pitch)
        for (int k = 0; k < MAP_STRIP - MAP_ROW; k++)
            x[k] = (float)reduce_two(r->kind, (double)x[k], (double)x[plan->cycle + k]);
}

/*
 * Mean and sum of squared deviations of the kept elements, from lanes with 'numbers' elements each.
 * Returns the elements of a kept element.
 */
static double fold_moments(const map_reduce *r, const map_fold *fold, const float *accumulator,
                           int numbers, float *spare, float *mean, float *square)
{
    float *lane_mean = spare, *work = spare + (size_t)r->rows * (size_t)r->lanes;
    float share = (float)fold->kept_count / (float)fold->lanes, count = (float)numbers;

    compact_lanes(r, fold, accumulator, lane_mean);
    memcpy(work, lane_mean, (size_t)fold->lanes * sizeof *work);
    fold_run(fold, PONS_REDUCE_SUM, work);
    for (int i = 0; i < fold->kept_count; i++)
        mean[i] = work[i] * share;
    compact_lanes(r, fold, accumulator + r->lanes, work);
    for (int i = 0; i < fold->lanes; i++) {
        float d = lane_mean[i] - mean[fold->key[i]];
        work[i] += count * d * d;
    }
    fold_run(fold, PONS_REDUCE_SUM, work);
    memcpy(square, work, (size_t)fold->kept_count * sizeof *square);
    return (double)numbers * (fold->lanes / fold->kept_count);
}

typedef struct moments {
    double count, mean, square;
} moments;

static moments merge_moments(moments a, moments b)
{
    double n = a.count + b.count, d = b.mean - a.mean;

    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    return (moments){ n, a.mean + d * (b.count / n),
                      a.square + b.square + d * d * (a.count * b.count / n) };
}

static double block_moments(const map_run *run, map_worker *worker, const map_reduce *r,
                            const map_tile *tile, float *partial)
{
    size_t kept = (size_t)r->fold[0].kept_count;
    const float *a = worker->buffers + r->accumulator;
    const int *numbers = r->whole ? worker->cycles : r->by_period ? worker->periods
                                                                  : worker->tiles;
    map_fold fold[2] = { r->fold[0], r->fold[1] };
    float *other = worker->spare + 2 * (size_t)r->rows * (size_t)r->lanes;
    double n[2] = { 0, 0 };

    if (run->plan->map->segment_count > 0)
        fold[0].extent[0] = fold[0].lanes = tile->points;
    if (numbers[0] > 0)
        n[0] = fold_moments(r, &fold[0], a, numbers[0], worker->spare, partial, partial + kept);
    if (numbers[1] == 0)
        return n[0];
    n[1] = fold_moments(r, &fold[1], a + 2 * r->lanes, numbers[1], worker->spare, other,
                        other + kept);
    for (int i = 0; i < fold[1].kept_count; i++) {
        moments both = merge_moments((moments){ n[0], partial[i], partial[kept + (size_t)i] },
                                     (moments){ n[1], other[i], other[kept + (size_t)i] });
        partial[i] = (float)both.mean;
        partial[kept + (size_t)i] = (float)both.square;
    }
    return n[0] + n[1];
}

void map_reduce_block(const map_run *run, map_worker *worker, const map_tile *tile, float *partial,
                      double *count)
{
    for (int i = 0; i < run->pass->reduce_count; i++) {
        const map_reduce *r = run->pass->reduce[i];
        const map_fold *fold = &r->fold[r->cut_kept && tile->end];
        if (r->kind == PONS_REDUCE_MOMENTS) {
            count[i] = block_moments(run, worker, r, tile, partial + r->partial);
            continue;
        }
        if (r->by_period)
            join_strips(run->plan, r, worker->buffers + r->accumulator);
        compact_lanes(r, fold, worker->buffers + r->accumulator, worker->spare);
        fold_run(fold, r->kind, worker->spare);
        memcpy(partial + r->partial, worker->spare, (size_t)fold->kept_count * sizeof *partial);
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

typedef struct partials {
    const map_pass *pass;
    const map_reduce *reduce;
    const float *first;      /* element of the first block                                        */
    const double *count;
    size_t kept;
} partials;

/* sum(a, n) = sum(a, p) + sum(a + p, n - p), p the largest power of two below n. */
static int64_t power_below(int64_t n)
{
    int64_t p = 1;

    while (2 * p < n)
        p *= 2;
    return p;
}

static double tree_reduce(const partials *x, int64_t first, int64_t n)
{
    int64_t p = power_below(n);

    if (n == 1)
        return (double)x->first[(size_t)first * x->pass->partial_floats];
    return reduce_two(x->reduce->kind, tree_reduce(x, first, p), tree_reduce(x, first + p, n - p));
}

static moments tree_moments(const partials *x, int64_t first, int64_t n)
{
    int64_t p = power_below(n);
    const float *at = x->first + (size_t)first * x->pass->partial_floats;

    if (n == 1)
        return (moments){ x->count[first * x->pass->reduce_count], at[0], at[x->kept] };
    return merge_moments(tree_moments(x, first, p), tree_moments(x, first + p, n - p));
}

static void write_moments(const map_run *run, const map_reduce *r, const map_tile *tile,
                          int element, const map_fold *fold, moments m)
{
    double variance = m.count > 0 ? m.square / m.count : 0;
    int64_t dense = fold->dense[element];
    float *both = (float *)((char *)run->call->scratch + r->dense_at);

    if (r->groups == 0) {
        for (int k = 0; k < 2; k++)
            map_number_store(r->to[k].type, run->call->output[r->to[k].tensor],
                             map_access_first(&r->to[k], tile) + fold->to[k][element],
                             (float)(k == 0 ? m.mean : variance));
        return;
    }
    for (int a = 0; a <= run->plan->cut; a++)
        dense += tile->at[a] * r->dense_outer[a];
    both[2 * dense] = (float)m.mean;
    both[2 * dense + 1] = (float)variance;
}

void map_reduce_join(const map_run *run, int64_t group, int64_t blocks, const float *partial,
                     const double *count)
{
    static const double none[] = { [PONS_REDUCE_SUM] = 0, [PONS_REDUCE_MAX] = -INFINITY,
                                   [PONS_REDUCE_MIN] = INFINITY, [PONS_REDUCE_MOMENTS] = 0 };
    const map_pass *pass = run->pass;
    map_tile tile = { .segment = group };

    if (run->plan->map->segment_count == 0)
        map_tile_find(run->plan, pass, group, 0, &tile);
    for (int i = 0; i < pass->reduce_count; i++) {
        const map_reduce *r = pass->reduce[i];
        const map_fold *fold = &r->fold[r->cut_kept && tile.end];
        int64_t first = map_access_first(&r->to[0], &tile);
        for (int k = 0; k < fold->kept_count; k++) {
            partials x = { pass, r, partial + r->partial + k, count + i,
                           (size_t)r->fold[0].kept_count };
            if (r->kind == PONS_REDUCE_MOMENTS)
                write_moments(run, r, &tile, k, fold,
                              blocks > 0 ? tree_moments(&x, 0, blocks) : (moments){ 0, 0, 0 });
            else
                map_number_store(r->to[0].type, run->call->output[r->to[0].tensor],
                                 first + fold->to[0][k],
                                 (float)(blocks > 0 ? tree_reduce(&x, 0, blocks) : none[r->kind]));
        }
    }
}

/* ---- moments in groups of channels ----------------------------------------------------------- */

/* Output offset of an element of the dense array. */
static int64_t dense_offset(const map_plan *plan, const map_reduce *r, const map_access *to,
                            int64_t dense)
{
    int64_t at = to->offset;

    if (r->dense_channel != 0) {
        at += dense % plan->rows * to->channel;
        dense /= plan->rows;
    }
    for (int a = plan->axes - 1; a >= 0; a--)
        if (r->dense_stride[a] != 0) {
            at += dense % plan->extent[a] * to->stride[a];
            dense /= plan->extent[a];
        }
    return at;
}

/* Merge 'n' means and variances of equally many elements. */
static void merge_equal(const float *both, int64_t n, float result[2])
{
    double mean = 0, variance = 0;

    for (int64_t i = 0; i < n; i++)
        mean += (double)both[2 * i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)both[2 * i] - mean;
        variance += (double)both[2 * i + 1] + d * d;
    }
    result[0] = (float)mean;
    result[1] = (float)(variance / (double)n);
}

void map_reduce_groups(const map_run *run)
{
    for (int i = 0; i < run->pass->reduce_count; i++) {
        const map_reduce *r = run->pass->reduce[i];
        const float *both = (const float *)((char *)run->call->scratch + r->dense_at);
        int64_t size;
        if (r->groups == 0)
            continue;
        size = r->group_extent / r->groups > 0 ? r->group_extent / r->groups : 1;
        for (int64_t e = 0; e < r->dense_count; e += size) {
            float result[2];
            merge_equal(both + 2 * e, size, result);
            for (int64_t k = e; k < e + size; k++)
                for (int j = 0; j < 2; j++)
                    map_number_store(r->to[j].type, run->call->output[r->to[j].tensor],
                                     dense_offset(run->plan, r, &r->to[j], k), result[j]);
        }
    }
}
