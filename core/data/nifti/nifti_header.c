/*
 * nifti_header.c - check a NIfTI header and make one.
 *
 * libnifti2 converts byte order and quaternions. Every field that it would repair silently is
 * refused before it is called.
 */
#include "data/nifti/nifti_internal.h"

#include <math.h>
#include <nifti2_io.h>
#include <string.h>

#include "base/text/shell_word.h"
#include "data/nifti/gzip.h"

/* A header under check; version 1 is converted to version 2. */
typedef struct header {
    const char *path;
    nifti_2_header h;
    double offset;            /* vox_offset as stored */
    int64_t size;             /* size of the header */
    bool gzip;
    nifti_layout *out;
} header;

/* ---- fields ---------------------------------------------------------------------------------- */

static void copy_version_1(const nifti_1_header *a, header *x)
{
    nifti_2_header *b = &x->h;

    memset(b, 0, sizeof *b);
    b->sizeof_hdr = a->sizeof_hdr;
    b->datatype = a->datatype;
    b->bitpix = a->bitpix;
    for (int i = 0; i < 8; i++) {
        b->dim[i] = a->dim[i];
        b->pixdim[i] = a->pixdim[i];
    }
    x->offset = a->vox_offset;
    b->scl_slope = a->scl_slope;
    b->scl_inter = a->scl_inter;
    b->qform_code = a->qform_code;
    b->sform_code = a->sform_code;
    b->quatern_b = a->quatern_b;
    b->quatern_c = a->quatern_c;
    b->quatern_d = a->quatern_d;
    b->qoffset_x = a->qoffset_x;
    b->qoffset_y = a->qoffset_y;
    b->qoffset_z = a->qoffset_z;
    for (int i = 0; i < 4; i++) {
        b->srow_x[i] = a->srow_x[i];
        b->srow_y[i] = a->srow_y[i];
        b->srow_z[i] = a->srow_z[i];
    }
    b->xyzt_units = (unsigned char)a->xyzt_units;
    b->intent_code = a->intent_code;
}

static pons_status refuse_two_files(const header *x, pons_error *err)
{
    return pons_fail(err, PONS_DATA, "cannot read '%s': 'magic' is that of a header without its "
                     "voxels, expected a single file\nhint: convert the .hdr/.img pair to .nii.gz",
                     x->path);
}

static pons_status read_version_1(header *x, const void *bytes, bool swap, pons_error *err)
{
    nifti_1_header one;

    memcpy(&one, bytes, sizeof one);
    if (!memcmp(one.magic, "ni1", 4))
        return refuse_two_files(x, err);
    if (memcmp(one.magic, "n+1", 4))
        return pons_fail(err, PONS_DATA,
                         "cannot read '%s': 'magic' is %02x %02x %02x %02x, expected 'n+1'%s",
                         x->path, (unsigned char)one.magic[0], (unsigned char)one.magic[1],
                         (unsigned char)one.magic[2], (unsigned char)one.magic[3],
                         one.magic[0] ? "" : " (an ANALYZE 7.5 file has no orientation)");
    if (swap)
        nifti_swap_as_nifti1(&one);
    copy_version_1(&one, x);
    return PONS_OK;
}

static pons_status read_version_2(header *x, const void *bytes, size_t available, bool swap,
                                  pons_error *err)
{
    if (available < NIFTI_2_HEADER_SIZE)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it ends after %zu bytes, expected a "
                         "header of %d", x->path, available, NIFTI_2_HEADER_SIZE);
    memcpy(&x->h, bytes, sizeof x->h);
    if (!memcmp(x->h.magic, "ni2", 4))
        return refuse_two_files(x, err);
    if (memcmp(x->h.magic, "n+2\0\r\n\032\n", 8))
        return pons_fail(err, PONS_DATA, "cannot read '%s': 'magic' is not NIfTI-2's, expected "
                         "'n+2' and its line ends\nhint: the file may have been transferred as "
                         "text", x->path);
    if (swap)
        nifti_swap_as_nifti2(&x->h);
    x->offset = (double)x->h.vox_offset;
    return PONS_OK;
}

