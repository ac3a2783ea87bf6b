/*
 * distance_transform.c - separable exact distance transform in linear time.
 *
 * Felzenszwalb and Huttenlocher, "Distance Transforms of Sampled Functions", Theory of Computing
 * 8 (2012): the squared distance along a line is the lower envelope of parabolas. Rows come first,
 * then columns of a plane, then lines across planes. The first two passes store the offsets of
 * the nearest voxel of the plane, four bytes a voxel, so that distances are computed from integers.
 * The last pass visits only lines that contain a voxel whose distance is asked.
 */
#include "metric/distance_transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/system/huge_pages.h"
#include "base/thread/parallel.h"

enum { NO_SITE = DISTANCE_EXTENT_MAX, PADDING = 8 }; /* padding keeps lines out of one cache set */

/* The absolute offsets to the nearest site of a plane; j is NO_SITE in a plane without one. */
typedef struct plane_offset {
    uint16_t j, k;
} plane_offset;

typedef struct transform {
    const voxel_box *box;
    uint8_t from, to;
    double weight[3];       /* squared spacings                                                   */
    plane_offset *nearest;  /* [i][j][k]                                                          */
    int64_t *first;         /* [j + 1] first number in 'out' of each j                            */
    double *out;
    _Atomic bool exhausted; /* a thread found no memory                                           */
} transform;

/* ---- lower envelope -------------------------------------------------------------------------- */

typedef struct envelope {
    int64_t count;          /* of sites                                                           */
    int32_t *site;          /* ascending                                                          */
    double *bound;          /* bound[n] is where site n begins to be the nearest                  */
    double *height;         /* [position] of the parabola at 0: value + weight position^2         */
    double *inverse;        /* [difference] 1 / (2 weight difference)                             */
} envelope;

static bool envelope_init(envelope *e, int64_t extent, double weight)
{
    size_t n = (size_t)extent;

    *e = (envelope){ .site = malloc(n * sizeof *e->site), .bound = malloc(n * sizeof *e->bound),
                     .height = malloc(n * sizeof *e->height),
                     .inverse = malloc(n * sizeof *e->inverse) };
    if (e->site == NULL || e->bound == NULL || e->height == NULL || e->inverse == NULL)
        return false;
    for (int64_t d = 1; d < extent; d++)
        e->inverse[d] = 1 / (2 * weight * (double)d);
    return true;
}

static void envelope_clear(envelope *e)
{
    free(e->site);
    free(e->bound);
    free(e->height);
    free(e->inverse);
}

/* Add a site behind all others; sites that it hides leave. */
static void envelope_add(envelope *e, int64_t at, double value, double weight)
{
    double height = value + weight * (double)(at * at), bound = -INFINITY;
    int64_t count = e->count;

    e->height[at] = height;
    while (count > 0) {
        int32_t last = e->site[count - 1];

        bound = (height - e->height[last]) * e->inverse[at - last];
        if (bound > e->bound[count - 1])
            break;
        count--;
    }
    e->site[count] = (int32_t)at;
    e->bound[count] = count > 0 ? bound : -INFINITY;
    e->count = count + 1;
}

/* The site nearest to 'at'; *n is the answer for an earlier position, at first 0. */
static int32_t envelope_find(const envelope *e, int64_t at, int64_t *n)
{
    while (*n + 1 < e->count && e->bound[*n + 1] < (double)at)
        ++*n;
    return e->site[*n];
}

/* ---- planes ---------------------------------------------------------------------------------- */

/* Write the offset along k to the nearest site of each row's voxel, transposed; false: no site. */
static bool scan_row(const uint8_t *bits, uint8_t to, int64_t extent, uint16_t *offset,
                     int64_t stride)
{
    int64_t last = -1;

    for (int64_t k = 0; k < extent; k++) {
        last = (bits[k] & to) != 0 ? k : last;
        offset[k * stride] = (uint16_t)(last >= 0 ? k - last : NO_SITE);
    }
    if (last < 0)
        return false;
    for (int64_t k = last; k >= 0; k--) {
        last = (bits[k] & to) != 0 ? k : last;
        if (last - k < offset[k * stride])
            offset[k * stride] = (uint16_t)(last - k);
    }
    return true;
}

/* Find the nearest site of the plane for the voxels of a column; offset[j] is along k. */
static void scan_column(const transform *t, envelope *e, const uint16_t *offset, int64_t extent,
                        plane_offset *nearest)
{
    int64_t n = 0, row = t->box->extent[2];

    e->count = 0;
    for (int64_t j = 0; j < extent; j++)
        if (offset[j] != NO_SITE)
            envelope_add(e, j, t->weight[2] * offset[j] * offset[j], t->weight[1]);
    for (int64_t j = 0; j < extent; j++) {
        int32_t site = envelope_find(e, j, &n);

        nearest[j * row] = (plane_offset){ (uint16_t)llabs(j - site), offset[site] };
    }
}

static void scan_plane(const transform *t, envelope *e, uint16_t *offset, int64_t i)
{
    int64_t rows = t->box->extent[1], row = t->box->extent[2], stride = rows + PADDING;
    const uint8_t *bits = t->box->bits + i * rows * row;
    plane_offset *nearest = t->nearest + i * rows * row;
    bool sites = false;

    for (int64_t j = 0; j < rows; j++)
        sites = scan_row(bits + j * row, t->to, row, offset + j, stride) || sites;
    for (int64_t n = 0; !sites && n < rows * row; n++)
        nearest[n].j = NO_SITE;
    for (int64_t k = 0; sites && k < row; k++)
        scan_column(t, e, offset + k * stride, rows, nearest + k);
}

