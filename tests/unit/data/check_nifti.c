/*
 * check_nifti.c - files that the reader must refuse with the field's name, files that it must
 * accept, and files that come back as written. The gallery changes one thing in a valid file; the
 * reader accepts the same file without the change.
 */
#include "integration/gallery/gallery_nifti.h"
#include "support/root.h"
#include "support/suite.h"

#include "data/nifti/nifti_read.h"
#include "data/nifti/nifti_write.h"
#include "data/reader/volume_read.h"
#include "data/volume/volume.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sanitizer ends a process that runs out of memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool memory_can_end = false;
#else
static const bool memory_can_end = true;
#endif

static char path_plain[96], path_gzip[96];

static void setup(void)
{
    make_root();
    snprintf(path_plain, sizeof path_plain, "%s/case.nii", root);
    snprintf(path_gzip, sizeof path_gzip, "%s/case.nii.gz", root);
}

static const char *write_made(const maker *m, int flags)
{
    unsigned char packed[8192];

    if (!(flags & MAKE_GZIP)) {
        maker_write(path_plain, m->bytes, m->size);
        return path_plain;
    }
    maker_write(path_gzip, packed, maker_gzip(m->bytes, m->size, packed, sizeof packed));
    return path_gzip;
}

static pons_status read_any(const char *path, int flags, volume *v, pons_error *err)
{
    return flags & MAKE_LABEL ? nifti_read_label(path, v, NULL, err)
                              : nifti_read_image(path, v, NULL, err);
}

static void assert_refused(const char *path, int flags, const char *phrase, const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };
    pons_status status = read_any(path, flags, &v, &err);

    ck_assert_msg(status == PONS_DATA, "%s: status %d (%s)", name, status, err.text);
    ck_assert_msg(err.status == PONS_DATA, "%s: error holds %d", name, err.status);
    ck_assert_msg(strstr(err.text, phrase) != NULL, "%s: '%s' is not in: %s", name, phrase,
                  err.text);
    ck_assert_msg(strstr(err.text, path) != NULL, "%s: the path is not in: %s", name, err.text);
    ck_assert_ptr_null(v.voxels);
}

/* Voxel (i, j, k) must have the value that the maker gave it. */
static void assert_accepted(const char *path, int flags, const char *name)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;
    pons_status status = read_any(path, flags, &v, &err);

    ck_assert_msg(status == PONS_OK, "%s: status %d (%s)", name, status, err.text);
    ck_assert_int_eq(v.extent[0], MAKER_I);
    ck_assert_int_eq(v.extent[1], MAKER_J);
    ck_assert_int_eq(v.extent[2], MAKER_K);
    for (int i = 0; i < MAKER_I; i++)
        for (int j = 0; j < MAKER_J; j++)
            for (int k = 0; k < MAKER_K; k++) {
                int in_file = (k * MAKER_J + j) * MAKER_I + i;
                int here = (i * MAKER_J + j) * MAKER_K + k;

                if (flags & MAKE_LABEL)
                    ck_assert_int_eq(((int32_t *)v.voxels)[here], in_file % 3);
                else
                    ck_assert_msg(((float *)v.voxels)[here] == (float)in_file,
                                  "%s: voxel %d %d %d is %g", name, i, j, k,
                                  (double)((float *)v.voxels)[here]);
            }
    ck_assert(fabs(v.affine[0][0] - 1.5) < 1e-6 && fabs(v.affine[1][1] - 2) < 1e-6 &&
              fabs(v.affine[2][2] - 3) < 1e-6);
    ck_assert(fabs(v.affine[0][3] + 7) < 1e-6 && fabs(v.affine[1][3] - 8) < 1e-6 &&
              fabs(v.affine[2][3] - 9) < 1e-6);
    pons_volume_clear(&v);
}

/* ---- one field changed ----------------------------------------------------------------------- */

START_TEST(a_changed_field_is_refused_and_named_and_the_unchanged_file_accepted)
{
    const exhibit *x = &nifti_gallery[_i];
    maker m;

    maker_base(&m, x->flags);
    assert_accepted(write_made(&m, x->flags), x->flags, x->name);
    maker_put_all(&m, x->change, 5);
    m.size = (size_t)((int)m.size + x->longer);
    assert_refused(write_made(&m, x->flags), x->flags, x->phrase, x->name);
}
END_TEST

/* ---- damage to the compressed stream --------------------------------------------------------- */