bool nifti_header_begins(const void *bytes, size_t available)
{
    int32_t size;

    if (available < sizeof size)
        return false;
    memcpy(&size, bytes, sizeof size);
    for (int order = 0; order < 2; order++) {
        if (size == NIFTI_HEADER_SIZE || size == NIFTI_2_HEADER_SIZE)
            return true;
        size = (int32_t)__builtin_bswap32((uint32_t)size);
    }
    return false;
}

static pons_status read_fields(header *x, const void *bytes, size_t available, pons_error *err)
{
    int32_t size, swapped;

    if (available < NIFTI_HEADER_SIZE)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it ends after %zu bytes, expected a "
                         "header of %d%s", x->path, available, NIFTI_HEADER_SIZE,
                         x->gzip && !nifti_header_begins(bytes, available)
                         ? " (it is gzip of something else than NIfTI)" : "");
    memcpy(&size, bytes, sizeof size);
    swapped = (int32_t)__builtin_bswap32((uint32_t)size);
    x->out->facts.big_endian = swapped == NIFTI_HEADER_SIZE || swapped == NIFTI_2_HEADER_SIZE;
    if (x->out->facts.big_endian)
        size = swapped;
    x->size = size;
    x->out->facts.nifti = size == NIFTI_2_HEADER_SIZE ? 2 : 1;
    if (size == NIFTI_HEADER_SIZE)
        return read_version_1(x, bytes, x->out->facts.big_endian, err);
    if (size == NIFTI_2_HEADER_SIZE)
        return read_version_2(x, bytes, available, x->out->facts.big_endian, err);
    return pons_fail(err, PONS_DATA, "cannot read '%s': 'sizeof_hdr' is %d, expected 348 or 540 "
                     "(it is %s)", x->path, size,
                     x->gzip ? "gzip of something else than NIfTI" : "not a NIfTI file");
}

/* ---- checks; each relies on the earlier ones ------------------------------------------------- */

static pons_status check_dimensions(header *x, pons_error *err)
{
    const int64_t *dim = x->h.dim;
    int64_t *extent = x->out->extent;

    if (dim[0] < 1 || dim[0] > 7)
        return pons_fail(err, PONS_DATA, "cannot read '%s': 'dim[0]' is %lld, expected 1 to 4",
                         x->path, (long long)dim[0]);
    if (dim[0] > 4)
        return pons_fail(err, PONS_DATA, "cannot read '%s': 'dim[0]' is %lld, expected 1 to 4 "
                         "(three axes and channels)", x->path, (long long)dim[0]);
    for (int a = 0; a < 4; a++) {
        extent[a] = a < dim[0] ? dim[a + 1] : 1;
        if (extent[a] < 1 || extent[a] > INT32_MAX)
            return pons_fail(err, PONS_DATA,
                             "cannot read '%s': 'dim[%d]' is %lld, expected 1 to %d", x->path,
                             a + 1, (long long)extent[a], INT32_MAX);
    }
    return PONS_OK;
}

static pons_status check_type(header *x, pons_error *err)
{
    int64_t size;

    x->out->kind = nifti_kind_find(x->h.datatype);
    if (!x->out->kind)
        return pons_fail(err, PONS_DATA, "cannot read '%s': 'datatype' is %d (%s), expected an "
                         "integer of 8 to 64 bits, float32 or float64", x->path, x->h.datatype,
                         nifti_kind_name(x->h.datatype));
    size = x->out->kind->size;
    if (x->h.bitpix != 8 * size)
        return pons_fail(err, PONS_DATA, "cannot read '%s': 'bitpix' is %d, expected %d for "
                         "datatype %d (%s)", x->path, x->h.bitpix, (int)(8 * size),
                         x->h.datatype, x->out->kind->name);
    for (int a = 0; a < 4; a++)
        if (__builtin_mul_overflow(size, x->out->extent[a], &size) || size > INT64_MAX / 16)
            return pons_fail(err, PONS_DATA, "cannot read '%s': 'dim' is %lld x %lld x %lld x "
                             "%lld, expected a volume that can be addressed", x->path,
                             (long long)x->out->extent[0], (long long)x->out->extent[1],
                             (long long)x->out->extent[2], (long long)x->out->extent[3]);
    x->out->data_size = size;
    return PONS_OK;
}