static void scan_planes(void *context, int64_t first, int64_t end)
{
    transform *t = context;
    int64_t rows = t->box->extent[1], row = t->box->extent[2];
    uint16_t *offset = malloc((size_t)(row * (rows + PADDING)) * sizeof *offset);
    envelope e;

    if (envelope_init(&e, rows, t->weight[1]) && offset != NULL)
        for (int64_t i = first; i < end; i++)
            scan_plane(t, &e, offset, i);
    else
        t->exhausted = true;
    envelope_clear(&e);
    free(offset);
}

/* ---- lines across planes --------------------------------------------------------------------- */

/* Write the distances of the asked voxels of a line; value[i] is squared and in the plane. */
static double *measure_line(const transform *t, envelope *e, const double *value,
                            const uint8_t *bits, double *out)
{
    int64_t plane = t->box->extent[1] * t->box->extent[2], n = 0;

    e->count = 0;
    for (int64_t i = 0; i < t->box->extent[0]; i++)
        if (value[i] < INFINITY)
            envelope_add(e, i, value[i], t->weight[0]);
    for (int64_t i = 0; i < t->box->extent[0]; i++) {
        if ((bits[i * plane] & t->from) == 0)
            continue;
        int64_t site = envelope_find(e, i, &n);
        *out++ = sqrt(t->weight[0] * (double)((i - site) * (i - site)) + value[site]);
    }
    return out;
}

/* Whether the line across planes at 'bits' has a voxel whose distance is asked. */
static bool line_asks(const transform *t, const uint8_t *bits)
{
    int64_t plane = t->box->extent[1] * t->box->extent[2];

    for (int64_t i = 0; i < t->box->extent[0]; i++)
        if ((bits[i * plane] & t->from) != 0)
            return true;
    return false;
}

/* Write the squared distances within planes of the lines at row j, [k][i]. */
static void gather_lines(const transform *t, int64_t j, double *value)
{
    const int64_t *extent = t->box->extent;
    int64_t stride = extent[0] + PADDING;

    for (int64_t i = 0; i < extent[0]; i++) {
        const plane_offset *row = t->nearest + (i * extent[1] + j) * extent[2];

        for (int64_t k = 0; k < extent[2]; k++) {
            double y = row[k].j, x = row[k].k;
            value[k * stride + i] = row[k].j == NO_SITE ? INFINITY
                                    : t->weight[1] * y * y + t->weight[2] * x * x;
        }
    }
}

static void measure_rows(void *context, int64_t first, int64_t end)
{
    transform *t = context;
    const int64_t *extent = t->box->extent;
    int64_t stride = extent[0] + PADDING;
    double *value = malloc((size_t)(extent[2] * stride) * sizeof *value);
    envelope e;

    if (!envelope_init(&e, extent[0], t->weight[0]) || value == NULL)
        t->exhausted = true;
    for (int64_t j = first; j < end && !t->exhausted; j++) {
        double *out = t->out + t->first[j];

        if (t->first[j] == t->first[j + 1])
            continue;
        gather_lines(t, j, value);
        for (int64_t k = 0; k < extent[2]; k++) {
            const uint8_t *bits = t->box->bits + j * extent[2] + k;
            if (line_asks(t, bits))
                out = measure_line(t, &e, value + k * stride, bits, out);
        }
    }
    envelope_clear(&e);
    free(value);
}

/* ---- transform ------------------------------------------------------------------------------- */

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

/* Number the asked voxels in the order of the last pass, by j. */
static void number_rows(transform *t)
{
    const int64_t *extent = t->box->extent;

    for (int64_t i = 0; i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++)
            t->first[j + 1] += count_bits(t->box->bits + (i * extent[1] + j) * extent[2],
                                          extent[2], t->from);
    for (int64_t j = 0; j < extent[1]; j++)
        t->first[j + 1] += t->first[j];
}

pons_status distance_transform_run(const voxel_box *box, uint8_t from, uint8_t to, double *out,
                                   pons_error *err)
{
    const int64_t *extent = box->extent;
    transform t = { .box = box, .from = from, .to = to, .out = out };

    for (int axis = 0; axis < 3; axis++) {
        t.weight[axis] = box->spacing[axis] * box->spacing[axis];
        if (extent[axis] > DISTANCE_EXTENT_MAX)
            return pons_fail(err, PONS_DATA, "cannot measure distances along %lld voxels, "
                             "expected at most %d", (long long)extent[axis], DISTANCE_EXTENT_MAX);
    }
    t.nearest = huge_pages_alloc((size_t)(extent[0] * extent[1] * extent[2]) * sizeof *t.nearest);
    t.first = calloc((size_t)extent[1] + 1, sizeof *t.first);
    t.exhausted = t.nearest == NULL || t.first == NULL;
    if (!t.exhausted) {
        number_rows(&t);
        parallel_run(extent[0], parallel_piece(extent[1] * extent[2]), scan_planes, &t);
    }
    if (!t.exhausted)
        parallel_run(extent[1], parallel_piece(extent[0] * extent[2]), measure_rows, &t);
    if (t.exhausted)
        pons_fail(err, PONS_DEVICE, "out of memory for distances of surfaces");
    free(t.nearest);
    free(t.first);
    return err->status;
}