static size_t packed_base(unsigned char *out, size_t room)
{
    maker m;

    maker_base(&m, 0);
    return maker_gzip(m.bytes, m.size, out, room);
}

static void assert_packed_refused(const unsigned char *packed, size_t size, const char *phrase,
                                  const char *name)
{
    maker_write(path_gzip, packed, size);
    assert_refused(path_gzip, 0, phrase, name);
}

START_TEST(every_truncation_of_a_gzip_file_is_refused)
{
    unsigned char packed[8192];
    size_t size = packed_base(packed, sizeof packed);

    maker_write(path_gzip, packed, size);
    assert_accepted(path_gzip, 0, "whole");
    for (size_t n = 2; n < size; n++)
        assert_packed_refused(packed, n, "expected", "truncated");
}
END_TEST

START_TEST(a_wrong_checksum_or_length_is_refused)
{
    unsigned char packed[8192];
    size_t size = packed_base(packed, sizeof packed);

    for (size_t n = 1; n <= 8; n++) {
        packed[size - n] ^= 0x10;
        assert_packed_refused(packed, size, n > 4 ? "incorrect data check" : "incorrect length",
                              "trailer");
        packed[size - n] ^= 0x10;
    }
}
END_TEST

START_TEST(no_flipped_bit_of_the_compressed_data_gives_other_voxels)
{
    unsigned char packed[8192];
    size_t size = packed_base(packed, sizeof packed);

    for (size_t n = 10; n < size; n++)
        for (int bit = 0; bit < 8; bit += 3) {
            pons_error err = PONS_ERROR_INIT;
            volume v;

            packed[n] ^= (unsigned char)(1 << bit);
            maker_write(path_gzip, packed, size);
            if (nifti_read_image(path_gzip, &v, NULL, &err) == PONS_OK) {
                pons_volume_clear(&v); /* deflate ignores some bits */
                assert_accepted(path_gzip, 0, "flipped");
            } else {
                ck_assert_int_eq(err.status, PONS_DATA);
            }
            packed[n] ^= (unsigned char)(1 << bit);
        }
}
END_TEST

/* Leave 'left' bytes in one piece of all that malloc can give. */
static void exhaust_memory(size_t left)
{
    const struct rlimit none = { 0, 0 };
    void *volatile piece, *volatile taken; /* a compiler may remove an unused allocation */

    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_ARENA_MAX, 1);
    piece = malloc(left);
    setrlimit(RLIMIT_DATA, &none);
    for (size_t size = 1 << 20; size >= 16; size /= 2)
        do
            taken = malloc(size);
        while (taken != NULL);
    free(piece);
}

/* Exit code of a process that reads the file with 'left' bytes of memory. */
static int read_within(size_t left)
{
    pons_error err = PONS_ERROR_INIT;
    pid_t child = fork();
    int status;
    volume v;

    if (child == 0) {
        exhaust_memory(left);
        _exit(read_any(path_gzip, 0, &v, &err));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "%zu bytes: %d", left, status);
    return WEXITSTATUS(status);
}

START_TEST(lack_of_memory_is_not_reported_as_damage)
{
    unsigned char packed[8192];
    int ends[2] = { 0 };

    maker_write(path_gzip, packed, packed_base(packed, sizeof packed));
    for (size_t left = 256; left <= 1 << 15; left += 256) {
        int code = read_within(left);
        ck_assert_msg(code == PONS_OK || code == PONS_DEVICE, "%zu bytes: code %d", left, code);
        ends[code == PONS_OK]++;
    }
    ck_assert_int_gt(ends[0], 10); /* below and above the 7 KiB that zlib allocates first */
    ck_assert_int_gt(ends[1], 10);
}
END_TEST

START_TEST(bytes_after_the_stream_are_refused)
{
    unsigned char packed[8192];
    size_t size = packed_base(packed, sizeof packed);

    memcpy(packed + size, "garbage garbage", 15);
    assert_packed_refused(packed, size + 15, "has 15 bytes behind its end", "garbage");
    memset(packed + size, 0, 15);
    assert_packed_refused(packed, size + 15, "has 15 bytes behind its end", "zeros");
}
END_TEST