/* The ratio of deflate bounds the allocation that a small file can cause. */
static pons_status check_file_length(header *x, int64_t file_size, bool gzip, pons_error *err)
{
    int64_t least = x->size + 4, total;
    int64_t ratio = gzip ? DEFLATE_RATIO_MAX : 1;
    int64_t limit = file_size > INT64_MAX / ratio ? INT64_MAX : file_size * ratio;

    if (!isfinite(x->offset) || x->offset != floor(x->offset) || x->offset < (double)least ||
        x->offset > (double)limit)
        return pons_fail(err, PONS_DATA, "cannot read '%s': 'vox_offset' is %.9g, expected a "
                         "whole number from %lld to the file's %lld bytes", x->path, x->offset,
                         (long long)least, (long long)file_size);
    x->out->offset = (int64_t)x->offset;
    total = x->out->offset + x->out->data_size;
    if (gzip ? total > limit : total != file_size)
        return pons_fail(err, PONS_DATA, "cannot read '%s': it has %lld bytes%s, expected %lld "
                         "(%lld x %lld x %lld x %lld voxels of %s from byte %lld)", x->path,
                         (long long)file_size, gzip ? " of gzip, which cannot hold the volume"
                                                    : "",
                         (long long)total, (long long)x->out->extent[0],
                         (long long)x->out->extent[1], (long long)x->out->extent[2],
                         (long long)x->out->extent[3], x->out->kind->name,
                         (long long)x->out->offset);
    return PONS_OK;
}

static pons_status check_scaling(header *x, pons_error *err)
{
    volume_facts *facts = &x->out->facts;
    double slope = x->h.scl_slope, intercept = x->h.scl_inter;

    facts->slope = 1;
    facts->intercept = 0;
    if (isnan(slope) || slope == 0)
        return PONS_OK;
    if (!isfinite(slope) || !isfinite(intercept))
        return pons_fail(err, PONS_DATA, "cannot read '%s': '%s' is %g, expected a finite number",
                         x->path, isfinite(slope) ? "scl_inter" : "scl_slope",
                         isfinite(slope) ? intercept : slope);
    facts->slope = slope;
    facts->intercept = intercept;
    return PONS_OK;
}

/* ---- geometry -------------------------------------------------------------------------------- */

/*
 * b, c and d are part of a unit quaternion. libnifti2 normalises a longer one, which gives a
 * rotation that is not in the file. The tolerance 1e-5 exceeds the rounding of float32 and of six
 * decimals.
 */
static pons_status check_quaternion(const header *x, pons_error *err)
{
    const nifti_2_header *h = &x->h;
    double square = h->quatern_b * h->quatern_b + h->quatern_c * h->quatern_c
                    + h->quatern_d * h->quatern_d;

    if (square <= 1 + 1e-5)
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "cannot read '%s': 'quatern_b', 'quatern_c' and 'quatern_d' "
                     "are %.9g, %.9g and %.9g, whose squares add up to %.9g, expected at most 1",
                     x->path, h->quatern_b, h->quatern_c, h->quatern_d, square);
}

static void read_qform(const nifti_2_header *h, double out[3][4])
{
    nifti_dmat44 m = nifti_quatern_to_dmat44(h->quatern_b, h->quatern_c, h->quatern_d,
                                             h->qoffset_x, h->qoffset_y, h->qoffset_z,
                                             h->pixdim[1], h->pixdim[2], h->pixdim[3],
                                             h->pixdim[0] < 0 ? -1 : 1);

    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            out[r][c] = m.m[r][c];
}

static void read_sform(const nifti_2_header *h, double out[3][4])
{
    memcpy(out[0], h->srow_x, sizeof out[0]);
    memcpy(out[1], h->srow_y, sizeof out[1]);
    memcpy(out[2], h->srow_z, sizeof out[2]);
}

