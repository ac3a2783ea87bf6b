/*
 * inverse_resample.c - resample a prediction to the grid of its file, plane by plane.
 *
 * If each axis of the preprocessed grid depends on one axis of the file, positions come from
 * tables, and the voxels that a plane completes are a box. In other cases a row of the file
 * crosses the planes at an angle, and each voxel of the row is tested.
 */
#include "data/volume/inverse_resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "base/whole.h"
#include "data/volume/interpolation.h"
#include "data/volume/volume.h"

enum { PIECE = 1 << 14,       /* voxels of a parallel task                                        */
       BLOCK = 64 };          /* channels of a block of put_class and put_regions                 */

struct inverse_resample {
    volume from;              /* extent, affine and inside box; no voxels                         */
    volume_grid grid;
    double m[3][4];           /* voxel of the file to position in 'from'                          */
    bool tabled;
    int separate;             /* axis of 'from' across slices of which the nearest counts; -1     */
    axis_position *at[3];     /* [axis of 'from'] positions by index along axis[a] of the file    */
    int axis[3];
};

/* ---- open ------------------------------------------------------------------------------------ */

/* The only axis of the other grid that a row of 'm' depends on; -1: several. */
static int axis_of(const double row[4])
{
    int axis = -1;

    for (int c = 0; c < 3; c++)
        if (fabs(row[c]) > 1e-7) {
            if (axis >= 0)
                return -1;
            axis = c;
        }
    return axis;
}

