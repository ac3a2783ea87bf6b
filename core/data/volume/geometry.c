/*
 * geometry.c - affines, orientation, and the moves that keep every voxel's value: reorder axes,
 * flip, crop, pad.
 *
 * resample.c interpolates. Loops over a volume run in parallel over planes along i.
 */
#include "data/volume/geometry.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "base/thread/parallel.h"
#include "data/volume/volume.h"

/* ---- affines --------------------------------------------------------------------------------- */

void pons_affine_multiply(const double a[3][4], const double b[3][4], double out[3][4])
{
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            out[r][c] = a[r][0] * b[0][c] + a[r][1] * b[1][c] + a[r][2] * b[2][c] +
                        (c == 3 ? a[r][3] : 0);
}

bool pons_affine_invert(const double a[3][4], double out[3][4])
{
    double cofactor[3][3], det = 0;

    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++) {
            int r1 = (r + 1) % 3, r2 = (r + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
            cofactor[r][c] = a[r1][c1] * a[r2][c2] - a[r1][c2] * a[r2][c1];
        }
    for (int c = 0; c < 3; c++)
        det += a[0][c] * cofactor[0][c];
    if (!(fabs(det) > 0) || !isfinite(det))
        return false;
    for (int r = 0; r < 3; r++) {
        for (int c = 0; c < 3; c++)
            out[r][c] = cofactor[c][r] / det;
        out[r][3] = -(out[r][0] * a[0][3] + out[r][1] * a[1][3] + out[r][2] * a[2][3]);
    }
    return true;
}

/* The rotation nearest to the normalised columns, by Newton's iteration r = (r + r^-T) / 2. */
static void polar_rotation(const double affine[3][4], double r[3][4])
{
    memset(r, 0, 12 * sizeof(double));
    for (int c = 0; c < 3; c++) {
        double norm = sqrt(affine[0][c] * affine[0][c] + affine[1][c] * affine[1][c] +
                           affine[2][c] * affine[2][c]);
        for (int i = 0; i < 3; i++)
            r[i][c] = norm > 0 ? affine[i][c] / norm : 0;
    }
    for (int step = 0; step < 50; step++) {
        double inverse[3][4], change = 0;

        if (!pons_affine_invert((const double (*)[4])r, inverse))
            return;
        for (int i = 0; i < 3; i++)
            for (int c = 0; c < 3; c++) {
                double next = (r[i][c] + inverse[c][i]) / 2;
                change = fmax(change, fabs(next - r[i][c]));
                r[i][c] = next;
            }
        if (change < 1e-15)
            return;
    }
}

/* The column with the largest element chooses its world axis first, as in nibabel. */
static void orientation_of(const double affine[3][4], int world[3], bool negative[3])
{
    double r[3][4], strength[3];
    bool taken[3] = { false, false, false }, done[3] = { false, false, false };

    polar_rotation(affine, r);
    for (int a = 0; a < 3; a++)
        strength[a] = fmax(fabs(r[0][a]), fmax(fabs(r[1][a]), fabs(r[2][a])));
    for (int turn = 0; turn < 3; turn++) {
        int axis = -1, best = -1;

        for (int a = 0; a < 3; a++)
            if (!done[a] && (axis < 0 || strength[a] > strength[axis]))
                axis = a;
        for (int w = 0; w < 3; w++)
            if (!taken[w] && (best < 0 || fabs(r[w][axis]) > fabs(r[best][axis])))
                best = w;
        done[axis] = taken[best] = true;
        world[axis] = best;
        negative[axis] = r[best][axis] < 0;
    }
}

void pons_volume_orientation(const pons_volume *v, int world[3], bool negative[3])
{
    orientation_of((const double (*)[4])v->affine, world, negative);
}

void volume_orientation_codes(const double affine[3][4], char codes[4])
{
    static const char letters[3][2] = { { 'R', 'L' }, { 'A', 'P' }, { 'S', 'I' } };
    int world[3];
    bool negative[3];

    orientation_of(affine, world, negative);
    for (int a = 0; a < 3; a++)
        codes[a] = letters[world[a]][negative[a]];
    codes[3] = '\0';
}