static pons_status check_matrix(const header *x, const char *name, const double m[3][4],
                                pons_error *err)
{
    double inverse[3][4], norm[3], det, product;

    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            if (!isfinite(m[r][c]))
                return pons_fail(err, PONS_DATA, "cannot read '%s': '%s' row %d column %d is %g, "
                                 "expected a finite number", x->path, name, r, c, m[r][c]);
    for (int c = 0; c < 3; c++)
        norm[c] = sqrt(m[0][c] * m[0][c] + m[1][c] * m[1][c] + m[2][c] * m[2][c]);
    product = norm[0] * norm[1] * norm[2];
    det = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
          m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
          m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
    if (!(fabs(det) > 1e-4 * product) || !pons_affine_invert(m, inverse))
        return pons_fail(err, PONS_DATA, "cannot read '%s': '%s' is singular (determinant %g, "
                         "columns of %g, %g and %g mm), expected three independent axes",
                         x->path, name, det, norm[0], norm[1], norm[2]);
    return PONS_OK;
}

/* Refuse a file whose qform and sform disagree, since neither is known to be right. */
static pons_status check_agreement(const header *x, const volume_grid *grid, pons_error *err)
{
    volume_grid q = *grid, s = *grid;
    double spacing = fmin(grid->spacing[0], fmin(grid->spacing[1], grid->spacing[2]));
    double largest = 0;

    memcpy(q.affine, grid->qform, sizeof q.affine);
    memcpy(s.affine, grid->sform, sizeof s.affine);
    for (int corner = 0; corner < 8; corner++) {
        double square = 0;

        for (int r = 0; r < 3; r++) {
            double d = q.affine[r][3] - s.affine[r][3];

            for (int c = 0; c < 3; c++)
                d += (corner >> c & 1) * (q.affine[r][c] - s.affine[r][c]) *
                     (double)(x->out->extent[c] - 1);
            square += d * d;
        }
        largest = fmax(largest, sqrt(square));
    }
    if (largest <= 0.1 * spacing)
        return PONS_OK;
    return pons_fail(err, PONS_DATA, "cannot read '%s': 'qform' and 'sform' place a corner %.4g mm "
                     "apart, expected one place; qform [%.6g %.6g %.6g %.6g; %.6g %.6g %.6g %.6g; "
                     "%.6g %.6g %.6g %.6g], sform [%.6g %.6g %.6g %.6g; %.6g %.6g %.6g %.6g; %.6g "
                     "%.6g %.6g %.6g]\nhint: set the code of the wrong one to 0", x->path, largest,
                     q.affine[0][0], q.affine[0][1], q.affine[0][2], q.affine[0][3],
                     q.affine[1][0], q.affine[1][1], q.affine[1][2], q.affine[1][3],
                     q.affine[2][0], q.affine[2][1], q.affine[2][2], q.affine[2][3],
                     s.affine[0][0], s.affine[0][1], s.affine[0][2], s.affine[0][3],
                     s.affine[1][0], s.affine[1][1], s.affine[1][2], s.affine[1][3],
                     s.affine[2][0], s.affine[2][1], s.affine[2][2], s.affine[2][3]);
}

static pons_status check_spacing(header *x, pons_error *err)
{
    for (int a = 1; a <= 3; a++) {
        double p = x->h.pixdim[a];

        if (a > x->h.dim[0] && x->out->extent[a - 1] == 1 && !(p > 0 && isfinite(p)))
            x->h.pixdim[a] = 1; /* an axis that the file does not have */
        else if (!isfinite(p) || !(p > 0))
            return pons_fail(err, PONS_DATA, "cannot read '%s': 'pixdim[%d]' is %g, expected a "
                             "spacing in millimetres above 0", x->path, a, p);
    }
    return PONS_OK;
}

static bool is_code(int code)
{
    return code >= 0 && code <= NIFTI_XFORM_TEMPLATE_OTHER;
}

/* With both codes 0 left and right are undefined, and programs disagree: the file is refused. */
static pons_status check_codes(const header *x, pons_error *err)
{
    const nifti_2_header *h = &x->h;
    char word[sizeof err->text];

    bool good = is_code(h->qform_code);

    if (!good || !is_code(h->sform_code))
        return pons_fail(err, PONS_DATA, "cannot read '%s': '%s' is %d, expected 0 to %d", x->path,
                         good ? "sform_code" : "qform_code", good ? h->sform_code : h->qform_code,
                         NIFTI_XFORM_TEMPLATE_OTHER);
    if (!h->qform_code && !h->sform_code)
        return pons_fail(err, PONS_DATA, "cannot read '%s': 'qform_code' and 'sform_code' are 0, "
                         "expected one above 0, since left and right are unknown\nhint: set the "
                         "code of the form that is right; the sform's by: fslorient "
                         "-setsformcode 1 %.2000s", x->path,
                         shell_word(word, sizeof word, x->path));
    return PONS_OK;
}