START_TEST(several_gzip_members_are_one_file)
{
    unsigned char packed[8192];
    maker m;

    for (size_t cut = 1; cut < 472; cut += 47) {
        size_t size;

        maker_base(&m, 0);
        size = maker_gzip(m.bytes, cut, packed, sizeof packed);
        size += maker_gzip(m.bytes + cut, m.size - cut, packed + size, sizeof packed - size);
        maker_write(path_gzip, packed, size);
        assert_accepted(path_gzip, 0, "two members");
    }
}
END_TEST

START_TEST(name_and_compression_must_agree)
{
    unsigned char packed[8192];
    size_t size = packed_base(packed, sizeof packed);
    maker m;

    maker_base(&m, 0);
    maker_write(path_plain, packed, size);
    assert_refused(path_plain, 0, "'.gz'", "compressed under a plain name");
    maker_write(path_gzip, m.bytes, m.size);
    assert_refused(path_gzip, 0, "expected 1f 8b", "plain under a compressed name");
}
END_TEST

START_TEST(an_irregular_file_is_refused_without_blocking)
{
    char fifo[96];

    snprintf(fifo, sizeof fifo, "%s/fifo.nii", root);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    assert_refused(fifo, 0, "expected a regular file", "fifo");
    assert_refused(root, 0, "it is a folder", "folder");
    assert_refused("/dev/zero", 0, "expected a regular file", "device");
    assert_refused("/nowhere/case.nii", 0, "No such file", "missing");
}
END_TEST

/* ---- accepted files -------------------------------------------------------------------------- */

START_TEST(both_versions_byte_orders_and_compressions_give_the_same_voxels)
{
    for (int flags = 0; flags < 32; flags++) {
        maker m;

        maker_base(&m, flags);
        assert_accepted(write_made(&m, flags), flags, "variant");
    }
}
END_TEST

static float first_value(const maker *m, int flags)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;
    float value;

    ck_assert_msg(!nifti_read_image(write_made(m, flags), &v, NULL, &err), "%s", err.text);
    value = ((float *)v.voxels)[12]; /* i = 1 is voxel 1 of the file */
    pons_volume_clear(&v);
    return value;
}

START_TEST(slope_and_intercept_are_applied_and_0_and_nan_mean_none)
{
    static const struct { double slope, intercept; float expected; } row[] = {
        { 2, 5, 7 }, { -0.5, 0, -0.5f }, { 0, 5, 1 }, { NAN, 5, 1 }, { 1, 0, 1 }, { NAN, NAN, 1 },
    };

    for (size_t n = 0; n < sizeof row / sizeof row[0]; n++) {
        edit e[] = { NUMBER(112, 'f', row[n].slope), NUMBER(116, 'f', row[n].intercept) };
        maker m;

        maker_base(&m, 0);
        maker_put_all(&m, e, 2);
        ck_assert_float_eq(first_value(&m, 0), row[n].expected);
    }
}
END_TEST

START_TEST(every_type_is_read_in_both_byte_orders)
{
    static const struct { int code, bits; char type; double value; float expected; } row[] = {
        { 2, 8, 'b', -1, 255 }, { 256, 8, 'b', -1, -1 }, { 4, 16, 'h', -300, -300 },
        { 512, 16, 'h', -1, 65535 }, { 8, 32, 'i', -70000, -70000 },
        { 768, 32, 'i', -1, 4294967296.0f }, { 1024, 64, 'q', -1e10, -1e10f },
        { 1280, 64, 'q', 1e10, 1e10f }, { 16, 32, 'f', 1.25, 1.25f }, { 64, 64, 'd', 0.1, 0.1f },
    };

    for (size_t n = 0; n < sizeof row / sizeof row[0]; n++)
        for (int big = 0; big <= MAKE_BIG; big += MAKE_BIG) {
            edit type[] = { NUMBER(70, 'h', row[n].code), NUMBER(72, 'h', row[n].bits),
                            NUMBER(352 + row[n].bits / 8, row[n].type, row[n].value) };
            maker m;

            maker_base(&m, big);
            memset(m.bytes + 352, 0, sizeof m.bytes - 352);
            maker_put_all(&m, type, 3);
            m.size = 352 + (size_t)(MAKER_COUNT * row[n].bits / 8);
            ck_assert_float_eq(first_value(&m, 0), row[n].expected);
        }
}
END_TEST

/* The value of voxel n in file order differs from its neighbours' along every axis. */
static int odd_value(int64_t n)
{
    return (int)((n * 37 + n / 7) % 199);
}