/* ---- grids ----------------------------------------------------------------------------------- */

/* Sheared axes cannot be written as a quaternion (qform). */
static bool is_sheared(const volume_grid *g)
{
    for (int a = 0; a < 3; a++) {
        int b = (a + 1) % 3;
        double dot = g->affine[0][a] * g->affine[0][b] + g->affine[1][a] * g->affine[1][b] +
                     g->affine[2][a] * g->affine[2][b];

        if (fabs(dot) > 1e-5 * g->spacing[a] * g->spacing[b])
            return true;
    }
    return false;
}

void volume_grid_of(const volume *v, volume_grid *grid)
{
    memset(grid, 0, sizeof *grid);
    memcpy(grid->extent, v->extent, sizeof grid->extent);
    memcpy(grid->affine, v->affine, sizeof grid->affine);
    memcpy(grid->qform, v->affine, sizeof grid->qform);
    memcpy(grid->sform, v->affine, sizeof grid->sform);
    pons_volume_spacing(v, grid->spacing);
    grid->qform_code = is_sheared(grid) ? 0 : 1;
    grid->sform_code = 1;
    grid->units = 2; /* millimetres */
    grid->axes = 3;
}

static double corner_distance(const volume_grid *a, const volume_grid *b)
{
    double largest = 0;

    for (int corner = 0; corner < 8; corner++) {
        double square = 0;

        for (int r = 0; r < 3; r++) {
            double d = a->affine[r][3] - b->affine[r][3];

            for (int c = 0; c < 3; c++)
                if (corner >> c & 1)
                    d += (a->affine[r][c] - b->affine[r][c]) * (double)(a->extent[c] - 1);
            square += d * d;
        }
        largest = fmax(largest, sqrt(square));
    }
    return largest;
}