/* Scales to millimetres. qform and sform keep the file's unit, since they are written back. */
static const struct { int code; double scale; } units[] = {
    { NIFTI_UNITS_UNKNOWN, 1 }, { NIFTI_UNITS_METER, 1000 }, { NIFTI_UNITS_MM, 1 },
    { NIFTI_UNITS_MICRON, 0.001 },
};

static pons_status find_unit(const header *x, double *scale, pons_error *err)
{
    int code = XYZT_TO_SPACE(x->h.xyzt_units);

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].code == code) {
            *scale = units[i].scale;
            return PONS_OK;
        }
    }
    return pons_fail(err, PONS_DATA, "cannot read '%s': 'xyzt_units' is %d, whose unit of space is "
                     "%d, expected 0 to 3 (none, metre, millimetre, micrometre)", x->path,
                     x->h.xyzt_units, code);
}

static pons_status check_geometry(header *x, pons_error *err)
{
    volume_grid *grid = &x->out->facts.grid;
    const nifti_2_header *h = &x->h;
    double scale = 1;
    pons_status status = check_spacing(x, err);

    if (!status)
        status = find_unit(x, &scale, err);
    if (!status)
        status = check_codes(x, err);
    if (!status && h->qform_code)
        status = check_quaternion(x, err);
    if (status)
        return status;
    grid->qform_code = h->qform_code;
    grid->sform_code = h->sform_code;
    grid->units = h->xyzt_units;
    grid->intent = h->intent_code;
    grid->axes = h->dim[0] < 3 ? (int)h->dim[0] : 3;
    if (h->qform_code) {
        read_qform(h, grid->qform);
        status = check_matrix(x, "qform", (const double (*)[4])grid->qform, err);
    }
    if (!status && h->sform_code) {
        read_sform(h, grid->sform);
        status = check_matrix(x, "sform", (const double (*)[4])grid->sform, err);
    }
    if (status)
        return status;
    memcpy(grid->affine, h->sform_code ? grid->sform : grid->qform, sizeof grid->affine);
    for (int c = 0; c < 3; c++)
        grid->spacing[c] = sqrt(grid->affine[0][c] * grid->affine[0][c] +
                                grid->affine[1][c] * grid->affine[1][c] +
                                grid->affine[2][c] * grid->affine[2][c]);
    if (h->qform_code && h->sform_code)
        status = check_agreement(x, grid, err);
    for (int c = 0; c < 3; c++) {
        grid->extent[c] = x->out->extent[c];
        grid->spacing[c] *= scale;
        for (int k = 0; k < 4; k++)
            grid->affine[c][k] *= scale;
    }
    return status;
}