/*
 * Write a file of this extent and type ('b' code 2, 'h' code 4, 'f' code 16); voxel 5 holds
 * 'fifth'.
 */
static const char *write_odd(const int64_t extent[3], char type, double fifth)
{
    int64_t count = extent[0] * extent[1] * extent[2], size = type == 'b' ? 1 : type == 'h' ? 2 : 4;
    edit e[] = { NUMBER(42, 'h', extent[0]), NUMBER(44, 'h', extent[1]), NUMBER(46, 'h', extent[2]),
                 NUMBER(70, 'h', size == 1 ? 2 : size == 2 ? 4 : 16), NUMBER(72, 'h', 8 * size) };
    unsigned char *bytes = calloc(1, (size_t)(352 + count * size));
    maker m;

    maker_base(&m, 0);
    maker_put_all(&m, e, 5);
    memcpy(bytes, m.bytes, 352);
    for (int64_t n = 0; n < count; n++) {
        edit voxel = { 0, type, n == 5 ? fifth : odd_value(n), NULL };
        maker_put(&m, &voxel);
        memcpy(bytes + 352 + n * size, m.bytes, (size_t)size);
    }
    maker_write(path_plain, bytes, (size_t)(352 + count * size));
    free(bytes);
    return path_plain;
}

static double value_at(const volume *v, int64_t at)
{
    return v->type == PONS_F32   ? (double)((float *)v->voxels)[at]
           : v->type == PONS_I32 ? ((int32_t *)v->voxels)[at]
                                 : ((uint8_t *)v->voxels)[at];
}

static void assert_odd(const volume *v, double fifth)
{
    const int64_t *n = v->extent;

    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[1]; j++)
            for (int64_t k = 0; k < n[2]; k++) {
                int64_t in_file = (k * n[1] + j) * n[0] + i;
                ck_assert_double_eq(value_at(v, (i * n[1] + j) * n[2] + k),
                                    in_file == 5 ? fifth : odd_value(in_file));
            }
}

START_TEST(voxels_are_ordered_correctly_for_every_extent)
{
    static const int64_t extents[][3] = { { 67, 3, 37 }, { 16, 2, 16 }, { 1, 1, 131 },
                                          { 131, 1, 1 }, { 3, 5, 18 }, { 128, 2, 33 } };

    for (size_t x = 0; x < sizeof extents / sizeof *extents; x++)
        for (const char *type = "bhf"; *type; type++) {
            pons_error err = PONS_ERROR_INIT;
            volume v;

            write_odd(extents[x], *type, 3);
            ck_assert(!nifti_read_image(path_plain, &v, NULL, &err));
            assert_odd(&v, 3);
            pons_volume_clear(&v);
            ck_assert(!nifti_read_label(path_plain, &v, NULL, &err));
            ck_assert_int_eq(v.type, PONS_I32);
            assert_odd(&v, 3);
            pons_volume_clear(&v);
            ck_assert(!nifti_read_label_compact(path_plain, &v, NULL, &err));
            ck_assert_int_eq(v.type, PONS_U8);
            assert_odd(&v, 3);
            pons_volume_clear(&v);
        }
}
END_TEST

START_TEST(a_label_id_above_255_is_kept)
{
    static const int64_t extent[3] = { 67, 3, 37 };
    static const double ids[] = { 256, -1, 20000 };

    for (size_t n = 0; n < 3; n++)
        for (const char *type = "hf"; *type; type++) {
            pons_error err = PONS_ERROR_INIT;
            volume v;

            write_odd(extent, *type, ids[n]);
            ck_assert(!nifti_read_label_compact(path_plain, &v, NULL, &err));
            ck_assert_int_eq(v.type, PONS_I32);
            assert_odd(&v, ids[n]);
            pons_volume_clear(&v);
        }
}
END_TEST

START_TEST(a_nan_voxel_is_named_by_its_position)
{
    static const int64_t extent[3] = { 67, 3, 37 };
    pons_error err = PONS_ERROR_INIT, other = PONS_ERROR_INIT;
    volume v = { .voxels = NULL };

    write_odd(extent, 'f', NAN);
    ck_assert_int_eq(nifti_read_image(path_plain, &v, NULL, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "1 voxel is not finite, the first nan at 5 0 0"));
    write_odd(extent, 'f', 0.5);
    ck_assert_int_eq(nifti_read_label_compact(path_plain, &v, NULL, &other), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(other.text, "1 voxel is no label, the first 0.5 at 5 0 0"));
    ck_assert_ptr_null(v.voxels);
}
END_TEST

