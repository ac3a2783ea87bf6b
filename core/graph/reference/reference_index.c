/*
 * reference_index.c - positions, windows, and the sources of resized and padded axes.
 */
#include <math.h>

#include "base/integer.h"
#include "graph/reference/reference_internal.h"

bool index_next(pons_shape s, int64_t *position)
{
    for (int i = s.rank - 1; i >= 0; i--) {
        if (++position[i] < s.extent[i])
            return true;
        position[i] = 0;
    }
    return false;
}

int64_t index_of(pons_shape s, const int64_t *position)
{
    int64_t index = 0;

    for (int i = 0; i < s.rank; i++)
        index = index * s.extent[i] + position[i];
    return index;
}

/* The position of a linear mode between the sources of element i of m. */
static double linear_source(pons_resize_mode mode, int64_t i, int64_t n, int64_t m)
{
    double at = ((double)i + 0.5) * (double)n / (double)m - 0.5;

    if (mode == PONS_RESIZE_LINEAR_ALIGNED)
        return m > 1 ? (double)(i * (n - 1)) / (double)(m - 1) : 0;
    return at < 0 ? 0 : at;
}

void resize_source(pons_resize_mode mode, int64_t i, int64_t n, int64_t m, int64_t neighbour[2],
                   double *second)
{
    double at = linear_source(mode, i, n, m);

    *second = 0;
    if (mode == PONS_RESIZE_NEAREST)
        neighbour[0] = i * n / m;
    else if (mode == PONS_RESIZE_NEAREST_EXACT)
        neighbour[0] = (2 * i + 1) * n / (2 * m);
    else {
        neighbour[0] = (int64_t)floor(at);
        *second = at - floor(at);
    }
    neighbour[1] = neighbour[0] + 1 < n ? neighbour[0] + 1 : n - 1;
}

int64_t pad_source(pons_pad_mode mode, int64_t i, int64_t low, int64_t step, int64_t n)
{
    i -= low;
    if (mode == PONS_PAD_EDGE)
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    if (mode == PONS_PAD_REFLECT)
        return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    return i < 0 || i % step != 0 || i / step >= n ? -1 : i / step;
}

int64_t pool_window(const pons_pool *p, int axis, int64_t i, int64_t n, int64_t *begin,
                    int64_t *end)
{
    int64_t first = i * p->stride[axis] - p->pad_low[axis], last = first + p->kernel[axis];

    if (last > n + p->pad_high[axis])
        last = n + p->pad_high[axis];
    *begin = max_i64(first, 0);
    *end = min_i64(last, n);
    return last - first;
}