pons_status nifti_header_check(const char *path, const void *bytes, size_t available,
                               int64_t file_size, bool gzip, nifti_layout *out, pons_error *err)
{
    nifti_layout fresh = { .data_size = 0 };
    header x = { .path = path, .gzip = gzip, .out = &fresh };
    pons_status status = read_fields(&x, bytes, available, err);

    if (!status)
        status = check_dimensions(&x, err);
    if (!status)
        status = check_type(&x, err);
    if (!status)
        status = check_file_length(&x, file_size, gzip, err);
    if (!status)
        status = check_geometry(&x, err);
    if (!status)
        status = check_scaling(&x, err);
    if (status)
        return status;
    fresh.facts.channels = (int)fresh.extent[3];
    fresh.facts.datatype = fresh.kind->code;
    fresh.facts.type_name = fresh.kind->name;
    *out = fresh;
    return PONS_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Set qform, sform and pixdim. A qform with shear loses it, since a quaternion cannot hold it. */
static void put_qform_and_sform(const volume_grid *grid, nifti_2_header *h)
{
    bool quaternion = grid->qform_code > 0;
    nifti_dmat44 m = { { { 0 } } };
    double qfac = 1;

    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            m.m[r][c] = quaternion ? grid->qform[r][c] : grid->sform[r][c];
    m.m[3][3] = 1;
    nifti_dmat44_to_quatern(m, &h->quatern_b, &h->quatern_c, &h->quatern_d, &h->qoffset_x,
                            &h->qoffset_y, &h->qoffset_z, &h->pixdim[1], &h->pixdim[2],
                            &h->pixdim[3], &qfac);
    h->pixdim[0] = qfac;
    h->qform_code = grid->qform_code;
    h->sform_code = grid->sform_code;
    memcpy(h->srow_x, grid->sform[0], sizeof h->srow_x);
    memcpy(h->srow_y, grid->sform[1], sizeof h->srow_y);
    memcpy(h->srow_z, grid->sform[2], sizeof h->srow_z);
    h->xyzt_units = grid->units;
}

static size_t put_version_1(const nifti_2_header *b, unsigned char *out)
{
    nifti_1_header a;

    memset(&a, 0, sizeof a);
    a.sizeof_hdr = NIFTI_HEADER_SIZE;
    a.regular = 'r';
    a.datatype = b->datatype;
    a.bitpix = b->bitpix;
    for (int i = 0; i < 8; i++) {
        a.dim[i] = (short)b->dim[i];
        a.pixdim[i] = (float)b->pixdim[i];
    }
    a.vox_offset = NIFTI_HEADER_SIZE + 4;
    a.scl_slope = (float)b->scl_slope;
    a.intent_code = (short)b->intent_code;
    a.xyzt_units = (char)b->xyzt_units;
    a.qform_code = (short)b->qform_code;
    a.sform_code = (short)b->sform_code;
    a.quatern_b = (float)b->quatern_b;
    a.quatern_c = (float)b->quatern_c;
    a.quatern_d = (float)b->quatern_d;
    a.qoffset_x = (float)b->qoffset_x;
    a.qoffset_y = (float)b->qoffset_y;
    a.qoffset_z = (float)b->qoffset_z;
    for (int i = 0; i < 4; i++) {
        a.srow_x[i] = (float)b->srow_x[i];
        a.srow_y[i] = (float)b->srow_y[i];
        a.srow_z[i] = (float)b->srow_z[i];
    }
    memcpy(a.magic, "n+1", 4);
    memcpy(out, &a, sizeof a);
    return NIFTI_HEADER_SIZE + 4;
}

static size_t put_version_2(nifti_2_header *b, unsigned char *out)
{
    b->sizeof_hdr = NIFTI_2_HEADER_SIZE;
    b->vox_offset = NIFTI_2_HEADER_SIZE + 4;
    memcpy(b->magic, "n+2\0\r\n\032\n", 8);
    memcpy(out, b, sizeof *b);
    return NIFTI_2_HEADER_SIZE + 4;
}

/* dim[0]: axes that the grid's file did not have are left out if they hold one voxel. */
static int count_axes(const volume_grid *grid, int channels)
{
    int axes = 3;

    while (axes > 1 && axes > grid->axes && grid->extent[axes - 1] == 1)
        axes--;
    return channels > 1 ? 4 : axes;
}

size_t nifti_header_make(const volume_grid *grid, int channels, const nifti_values *values,
                         unsigned char out[NIFTI_HEADER_LARGEST])
{
    const nifti_kind *kind = nifti_kind_find(values->datatype);
    nifti_2_header h;
    bool large = channels > INT16_MAX;

    memset(&h, 0, sizeof h);
    memset(out, 0, NIFTI_HEADER_LARGEST);
    h.datatype = (int16_t)kind->code;
    h.bitpix = (int16_t)(8 * kind->size);
    h.scl_slope = values->slope;
    h.intent_code = grid->intent;
    h.dim[0] = count_axes(grid, channels);
    for (int a = 0; a < 3; a++) {
        h.dim[a + 1] = grid->extent[a];
        large = large || grid->extent[a] > INT16_MAX;
    }
    h.dim[4] = channels;
    for (int a = 5; a < 8; a++)
        h.dim[a] = 1;
    for (int a = 4; a < 8; a++)
        h.pixdim[a] = 1;
    put_qform_and_sform(grid, &h);
    return large ? put_version_2(&h, out) : put_version_1(&h, out);
}