START_TEST(channels_become_the_innermost_axis)
{
    edit e[] = { NUMBER(40, 'h', 4), NUMBER(46, 'h', 1), NUMBER(48, 'h', 3) };
    pons_error err = PONS_ERROR_INIT;
    maker m;
    volume v;

    maker_base(&m, 0);
    maker_put_all(&m, e, 3);
    ck_assert(!nifti_read_image(write_made(&m, 0), &v, NULL, &err));
    ck_assert_int_eq(v.channels, 3);
    for (int i = 0; i < MAKER_I; i++)
        for (int j = 0; j < MAKER_J; j++)
            for (int c = 0; c < 3; c++)
                ck_assert_float_eq(((float *)v.voxels)[(i * MAKER_J + j) * 3 + c],
                                   (float)((c * MAKER_J + j) * MAKER_I + i));
    pons_volume_clear(&v);
}
END_TEST

START_TEST(a_flat_file_may_leave_its_third_spacing_open)
{
    edit e[] = { NUMBER(40, 'h', 2), NUMBER(44, 'h', MAKER_J * MAKER_K), NUMBER(46, 'h', 0),
                 NUMBER(88, 'f', 0) };
    pons_error err = PONS_ERROR_INIT;
    maker m;
    volume v;

    maker_base(&m, 0);
    maker_put_all(&m, e, 4);
    edit form = NUMBER(252, 'h', 0);
    maker_put(&m, &form);
    ck_assert_msg(!nifti_read_image(write_made(&m, 0), &v, NULL, &err), "%s", err.text);
    ck_assert_int_eq(v.extent[1], MAKER_J * MAKER_K);
    ck_assert_int_eq(v.extent[2], 1);
    pons_volume_clear(&v);
}
END_TEST

/* The field dim[0] of a file of version 1. */
static int axes_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    int16_t axes = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 40, SEEK_SET), 0);
    ck_assert_uint_eq(fread(&axes, sizeof axes, 1, file), 1);
    fclose(file);
    return axes;
}

START_TEST(a_flat_file_is_written_as_a_flat_file)
{
    edit e[] = { NUMBER(40, 'h', 2), NUMBER(44, 'h', MAKER_J * MAKER_K), NUMBER(46, 'h', 1) };
    pons_error err = PONS_ERROR_INIT;
    volume_facts facts;
    volume v, deep;
    maker m;

    maker_base(&m, 0);
    maker_put_all(&m, e, 3);
    ck_assert_msg(!nifti_read_image(write_made(&m, 0), &v, &facts, &err), "%s", err.text);
    ck_assert_msg(!nifti_write(path_plain, &v, &facts.grid, &err), "%s", err.text);
    ck_assert_int_eq(axes_of(path_plain), 2);
    ck_assert(!nifti_write(path_plain, &v, NULL, &err));
    ck_assert_int_eq(axes_of(path_plain), 3);
    /* Several channels need the fourth axis, several slices the third. */
    ck_assert_int_eq(pons_volume_init(&deep, PONS_F32, 2, v.extent, &err), PONS_OK);
    ck_assert(!nifti_write(path_plain, &deep, &facts.grid, &err));
    ck_assert_int_eq(axes_of(path_plain), 4);
    pons_volume_clear(&deep);
    facts.grid.extent[2] = 2;
    ck_assert_int_eq(pons_volume_init(&deep, PONS_U8, 1, facts.grid.extent, &err), PONS_OK);
    ck_assert(!nifti_write(path_plain, &deep, &facts.grid, &err));
    ck_assert_int_eq(axes_of(path_plain), 3);
    pons_volume_clear(&deep);
    pons_volume_clear(&v);
}
END_TEST

START_TEST(bytes_of_an_extension_are_skipped)
{
    edit e = NUMBER(108, 'f', 352 + 32);

    for (int flags = 0; flags <= MAKE_GZIP; flags++) {
        maker m;

        maker_base(&m, flags);
        maker_put(&m, &e);
        memmove(m.bytes + 384, m.bytes + 352, 120);
        memset(m.bytes + 352, 'x', 32);
        m.size += 32;
        assert_accepted(write_made(&m, flags), flags, "extension");
    }
}
END_TEST