pons_status volume_grid_compare(const volume_grid *a, const char *name, const volume_grid *b,
                                const char *other, pons_error *err)
{
    double smallest = fmin(b->spacing[0], fmin(b->spacing[1], b->spacing[2])), distance;

    if (memcmp(a->extent, b->extent, sizeof a->extent))
        return pons_fail(err, PONS_DATA,
                         "'%s' has extent %lld x %lld x %lld, expected %lld x %lld x %lld as in "
                         "'%s'", name, (long long)a->extent[0], (long long)a->extent[1],
                         (long long)a->extent[2], (long long)b->extent[0],
                         (long long)b->extent[1], (long long)b->extent[2], other);
    for (int i = 0; i < 3; i++)
        if (fabs(a->spacing[i] - b->spacing[i]) > 0.01 * b->spacing[i])
            return pons_fail(err, PONS_DATA, "'%s' has spacing %.6g x %.6g x %.6g mm, expected "
                             "%.6g x %.6g x %.6g mm as in '%s'", name, a->spacing[0],
                             a->spacing[1], a->spacing[2], b->spacing[0], b->spacing[1],
                             b->spacing[2], other);
    distance = corner_distance(a, b);
    if (!(distance <= 0.01 * smallest)) {
        char codes[4], expected[4], spacing[160] = "";

        volume_orientation_codes((const double (*)[4])a->affine, codes);
        volume_orientation_codes((const double (*)[4])b->affine, expected);
        if (memcmp(a->spacing, b->spacing, sizeof a->spacing) != 0)
            snprintf(spacing, sizeof spacing, "; spacing %.9g x %.9g x %.9g mm, expected %.9g x "
                     "%.9g x %.9g mm", a->spacing[0], a->spacing[1], a->spacing[2], b->spacing[0],
                     b->spacing[1], b->spacing[2]);
        return pons_fail(err, PONS_DATA,
                         "'%s' lies elsewhere than '%s': origin %.6g %.6g %.6g (%s), expected "
                         "%.6g %.6g %.6g (%s)%s; corners differ by %.4g mm", name, other,
                         a->affine[0][3], a->affine[1][3], a->affine[2][3], codes,
                         b->affine[0][3], b->affine[1][3], b->affine[2][3], expected, spacing,
                         distance);
    }
    return PONS_OK;
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* A strided copy of voxels: extents of the result; steps in voxels; 'from' at its first voxel. */
typedef struct voxel_move {
    int64_t extent[3], from_step[3], to_step[3];
    size_t voxel_size;
    const char *from;
    char *to;
} voxel_move;

static size_t voxel_size(const volume *v)
{
    return pons_volume_size(v) / (size_t)pons_volume_count(v);
}

static void copy_voxel_block(const voxel_move *m, const int64_t low[3], const int64_t high[3])
{
    size_t size = m->voxel_size;

    for (int64_t i = low[0]; i < high[0]; i++)
        for (int64_t j = low[1]; j < high[1]; j++) {
            const char *f = m->from + (ptrdiff_t)(i * m->from_step[0] + j * m->from_step[1] +
                                               low[2] * m->from_step[2]) * (ptrdiff_t)size;
            char *t = m->to + (ptrdiff_t)(i * m->to_step[0] + j * m->to_step[1] + low[2]) *
                           (ptrdiff_t)size;
            int64_t count = high[2] - low[2];

            if (m->from_step[2] == 1)
                memcpy(t, f, (size_t)count * size);
            else if (size == 4)
                for (int64_t k = 0; k < count; k++)
                    memcpy(t + 4 * k, f + (ptrdiff_t)(k * m->from_step[2]) * 4, 4);
            else
                for (int64_t k = 0; k < count; k++)
                    memcpy(t + (size_t)k * size,
                           f + (ptrdiff_t)(k * m->from_step[2]) * (ptrdiff_t)size, size);
        }
}

enum { SIDE = 16 };

/* Copy planes of the result in blocks of SIDE, which fit the cache where innermost axes differ. */
static void copy_moved(void *context, int64_t first, int64_t end)
{
    const voxel_move *m = context;
    int64_t width = m->from_step[2] == 1 ? m->extent[2] : SIDE, low[3], high[3];

    for (low[0] = first; low[0] < end; low[0] = high[0]) {
        high[0] = min_i64(low[0] + SIDE, end);
        for (low[1] = 0; low[1] < m->extent[1]; low[1] = high[1]) {
            high[1] = min_i64(low[1] + SIDE, m->extent[1]);
            for (low[2] = 0; low[2] < m->extent[2]; low[2] = high[2]) {
                high[2] = min_i64(low[2] + width, m->extent[2]);
                copy_voxel_block(m, low, high);
            }
        }
    }
}

/* Exchange two rows of 'size' bytes. */
static void swap_rows(char *a, char *b, size_t size)
{
    char kept[4096];

    while (size) {
        size_t part = size < sizeof kept ? size : sizeof kept;

        memcpy(kept, a, part);
        memcpy(a, b, part);
        memcpy(b, kept, part);
        a += part;
        b += part;
        size -= part;
    }
}

static void reverse_row(char *row, int64_t count, size_t voxel)
{
    char *last = row + (size_t)(count - 1) * voxel;

    if (voxel == 4)
        for (; row < last; row += 4, last -= 4) {
            uint32_t a, b;

            memcpy(&a, row, 4);
            memcpy(&b, last, 4);
            memcpy(row, &b, 4);
            memcpy(last, &a, 4);
        }
    else
        for (; row < last; row += voxel, last -= voxel)
            swap_rows(row, last, voxel);
}

typedef struct mirroring {
    volume *v;
    const bool *flip;         /* [3] */
} mirroring;

/* Mirror in place. Each pair of rows that change places is handled at the earlier row. */
static void mirror_rows(void *context, int64_t first, int64_t end)
{
    const mirroring *m = context;
    const int64_t *n = m->v->extent;
    const bool *flip = m->flip;
    size_t voxel = voxel_size(m->v), size = (size_t)n[2] * voxel;

    for (int64_t row = first * n[1]; row < end * n[1]; row++) {
        int64_t i = row / n[1], j = row % n[1];
        int64_t other = (flip[0] ? n[0] - 1 - i : i) * n[1] + (flip[1] ? n[1] - 1 - j : j);
        char *a = (char *)m->v->voxels + (size_t)row * size;
        char *b = (char *)m->v->voxels + (size_t)other * size;

        if (row < other)
            swap_rows(a, b, size);
        if (row <= other && flip[2])
            reverse_row(a, n[2], voxel);
        if (row < other && flip[2])
            reverse_row(b, n[2], voxel);
    }
}

/* Set affine and inside box of 'out', whose axis a is axis order[a] of 'v', flipped if flip[a]. */
static void set_reoriented_position(const volume *v, const int order[3], const bool flip[3],
                                    volume *out)
{
    for (int r = 0; r < 3; r++)
        out->affine[r][3] = v->affine[r][3];
    for (int a = 0; a < 3; a++) {
        int o = order[a];
        int64_t last = v->extent[o] - 1;

        for (int r = 0; r < 3; r++) {
            out->affine[r][a] = flip[a] ? -v->affine[r][o] : v->affine[r][o];
            out->affine[r][3] += flip[a] ? v->affine[r][o] * (double)last : 0;
        }
        out->inside_extent[a] = v->inside_extent[o];
        out->inside_start[a] = flip[a] ? v->extent[o] - v->inside_start[o] - v->inside_extent[o]
                                       : v->inside_start[o];
    }
}

pons_status pons_volume_reorient(pons_volume *v, const int order[3], const bool flip[3],
                                 pons_error *err)
{
    int64_t step[3] = { v->extent[1] * v->extent[2], v->extent[2], 1 }, start = 0, extent[3];
    size_t voxel = voxel_size(v);
    volume out;
    voxel_move m;
    pons_status status;

    if (order[0] == 0 && order[1] == 1 && order[2] == 2) {
        if (!flip[0] && !flip[1] && !flip[2])
            return PONS_OK;
        parallel_run(v->extent[0], parallel_piece(step[0]), mirror_rows, &(mirroring){ v, flip });
        out = *v;
        set_reoriented_position(v, order, flip, &out);
        *v = out;
        return PONS_OK;
    }
    for (int a = 0; a < 3; a++)
        extent[a] = v->extent[order[a]];
    status = pons_volume_init(&out, v->type, v->channels, extent, err);
    if (status)
        return status;
    set_reoriented_position(v, order, flip, &out);
    for (int a = 0; a < 3; a++) {
        int o = order[a];

        m.extent[a] = extent[a];
        m.from_step[a] = flip[a] ? -step[o] : step[o];
        start += flip[a] ? (v->extent[o] - 1) * step[o] : 0;
    }
    m.to_step[0] = extent[1] * extent[2];
    m.to_step[1] = extent[2];
    m.to_step[2] = 1;
    m.voxel_size = voxel;
    m.from = (const char *)v->voxels + (size_t)start * voxel;
    m.to = out.voxels;
    parallel_run(extent[0], max_i64(SIDE, parallel_piece(m.to_step[0])), copy_moved, &m);
    free(v->voxels);
    *v = out;
    return PONS_OK;
}

typedef struct cropping {
    const volume *v;
    volume *out;
    const int64_t *start;     /* [3] */
    double fill;
} cropping;

/* Set voxels first .. end - 1, which are zeros, to 'fill'. */
static void fill_voxels(volume *v, int64_t first, int64_t end, double fill)
{
    if (fill == 0)
        return;
    if (v->type == PONS_U8)
        memset((uint8_t *)v->voxels + first, (int)fill, (size_t)(end - first));
    else if (v->type == PONS_I32)
        for (int64_t i = first; i < end; i++)
            ((int32_t *)v->voxels)[i] = (int32_t)fill;
    else
        for (int64_t i = first; i < end; i++)
            ((float *)v->voxels)[i] = (float)fill;
}

/* Copy planes of the result: 'fill', then the part that lies in 'v'. */
static void copy_cropped(void *context, int64_t first, int64_t end)
{
    const cropping *c = context;
    const volume *v = c->v;
    volume *out = c->out;
    size_t voxel = voxel_size(v);
    int64_t plane = out->extent[1] * out->extent[2] * out->channels, low[3], high[3];

    fill_voxels(out, first * plane, end * plane, c->fill);
    for (int a = 0; a < 3; a++) {
        low[a] = max_i64(0, c->start[a] + (a == 0 ? first : 0));
        high[a] = min_i64(v->extent[a], c->start[a] + (a == 0 ? end : out->extent[a]));
        if (low[a] >= high[a])
            return;
    }
    for (int64_t i = low[0]; i < high[0]; i++)
        for (int64_t j = low[1]; j < high[1]; j++) {
            int64_t from = (i * v->extent[1] + j) * v->extent[2] + low[2];
            int64_t to = ((i - c->start[0]) * out->extent[1] + j - c->start[1]) * out->extent[2] +
                         low[2] - c->start[2];
            memcpy((char *)out->voxels + (size_t)to * voxel,
                   (const char *)v->voxels + (size_t)from * voxel,
                   (size_t)(high[2] - low[2]) * voxel);
        }
}

pons_status pons_volume_crop(pons_volume *v, const int64_t start[3], const int64_t extent[3],
                             double fill, pons_error *err)
{
    volume out;
    pons_status status;

    if (!start[0] && !start[1] && !start[2] && !memcmp(extent, v->extent, sizeof v->extent))
        return PONS_OK;
    status = pons_volume_init(&out, v->type, v->channels, extent, err);
    if (status)
        return status;
    parallel_run(extent[0], parallel_piece(extent[1] * extent[2]), copy_cropped,
                 &(cropping){ v, &out, start, fill });
    memcpy(out.affine, v->affine, sizeof out.affine);
    for (int a = 0; a < 3; a++) {
        int64_t low = max_i64(v->inside_start[a], start[a]);
        int64_t high = min_i64(v->inside_start[a] + v->inside_extent[a], start[a] + extent[a]);

        for (int r = 0; r < 3; r++)
            out.affine[r][3] += v->affine[r][a] * (double)start[a];
        out.inside_start[a] = high > low ? low - start[a] : 0;
        out.inside_extent[a] = max_i64(0, high - low);
    }
    free(v->voxels);
    *v = out;
    return PONS_OK;
}

/* ---- cases ----------------------------------------------------------------------------------- */

pons_status pons_case_reorient(pons_case *c, const int order[3], const bool flip[3],
                               pons_error *err)
{
    pons_volume *part[] = { &c->image, &c->label, &c->valid };
    pons_status status = PONS_OK;

    for (int i = 0; i < 3 && !status; i++)
        if (part[i]->voxels)
            status = pons_volume_reorient(part[i], order, flip, err);
    return status;
}

pons_status pons_case_crop(pons_case *c, const int64_t start[3], const int64_t extent[3],
                           double fill, pons_error *err)
{
    pons_status status = PONS_OK;

    if (c->image.voxels)
        status = pons_volume_crop(&c->image, start, extent, fill, err);
    if (!status && c->label.voxels)
        status = pons_volume_crop(&c->label, start, extent, 0, err);
    if (!status && c->valid.voxels)
        status = pons_volume_crop(&c->valid, start, extent, 0, err);
    return status;
}

pons_status pons_case_resample(pons_case *c, const double affine[3][4], const int64_t extent[3],
                               pons_error *err)
{
    pons_volume *part[] = { &c->image, &c->label, &c->valid };
    pons_status status = PONS_OK;

    for (int i = 0; i < 3 && !status; i++)
        if (part[i]->voxels)
            status = pons_volume_resample(part[i], affine, extent, err);
    return status;
}
