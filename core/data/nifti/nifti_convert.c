/*
 * nifti_convert.c - convert the voxels of a file and transpose them from the file's order (i
 * fastest) to [D, H, W, C].
 *
 * Planes along j are converted in parallel. A plane is processed in tiles of SIDE_K rows of SIDE_I
 * voxels: rows are converted into the tile, and the tile is transposed in the L1 cache, so both
 * sides touch each cache line once. Images without scaling are converted to float directly. Scaled
 * images, labels that are not whole numbers by their type, and some types go through double, so a
 * value is rounded once.
 */
#include "data/nifti/nifti_internal.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/finite.h"
#include "base/integer.h"
#include "base/thread/parallel.h"
#include "data/volume/transpose.h"

enum { SIDE_I = 64, SIDE_K = 16 };

/* Values that are refused. */
typedef struct refused_values {
    /* number of refused voxels; smallest index in the file's order */
    int64_t bad_count, bad_first;
    double bad_value;
    bool exceeds_u8;               /* an id that U8 cannot hold                                   */
} refused_values;

/* The results of all slabs. */
typedef struct shared_result {
    pthread_mutex_t lock;
    refused_values found;
} shared_result;

/* A conversion of one slab or of all. */
typedef struct conversion {
    const nifti_layout *layout;
    const unsigned char *from;
    volume *to;
    shared_result *shared_result;
    refused_values found;          /* of this slab                                                */
} conversion;

/* A tile [k][i] in the type of the volume. */
typedef union tile {
    float real[SIDE_K][SIDE_I];
    uint32_t word[SIDE_K][SIDE_I];
    int32_t id[SIDE_K][SIDE_I];
    uint8_t byte[SIDE_K][SIDE_I];
} tile;

/* ---- rows ------------------------------------------------------------------------------------ */

static void swap_row(const unsigned char *from, int64_t count, int size, unsigned char *to)
{
    for (int64_t n = 0; n < count; n++)
        for (int b = 0; b < size; b++)
            to[n * size + b] = from[n * size + size - 1 - b];
}

static void record_refused(refused_values *f, int64_t count, int64_t index, double value)
{
    if (!f->bad_count || index < f->bad_first) {
        f->bad_first = index;
        f->bad_value = value;
    }
    f->bad_count += count;
}

/* Record values that are not finite as float. */
static void record_not_finite(conversion *c, int64_t index, int64_t count, const double *row)
{
    for (int64_t n = 0; n < count; n++)
        if (!isfinite((float)row[n]))
            record_refused(&c->found, 1, index + n, row[n]);
}

/* Convert a row of an image: apply slope and intercept, and record values that are not finite. */
static void convert_image_row(conversion *c, const void *from, int64_t index, int64_t count,
                              tile *t, int64_t k)
{
    const volume_facts *facts = &c->layout->facts;
    const nifti_kind *kind = c->layout->kind;
    bool scaled = facts->slope != 1 || facts->intercept != 0;
    float *out = t->real[k];
    double row[SIDE_I];

    if (!scaled && kind->load_float) {
        kind->load_float(from, count, out);
        if (!kind->floating || floats_are_finite(out, count))
            return;
    }
    kind->load(from, count, row);
    for (int64_t n = 0; n < count; n++) {
        row[n] = scaled ? row[n] * facts->slope + facts->intercept : row[n];
        out[n] = (float)row[n];
    }
    if (!floats_are_finite(out, count))
        record_not_finite(c, index, count, row);
}

static bool is_id(double x)
{
    return fabs(x) <= INT32_MAX && (double)(int32_t)x == x;
}

/* Convert a row of a label to I32; values that are not whole are recorded. */
static void convert_label_row(conversion *c, const void *from, int64_t index, int64_t count,
                              int32_t *out)
{
    double row[SIDE_I];

    if (c->layout->kind->load_id != NULL) {
        c->layout->kind->load_id(from, count, out);
        return;
    }
    c->layout->kind->load(from, count, row);
    for (int64_t n = 0; n < count; n++) {
        if (!is_id(row[n]))
            record_refused(&c->found, 1, index + n, row[n]);
        out[n] = is_id(row[n]) ? (int32_t)row[n] : 0;
    }
}

static void convert_label_row_u8(conversion *c, const void *from, int64_t index, int64_t count,
                                 uint8_t *out)
{
    int32_t ids[SIDE_I], seen = 0;

    if (c->layout->kind->code == NIFTI_KIND_UINT8) {
        memcpy(out, from, (size_t)count);
        return;
    }
    convert_label_row(c, from, index, count, ids);
    for (int64_t n = 0; n < count; n++) {
        out[n] = (uint8_t)ids[n];
        seen |= ids[n];
    }
    c->found.exceeds_u8 |= (seen & ~0xff) != 0;
}