START_TEST(the_sform_is_in_force_unless_its_code_is_0)
{
    edit far[] = { NUMBER(252, 'h', 0), NUMBER(268, 'f', 500) };
    edit near[] = { NUMBER(254, 'h', 0), NUMBER(292, 'f', 500) };
    maker m;

    maker_base(&m, 0);
    maker_put_all(&m, far, 2);
    assert_accepted(write_made(&m, 0), 0, "sform");
    maker_base(&m, 0);
    maker_put_all(&m, near, 2);
    assert_accepted(write_made(&m, 0), 0, "qform");
}
END_TEST

START_TEST(micrometres_become_millimetres)
{
    edit e = NUMBER(123, 'b', 3);
    pons_error err = PONS_ERROR_INIT;
    volume_facts facts;
    maker m;

    maker_base(&m, 0);
    maker_put(&m, &e);
    ck_assert(!nifti_read_facts(write_made(&m, 0), &facts, &err));
    ck_assert_double_eq_tol(facts.grid.spacing[0], 0.0015, 1e-9);
    ck_assert_double_eq_tol(facts.grid.affine[2][3], 0.009, 1e-9);
    ck_assert_double_eq_tol(facts.grid.sform[2][3], 9, 1e-9);
}
END_TEST

/* A turn by 180 degrees; its quaternion has length 1 up to float32 rounding or six decimals. */
START_TEST(a_quaternion_of_length_1_up_to_rounding_is_a_turn)
{
    static const double turned[] = { 1, 1.0000001, 1.000002 };
    edit e[] = { NUMBER(254, 'h', 0), NUMBER(264, 'f', turned[_i]) };
    pons_error err = PONS_ERROR_INIT;
    volume_facts facts;
    maker m;

    maker_base(&m, 0);
    maker_put_all(&m, e, 2);
    ck_assert_msg(!nifti_read_facts(write_made(&m, 0), &facts, &err), "%s", err.text);
    ck_assert_double_eq_tol(facts.grid.affine[0][0], -1.5, 1e-5);
    ck_assert_double_eq_tol(facts.grid.affine[1][1], -2, 1e-5);
    ck_assert_double_eq_tol(facts.grid.affine[2][2], 3, 1e-5);
}
END_TEST

/* ---- writing --------------------------------------------------------------------------------- */

/* The volume is oblique and has three different extents and spacings. */
static void make_volume(volume *v, pons_type type, int channels)
{
    static const int64_t extent[3] = { 7, 5, 18 };
    static const double affine[3][4] = { { 0.9 * 0.8, -2 * 0.6, 0, -31.5 },
                                         { 0.9 * 0.6, 2 * 0.8, 0, 12.25 },
                                         { 0, 0, 3.5, 100 } };
    pons_error err = PONS_ERROR_INIT;

    ck_assert(!pons_volume_init(v, type, channels, extent, &err));
    memcpy(v->affine, affine, sizeof affine);
    for (int n = 0; n < 7 * 5 * 18 * channels; n++)
        if (type == PONS_F32)
            ((float *)v->voxels)[n] = (float)n * 0.37f - 20;
        else if (type == PONS_U8)
            ((uint8_t *)v->voxels)[n] = (uint8_t)(n * 7);
        else
            ((int32_t *)v->voxels)[n] = n;
}

START_TEST(a_written_volume_is_read_back)
{
    const char *const name[] = { "new/folder/a.nii", "new/b.nii.gz" };

    for (int n = 0; n < 4; n++) {
        char path[128];
        pons_error err = PONS_ERROR_INIT;
        volume v, back;
        volume_facts facts;

        make_volume(&v, PONS_F32, n < 2 ? 1 : 2);
        snprintf(path, sizeof path, "%s/%s", root, name[n % 2]);
        ck_assert_msg(!nifti_write(path, &v, NULL, &err), "%s", err.text);
        ck_assert_msg(!nifti_read_image(path, &back, &facts, &err), "%s", err.text);
        ck_assert_int_eq(facts.datatype, 16);
        ck_assert_int_eq(back.channels, v.channels);
        ck_assert(!memcmp(v.voxels, back.voxels, pons_volume_size(&v)));
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 4; c++) {
                ck_assert_double_eq_tol(back.affine[r][c], v.affine[r][c], 1e-5);
                ck_assert_double_eq_tol(facts.grid.qform[r][c], v.affine[r][c], 1e-5);
            }
        pons_volume_clear(&v);
        pons_volume_clear(&back);
    }
}
END_TEST