static pons_status make_tables(inverse_resample *b, pons_error *err)
{
    b->tabled = true;
    for (int a = 0; a < 3; a++) {
        b->axis[a] = axis_of(b->m[a]);
        b->tabled = b->tabled && b->axis[a] >= 0;
    }
    for (int a = 0; a < 3 && b->tabled; a++) {
        b->at[a] = axis_positions_make(b->m[a][b->axis[a]], b->m[a][3], b->grid.extent[b->axis[a]],
                                       b->from.inside_start[a], b->from.inside_extent[a]);
        if (b->at[a] == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    return PONS_OK;
}

pons_status inverse_resample_open(const volume *from, const volume_grid *grid,
                                  inverse_resample **out, pons_error *err)
{
    double inverse[3][4];
    inverse_resample *b;

    if (!pons_affine_invert((const double (*)[4])from->affine, inverse))
        return pons_fail(err, PONS_DATA, "a volume with a singular affine cannot be resampled");
    b = calloc(1, sizeof *b);
    if (b == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    b->from = *from;
    b->from.voxels = NULL;
    b->grid = *grid;
    b->separate = -1;
    pons_affine_multiply((const double (*)[4])inverse, grid->affine, b->m);
    if (make_tables(b, err) != PONS_OK) {
        inverse_resample_close(b);
        return err->status;
    }
    *out = b;
    return PONS_OK;
}

void inverse_resample_close(inverse_resample *b)
{
    for (int a = 0; b != NULL && a < 3; a++)
        free(b->at[a]);
    free(b);
}

/* Move a position to the nearest voxel, of two the upper. Affines are rounded. */
static void snap_position(axis_position *p)
{
    static const double HALF = 0.5 - 1e-6;

    p->low += p->weight >= HALF;
    p->weight = 0;
}

void inverse_resample_separate(inverse_resample *b, int axis)
{
    b->separate = axis;
    for (int64_t n = 0; axis >= 0 && b->tabled && n < b->grid.extent[b->axis[axis]]; n++)
        snap_position(&b->at[axis][n]);
}

bool inverse_resample_spacing(const inverse_resample *b, double spacing[3])
{
    for (int a = 0; a < 3 && b->tabled; a++) {
        const double (*m)[4] = b->grid.affine;
        int c = b->axis[a];
        spacing[a] = sqrt(m[0][c] * m[0][c] + m[1][c] * m[1][c] + m[2][c] * m[2][c]);
    }
    return b->tabled;
}

pons_status inverse_resample_start(const inverse_resample *b, inverse_resample_kind kind,
                                   float first, float rest, volume *out, pons_error *err)
{
    int channels = kind == INVERSE_RESAMPLE_CLASSES ? 1 : b->from.channels;
    volume made;

    if (pons_volume_init(&made, kind == INVERSE_RESAMPLE_VALUES ? PONS_F32 : PONS_U8, channels,
                         b->grid.extent, err) != PONS_OK)
        return err->status;
    memcpy(made.affine, b->grid.affine, sizeof made.affine);
    if (kind == INVERSE_RESAMPLE_VALUES && (first != 0 || rest != 0)) {
        float *x = made.voxels;
        int64_t count = pons_volume_count(&made);
        for (int64_t n = 0; n < count; n++)
            for (int c = 0; c < channels; c++)
                *x++ = c == 0 ? first : rest;
    }
    *out = made;
    return PONS_OK;
}

/* ---- voxels ---------------------------------------------------------------------------------- */

/* Write the interpolated values of a point, or their decision, to the file's voxel 'out'. */
typedef void voxel_writer(const interpolation_corners *p, const float *corner, int channels,
                          void *out);

static void put_values(const interpolation_corners *p, const float *corner, int channels, void *out)
{
    interpolation_sample(p, corner, channels, out);
}

static void put_class(const interpolation_corners *p, const float *corner, int channels, void *out)
{
    float x[BLOCK], largest = 0;
    int best = 0;

    for (int first = 0; first < channels; first += BLOCK) {
        int count = min_int(channels - first, BLOCK);
        const float *y = p->exact ? corner + first : x;

        if (!p->exact)
            interpolation_sample(p, corner + first, count, x);
        if (first == 0)
            largest = y[0];
        for (int c = 0; c < count; c++)
            if (y[c] > largest) {
                largest = y[c];
                best = first + c;
            }
    }
    *(uint8_t *)out = (uint8_t)best;
}

static void put_above(const interpolation_corners *p, const float *corner, int channels,
                      float limit, void *out)
{
    uint8_t *to = out;
    float x[BLOCK];

    for (int first = 0; first < channels; first += BLOCK) {
        int count = min_int(channels - first, BLOCK);

        interpolation_sample(p, corner + first, count, x);
        for (int c = 0; c < count; c++)
            *to++ = x[c] > limit;
    }
}

static void put_regions(const interpolation_corners *p, const float *corner, int channels,
                        void *out)
{
    put_above(p, corner, channels, 0.5f, out);
}

static void put_logits(const interpolation_corners *p, const float *corner, int channels, void *out)
{
    put_above(p, corner, channels, 0, out);
}

/* ---- planes ---------------------------------------------------------------------------------- */

typedef struct plane_task {
    const inverse_resample *b;
    voxel_writer *voxel_writer;
    const float *values;      /* plane 'base' and the following ones                              */
    int64_t base, first, end;
    int64_t low[3], high[3];  /* box of the file's voxels that these planes may complete          */
    size_t size;              /* bytes of a voxel of 'out'                                        */
    char *out;
} plane_task;

/* True if the last plane that the position needs is among planes first .. end - 1. */
static bool is_completed(const plane_task *p, const axis_position *at)
{
    int64_t last = at->low + (at->weight > 0);

    return last >= p->first && last < p->end;
}

static void crop_box(plane_task *p)
{
    const inverse_resample *b = p->b;
    int axis = b->axis[0];

    if (!b->tabled)
        return;
    while (p->low[axis] < p->high[axis] && !is_completed(p, &b->at[0][p->low[axis]]))
        p->low[axis]++;
    while (p->low[axis] < p->high[axis] && !is_completed(p, &b->at[0][p->high[axis] - 1]))
        p->high[axis]--;
}

/*
 * Narrow a row that crosses planes at an angle to the voxels that may be completed, with a margin
 * of one voxel. At the first and last plane the row extends to its end, since positions are
 * clamped.
 */
static void crop_row(const plane_task *p, int64_t i, int64_t j, int64_t *low, int64_t *high)
{
    const inverse_resample *b = p->b;
    const double *m = b->m[0];
    double start = m[0] * (double)i + m[1] * (double)j + m[3], step = m[2];
    int64_t begin = b->from.inside_start[0], last = begin + b->from.inside_extent[0] - 1;
    double lower = p->first <= begin ? -INFINITY : (double)p->first - 2;
    double upper = p->end > last ? INFINITY : (double)p->end;
    double one, other;

    if (fabs(step) < 1e-9)
        return;
    one = (lower - start) / step;
    other = (upper - start) / step;
    *low = whole_within(floor(fmin(one, other)), *low, *high);
    *high = whole_within(ceil(fmax(one, other)) + 1, *low, *high);
}

static void positions_of_voxel(const inverse_resample *b, int64_t i, int64_t j, int64_t k,
                               axis_position at[3])
{
    int64_t n[3] = { i, j, k };

    if (b->tabled)
        for (int a = 0; a < 3; a++)
            at[a] = b->at[a][n[b->axis[a]]];
    else
        axis_positions_of((const double (*)[4])b->m, i, j, k, b->from.inside_start,
                          b->from.inside_extent, at);
    if (!b->tabled && b->separate >= 0)
        snap_position(&at[b->separate]);
}

static void resample_row(const plane_task *p, int64_t i, int64_t j)
{
    const inverse_resample *b = p->b;
    const int64_t *extent = b->grid.extent;
    int channels = b->from.channels;
    int64_t step[3] = { b->from.extent[1] * b->from.extent[2] * channels,
                        b->from.extent[2] * channels, channels };
    int64_t low = p->low[2], high = p->high[2];
    char *row = p->out + (size_t)((i * extent[1] + j) * extent[2]) * p->size;
    interpolation_corners corners;
    axis_position at[3];

    if (!b->tabled)
        crop_row(p, i, j, &low, &high);
    for (int64_t k = low; k < high; k++) {
        positions_of_voxel(b, i, j, k, at);
        if (at[0].outside || at[1].outside || at[2].outside || !is_completed(p, &at[0]))
            continue;
        interpolation_corners_make(at, step, &corners);
        p->voxel_writer(&corners, p->values + (at[0].low - p->base) * step[0] + at[1].low * step[1]
                        + at[2].low * step[2], channels, row + (size_t)k * p->size);
    }
}

static void resample_rows(void *context, int64_t first, int64_t end)
{
    const plane_task *p = context;
    int64_t count = p->high[1] - p->low[1];

    for (int64_t n = first; n < end; n++)
        resample_row(p, p->low[0] + n / count, p->low[1] + n % count);
}

void inverse_resample_planes(const inverse_resample *b, inverse_resample_kind kind,
                             const float *values, int64_t first, int64_t end, volume *out)
{
    static voxel_writer *const puts[] = { [INVERSE_RESAMPLE_VALUES] = put_values,
                                          [INVERSE_RESAMPLE_CLASSES] = put_class,
                                          [INVERSE_RESAMPLE_REGIONS] = put_regions,
                                          [INVERSE_RESAMPLE_LOGITS] = put_logits };
    plane_task p = { .b = b, .voxel_writer = puts[kind], .values = values, .first = first, .end
        = end,
                     .base = first > 0 ? first - 1 : 0, .out = out->voxels,
                     .size = (out->type == PONS_U8 ? 1 : sizeof *values) * (size_t)out->channels };

    int64_t rows = PIECE / b->grid.extent[2];

    memcpy(p.high, b->grid.extent, sizeof p.high);
    crop_box(&p);
    parallel_run((p.high[0] - p.low[0]) * (p.high[1] - p.low[1]), max_i64(rows, 1),
                 resample_rows, &p);
}