/* Convert a row along i, in native byte order, into row k of the tile. */
static void convert_row(conversion *c, int64_t index, int64_t count, tile *t, int64_t k)
{
    const nifti_kind *kind = c->layout->kind;
    const unsigned char *from = c->from + index * kind->size;
    unsigned char swapped[SIDE_I * 8];

    if (c->layout->facts.big_endian && kind->size > 1) {
        swap_row(from, count, kind->size, swapped);
        from = swapped;
    }
    if (c->to->type == PONS_F32)
        convert_image_row(c, from, index, count, t, k);
    else if (c->to->type == PONS_U8)
        convert_label_row_u8(c, from, index, count, t->byte[k]);
    else
        convert_label_row(c, from, index, count, t->id[k]);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Write a tile to the volume; at[0..2] is its first voxel, at[3] its channel. */
static void store_tile(const conversion *c, const tile *t, const int64_t at[4], int64_t i_count,
                       int64_t k_count)
{
    const volume *v = c->to;
    int64_t channels = v->channels, step = v->extent[1] * v->extent[2] * channels;
    int64_t first = ((at[0] * v->extent[1] + at[1]) * v->extent[2] + at[2]) * channels + at[3];

    if (v->type == PONS_U8)
        transpose_bytes(k_count, i_count, t->byte[0], SIDE_I, (uint8_t *)v->voxels + first, step);
    else if (channels == 1)
        transpose_words(k_count, i_count, t->word[0], SIDE_I, (uint32_t *)v->voxels + first, step);
    else
        for (int64_t i = 0; i < i_count; i++)
            for (int64_t k = 0; k < k_count; k++)
                ((uint32_t *)v->voxels)[first + i * step + k * channels] = t->word[k][i];
}

static void convert_plane(conversion *c, int64_t channel, int64_t j)
{
    const int64_t *n = c->layout->extent;
    int64_t at[4] = { 0, j, 0, channel };
    tile t;

    for (at[2] = 0; at[2] < n[2]; at[2] += SIDE_K)
        for (at[0] = 0; at[0] < n[0]; at[0] += SIDE_I) {
            int64_t i_count = min_i64(SIDE_I, n[0] - at[0]);
            int64_t k_count = min_i64(SIDE_K, n[2] - at[2]);

            for (int64_t k = 0; k < k_count; k++)
                convert_row(c, ((channel * n[2] + at[2] + k) * n[1] + j) * n[0] + at[0], i_count,
                            &t, k);
            store_tile(c, &t, at, i_count, k_count);
        }
}

/* Convert planes first .. end - 1, numbered channel by channel. */
static void convert_slab(void *context, int64_t first, int64_t end)
{
    conversion mine = *(const conversion *)context;
    shared_result *w = mine.shared_result;

    for (int64_t n = first; n < end && !mine.found.exceeds_u8; n++)
        convert_plane(&mine, n / mine.layout->extent[1], n % mine.layout->extent[1]);
    if (!mine.found.exceeds_u8 && !mine.found.bad_count)
        return;
    pthread_mutex_lock(&w->lock);
    if (mine.found.bad_count)
        record_refused(&w->found, mine.found.bad_count, mine.found.bad_first, mine.found.bad_value);
    w->found.exceeds_u8 |= mine.found.exceeds_u8;
    pthread_mutex_unlock(&w->lock);
}

/* ---- volumes --------------------------------------------------------------------------------- */

static bool is_whole(double x)
{
    return isfinite(x) && x == trunc(x);
}

/* Text of the values that would be accepted instead of 'value'. */
static const char *expected_value(double value, nifti_use use, char *out, size_t size)
{
    if (use == NIFTI_IMAGE)
        return "finite numbers";
    if (!is_whole(value))
        return "whole numbers";
    snprintf(out, size, value < 0 ? "at least %d" : "at most %d", value < 0 ? 0 : LABEL_ID_MAX);
    return out;
}

static pons_status refuse_bad(const char *path, const int64_t n[4], const refused_values *f,
                              nifti_use use, pons_error *err)
{
    bool id = use != NIFTI_IMAGE && is_whole(f->bad_value);
    char range[32];
    int64_t at = f->bad_first;
    long long i = at % n[0], j = at / n[0] % n[1], k = at / n[0] / n[1] % n[2];
    const char *what = use != NIFTI_IMAGE ? "no label"
                     : isfinite(f->bad_value) ? "too large for a float" : "not finite";

    return pons_fail(err, PONS_DATA, "cannot read '%s': %lld voxel%s %s, the first %.*g at "
                     "%lld %lld %lld, expected %.40s", path, (long long)f->bad_count,
                     f->bad_count == 1 ? " is" : "s are", what, id ? 15 : 6, f->bad_value, i, j, k,
                     expected_value(f->bad_value, use, range, sizeof range));
}

pons_status nifti_convert(const char *path, const nifti_layout *layout, const void *data,
                          nifti_use use, volume *out, pons_error *err)
{
    static const pons_type types[] = {
        [NIFTI_IMAGE] = PONS_F32, [NIFTI_LABEL] = PONS_I32, [NIFTI_LABEL_COMPACT] = PONS_U8
    };
    const int64_t *n = layout->extent;
    volume fresh;
    shared_result all = { .lock = PTHREAD_MUTEX_INITIALIZER };
    conversion c = { .layout = layout, .from = (const unsigned char *)data + layout->offset,
                     .to = &fresh, .shared_result = &all };
    pons_status status = pons_volume_init(&fresh, types[use], (int)n[3], n, err);

    if (status)
        return status;
    memcpy(fresh.affine, layout->facts.grid.affine, sizeof fresh.affine);
    parallel_run(n[3] * n[1], parallel_piece(n[0] * n[2]), convert_slab, &c);
    pthread_mutex_destroy(&all.lock);
    if (!all.found.bad_count && !all.found.exceeds_u8) {
        *out = fresh;
        return PONS_OK;
    }
    pons_volume_clear(&fresh);
    return all.found.exceeds_u8 ? nifti_convert(path, layout, data, NIFTI_LABEL, out, err)
                          : refuse_bad(path, n, &all.found, use, err);
}
