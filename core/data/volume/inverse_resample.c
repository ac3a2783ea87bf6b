/*
 * inverse_resample.c - a prediction on the grid of its file, from planes as they come.
 *
 * Where each axis of the preprocessed grid depends on one axis of the file, which is nearly always,
 * places come from tables and the voxels that a plane completes are a box. Otherwise a row of the
 * file crosses the planes at a slant, and which of its voxels they complete is asked voxel by
 * voxel.
 */
#include "data/volume/inverse_resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/parallel.h"
#include "base/whole.h"
#include "data/volume/interpolation.h"
#include "data/volume/volume.h"

enum { PIECE = 1 << 14,       /* voxels that a thread takes at a time                             */
       BLOCK = 64 };          /* channels that are decided at a time                              */

struct volume_back {
    volume from;              /* extent, affine and box, no voxels                                */
    volume_grid grid;
    double m[3][4];           /* voxel of the file to position                                    */
    bool tabled;
    place *at[3];             /* by index along axis[a] of the file                               */
    int axis[3];
};

/* ---- open ------------------------------------------------------------------------------------ */

/* The one axis of the other grid that a row of 'm' depends on, or -1. */
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

static pons_status make_tables(volume_back *b, pons_error *err)
{
    b->tabled = true;
    for (int a = 0; a < 3; a++) {
        b->axis[a] = axis_of(b->m[a]);
        b->tabled = b->tabled && b->axis[a] >= 0;
    }
    for (int a = 0; a < 3 && b->tabled; a++) {
        b->at[a] = places_make(b->m[a][b->axis[a]], b->m[a][3], b->grid.extent[b->axis[a]],
                               b->from.inside_start[a], b->from.inside_extent[a]);
        if (b->at[a] == NULL)
            return pons_fail(err, PONS_DEVICE, "out of memory");
    }
    return PONS_OK;
}

pons_status volume_back_open(const volume *from, const volume_grid *grid, volume_back **out,
                             pons_error *err)
{
    double inverse[3][4];
    volume_back *b;

    if (!pons_affine_invert((const double (*)[4])from->affine, inverse))
        return pons_fail(err, PONS_DATA, "a volume with a singular affine cannot be resampled");
    b = calloc(1, sizeof *b);
    if (b == NULL)
        return pons_fail(err, PONS_DEVICE, "out of memory");
    b->from = *from;
    b->from.voxels = NULL;
    b->grid = *grid;
    pons_affine_multiply((const double (*)[4])inverse, grid->affine, b->m);
    if (make_tables(b, err) != PONS_OK) {
        volume_back_close(b);
        return err->status;
    }
    *out = b;
    return PONS_OK;
}

void volume_back_close(volume_back *b)
{
    for (int a = 0; b != NULL && a < 3; a++)
        free(b->at[a]);
    free(b);
}

pons_status volume_back_start(const volume_back *b, volume_back_kind kind, float first,
                              volume *out, pons_error *err)
{
    int channels = kind == VOLUME_BACK_CLASSES ? 1 : b->from.channels;
    volume fresh;

    if (pons_volume_init(&fresh, kind == VOLUME_BACK_VALUES ? PONS_F32 : PONS_U8, channels,
                         b->grid.extent, err) != PONS_OK)
        return err->status;
    memcpy(fresh.affine, b->grid.affine, sizeof fresh.affine);
    if (kind == VOLUME_BACK_VALUES && first != 0) {
        float *x = fresh.voxels;
        int64_t count = pons_volume_count(&fresh);
        for (int64_t n = 0; n < count; n++)
            x[n * channels] = first;
    }
    *out = fresh;
    return PONS_OK;
}

/* ---- one voxel ------------------------------------------------------------------------------- */

/* What becomes of the values at a point, out[...] of the file's voxel. */
typedef void put(const place_corners *p, const float *corner, int channels, void *out);

static void put_values(const place_corners *p, const float *corner, int channels, void *out)
{
    place_sample(p, corner, channels, out);
}