START_TEST(labels_are_written_in_the_smallest_type_that_holds_them)
{
    pons_error err = PONS_ERROR_INIT;
    volume v, back;
    volume_facts facts;

    make_volume(&v, PONS_U8, 1);
    ck_assert(!nifti_write(path_gzip, &v, NULL, &err));
    ck_assert(!nifti_read_label(path_gzip, &back, &facts, &err));
    ck_assert_int_eq(facts.datatype, 2);
    for (int n = 0; n < 630; n++)
        ck_assert_int_eq(((int32_t *)back.voxels)[n], ((uint8_t *)v.voxels)[n]);
    pons_volume_clear(&v);
    pons_volume_clear(&back);
    make_volume(&v, PONS_I32, 1);
    ck_assert(!nifti_write(path_gzip, &v, NULL, &err));
    ck_assert(!nifti_read_label(path_gzip, &back, &facts, &err));
    ck_assert_int_eq(facts.datatype, 512);
    ck_assert(!memcmp(v.voxels, back.voxels, pons_volume_size(&v)));
    pons_volume_clear(&v);
    pons_volume_clear(&back);
}
END_TEST

START_TEST(forms_codes_and_units_are_copied_between_files)
{
    edit e[] = { NUMBER(252, 'h', 3), NUMBER(254, 'h', 2), NUMBER(123, 'b', 10),
                 NUMBER(292, 'f', -7.05) };
    pons_error err = PONS_ERROR_INIT;
    volume_facts before, after;
    volume v;
    maker m;

    maker_base(&m, 0);
    maker_put_all(&m, e, 4);
    ck_assert_msg(!nifti_read_image(write_made(&m, 0), &v, &before, &err), "%s", err.text);
    ck_assert_msg(!nifti_write(path_gzip, &v, &before.grid, &err), "%s", err.text);
    ck_assert(!nifti_read_facts(path_gzip, &after, &err));
    ck_assert_int_eq(after.grid.qform_code, 3);
    ck_assert_int_eq(after.grid.sform_code, 2);
    ck_assert_int_eq(after.grid.units, 10);
    ck_assert_double_eq_tol(after.grid.sform[0][3], -7.05, 1e-6);
    ck_assert_double_eq_tol(after.grid.qform[0][3], -7, 1e-6);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 4; c++)
            ck_assert_double_eq_tol(after.grid.qform[r][c], before.grid.qform[r][c], 1e-6);
    pons_volume_clear(&v);
}
END_TEST

START_TEST(a_long_axis_is_written_as_version_2)
{
    static const int64_t extent[3] = { 2, 40000, 1 };
    pons_error err = PONS_ERROR_INIT;
    volume v;
    volume_facts facts;

    ck_assert(!pons_volume_init(&v, PONS_U8, 1, extent, &err));
    ((uint8_t *)v.voxels)[79999] = 9;
    ck_assert(!nifti_write(path_gzip, &v, NULL, &err));
    pons_volume_clear(&v);
    ck_assert_msg(!nifti_read_image(path_gzip, &v, &facts, &err), "%s", err.text);
    ck_assert_int_eq(facts.nifti, 2);
    ck_assert_float_eq(((float *)v.voxels)[79999], 9);
    pons_volume_clear(&v);
}
END_TEST

static size_t file_bytes(const char *path, unsigned char *out, size_t room)
{
    FILE *f = fopen(path, "rb");
    size_t size;

    ck_assert_ptr_nonnull(f);
    size = fread(out, 1, room, f);
    fclose(f);
    return size;
}

START_TEST(the_same_volume_gives_the_same_bytes)
{
    static unsigned char a[65536], b[65536];
    pons_error err = PONS_ERROR_INIT;
    volume v;
    size_t size;

    make_volume(&v, PONS_F32, 1);
    ck_assert(!nifti_write(path_gzip, &v, NULL, &err));
    size = file_bytes(path_gzip, a, sizeof a);
    ck_assert_int_eq(a[4] | a[5] | a[6] | a[7], 0); /* the time field of gzip */
    ck_assert_int_eq(unlink(path_gzip), 0);
    ck_assert(!nifti_write(path_gzip, &v, NULL, &err));
    ck_assert_uint_eq(file_bytes(path_gzip, b, sizeof b), size);
    ck_assert(!memcmp(a, b, size));
    pons_volume_clear(&v);
}
END_TEST