static void put_class(const place_corners *p, const float *corner, int channels, void *out)
{
    float x[BLOCK], largest = 0;
    int best = 0;

    for (int first = 0; first < channels; first += BLOCK) {
        int count = channels - first < BLOCK ? channels - first : BLOCK;
        const float *y = p->exact ? corner + first : x;

        if (!p->exact)
            place_sample(p, corner + first, count, x);
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

static void put_regions(const place_corners *p, const float *corner, int channels, void *out)
{
    uint8_t *to = out;
    float x[BLOCK];

    for (int first = 0; first < channels; first += BLOCK) {
        int count = channels - first < BLOCK ? channels - first : BLOCK;

        place_sample(p, corner + first, count, x);
        for (int c = 0; c < count; c++)
            *to++ = x[c] > 0.5f;
    }
}

/* ---- planes ---------------------------------------------------------------------------------- */

typedef struct piece {
    const volume_back *b;
    put *put;
    const float *values;      /* plane 'base' and the next ones                                   */
    int64_t base, first, end;
    int64_t low[3], high[3];  /* voxels of the file that may lie there: low .. high - 1           */
    size_t size;              /* bytes of a voxel of the file                                     */
    char *out;
} piece;

/* Whether its last plane is one of those that have come. */
static bool completed(const piece *p, const place *at)
{
    int64_t last = at->low + (at->weight > 0);

    return last >= p->first && last < p->end;
}

static void narrow(piece *p)
{
    const volume_back *b = p->b;
    int axis = b->axis[0];

    if (!b->tabled)
        return;
    while (p->low[axis] < p->high[axis] && !completed(p, &b->at[0][p->low[axis]]))
        p->low[axis]++;
    while (p->low[axis] < p->high[axis] && !completed(p, &b->at[0][p->high[axis] - 1]))
        p->high[axis]--;
}

/*
 * Part of a row that crosses planes at a slant: with a voxel to spare on both sides, and to the
 * row's ends where positions beyond the box are taken into it.
 */
static void narrow_row(const piece *p, int64_t i, int64_t j, int64_t *low, int64_t *high)
{
    const volume_back *b = p->b;
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

static void places_of_voxel(const volume_back *b, int64_t i, int64_t j, int64_t k, place at[3])
{
    int64_t n[3] = { i, j, k };

    if (b->tabled)
        for (int a = 0; a < 3; a++)
            at[a] = b->at[a][n[b->axis[a]]];
    else
        places_of((const double (*)[4])b->m, i, j, k, b->from.inside_start, b->from.inside_extent,
                  at);
}

static void row_back(const piece *p, int64_t i, int64_t j)
{
    const volume_back *b = p->b;
    const int64_t *extent = b->grid.extent;
    int channels = b->from.channels;
    int64_t step[3] = { b->from.extent[1] * b->from.extent[2] * channels,
                        b->from.extent[2] * channels, channels };
    int64_t low = p->low[2], high = p->high[2];
    char *row = p->out + (size_t)((i * extent[1] + j) * extent[2]) * p->size;
    place_corners corners;
    place at[3];

    if (!b->tabled)
        narrow_row(p, i, j, &low, &high);
    for (int64_t k = low; k < high; k++) {
        places_of_voxel(b, i, j, k, at);
        if (at[0].outside || at[1].outside || at[2].outside || !completed(p, &at[0]))
            continue;
        place_corners_make(at, step, &corners);
        p->put(&corners, p->values + (at[0].low - p->base) * step[0] + at[1].low * step[1]
               + at[2].low * step[2], channels, row + (size_t)k * p->size);
    }
}

static void rows_back(void *context, int64_t first, int64_t end)
{
    const piece *p = context;
    int64_t count = p->high[1] - p->low[1];

    for (int64_t n = first; n < end; n++)
        row_back(p, p->low[0] + n / count, p->low[1] + n % count);
}

void volume_back_planes(const volume_back *b, volume_back_kind kind, const float *values,
                        int64_t first, int64_t end, volume *out)
{
    static put *const puts[] = { [VOLUME_BACK_VALUES] = put_values,
                                 [VOLUME_BACK_CLASSES] = put_class,
                                 [VOLUME_BACK_REGIONS] = put_regions };
    piece p = { .b = b, .put = puts[kind], .values = values, .first = first, .end = end,
                .base = first > 0 ? first - 1 : 0, .out = out->voxels,
                .size = (out->type == PONS_U8 ? 1 : sizeof *values) * (size_t)out->channels };

    int64_t rows = PIECE / b->grid.extent[2];

    memcpy(p.high, b->grid.extent, sizeof p.high);
    narrow(&p);
    parallel_run((p.high[0] - p.low[0]) * (p.high[1] - p.low[1]), rows > 1 ? rows : 1, rows_back,
                 &p);
}

pons_status volume_bring_back(const volume *v, const volume_grid *grid, volume_back_kind kind,
                              float first, volume *out, pons_error *err)
{
    volume_back *b;

    if (volume_back_open(v, grid, &b, err) != PONS_OK)
        return err->status;
    if (volume_back_start(b, kind, first, out, err) == PONS_OK)
        volume_back_planes(b, kind, v->voxels, 0, v->extent[0], out);
    volume_back_close(b);
    return err->status;
}