START_TEST(writing_to_a_name_without_nifti_suffix_is_refused)
{
    pons_error err = PONS_ERROR_INIT;
    volume v;

    make_volume(&v, PONS_U8, 1);
    ck_assert_int_eq(nifti_write("/tmp/pons-x.png", &v, NULL, &err), PONS_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "'.nii.gz'"));
    pons_volume_clear(&v);
}
END_TEST

START_TEST(channels_come_from_several_files_with_one_grid)
{
    edit moved = NUMBER(292, 'f', -6), other = NUMBER(254, 'h', 1);
    char second[96];
    const char *const path[] = { path_plain, second };
    pons_error err = PONS_ERROR_INIT;
    volume_grid grid;
    volume v;
    maker m;

    snprintf(second, sizeof second, "%s/second.nii", root);
    maker_base(&m, 0);
    maker_write(path_plain, m.bytes, m.size);
    maker_write(second, m.bytes, m.size);
    ck_assert_msg(!volume_read_channels(2, path, &v, &grid, &err), "%s", err.text);
    ck_assert_int_eq(v.channels, 2);
    ck_assert_float_eq(((float *)v.voxels)[25], ((float *)v.voxels)[24]);
    ck_assert_float_eq(((float *)v.voxels)[25], 1);
    pons_volume_clear(&v);
    maker_put(&m, &moved);
    maker_put(&m, &other);
    edit no_q = NUMBER(252, 'h', 0);
    maker_put(&m, &no_q);
    maker_write(second, m.bytes, m.size);
    ck_assert_int_eq(volume_read_channels(2, path, &v, &grid, &err), PONS_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "lies elsewhere"));
    ck_assert_ptr_null(strstr(err.text, "spacing"));
}
END_TEST

int main(void)
{
    TCase *c = suite_new("nifti");

    tcase_add_checked_fixture(c, setup, remove_root);
    tcase_add_loop_test(c, a_changed_field_is_refused_and_named_and_the_unchanged_file_accepted, 0,
                        NIFTI_GALLERY_COUNT);
    tcase_add_test(c, every_truncation_of_a_gzip_file_is_refused);
    tcase_add_test(c, a_wrong_checksum_or_length_is_refused);
    tcase_add_test(c, no_flipped_bit_of_the_compressed_data_gives_other_voxels);
    suite_add_test_if(c, memory_can_end, "no sanitizer", lack_of_memory_is_not_reported_as_damage);
    tcase_add_test(c, bytes_after_the_stream_are_refused);
    tcase_add_test(c, several_gzip_members_are_one_file);
    tcase_add_test(c, name_and_compression_must_agree);
    tcase_add_test(c, an_irregular_file_is_refused_without_blocking);
    tcase_add_test(c, both_versions_byte_orders_and_compressions_give_the_same_voxels);
    tcase_add_test(c, slope_and_intercept_are_applied_and_0_and_nan_mean_none);
    tcase_add_test(c, every_type_is_read_in_both_byte_orders);
    tcase_add_test(c, voxels_are_ordered_correctly_for_every_extent);
    tcase_add_test(c, a_label_id_above_255_is_kept);
    tcase_add_test(c, a_nan_voxel_is_named_by_its_position);
    tcase_add_test(c, channels_become_the_innermost_axis);
    tcase_add_test(c, a_flat_file_may_leave_its_third_spacing_open);
    tcase_add_test(c, a_flat_file_is_written_as_a_flat_file);
    tcase_add_test(c, bytes_of_an_extension_are_skipped);
    tcase_add_test(c, the_sform_is_in_force_unless_its_code_is_0);
    tcase_add_test(c, micrometres_become_millimetres);
    tcase_add_loop_test(c, a_quaternion_of_length_1_up_to_rounding_is_a_turn, 0, 3);
    tcase_add_test(c, a_written_volume_is_read_back);
    tcase_add_test(c, labels_are_written_in_the_smallest_type_that_holds_them);
    tcase_add_test(c, forms_codes_and_units_are_copied_between_files);
    tcase_add_test(c, a_long_axis_is_written_as_version_2);
    tcase_add_test(c, the_same_volume_gives_the_same_bytes);
    tcase_add_test(c, writing_to_a_name_without_nifti_suffix_is_refused);
    tcase_add_test(c, channels_come_from_several_files_with_one_grid);
    return suite_run();
}
